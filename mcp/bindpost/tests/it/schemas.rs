//! Schemas of arguments: each rule that turns types and their attributes into JSON Schema.

use bindpost::testing::TestClient;
use bindpost::{Args, Server, ToolEntry, entries, tool};
use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CreateOrderRequest {
    /// The customer's unique identifier
    customer_id: String,
    /// Order line items
    items: Vec<OrderItem>,
    /// Special instructions or notes
    #[schemars(length(max = 500))]
    notes: Option<String>,
    /// Order priority level
    #[serde(default)]
    priority: Priority,
    /// Requested delivery date
    delivery_date: Option<NaiveDate>,
    /// Customer email for notifications
    #[schemars(email)]
    notification_email: Option<String>,
    /// Discount percentage
    #[schemars(range(min = 0, max = 100))]
    discount_percent: Option<f64>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OrderItem {
    /// Menu item ID
    item_id: String,
    /// Quantity to order
    #[schemars(range(min = 1, max = 100))]
    quantity: u32,
    /// Special modifications
    modifications: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Priority {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

/// Creates a new order
#[tool(name = "create_order")]
async fn create_order(Args(request): Args<CreateOrderRequest>) -> Result<String, String> {
    let items: u32 = request.items.iter().map(|item| item.quantity).sum();
    Ok(format!("{items} for {}, {:?}", request.customer_id, request.priority))
}

fn server() -> Server {
    Server::builder("schemas", "1.0.0").add(entries![create_order]).build().unwrap()
}

#[tokio::test]
async fn an_order_has_exactly_the_schema_of_the_specification() {
    let listed = TestClient::connect(&server()).request("tools/list", json!({})).await.unwrap();
    let expected = json!({
      "type": "object",
      "properties": {
        "customerId": {"type": "string", "description": "The customer's unique identifier"},
        "items": {
          "type": "array",
          "description": "Order line items",
          "items": {
            "type": "object",
            "properties": {
              "itemId": {"type": "string", "description": "Menu item ID"},
              "quantity": {
                "type": "integer", "description": "Quantity to order", "minimum": 1, "maximum": 100
              },
              "modifications": {"type": "string", "description": "Special modifications"}
            },
            "required": ["itemId", "quantity"],
            "additionalProperties": false
          }
        },
        "notes": {"type": "string", "description": "Special instructions or notes", "maxLength": 500},
        "priority": {
          "type": "string",
          "description": "Order priority level",
          "enum": ["low", "normal", "high", "urgent"],
          "default": "normal"
        },
        "deliveryDate": {"type": "string", "description": "Requested delivery date", "format": "date"},
        "notificationEmail": {
          "type": "string", "description": "Customer email for notifications", "format": "email"
        },
        "discountPercent": {
          "type": "number", "description": "Discount percentage", "minimum": 0, "maximum": 100
        }
      },
      "required": ["customerId", "items"],
      "additionalProperties": false
    });
    assert_eq!(listed["tools"][0]["inputSchema"], expected);
}

#[tokio::test]
async fn valid_orders_are_accepted() {
    let mut client = TestClient::connect(&server());
    let least = json!({"customerId": "c1", "items": []});
    assert_eq!(client.call("create_order", least).await.unwrap().text(), "0 for c1, Normal");
    let all = json!({
        "customerId": "c1",
        "items": [{"itemId": "soup", "quantity": 2, "modifications": "hot"}, {"itemId": "tea", "quantity": 1.0}],
        "notes": "Ring twice", "priority": "urgent", "deliveryDate": "2026-11-15",
        "notificationEmail": "alice@example.com", "discountPercent": 12.5
    });
    assert_eq!(client.call("create_order", all).await.unwrap().text(), "3 for c1, Urgent");
    // Models write null for arguments they omit.
    let nulls = json!({"customerId": "c1", "items": [], "notes": null, "deliveryDate": null});
    assert_eq!(client.call("create_order", nulls).await.unwrap().text(), "0 for c1, Normal");
    // The schema accepts the serialised form of the type.
    let request = CreateOrderRequest {
        customer_id: "c1".into(),
        items: vec![OrderItem { item_id: "tea".into(), quantity: 1, modifications: None }],
        notes: None,
        priority: Priority::Low,
        delivery_date: NaiveDate::from_ymd_opt(2026, 11, 15),
        notification_email: None,
        discount_percent: Some(0.0),
    };
    assert_eq!(client.call("create_order", json!(request)).await.unwrap().text(), "1 for c1, Low");
}

#[tokio::test]
async fn invalid_orders_are_rejected_with_the_path() {
    let order = |change: Value| {
        let mut order = json!({"customerId": "c1", "items": [{"itemId": "tea", "quantity": 1}]});
        order.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        order
    };
    let mut client = TestClient::connect(&server());
    for (arguments, expected) in [
        (json!({"items": []}), "- \"customerId\" is a required property"),
        (order(json!({"customerId": 7})), "- /customerId: 7 is not of type \"string\""),
        (order(json!({"items": "tea"})), "- /items: \"tea\" is not of type \"array\""),
        (order(json!({"items": [{"itemId": "tea"}]})), "- /items/0: \"quantity\" is a required property"),
        (
            order(json!({"items": [{"itemId": "tea", "quantity": 0}]})),
            "- /items/0/quantity: 0 is less than the minimum of 1",
        ),
        (
            order(json!({"items": [{"itemId": "tea", "quantity": 101}]})),
            "- /items/0/quantity: 101 is greater than the maximum of 100",
        ),
        (
            order(json!({"items": [{"itemId": "tea", "quantity": 1.5}]})),
            "- /items/0/quantity: 1.5 is not of type \"integer\"",
        ),
        (
            order(json!({"items": [{"itemid": "tea", "itemId": "tea", "quantity": 1}]})),
            "- /items/0: \"itemid\" is unknown; did you mean \"itemId\"?",
        ),
        (order(json!({"notes": "x".repeat(501)})), "is longer than 500 characters"),
        (
            order(json!({"priority": "soon"})),
            "- /priority: \"soon\" is not one of \"low\", \"normal\", \"high\", \"urgent\"",
        ),
        (order(json!({"deliveryDate": "tomorrow"})), "- /deliveryDate: \"tomorrow\" is not a \"date\""),
        (order(json!({"notificationEmail": "alice"})), "- /notificationEmail: \"alice\" is not a \"email\""),
        (order(json!({"discountPercent": -1})), "- /discountPercent: -1 is less than the minimum of 0"),
        (order(json!({"custmerId": "c1"})), "- \"custmerId\" is unknown; did you mean \"customerId\"?"),
        (order(json!({"tip": 3})), "- \"tip\" is unknown; known: customerId, deliveryDate, discountPercent"),
    ] {
        let error = client.call("create_order", arguments.clone()).await.unwrap_err().to_string();
        assert!(error.starts_with("Invalid arguments for tool \"create_order\":\n"), "{error}");
        assert!(error.contains(expected), "{arguments}: {expected} is not in\n{error}");
    }
}

/// Returns the schema of the only member of a type, and whether it is required.
fn member_of<T>() -> (Value, bool)
where
    T: JsonSchema + serde::de::DeserializeOwned + Send + 'static,
{
    let entry = ToolEntry::new("member", async |_: Args<T>| "");
    let tools = Server::builder("members", "1.0.0").tool(entry).build().unwrap();
    let listed =
        futures(async move { TestClient::connect(&tools).request("tools/list", json!({})).await.unwrap() });
    let schema = &listed["tools"][0]["inputSchema"];
    let (name, member) = schema["properties"].as_object().unwrap().iter().next().unwrap();
    let required = schema["required"].as_array().is_some_and(|required| required.contains(&json!(name)));
    (member.clone(), required)
}

fn futures<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

macro_rules! member {
    ($(#[$attribute:meta])* $ty:ty) => {{
        #[derive(Deserialize, JsonSchema)]
        struct One {
            $(#[$attribute])*
            #[allow(dead_code, reason = "only its schema is used")]
            member: $ty,
        }
        member_of::<One>()
    }};
}

mod decimals;
mod defaults;
mod times;
mod unknown_arguments;

/// "Schema Generation Rules", row by row.
mod rules {
    use super::*;

    #[test]
    fn a_doc_comment_is_the_description() {
        let (schema, _) = member!(
            /// What it is
            String
        );
        assert_eq!(schema, json!({"type": "string", "description": "What it is"}));
    }

    #[test]
    fn a_member_without_option_is_required() {
        assert_eq!(member!(String), (json!({"type": "string"}), true));
        assert_eq!(member!(Option<String>), (json!({"type": "string"}), false));
        let (_, required) = member!(
            #[schemars(required)]
            Option<String>
        );
        assert!(required);
    }

    #[test]
    fn allowed_values_are_an_enum() {
        let (schema, _) = member!(
            #[schemars(extend("enum" = ["low", "high"]))]
            String
        );
        assert_eq!(schema, json!({"type": "string", "enum": ["low", "high"]}));
    }

    #[test]
    fn a_range_is_minimum_and_maximum() {
        let (schema, _) = member!(
            #[schemars(range(min = 1, max = 100))]
            i32
        );
        assert_eq!(schema, json!({"type": "integer", "minimum": 1, "maximum": 100}));
    }

    #[test]
    fn lengths_are_min_length_and_max_length() {
        let (schema, _) = member!(
            #[schemars(length(min = 2))]
            String
        );
        assert_eq!(schema, json!({"type": "string", "minLength": 2}));
        let (schema, _) = member!(
            #[schemars(length(max = 5))]
            String
        );
        assert_eq!(schema, json!({"type": "string", "maxLength": 5}));
    }

    #[test]
    fn a_regular_expression_is_a_pattern() {
        let (schema, _) = member!(
            #[schemars(regex(pattern = "^[a-z]+$"))]
            String
        );
        assert_eq!(schema, json!({"type": "string", "pattern": "^[a-z]+$"}));
    }

    #[test]
    fn text_formats_are_formats() {
        let (email, _) = member!(
            #[schemars(email)]
            String
        );
        let (uri, _) = member!(
            #[schemars(url)]
            String
        );
        let (phone, _) = member!(
            #[schemars(extend("format" = "phone"))]
            String
        );
        let (date, _) = member!(NaiveDate);
        let (date_time, _) = member!(DateTime<Utc>);
        let (time, _) = member!(
            #[schemars(extend("format" = "time"))]
            String
        );
        for (schema, format) in [
            (email, "email"),
            (uri, "uri"),
            (phone, "phone"),
            (date, "date"),
            (date_time, "date-time"),
            (time, "time"),
        ] {
            assert_eq!(schema, json!({"type": "string", "format": format}));
        }
    }

    #[test]
    fn a_default_is_the_default_and_not_required() {
        #[derive(Deserialize, JsonSchema)]
        struct One {
            #[serde(default = "normal")]
            #[allow(dead_code, reason = "only its schema is used")]
            priority: String,
        }
        fn normal() -> String {
            "normal".to_owned()
        }
        assert_eq!(member_of::<One>(), (json!({"type": "string", "default": "normal"}), false));
    }
}

/// The same rules for single parameters, by `#[arg]`.
#[tokio::test]
async fn a_parameter_has_the_same_schema_as_a_field() {
    /// Has one parameter for each rule.
    #[tool]
    #[allow(clippy::too_many_arguments, reason = "one for each rule")]
    fn everything(
        /// What it is
        described: String,
        #[arg(one_of = ["low", "high"])] chosen: String,
        #[arg(minimum = 1, maximum = 100)] ranged: i32,
        #[arg(min_length = 2, max_length = 5)] sized: String,
        #[arg(pattern = "^[a-z]+$")] matched: String,
        #[arg(format = "email")] email: String,
        #[arg(format = "uri")] uri: String,
        #[arg(format = "phone")] phone: String,
        #[arg(format = "time")] time: String,
        #[arg(default = "normal")] defaulted: String,
        #[arg(required)] forced: Option<String>,
        #[arg(required = false)] free: Option<bool>,
    ) -> String {
        let _ = (ranged, forced, free);
        [described, chosen, sized, matched, email, uri, phone, time, defaulted].concat()
    }

    let server = Server::builder("arguments", "1.0.0").add(entries![everything]).build().unwrap();
    let listed = TestClient::connect(&server).request("tools/list", json!({})).await.unwrap();
    let text = |more: Value| {
        let mut schema = json!({"type": "string"});
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    assert_eq!(
        listed["tools"][0]["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "described": text(json!({"description": "What it is"})),
                "chosen": text(json!({"enum": ["low", "high"]})),
                "ranged": {"type": "integer", "minimum": 1, "maximum": 100},
                "sized": text(json!({"minLength": 2, "maxLength": 5})),
                "matched": text(json!({"pattern": "^[a-z]+$"})),
                "email": text(json!({"format": "email"})),
                "uri": text(json!({"format": "uri"})),
                "phone": text(json!({"format": "phone"})),
                "time": text(json!({"format": "time"})),
                "defaulted": text(json!({"default": "normal"})),
                "forced": {"type": ["string", "null"]},
                "free": {"type": "boolean"},
            },
            "required": [
                "described", "chosen", "ranged", "sized", "matched", "email", "uri", "phone", "time", "forced"
            ],
            "additionalProperties": false,
        })
    );
}

/// "Type Mapping", row by row.
mod types {
    use super::*;

    #[test]
    fn text_is_a_string() {
        assert_eq!(member!(String).0, json!({"type": "string"}));
        assert_eq!(member!(char).0["type"], "string");
    }

    #[test]
    fn whole_numbers_are_integers() {
        assert_eq!(member!(i16).0["type"], "integer");
        assert_eq!(member!(i32).0, json!({"type": "integer"}));
        assert_eq!(member!(i64).0, json!({"type": "integer"}));
        assert_eq!(member!(u64).0, json!({"type": "integer", "minimum": 0}));
    }

    #[test]
    fn other_numbers_are_numbers() {
        assert_eq!(member!(f32).0, json!({"type": "number"}));
        assert_eq!(member!(f64).0, json!({"type": "number"}));
    }

    #[test]
    fn bool_is_a_boolean() {
        assert_eq!(member!(bool).0, json!({"type": "boolean"}));
    }

    #[test]
    fn dates_are_strings_with_a_format() {
        assert_eq!(member!(DateTime<Utc>).0, json!({"type": "string", "format": "date-time"}));
        assert_eq!(
            member!(DateTime<chrono::FixedOffset>).0,
            json!({"type": "string", "format": "date-time"})
        );
        assert_eq!(member!(NaiveDate).0, json!({"type": "string", "format": "date"}));
    }

    #[test]
    fn a_uuid_is_a_string_with_a_format() {
        assert_eq!(member!(Uuid).0, json!({"type": "string", "format": "uuid"}));
    }

    #[test]
    fn sequences_are_arrays_with_items() {
        let expected = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(member!(Vec<String>).0, expected);
        assert_eq!(member!(Box<[String]>).0, expected);
        assert_eq!(member!(std::collections::VecDeque<String>).0, expected);
    }

    #[test]
    fn a_struct_is_an_object_with_properties_in_place() {
        #[derive(Deserialize, JsonSchema)]
        struct Address {
            #[allow(dead_code, reason = "only its schema is used")]
            street: String,
        }
        let expected = json!({"type": "object", "properties": {"street": {"type": "string"}},
            "required": ["street"], "additionalProperties": false});
        assert_eq!(member!(Address), (expected.clone(), true));
        assert_eq!(member!(Option<Address>), (expected, false));
    }

    #[test]
    fn an_enum_is_a_string_with_its_values() {
        let expected = json!({"type": "string", "enum": ["low", "normal", "high", "urgent"]});
        assert_eq!(member!(Priority), (expected.clone(), true));
        assert_eq!(member!(Option<Priority>), (expected, false));
    }

    #[test]
    fn an_option_is_not_required() {
        assert_eq!(member!(Option<i64>), (json!({"type": "integer"}), false));
        assert_eq!(member!(Option<Vec<bool>>).0, json!({"type": "array", "items": {"type": "boolean"}}));
    }
}

/// A recursive type cannot be inlined, so its schema refers to itself.
#[tokio::test]
async fn a_recursive_type_is_checked_at_every_depth() {
    #[derive(Deserialize, JsonSchema)]
    struct Folder {
        #[allow(dead_code, reason = "only checked")]
        name: String,
        #[serde(default)]
        folders: Vec<Folder>,
    }
    let depth = async |Args(folder): Args<Folder>| folder.folders.len();
    let server = Server::builder("folders", "1.0.0").tool(ToolEntry::new("count", depth)).build().unwrap();
    let mut client = TestClient::connect(&server);
    let good = json!({"name": "a", "folders": [{"name": "b", "folders": [{"name": "c"}]}]});
    assert_eq!(client.call("count", good).await.unwrap().text(), "1");
    let bad = json!({"name": "a", "folders": [{"name": "b", "folders": [{"name": 7}]}]});
    let error = client.call("count", bad).await.unwrap_err().to_string();
    assert!(error.contains("/folders/0/folders/0/name: 7 is not of type \"string\""), "{error}");
}

/// Documented variants of an enum become constants. The error for an invalid value lists all of them.
#[tokio::test]
async fn the_error_for_an_invalid_variant_lists_the_valid_ones() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        /// For one.
        Small,
        /// For all.
        Large,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Pizza {
        #[allow(dead_code, reason = "only checked")]
        size: Size,
        #[allow(dead_code, reason = "only checked")]
        crust: Option<Size>,
    }
    let entry = ToolEntry::new("bake", async |_: Args<Pizza>| "baked");
    let server = Server::builder("pizza", "1.0.0").tool(entry).build().unwrap();
    let mut client = TestClient::connect(&server);
    assert_eq!(client.call("bake", json!({"size": "small"})).await.unwrap().text(), "baked");
    let error = client.call("bake", json!({"size": "huge", "crust": "thin"})).await.unwrap_err().to_string();
    assert!(error.contains("/size: \"huge\" is not one of \"small\", \"large\""), "{error}");
    assert!(error.contains("/crust: \"thin\" is not one of \"small\", \"large\""), "{error}");
}

/// Returns the result or the error text of a tool call.
async fn refusals(entry: ToolEntry, arguments: Value) -> String {
    let name = "tried";
    let server = Server::builder("tries", "1.0.0").tool(entry).build().unwrap();
    match TestClient::connect(&server).call(name, arguments).await {
        Ok(reply) => format!("ok: {}", reply.text()),
        Err(error) => error.to_string().lines().skip(1).collect::<Vec<_>>().join("\n"),
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Branch {
    #[serde(default)]
    twigs: Vec<Branch>,
    leaf: Option<Box<Leaf>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Leaf {
    on: Option<Box<Branch>>,
}

/// Counts twigs and leaves.
#[tool(name = "tried")]
fn trees(branch: Branch, leaves: Vec<Leaf>) -> String {
    format!("{} twigs, {} leaves", branch.twigs.len(), leaves.len())
}

#[tokio::test]
async fn a_recursive_parameter_is_checked_at_every_depth() {
    let arguments =
        json!({"branch": {"twigs": [{"twigs": [{}]}], "leaf": {"on": {}}}, "leaves": [{"on": {}}]});
    assert_eq!(refusals(trees_entry(), arguments).await, "ok: 1 twigs, 1 leaves");
    let arguments = json!({"branch": {"twigs": [{"twigs": [{"twigs": 7}]}]}, "leaves": []});
    let refused = "- /branch/twigs/0/twigs/0/twigs: 7 is not of type \"array\"";
    assert_eq!(refusals(trees_entry(), arguments).await, refused);
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(dead_code, reason = "only checked")]
enum Place {
    Shelf { number: u16 },
    Branch { name: String },
    Nowhere,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only checked")]
enum Outside {
    Z,
    Q(u8),
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only checked")]
struct Book {
    title: String,
    #[serde(flatten)]
    place: Place,
    at: Option<Place>,
    outside: Option<Outside>,
}

#[tokio::test]
async fn an_error_in_a_variant_names_that_variant() {
    let entry = || ToolEntry::new("tried", async |_: Args<Book>| "taken");
    let shelf = |change: Value| {
        let mut book = json!({"title": "Dune", "kind": "shelf", "number": 7});
        book.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        book
    };
    for (arguments, expected) in [
        (shelf(json!({})), "ok: taken"),
        (json!({"title": "Dune", "kind": "nowhere"}), "ok: taken"),
        (shelf(json!({"at": {"kind": "branch", "name": "North"}, "outside": {"Q": 5}})), "ok: taken"),
        (shelf(json!({"outside": "Z"})), "ok: taken"),
        (shelf(json!({"number": 70000})), "- /number: 70000 is greater than the maximum of 65535"),
        (
            shelf(json!({"at": {"kind": "shelf", "number": 70000}})),
            "- /at/number: 70000 is greater than the maximum of 65535",
        ),
        (shelf(json!({"at": {"kind": "shelf"}})), "- /at: \"number\" is a required property"),
        (
            shelf(json!({"at": {"kind": "attic"}})),
            "- /at/kind: \"attic\" is not one of \"shelf\", \"branch\", \"nowhere\"",
        ),
        (
            shelf(json!({"at": {"kind": "shelf", "number": 1, "colour": "red"}})),
            "- /at: \"colour\" is unknown; known: kind, number",
        ),
        (shelf(json!({"outside": {"Q": 500}})), "- /outside/Q: 500 is greater than the maximum of 255"),
        (shelf(json!({"titel": "Dune"})), "- \"titel\" is unknown; did you mean \"title\"?"),
    ] {
        assert_eq!(refusals(entry(), arguments.clone()).await, expected, "{arguments}");
    }
}

/// Accepts numbers.
#[tool(name = "tried")]
fn numbers(
    #[arg(default = 0)] a: i32,
    #[arg(default = 0)] b: u32,
    #[arg(default = 0, maximum = 1000)] c: u8,
) -> String {
    format!("{a} {b} {c}")
}

#[tokio::test]
async fn a_number_is_limited_to_its_width() {
    for (arguments, expected) in [
        (json!({"a": -7, "b": 7, "c": 7}), "ok: -7 7 7"),
        (json!({"a": 2147483648_i64}), "- /a: 2147483648 is greater than the maximum of 2147483647"),
        (json!({"b": 4294967296_i64}), "- /b: 4294967296 is greater than the maximum of 4294967295"),
        (json!({"b": -1}), "- /b: -1 is less than the minimum of 0"),
        (json!({"c": 300}), "- /c: 300 is greater than the maximum of 255"),
    ] {
        assert_eq!(refusals(numbers_entry(), arguments.clone()).await, expected, "{arguments}");
    }
}

/// Accepts any JSON.
#[tool(name = "tried")]
fn anything(any: Option<Value>) -> String {
    format!("{any:?}")
}

#[tokio::test]
async fn an_optional_json_value_can_be_omitted() {
    assert_eq!(refusals(anything_entry(), json!({})).await, "ok: None");
    assert_eq!(refusals(anything_entry(), json!({"any": [1]})).await, "ok: Some(Array [Number(1)])");
}
