"""The clients of the package, with one interface for sync and async and for both generations."""

import inspect
from contextlib import AsyncExitStack
from importlib.metadata import version

import azure.search.documents as plain
import azure.search.documents.aio as later
import azure.search.documents.indexes as plain_indexes
import azure.search.documents.indexes.aio as later_indexes
from azure.core.credentials import AzureKeyCredential

try:
    import azure.search.documents.agent as plain_knowledge
    import azure.search.documents.agent.aio as later_knowledge

    AGENTS = True
except ImportError:
    import azure.search.documents.knowledgebases as plain_knowledge
    import azure.search.documents.knowledgebases.aio as later_knowledge

    AGENTS = False


async def done(value):
    return await value if inspect.isawaitable(value) else value


async def rows(paged):
    """Returns all items of a list or a search, over all pages."""
    paged = await done(paged)
    if hasattr(paged, "__aiter__"):
        return [row async for row in paged]
    return list(paged)


async def pages(paged):
    """Returns the items page by page."""
    paged = await done(paged)
    if hasattr(paged, "__aiter__"):
        return [[row async for row in page] async for page in paged.by_page()]
    return [list(page) for page in paged.by_page()]


class Waiting:
    """A client whose functions are all awaited, even if the client itself is not async."""

    def __init__(self, client):
        self.client = client

    def __getattr__(self, name):
        function = getattr(self.client, name)

        async def call(*args, **kwargs):
            return await done(function(*args, **kwargs))

        return call


class Sdk:
    """One tour: the address of the service, the clients, and the names of its objects."""

    def __init__(self, mode, url, admin_key, query_key, blobs):
        self.url, self.admin_key, self.query_key, self.blobs = url, admin_key, query_key, blobs
        # Successive runs share the service.
        generation = version("azure-search-documents").split(".")[0]
        self.prefix = f"tour{generation}-{mode}"
        self.is_async = mode == "async"
        documents, indexes = (later, later_indexes) if self.is_async else (plain, plain_indexes)
        self._knowledge = later_knowledge if self.is_async else plain_knowledge
        self._documents, self._sender = documents.SearchClient, documents.SearchIndexingBufferedSender
        self._indexes, self._indexers = indexes.SearchIndexClient, indexes.SearchIndexerClient
        self._open = AsyncExitStack()
        self.indexes = self._enter(self._indexes(url, AzureKeyCredential(admin_key)))
        self.indexers = self._enter(self._indexers(url, AzureKeyCredential(admin_key)))

    def name(self, what):
        return f"{self.prefix}-{what}"

    def documents(self, index, key=None):
        credential = AzureKeyCredential(key or self.admin_key)
        return self._enter(self._documents(self.url, self.name(index), credential))

    def indexes_with(self, key):
        return self._enter(self._indexes(self.url, AzureKeyCredential(key)))

    def sender(self, index, **options):
        credential = AzureKeyCredential(self.admin_key)
        return Waiting(self._sender(self.url, self.name(index), credential, **options))

    def retrieval(self, name):
        credential = AzureKeyCredential(self.admin_key)
        if AGENTS:
            client = self._knowledge.KnowledgeAgentRetrievalClient(self.url, name, credential)
        else:
            client = self._knowledge.KnowledgeBaseRetrievalClient(
                self.url, credential, knowledge_base_name=name
            )
        return self._enter(client)

    def _enter(self, client):
        waiting = Waiting(client)
        self._open.push_async_callback(waiting.close)
        return waiting

    async def close(self):
        await self._open.aclose()
