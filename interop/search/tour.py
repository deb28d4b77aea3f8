"""A tour of the embedded search service: tour.py sync|async <url> <admin key> <query key> <blobs>

Runs with both generations of azure-search-documents; `<blobs>` is the service's folder of containers. For an https
address, REQUESTS_CA_BUNDLE and SSL_CERT_FILE name the authority to trust: the package's own clients for the buffered
sender take no other setting."""

import asyncio
import sys

from report import run
from sdk import Sdk

# Each module adds its checks. Later ones use the objects that earlier ones have created.
import definitions  # noqa: F401
import documents  # noqa: F401
import queries  # noqa: F401
import typing_help  # noqa: F401
import vectors  # noqa: F401
import indexing  # noqa: F401
import knowledge  # noqa: F401
import leaving  # noqa: F401


async def main():
    sdk = Sdk(*sys.argv[1:])
    try:
        return await run(sdk)
    finally:
        await sdk.close()


sys.exit(1 if asyncio.run(main()) else 0)
