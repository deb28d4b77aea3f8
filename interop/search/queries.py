"""Searches: syntaxes, filters, order, pages, facets, highlights, scoring and rejected requests."""

from report import check, has, refused, same
from sdk import done, pages, rows

SEATTLE = "geography'POINT(-122.33 47.61)'"


async def found(sdk, text="*", **how):
    """Returns the keys in the order of the hits."""
    return [row["id"] for row in await rows(sdk.documents("hotels").search(text, **how))]


async def found_any(sdk, text="*", **how):
    return "".join(sorted(await found(sdk, text, **how)))


async def filtered(sdk, *cases):
    for filter, wanted in cases:
        seen = await found_any(sdk, filter=filter)
        if seen != wanted:
            raise AssertionError(f"{filter} finds {seen}, not {wanted}")


@check
async def simple_syntax(sdk):
    same(await found_any(sdk, "pool runners"), "123")
    same(await found_any(sdk, "pool | castle"), "134")
    same(await found_any(sdk, "pool + sea"), "3")
    same(await found_any(sdk, "pool -sea", search_mode="all"), "1")
    same(await found_any(sdk, '"luxury hotel"'), "1")
    same(await found_any(sdk, '"hotel luxury"'), "")
    same(await found_any(sdk, "bud*"), "2")
    same(await found_any(sdk, "wifi + (grand | cheap)"), "12")
    same(await found_any(sdk, ""), "12345")
    same(await found_any(sdk, None), "12345")


@check
async def search_modes(sdk):
    same(await found_any(sdk, "pool sea", search_mode="any"), "13")
    same(await found_any(sdk, "pool sea", search_mode="all"), "3")


@check
async def full_syntax(sdk):
    async def full(text):
        return await found_any(sdk, text, query_type="full")

    same(await full("name:gran* OR name:view"), "13")
    same(await full("name:/se[ao]|lac/"), "34")
    same(await full("name:budgte~"), "2")
    same(await full("name:budgte~0"), "")
    same(await full('description:"luxury water"~5'), "1")
    same(await full('description:"luxury water"'), "")
    same(await full("pool AND NOT sea"), "1")
    same(await full("+pool -sea"), "1")
    same(await full("address/city:seattle"), "13")
    same(await full("(pool OR spa) AND tags:view"), "34")
    same(await full("name:bu?get"), "2")
    same((await found(sdk, "pool OR name:budget^50", query_type="full"))[0], "2")
    await refused(400, full("name:(grand"))


@check
async def fields_to_search_and_to_show(sdk):
    same(await found_any(sdk, "pool", search_fields=["description"]), "13")
    same(await found_any(sdk, "seattle", search_fields=["name", "description"]), "")
    same(await found_any(sdk, "seattle", search_fields=["address/city"]), "13")
    [row] = await rows(sdk.documents("hotels").search("budget", select=["name", "address/city", "suites/price"]))
    own = {name: value for name, value in row.items() if not name.startswith("@search") and value is not None}
    same(own, {"name": "Budget Inn", "address": {"city": "Tacoma"}, "suites": [{"price": 80.0}]})


@check
async def english_words_have_stems_and_stop_words_do_not_count(sdk):
    same(await found_any(sdk, "run", search_fields=["description"]), "1")
    same(await found_any(sdk, "castles", search_fields=["description"]), "4")
    same(await found_any(sdk, "the", search_fields=["description"]), "")
    same(await found_any(sdk, "the castle", search_fields=["description"], search_mode="all"), "4")


@check
async def synonyms_find_each_other(sdk):
    same(await found_any(sdk, "lodge", search_fields=["description"]), "5")
    same(await found_any(sdk, "lodge", search_fields=["name"]), "")


@check
async def top_skip_and_count(sdk):
    documents = sdk.documents("hotels")
    result = await documents.search("*", top=2, skip=1, order_by=["id"], include_total_count=True)
    same([row["id"] for row in await rows(result)], ["2", "3"])
    same(await done(result.get_count()), 5)
    none = await documents.search("*", top=0, include_total_count=True)
    same((await rows(none), await done(none.get_count())), ([], 5))
    unasked = await documents.search("*")
    same(await done(unasked.get_count()), None)


