"""Data sources, skillsets and indexers: files of a folder become documents."""

import asyncio
import json
from pathlib import Path

from azure.core import MatchConditions
from azure.search.documents.indexes.models import (
    FieldMapping,
    FieldMappingFunction,
    IndexingParameters,
    IndexingParametersConfiguration,
    InputFieldMappingEntry,
    OutputFieldMappingEntry,
    SearchableField,
    SearchIndex,
    SearchIndexer,
    SearchIndexerDataContainer,
    SearchIndexerDataSourceConnection,
    SearchIndexerSkillset,
    SimpleField,
    SplitSkill,
)

from report import Skip, check, has, refused, same
from sdk import rows


def data_source(name, container):
    return SearchIndexerDataSourceConnection(
        name=name,
        type="azureblob",
        connection_string="UseDevelopmentStorage=true",
        container=SearchIndexerDataContainer(name=container),
    )


def write(sdk, container, name, text):
    folder = Path(sdk.blobs) / sdk.name(container)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def configured(**how):
    # Without these values the older generation sends its own defaults: a database timeout, and tolerance of bad files.
    configuration = IndexingParametersConfiguration(query_timeout=None, fail_on_unprocessable_document=True, **how)
    return IndexingParameters(configuration=configuration)


async def source(sdk, container):
    await sdk.indexers.create_or_update_data_source_connection(
        data_source(sdk.name(container), sdk.name(container))
    )
    return sdk.name(container)


async def ended(sdk, name, runs):
    """Waits until an indexer has finished this many runs, and returns its status."""
    while True:
        status = await sdk.indexers.get_indexer_status(name)
        history = [run for run in status.execution_history if run.status not in ("inProgress", "reset")]
        if len(history) >= runs:
            return status
        await asyncio.sleep(0.05)


async def items(sdk, filter):
    found = await rows(sdk.documents("items").search("*", filter=filter, order_by=["id"]))
    return {row["id"]: (row["title"], row["amount"]) for row in found}


@check
async def data_sources_come_and_go(sdk):
    name = sdk.name("source")
    made = await sdk.indexers.create_data_source_connection(data_source(name, "files"))
    same((made.name, made.container.name), (name, "files"))
    read = await sdk.indexers.get_data_source_connection(name)
    same((read.type, read.connection_string), ("azureblob", None))
    has([one.name for one in await sdk.indexers.get_data_source_connections()], name)
    has(await sdk.indexers.get_data_source_connection_names(), name)
    # The definition is written back without the secret, which is kept.
    read.description = "files of a folder"
    changed = await sdk.indexers.create_or_update_data_source_connection(read)
    same(changed.description, "files of a folder")
    stale = sdk.indexers.create_or_update_data_source_connection(made, match_condition=MatchConditions.IfNotModified)
    await refused(412, stale)
    await sdk.indexers.delete_data_source_connection(name)
    await refused(404, sdk.indexers.get_data_source_connection(name))


@check
async def an_indexer_reads_json(sdk):
    fields = [
        SimpleField(name="id", type="Edm.String", key=True, filterable=True, sortable=True),
        SearchableField(name="title", type="Edm.String"),
        SimpleField(name="amount", type="Edm.Int32", filterable=True),
        SimpleField(name="kind", type="Edm.String", filterable=True),
        SearchableField(name="content", type="Edm.String"),
        SearchableField(name="pages", type="Edm.String", collection=True),
    ]
    await sdk.indexes.create_index(SearchIndex(name=sdk.name("items"), fields=fields))
    for number in (1, 2):
        item = {"id": f"j{number}", "label": f"Item {number}", "amount": number, "kind": "json"}
        write(sdk, "json", f"{number}.json", json.dumps(item))
    indexer = SearchIndexer(
        name=sdk.name("json"),
        data_source_name=await source(sdk, "json"),
        target_index_name=sdk.name("items"),
        parameters=configured(parsing_mode="json"),
        field_mappings=[FieldMapping(source_field_name="label", target_field_name="title")],
    )
    made = await sdk.indexers.create_indexer(indexer)
    same((made.name, made.target_index_name), (sdk.name("json"), sdk.name("items")))
    # A new indexer runs immediately.
    status = await ended(sdk, sdk.name("json"), 1)
    result = status.last_result
    same((result.status, result.item_count, result.failed_item_count), ("success", 2, 0))
    same(status.status, "running")
    same(await items(sdk, "kind eq 'json'"), {"j1": ("Item 1", 1), "j2": ("Item 2", 2)})


