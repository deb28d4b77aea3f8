"""Suggestions and completions while the user types."""

from report import check, refused, same


def texts(results):
    """The generations differ in whether a suggestion is a model or a dictionary."""
    return sorted(getattr(one, "text", None) or one["text"] for one in results)


@check
async def suggestions(sdk):
    documents = sdk.documents("hotels")
    same(texts(await documents.suggest("gra", "sg")), ["Grand Hotel"])
    same(texts(await documents.suggest("grand hot", "sg")), ["Grand Hotel"])
    same(texts(await documents.suggest("sea", "sg", filter="rooms gt 100")), ["Seattle"])
    [one] = await documents.suggest("budg", "sg", select=["id", "rooms"])
    same((one["id"], one["rooms"]), ("2", 40))
    [marked] = await documents.suggest("budg", "sg", highlight_pre_tag="<b>", highlight_post_tag="</b>")
    same(texts([marked]), ["<b>Budg</b>et Inn"])
    same(len(await documents.suggest("se", "sg", top=1)), 1)
    await refused(400, documents.suggest("gra", "nope"))


@check
async def fuzzy_suggestions(sdk):
    documents = sdk.documents("hotels")
    same(texts(await documents.suggest("grend", "sg")), [])
    same(texts(await documents.suggest("grend", "sg", use_fuzzy_matching=True)), ["Grand Hotel"])


@check
async def completions(sdk):
    documents = sdk.documents("hotels")
    same(texts(await documents.autocomplete("gr", "sg", mode="oneTerm")), ["grand"])
    same(texts(await documents.autocomplete("gr", "sg", mode="twoTerms")), ["grand hotel"])
    same(texts(await documents.autocomplete("grand h", "sg", mode="oneTermWithContext")), ["grand hotel"])
    same(texts(await documents.autocomplete("se", "sg", filter="rooms eq 200")), ["seattle"])
    same(texts(await documents.autocomplete("grend", "sg", use_fuzzy_matching=True)), ["grand"])
    await refused(400, documents.autocomplete("gr", "nope"))