@check
async def pages_follow_each_other(sdk):
    many = sdk.documents("many")
    by_default = await pages(many.search("*", order_by=["number"], filter="number lt 130", select=["number"]))
    same([len(page) for page in by_default], [50, 50, 30])
    same([row["number"] for page in by_default for row in page], list(range(130)))
    large = await pages(many.search("*", top=2300, order_by=["number desc"], select=["number"]))
    same([len(page) for page in large], [1000, 1000, 300])
    same([row["number"] for page in large for row in page], list(range(2498, 198, -1)))
    same(len(await rows(many.search("text", select=["id"]))), 2498)
    same(len(await rows(many.search("*", skip=2490, select=["id"]))), 9)
    counted = await many.search("text", include_total_count=True, top=1)
    same(await done(counted.get_count()), 2498)


@check
async def filters_compare(sdk):
    await filtered(
        sdk,
        ("rooms eq 40", "2"),
        ("rooms ne 40", "1345"),
        ("rooms gt 40", "13"),
        ("rooms ge 40", "123"),
        ("rooms lt 12", "5"),
        ("rooms le 12", "45"),
        ("rating gt 3.9", "1"),
        ("visits eq 2000000000000", "1"),
        ("name eq 'Sea View'", "3"),
        ("name gt 'G'", "135"),
        ("open", "1234"),
        ("open eq false", "5"),
        ("rating eq null", "4"),
        ("rating ne null", "1235"),
        ("opened ge 2015-06-01T00:00:00Z and opened lt 2016-01-01T00:00:00+00:00", "25"),
    )


@check
async def filters_combine(sdk):
    await filtered(
        sdk,
        ("not open", "5"),
        ("rooms gt 10 and rating gt 3", "13"),
        ("rooms lt 10 or rating gt 4", "15"),
        ("rooms lt 10 or rating gt 3 and open", "135"),
        ("(rooms lt 10 or rating gt 3) and open", "13"),
        ("not (rooms gt 10 and rating gt 3)", "245"),
    )


@check
async def filters_look_into_collections(sdk):
    await filtered(
        sdk,
        ("tags/any()", "1234"),
        ("not tags/any()", "5"),
        ("tags/any(t: t eq 'pool')", "13"),
        ("tags/all(t: t ne 'pool')", "245"),
        ("tags/any(t: search.in(t, 'spa,wifi'))", "124"),
        ("suites/any(s: s/kind eq 'royal' and s/price lt 1000)", "1"),
        ("suites/any(s: s/kind eq 'double' and s/price gt 500)", ""),
        ("suites/all(s: s/price lt 100)", "235"),
    )


@check
async def filters_look_into_complex_fields(sdk):
    await filtered(
        sdk,
        ("address/city eq 'Seattle'", "13"),
        ("address/country ne 'US'", "4"),
        ("search.in(address/city, 'Reno|Geneva', '|')", "45"),
        ("search.in(id, '1,3,9')", "13"),
    )


@check
async def filters_know_places(sdk):
    box = "geography'POLYGON((-123 47.5, -122 47.5, -122 48, -123 48, -123 47.5))'"
    await filtered(
        sdk,
        (f"geo.distance(place, {SEATTLE}) lt 10", "13"),
        (f"geo.distance(place, {SEATTLE}) le 60", "123"),
        (f"geo.distance(place, {SEATTLE}) gt 60", "45"),
        (f"geo.intersects(place, {box})", "13"),
    )


@check
async def filters_search_text(sdk):
    await filtered(
        sdk,
        ("search.ismatch('pool', 'description')", "13"),
        ("search.ismatch('pool') and rating gt 4", "1"),
        ("search.ismatch('name:gran*', 'name', 'full', 'any') or rooms eq 5", "15"),
        ("not search.ismatch('pool')", "245"),
        ("search.ismatchscoring('castle')", "4"),
    )


@check
async def order(sdk):
    same(await found(sdk, order_by=["rooms desc"]), ["1", "3", "2", "4", "5"])
    same(await found(sdk, order_by=["rating"]), ["4", "5", "2", "3", "1"])
    same(await found(sdk, order_by=["address/country", "address/city desc", "id desc"]), ["4", "2", "3", "1", "5"])
    same(await found(sdk, order_by=["opened"]), ["4", "1", "2", "5", "3"])
    same(await found(sdk, order_by=[f"geo.distance(place, {SEATTLE})"]), ["1", "3", "2", "5", "4"])
    same(await found(sdk, "pool OR name:sea^9", query_type="full", order_by=["search.score() desc", "id"]), ["3", "1"])