@check
async def an_indexer_takes_what_changed(sdk):
    name = sdk.name("json")
    write(sdk, "json", "3.json", json.dumps({"id": "j3", "label": "Item 3", "amount": 3, "kind": "json"}))
    await sdk.indexers.run_indexer(name)
    status = await ended(sdk, name, 2)
    same((status.last_result.status, status.last_result.item_count), ("success", 1))
    same(len(status.execution_history), 2)
    same(len(await items(sdk, "kind eq 'json'")), 3)


@check
async def a_reset_indexer_takes_everything_again(sdk):
    name = sdk.name("json")
    await sdk.indexers.reset_indexer(name)
    status = await sdk.indexers.get_indexer_status(name)
    has([run.status for run in status.execution_history], "reset")
    await sdk.indexers.run_indexer(name)
    same((await ended(sdk, name, 3)).last_result.item_count, 3)


@check
async def a_reset_document_is_taken_again(sdk):
    if not hasattr(sdk.indexers.client, "reset_documents"):
        raise Skip("this generation cannot reset documents")
    from azure.search.documents.indexes.models import DocumentKeysOrIds

    name = sdk.name("json")
    await sdk.documents("items").merge_documents([{"id": "j2", "title": "by hand"}])
    await sdk.indexers.reset_documents(name, DocumentKeysOrIds(document_keys=["j2"]))
    await sdk.indexers.run_indexer(name)
    same((await ended(sdk, name, 4)).last_result.item_count, 1)
    same((await items(sdk, "id eq 'j2'"))["j2"], ("Item 2", 2))


@check
async def indexers_are_listed_changed_and_guarded(sdk):
    name = sdk.name("json")
    has([one.name for one in await sdk.indexers.get_indexers()], name)
    has(await sdk.indexers.get_indexer_names(), name)
    read = await sdk.indexers.get_indexer(name)
    stale = await sdk.indexers.get_indexer(name)
    read.description = "reads JSON"
    same((await sdk.indexers.create_or_update_indexer(read)).description, "reads JSON")
    change = sdk.indexers.create_or_update_indexer(stale, match_condition=MatchConditions.IfNotModified)
    await refused(412, change)
    await refused(404, sdk.indexers.get_indexer(sdk.name("nothing")))
    await refused(404, sdk.indexers.run_indexer(sdk.name("nothing")))
    lost = SearchIndexer(
        name=sdk.name("lost"), data_source_name=sdk.name("nothing"), target_index_name=sdk.name("items")
    )
    await refused(400, sdk.indexers.create_indexer(lost))


@check
async def an_indexer_reads_lines_of_json(sdk):
    lines = [json.dumps({"id": f"l{n}", "title": f"Line {n}", "amount": n, "kind": "lines"}) for n in range(30)]
    write(sdk, "lines", "all.jsonl", "\n".join(lines) + "\n")
    await indexed(sdk, "lines", configured(parsing_mode="jsonLines"), 30)
    same((await items(sdk, "kind eq 'lines'"))["l7"], ("Line 7", 7))


@check
async def an_indexer_reads_delimited_text(sdk):
    write(sdk, "csv", "all.csv", 'id,title,amount,kind\nc1,"One, or so",1,csv\nc2,Two,2,csv\n')
    how = configured(parsing_mode="delimitedText", first_line_contains_headers=True)
    await indexed(sdk, "csv", how, 2)
    same(await items(sdk, "kind eq 'csv'"), {"c1": ("One, or so", 1), "c2": ("Two", 2)})


