"""The index that most checks use, and its documents."""

from azure.search.documents.indexes.models import (
    ComplexField,
    DistanceScoringFunction,
    DistanceScoringParameters,
    ExhaustiveKnnAlgorithmConfiguration,
    ExhaustiveKnnParameters,
    HnswAlgorithmConfiguration,
    MagnitudeScoringFunction,
    MagnitudeScoringParameters,
    ScoringProfile,
    SearchableField,
    SearchField,
    SearchIndex,
    SearchSuggester,
    SemanticConfiguration,
    SemanticField,
    SemanticPrioritizedFields,
    SemanticSearch,
    SimpleField,
    TagScoringFunction,
    TagScoringParameters,
    TextWeights,
    VectorSearch,
    VectorSearchProfile,
)


def index(name, synonym_map):
    every = {"filterable": True, "sortable": True, "facetable": True}
    return SearchIndex(
        name=name,
        fields=[
            SimpleField(name="id", type="Edm.String", key=True, filterable=True, sortable=True),
            SearchableField(name="name", type="Edm.String", filterable=True, sortable=True),
            SearchableField(
                name="description", type="Edm.String", analyzer_name="en.lucene", synonym_map_names=[synonym_map]
            ),
            SearchableField(name="tags", type="Edm.String", collection=True, filterable=True, facetable=True),
            SimpleField(name="rating", type="Edm.Double", **every),
            SimpleField(name="rooms", type="Edm.Int32", **every),
            SimpleField(name="visits", type="Edm.Int64", **every),
            SimpleField(name="open", type="Edm.Boolean", **every),
            SimpleField(name="opened", type="Edm.DateTimeOffset", **every),
            SimpleField(name="place", type="Edm.GeographyPoint", filterable=True, sortable=True),
            ComplexField(
                name="address",
                fields=[
                    SearchableField(name="city", type="Edm.String", **every),
                    SimpleField(name="country", type="Edm.String", **every),
                ],
            ),
            ComplexField(
                name="suites",
                collection=True,
                fields=[
                    SimpleField(name="kind", type="Edm.String", filterable=True, facetable=True),
                    SimpleField(name="price", type="Edm.Double", filterable=True),
                ],
            ),
            vector("v", 3, "near", hidden=False),
            vector("w", 2, "all"),
        ],
        suggesters=[SearchSuggester(name="sg", source_fields=["name", "tags", "address/city"])],
        scoring_profiles=[
            ScoringProfile(
                name="rated",
                text_weights=TextWeights(weights={"name": 5.0}),
                functions=[
                    MagnitudeScoringFunction(
                        field_name="rating",
                        boost=10.0,
                        parameters=MagnitudeScoringParameters(boosting_range_start=0, boosting_range_end=5),
                    )
                ],
            ),
            ScoringProfile(
                name="mine",
                functions=[
                    TagScoringFunction(
                        field_name="tags", boost=20.0, parameters=TagScoringParameters(tags_parameter="liked")
                    )
                ],
            ),
            ScoringProfile(
                name="close",
                functions=[
                    DistanceScoringFunction(
                        field_name="place",
                        boost=20.0,
                        parameters=DistanceScoringParameters(reference_point_parameter="here", boosting_distance=500),
                    )
                ],
            ),
        ],
        vector_search=VectorSearch(
            profiles=[
                VectorSearchProfile(name="near", algorithm_configuration_name="hnsw"),
                VectorSearchProfile(name="all", algorithm_configuration_name="knn"),
            ],
            algorithms=[
                HnswAlgorithmConfiguration(name="hnsw"),
                ExhaustiveKnnAlgorithmConfiguration(name="knn", parameters=ExhaustiveKnnParameters(metric="euclidean")),
            ],
        ),
        semantic_search=SemanticSearch(
            configurations=[
                SemanticConfiguration(
                    name="meaning",
                    prioritized_fields=SemanticPrioritizedFields(
                        title_field=SemanticField(field_name="name"),
                        content_fields=[SemanticField(field_name="description")],
                    ),
                )
            ]
        ),
    )


def vector(name, dimensions, profile, **more):
    return SearchField(
        name=name,
        type="Collection(Edm.Single)",
        searchable=True,
        vector_search_dimensions=dimensions,
        vector_search_profile_name=profile,
        **more,
    )


def hotel(key, name, description, tags, rating, rooms, opened, at, city, country, suites, v, w):
    return {
        "id": key,
        "name": name,
        "description": description,
        "tags": tags,
        "rating": rating,
        "rooms": rooms,
        "visits": rooms * 10_000_000_000,
        "open": rooms > 10,
        "opened": opened,
        "place": {"type": "Point", "coordinates": at},
        "address": {"city": city, "country": country},
        "suites": [{"kind": kind, "price": price} for kind, price in suites],
        "v": v,
        "w": w,
    }


# fmt: off
HOTELS = [
    hotel("1", "Grand Hotel", "A grand luxury hotel with running water and a pool", ["pool", "wifi"], 4.5, 200,
          "2011-01-02T03:04:05Z", [-122.33, 47.61], "Seattle", "US", [("royal", 900.0), ("double", 300.0)],
          [1.0, 0.0, 0.0], [0.0, 0.0]),
    hotel("2", "Budget Inn", "Cheap rooms for runners near the motorway", ["wifi"], 2.5, 40,
          "2015-06-01T00:00:00Z", [-122.44, 47.25], "Tacoma", "US", [("double", 80.0)],
          [0.0, 1.0, 0.0], [1.0, 0.0]),
    hotel("3", "Sea View", "Views of the sea, and a pool", ["pool", "view"], 3.9, 80,
          "2019-03-04T00:00:00Z", [-122.35, 47.62], "Seattle", "US", [],
          [0.9, 0.1, 0.0], [5.0, 5.0]),
    hotel("4", "Château Lac", "A quiet castle by the lake", ["view", "spa"], None, 12,
          "1998-07-08T09:10:11Z", [6.14, 46.2], "Geneva", "CH", [("royal", 1500.0)],
          [0.0, 0.0, 1.0], [10.0, 0.0]),
    hotel("5", "Last Resort", "Nothing works but the sign of the motel", [], 1.0, 5,
          "2015-12-31T23:59:59Z", [-119.81, 39.53], "Reno", "US", [("double", 20.0)],
          [0.5, 0.5, 0.0], [20.0, 20.0]),
]
# fmt: on