@check
async def facets(sdk):
    async def facet(expression, field, **how):
        result = await sdk.documents("hotels").search("*", facets=[expression], top=0, **how)
        await rows(result)
        return [shown(one) for one in (await done(result.get_facets()))[field]]

    def shown(one):
        return one["value"], one["count"]

    same(sorted(await facet("tags", "tags")), [("pool", 2), ("spa", 1), ("view", 2), ("wifi", 2)])
    same(len(await facet("tags,count:2", "tags")), 2)
    same(await facet("tags,sort:-value", "tags"), [("wifi", 2), ("view", 2), ("spa", 1), ("pool", 2)])
    same((await facet("address/country,sort:count", "address/country")), [("US", 4), ("CH", 1)])
    same(await facet("open", "open", filter="rooms gt 40"), [(True, 2)])
    same(sorted(await facet("suites/kind", "suites/kind")), [("double", 3), ("royal", 2)])


@check
async def facets_of_ranges_and_dates(sdk):
    result = await sdk.documents("hotels").search(
        "*", facets=["rating,values:2|4", "opened,interval:year", "rooms,interval:100"], top=0
    )
    await rows(result)
    facets = await done(result.get_facets())
    ranges = [(one.get("from"), one.get("to"), one["count"]) for one in facets["rating"]]
    same(ranges, [(None, 2.0, 1), (2.0, 4.0, 2), (4.0, None, 1)])
    years = {str(one["value"])[:4]: one["count"] for one in facets["opened"]}
    same(years, {"1998": 1, "2011": 1, "2015": 2, "2019": 1})
    same({one["value"]: one["count"] for one in facets["rooms"] if one["count"]}, {0: 4, 200: 1})


@check
async def highlights(sdk):
    async def marked(text, **how):
        [row] = await rows(sdk.documents("hotels").search(text, highlight_fields="description,name-1", **how))
        return row["@search.highlights"]

    same((await marked("castles"))["description"], ["A quiet <em>castle</em> by the lake"])
    seen = await marked("running", highlight_pre_tag="<b>", highlight_post_tag="</b>")
    has(seen["description"][0], "<b>running</b>")
    same((await marked("budget"))["name"], ["<em>Budget</em> Inn"])


@check
async def scoring_profiles(sdk):
    same(await found(sdk, filter="rating ne null", scoring_profile="rated"), ["1", "3", "2", "5"])
    same((await found(sdk, "pool sea", scoring_profile="rated"))[0], "3")
    liked = await found(sdk, scoring_profile="mine", scoring_parameters=["liked-spa,massage"])
    same(liked[0], "4")
    close = await found(sdk, scoring_profile="close", scoring_parameters=["here--119.81,39.53"])
    same(close[0], "5")
    await refused(400, found(sdk, scoring_profile="mine"))
    await refused(400, found(sdk, scoring_profile="nope"))


@check
async def coverage(sdk):
    result = await sdk.documents("hotels").search("*", minimum_coverage=80.0)
    same(len(await rows(result)), 5)
    same(await done(result.get_coverage()), 100.0)


@check
async def a_semantic_query_gives_what_words_find(sdk):
    how = {"query_type": "semantic", "semantic_configuration_name": "meaning", "query_caption": "extractive"}
    same(await found_any(sdk, "pool", **how), "13")
    same(await found_any(sdk, "pool", query_answer="extractive", semantic_error_mode="partial", **how), "13")


@check
async def wrong_questions_are_refused(sdk):
    has(await refused(400, found(sdk, filter="rooms eq")), "$filter")
    has(await refused(400, found(sdk, filter="nope eq 1")), "nope")
    has(await refused(400, found(sdk, filter="rooms eq 'many'")), "rooms")
    has(await refused(400, found(sdk, select=["nope"])), "nope")
    has(await refused(400, found(sdk, order_by=["description"])), "description")
    has(await refused(400, found(sdk, facets=["name"])), "name")
    has(await refused(400, found(sdk, "x", search_fields=["rooms"])), "rooms")
    await refused(400, found(sdk, skip=100_001))
    await refused(404, rows(sdk.documents("nothing").search("*")))


@check
async def a_wrong_key_is_refused(sdk):
    await refused(403, rows(sdk.documents("hotels", key="wrong").search("*")))
    await refused(403, sdk.indexes_with("wrong").get_index(sdk.name("hotels")))


@check
async def a_query_key_reads_documents_and_no_more(sdk):
    documents = sdk.documents("hotels", key=sdk.query_key)
    same(len(await rows(documents.search("*"))), 5)
    same((await documents.get_document("1"))["id"], "1")
    same(await documents.get_document_count(), 5)
    same(len(await documents.suggest("gra", "sg")), 1)
    await refused(403, documents.upload_documents([{"id": "1"}]))
    await refused(403, sdk.indexes_with(sdk.query_key).delete_index(sdk.name("hotels")))
    await refused(403, sdk.indexes_with(sdk.query_key).get_index(sdk.name("hotels")))
