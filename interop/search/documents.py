"""Documents: written, changed, read, counted and deleted, one by one and in batches."""

from azure.search.documents import IndexDocumentsBatch
from azure.search.documents.indexes.models import SearchableField, SearchIndex, SimpleField

from hotels import HOTELS
from report import check, has, refused, same
from sdk import rows


def outcomes(results):
    return [(result.key, result.succeeded, result.status_code) for result in results]


async def keys(paged):
    return [row["id"] for row in await rows(paged)]


@check
async def documents_are_uploaded(sdk):
    documents = sdk.documents("hotels")
    same(outcomes(await documents.upload_documents(HOTELS)), [(hotel["id"], True, 201) for hotel in HOTELS])
    same(outcomes(await documents.upload_documents(HOTELS[:1])), [("1", True, 200)])


@check
async def what_was_written_is_found_at_once(sdk):
    documents = sdk.documents("hotels")
    for round in range(5):
        await documents.upload_documents([{"id": "fresh", "name": f"Fresh number{round}"}])
        same(await keys(documents.search(f"number{round}", search_fields=["name"])), ["fresh"])
        same(await documents.get_document_count(), 6)
        await documents.delete_documents([{"id": "fresh"}])
        same(await keys(documents.search(f"number{round}")), [])
        same(await documents.get_document_count(), 5)


@check
async def documents_are_merged(sdk):
    documents = sdk.documents("hotels")
    same(outcomes(await documents.merge_documents([{"id": "1", "motto": "Be grand"}])), [("1", True, 200)])
    read = await documents.get_document("1")
    same((read["motto"], read["name"], read["rooms"]), ("Be grand", "Grand Hotel", 200))
    results = await documents.merge_or_upload_documents([{"id": "1", "motto": None}, {"id": "6", "name": "Six"}])
    same(outcomes(results), [("1", True, 200), ("6", True, 201)])
    same((await documents.get_document("1"))["motto"], None)
    same(outcomes(await documents.delete_documents([{"id": "6"}])), [("6", True, 200)])


@check
async def a_batch_can_fail_in_part(sdk):
    documents = sdk.documents("hotels")
    results = await documents.merge_documents([{"id": "1", "motto": "x"}, {"id": "missing", "motto": "y"}])
    same(outcomes(results), [("1", True, 200), ("missing", False, 404)])
    same(bool(results[1].error_message), True)
    same(outcomes(await documents.delete_documents([{"id": "missing"}])), [("missing", True, 200)])
    await documents.merge_documents([{"id": "1", "motto": None}])


@check
async def a_batch_mixes_actions(sdk):
    batch = IndexDocumentsBatch()
    batch.add_upload_actions([{"id": "7", "name": "Seven"}])
    batch.add_merge_actions([{"id": "7", "motto": "Lucky"}])
    batch.add_delete_actions([{"id": "7"}])
    results = await sdk.documents("hotels").index_documents(batch)
    same(outcomes(results), [("7", True, 201), ("7", True, 200), ("7", True, 200)])


@check
async def a_document_is_looked_up(sdk):
    documents = sdk.documents("hotels")
    read = await documents.get_document("4")
    # Vectors are returned only if their field is retrievable.
    same({name: value for name, value in plain(read).items() if value is not None}, plain(HOTELS[3]))
    same(read["place"]["coordinates"], HOTELS[3]["place"]["coordinates"])
    chosen = await documents.get_document("1", selected_fields=["id", "address/city"])
    same(dict(chosen), {"id": "1", "address": {"city": "Seattle"}})
    await refused(404, documents.get_document("missing"))
    await refused(404, documents.get_document("a/b'c"))
    await refused(400, documents.get_document("1", selected_fields=["nope"]))


def plain(document):
    return {name: value for name, value in document.items() if name not in ("place", "w", "rating")}


@check
async def a_key_with_forbidden_signs_is_refused(sdk):
    documents = sdk.documents("hotels")
    for key in ["a/b'c", "_a"]:
        has(await refused(400, documents.upload_documents([{"id": "fine"}, {"id": key}])), "Base64")
    await refused(404, documents.get_document("fine"))
    same(outcomes(await documents.upload_documents([{"id": "a-b_c=1"}])), [("a-b_c=1", True, 201)])
    same((await documents.get_document("a-b_c=1"))["id"], "a-b_c=1")
    await documents.delete_documents([{"id": "a-b_c=1"}])


@check
async def wrong_documents_are_refused(sdk):
    documents = sdk.documents("hotels")
    has(await refused(400, documents.upload_documents([{"id": "8", "nope": 1}])), "nope")
    has(await refused(400, documents.upload_documents([{"id": "8", "rooms": "many"}])), "rooms")
    has(await refused(400, documents.upload_documents([{"name": "no key"}])), "key")
    await refused(404, sdk.documents("nothing").upload_documents([{"id": "1"}]))


@check
async def a_buffered_sender_sends_all(sdk):
    fields = [
        SimpleField(name="id", type="Edm.String", key=True, filterable=True, sortable=True),
        SearchableField(name="text", type="Edm.String"),
        SimpleField(name="number", type="Edm.Int32", filterable=True, sortable=True),
    ]
    await sdk.indexes.create_index(SearchIndex(name=sdk.name("many"), fields=fields))
    failed = []
    sender = sdk.sender("many", initial_batch_action_count=100, on_error=failed.append)
    documents = [{"id": f"{number:05}", "text": f"text {number}", "number": number} for number in range(2500)]
    # In small batches, because the package searches every result among all documents of the batch.
    for start in range(0, 2500, 100):
        await sender.upload_documents(documents[start : start + 100])
    await sender.merge_documents([{"id": "00007", "text": "seven"}])
    await sender.delete_documents([{"id": "02499"}])
    await sender.flush()
    await sender.close()
    same(failed, [])
    same(await sdk.documents("many").get_document_count(), 2499)
    same((await sdk.documents("many").get_document("00007"))["text"], "seven")


@check
async def statistics_count_documents(sdk):
    of_index = await sdk.indexes.get_index_statistics(sdk.name("many"))
    same(number(of_index, "document_count", "documentCount"), 2499)
    of_service = await sdk.indexes.get_service_statistics()
    counters = number(of_service, "counters", "counters")
    indexes = number(counters, "index_counter", "index_counter", "indexesCount", "indexCounter")
    same(number(indexes, "usage", "usage") >= 2, True)
    if hasattr(sdk.indexes.client, "list_index_stats_summary"):
        summaries = await rows(sdk.indexes.list_index_stats_summary())
        has([(summary.name, summary.document_count) for summary in summaries], (sdk.name("many"), 2499))


def number(holder, *names):
    """The generations differ in whether statistics are a model or a dictionary."""
    for name in names:
        if hasattr(holder, name):
            return getattr(holder, name)
        if isinstance(holder, dict) and name in holder:
            return holder[name]
    raise AssertionError(f"{holder!r} has none of {names}")
