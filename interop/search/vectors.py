"""Vectors: nearest documents, alone, several at once, filtered, and together with words."""

import azure.search.documents.models as models
from azure.search.documents.models import VectorizedQuery

from report import Skip, check, refused, same
from sdk import rows


def near(vector, fields="v", k=3, **how):
    return VectorizedQuery(vector=vector, k_nearest_neighbors=k, fields=fields, **how)


async def found(sdk, *queries, text=None, **how):
    return [row["id"] for row in await rows(sdk.documents("hotels").search(text, vector_queries=[*queries], **how))]


@check
async def the_nearest_vectors_are_found(sdk):
    same(await found(sdk, near([1.0, 0.0, 0.0])), ["1", "3", "5"])
    same(await found(sdk, near([0.0, 0.0, 2.0], k=1)), ["4"])
    same(await found(sdk, near([4.0, 4.0], fields="w", k=2)), ["3", "2"])
    first, *_ = await rows(sdk.documents("hotels").search(None, vector_queries=[near([1.0, 0.0, 0.0])]))
    same(first["@search.score"], 1.0)


@check
async def several_vectors_are_found_together(sdk):
    same((await found(sdk, near([1.0, 0.0, 0.0], k=2), near([0.0, 0.0], fields="w", k=2)))[0], "1")
    seen = await found(sdk, near([1.0, 0.0, 0.0], k=1), near([0.0, 0.0, 1.0], k=1, weight=5.0))
    same(seen, ["4", "1"])


@check
async def vectors_are_filtered_before_or_after(sdk):
    one = near([1.0, 0.0, 0.0], k=2)
    same(await found(sdk, one, filter="rooms lt 50", vector_filter_mode="preFilter"), ["5", "2"])
    same(await found(sdk, one, filter="rooms lt 50"), ["5", "2"])
    same(await found(sdk, one, filter="rooms lt 100", vector_filter_mode="postFilter"), ["3"])


@check
async def words_and_vectors_are_found_together(sdk):
    seen = await found(sdk, near([0.0, 0.0, 1.0], k=1), text="pool")
    same(sorted(seen), ["1", "3", "4"])
    both = await found(sdk, near([0.9, 0.1, 0.0], k=3), text="sea", top=1)
    same(both, ["3"])
    ordered = await found(sdk, near([0.0, 0.0, 1.0], k=1), text="pool", order_by=["rooms"])
    same(ordered, ["4", "3", "1"])


@check
async def all_vectors_are_compared_when_asked_to(sdk):
    same(await found(sdk, near([1.0, 0.0, 0.0], exhaustive=True)), ["1", "3", "5"])


@check
async def a_threshold_leaves_far_vectors_out(sdk):
    if not hasattr(models, "VectorSimilarityThreshold"):
        raise Skip("this generation has no thresholds")
    threshold = models.VectorSimilarityThreshold(value=0.9)
    same(await found(sdk, near([1.0, 0.0, 0.0], k=5, threshold=threshold)), ["1", "3"])


@check
async def wrong_vectors_are_refused(sdk):
    await refused(400, found(sdk, near([1.0, 0.0])))
    await refused(400, found(sdk, near([1.0, 0.0, 0.0], fields="name")))
    await refused(400, sdk.documents("hotels").upload_documents([{"id": "9", "v": [1.0]}]))