@check
async def an_indexer_reads_text(sdk):
    write(sdk, "text", "poem.txt", "The quick brown fox jumps over the lazy dog.")
    encode = FieldMapping(
        source_field_name="metadata_storage_path",
        target_field_name="id",
        mapping_function=FieldMappingFunction(name="base64Encode"),
    )
    named = FieldMapping(source_field_name="metadata_storage_name", target_field_name="title")
    await indexed(sdk, "text", configured(parsing_mode="text"), 1, field_mappings=[encode, named])
    [row] = await rows(sdk.documents("items").search("foxes fox", search_fields=["content"]))
    same(row["title"], "poem.txt")


@check
async def a_bad_file_is_an_error_of_the_run(sdk):
    write(sdk, "bad", "bad.json", '{"id": "b1", "title": ')
    write(sdk, "bad", "good.json", json.dumps({"id": "b2", "title": "Good", "amount": 1, "kind": "bad"}))
    how = configured(parsing_mode="json")
    how.max_failed_items, how.max_failed_items_per_batch = -1, -1
    status = await indexed(sdk, "bad", how, 1, failed=1)
    [error] = status.last_result.errors
    has(f"{error.key} {error.name} {error.error_message} {error.details}", "bad.json")
    same(list(await items(sdk, "kind eq 'bad'")), ["b2"])


@check
async def a_bad_file_ends_a_run_that_may_not_fail(sdk):
    write(sdk, "strict", "bad.json", "not json")
    indexer = SearchIndexer(
        name=sdk.name("strict"),
        data_source_name=await source(sdk, "strict"),
        target_index_name=sdk.name("items"),
        parameters=configured(parsing_mode="json"),
    )
    await sdk.indexers.create_indexer(indexer)
    result = (await ended(sdk, sdk.name("strict"), 1)).last_result
    same((result.status, result.failed_item_count), ("transientFailure", 1))
    same(bool(result.error_message), True)


@check
async def a_skillset_splits_texts(sdk):
    name = sdk.name("skills")
    split = SplitSkill(
        name="split",
        context="/document",
        text_split_mode="pages",
        maximum_page_length=300,
        inputs=[InputFieldMappingEntry(name="text", source="/document/content")],
        outputs=[OutputFieldMappingEntry(name="textItems", target_name="pages")],
    )
    made = await sdk.indexers.create_skillset(SearchIndexerSkillset(name=name, skills=[split], description="splits"))
    same((made.name, made.skills[0].maximum_page_length), (name, 300))
    has([one.name for one in await sdk.indexers.get_skillsets()], name)
    has(await sdk.indexers.get_skillset_names(), name)
    await sdk.indexers.create_or_update_skillset(await sdk.indexers.get_skillset(name))
    text = " ".join(f"Sentence number {n} is here." for n in range(40))
    write(sdk, "long", "long.json", json.dumps({"id": "s1", "content": text, "title": "Long", "kind": "long"}))
    pages = FieldMapping(source_field_name="/document/pages", target_field_name="pages")
    how = configured(parsing_mode="json")
    await indexed(sdk, "long", how, 1, skillset_name=name, output_field_mappings=[pages])
    read = await sdk.documents("items").get_document("s1")
    same(len(read["pages"]) >= 4 and all(0 < len(page) <= 300 for page in read["pages"]), True)
    same(" ".join(page.strip() for page in read["pages"]), text)


async def indexed(sdk, container, parameters, succeeded, failed=0, **more):
    """Creates an indexer of a container's files, and returns its status after the first run."""
    indexer = SearchIndexer(
        name=sdk.name(container),
        data_source_name=await source(sdk, container),
        target_index_name=sdk.name("items"),
        parameters=parameters,
        **more,
    )
    await sdk.indexers.create_or_update_indexer(indexer)
    status = await ended(sdk, sdk.name(container), 1)
    result = status.last_result
    seen = (result.status, result.item_count, result.failed_item_count, result.error_message)
    same(seen, ("success", succeeded + failed, failed, None))
    return status
