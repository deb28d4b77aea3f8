"""Indexes, synonym maps and aliases: created, read, listed, changed and protected by ETags."""

import copy

from azure.core import MatchConditions
from azure.search.documents.indexes.models import (
    AnalyzeTextOptions,
    CustomAnalyzer,
    SearchableField,
    SearchAlias,
    SearchIndex,
    SimpleField,
    SynonymMap,
)

import hotels
from report import check, has, refused, same
from sdk import rows


def small(name):
    return SearchIndex(name=name, fields=[SimpleField(name="id", type="Edm.String", key=True)])


@check
async def synonym_maps_come_and_go(sdk):
    name = sdk.name("words")
    made = await sdk.indexes.create_synonym_map(SynonymMap(name=name, synonyms=["a, b", "c => d"]))
    same((made.name, bool(made.e_tag)), (name, True))
    read = await sdk.indexes.get_synonym_map(name)
    same(rules(read), ["a, b", "c => d"])
    has([one.name for one in await sdk.indexes.get_synonym_maps()], name)
    has(await sdk.indexes.get_synonym_map_names(), name)
    changed = await sdk.indexes.create_or_update_synonym_map(SynonymMap(name=name, synonyms=["motel, inn, lodge"]))
    same(rules(changed), ["motel, inn, lodge"])
    stale = SynonymMap(name=name, synonyms=["x, y"])
    stale.e_tag = made.e_tag
    change = sdk.indexes.create_or_update_synonym_map(stale, match_condition=MatchConditions.IfNotModified)
    await refused(412, change)
    await refused(404, sdk.indexes.get_synonym_map(sdk.name("nothing")))


def rules(synonym_map):
    synonyms = synonym_map.synonyms
    return synonyms.split("\n") if isinstance(synonyms, str) else list(synonyms)


@check
async def an_index_is_created(sdk):
    made = await sdk.indexes.create_index(hotels.index(sdk.name("hotels"), sdk.name("words")))
    same((made.name, bool(made.e_tag)), (sdk.name("hotels"), True))
    same(len(made.fields), 14)


@check
async def an_index_is_read_as_it_was_written(sdk):
    read = await sdk.indexes.get_index(sdk.name("hotels"))
    fields = {field.name: field for field in read.fields}
    same(fields["id"].key, True)
    same(fields["description"].analyzer_name, "en.lucene")
    same(fields["v"].vector_search_dimensions, 3)
    same([field.name for field in fields["address"].fields], ["city", "country"])
    same([profile.name for profile in read.scoring_profiles], ["rated", "mine", "close"])
    same([one.name for one in read.vector_search.algorithms], ["hnsw", "knn"])
    same(read.suggesters[0].source_fields, ["name", "tags", "address/city"])
    same(read.semantic_search.configurations[0].name, "meaning")


@check
async def indexes_are_listed(sdk):
    has([index.name for index in await rows(sdk.indexes.list_indexes())], sdk.name("hotels"))
    has(await rows(sdk.indexes.list_index_names()), sdk.name("hotels"))
    chosen = await rows(sdk.indexes.list_indexes(select=["name"]))
    has([index.name for index in chosen], sdk.name("hotels"))


@check
async def an_index_of_a_name_in_use_is_refused(sdk):
    await refused(409, sdk.indexes.create_index(small(sdk.name("hotels"))))


@check
async def an_unknown_index_is_not_found(sdk):
    has(await refused(404, sdk.indexes.get_index(sdk.name("nothing"))), sdk.name("nothing"))
    await refused(404, sdk.indexes.get_index_statistics(sdk.name("nothing")))


@check
async def a_field_is_added_to_an_index(sdk):
    index = await sdk.indexes.get_index(sdk.name("hotels"))
    before = index.e_tag
    index.fields.append(SearchableField(name="motto", type="Edm.String"))
    changed = await sdk.indexes.create_or_update_index(index)
    has([field.name for field in changed.fields], "motto")
    same(changed.e_tag != before, True)


@check
async def an_index_takes_a_new_analyzer_only_with_downtime(sdk):
    index = await sdk.indexes.get_index(sdk.name("hotels"))
    own = CustomAnalyzer(name="own", tokenizer_name="keyword_v2", token_filters=["lowercase"])
    index.analyzers = [*(index.analyzers or []), own]
    await refused(400, sdk.indexes.create_or_update_index(index))
    changed = await sdk.indexes.create_or_update_index(index, allow_index_downtime=True)
    same([analyzer.name for analyzer in changed.analyzers], ["own"])


@check
async def a_field_cannot_change_its_type(sdk):
    index = await sdk.indexes.get_index(sdk.name("hotels"))
    next(field for field in index.fields if field.name == "rooms").type = "Edm.String"
    await refused(400, sdk.indexes.create_or_update_index(index))


@check
async def a_stale_etag_is_a_conflict(sdk):
    name = sdk.name("guarded")
    first = await sdk.indexes.create_index(small(name))
    second = copy.deepcopy(first)
    second.fields.append(SimpleField(name="more", type="Edm.Int32"))
    second = await sdk.indexes.create_or_update_index(second, match_condition=MatchConditions.IfNotModified)
    change = sdk.indexes.create_or_update_index(first, match_condition=MatchConditions.IfNotModified)
    await refused(412, change)
    await refused(412, sdk.indexes.delete_index(first, match_condition=MatchConditions.IfNotModified))
    missing = sdk.indexes.create_or_update_index(small(name), match_condition=MatchConditions.IfMissing)
    await refused(412, missing)
    await sdk.indexes.delete_index(second, match_condition=MatchConditions.IfNotModified)
    await refused(404, sdk.indexes.get_index(name))


@check
async def deleting_what_is_not_there_is_no_error(sdk):
    await sdk.indexes.delete_index(sdk.name("nothing"))


@check
async def aliases_come_and_go(sdk):
    name = sdk.name("alias")
    made = await sdk.indexes.create_alias(SearchAlias(name=name, indexes=[sdk.name("hotels")]))
    same((made.name, made.indexes), (name, [sdk.name("hotels")]))
    same((await sdk.indexes.get_alias(name)).indexes, [sdk.name("hotels")])
    has([alias.name for alias in await rows(sdk.indexes.list_aliases())], name)
    has(await rows(sdk.indexes.list_alias_names()), name)
    await sdk.indexes.create_or_update_alias(made)
    await refused(400, sdk.indexes.create_alias(SearchAlias(name=sdk.name("lost"), indexes=[sdk.name("nothing")])))
    same(await sdk.documents("alias").get_document_count(), 0)
    await sdk.indexes.delete_alias(name)
    await refused(404, sdk.indexes.get_alias(name))


@check
async def text_is_analyzed(sdk):
    text = "The runners are running to Zürich"

    async def analyzed(**how):
        result = await sdk.indexes.analyze_text(sdk.name("hotels"), AnalyzeTextOptions(text=text, **how))
        return [token.token for token in result.tokens]

    same(await analyzed(analyzer_name="en.lucene"), ["runner", "run", "zürich"])
    same(await analyzed(analyzer_name="whitespace"), text.split())
    same(await analyzed(analyzer_name="own"), [text.lower()])
    folded = await analyzed(tokenizer_name="standard_v2", token_filters=["lowercase", "asciifolding"])
    same(folded[-1], "zurich")
    result = await sdk.indexes.analyze_text(
        sdk.name("hotels"), AnalyzeTextOptions(text="one two", analyzer_name="standard.lucene")
    )
    second = result.tokens[1]
    same((second.token, second.start_offset, second.end_offset, second.position), ("two", 4, 7, 1))
