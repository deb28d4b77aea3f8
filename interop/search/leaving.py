"""Deletes everything that the tour has created, and checks that it no longer exists."""

from report import check, refused, same
from sdk import AGENTS, rows


@check
async def a_used_knowledge_source_stays(sdk):
    await refused(400, sdk.indexes.delete_knowledge_source(sdk.name("knows")))


@check
async def all_definitions_are_deleted(sdk):
    def own(names):
        return [name for name in names if name.startswith(sdk.prefix)]

    delete_base = sdk.indexes.delete_agent if AGENTS else sdk.indexes.delete_knowledge_base
    await delete_base(sdk.name("base"))
    await sdk.indexes.delete_knowledge_source(sdk.name("knows"))
    for name in own(await sdk.indexers.get_indexer_names()):
        await sdk.indexers.delete_indexer(name)
    for name in own(await sdk.indexers.get_skillset_names()):
        await sdk.indexers.delete_skillset(name)
    for name in own(await sdk.indexers.get_data_source_connection_names()):
        await sdk.indexers.delete_data_source_connection(name)
    for name in own(await rows(sdk.indexes.list_index_names())):
        await sdk.indexes.delete_index(name)
    for name in own(await sdk.indexes.get_synonym_map_names()):
        await sdk.indexes.delete_synonym_map(name)
    same(own(await rows(sdk.indexes.list_index_names())), [])
    same(own(await sdk.indexers.get_indexer_names()), [])
    await refused(404, sdk.documents("hotels").get_document_count())
