//! An end-to-end test of a published document. A small pet store implements it behind a bridge, and a
//! client uses every operation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use bindpost_mcp_openapi::{Bridge, Credential, Secret, ToolForm, Upstream, UpstreamLimits};
use bindpost_mcp_server::Caller;
use bindpost_mcp_server::testing::TestClient;
use http::{HeaderName, Method};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::bridge_pets::{client, serve};
use crate::published;
use crate::upstream_service::{Answer, Seen, Service, answer};

/// An image that contains a byte which is not valid UTF-8.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\xff";

/// The data of the store.
#[derive(Default)]
struct Store {
    pets: BTreeMap<u64, Value>,
    orders: BTreeMap<u64, Value>,
    users: BTreeMap<String, Value>,
    pictures: BTreeMap<u64, (String, Vec<u8>)>,
    logins: u64,
}

fn said(value: &Value) -> Answer {
    answer(200, &[("content-type", "application/json")], value.to_string())
}

fn done() -> Answer {
    answer(200, &[], "")
}

fn refused(status: u16, message: &str) -> Answer {
    let body = json!({"code": status, "type": "error", "message": message}).to_string();
    answer(status, &[("content-type", "application/json")], body)
}

/// Parses the names and values of a query or a form.
fn pairs(text: &str) -> Vec<(String, String)> {
    let plain = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8().unwrap().into_owned();
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (plain(name), plain(value))).collect()
}

/// Returns the parts of a multipart body by name, each with its optional file name and its content.
fn parts(seen: &Seen) -> BTreeMap<String, (Option<String>, Vec<u8>)> {
    let boundary = seen.header("content-type").unwrap().split_once("boundary=").unwrap().1;
    // Each byte becomes a character, because the content need not be text.
    let text: String = seen.body.iter().map(|byte| char::from(*byte)).collect();
    let mut parts = BTreeMap::new();
    for part in text.split(&format!("--{boundary}")).filter(|part| part.contains("\r\n\r\n")) {
        let (head, content) = part.split_once("\r\n\r\n").unwrap();
        let quoted = |name: &str| {
            let rest = head.split_once(&format!("; {name}=\""))?.1;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let content = content.strip_suffix("\r\n").unwrap().chars().map(|letter| letter as u8).collect();
        parts.insert(quoted("name").unwrap(), (quoted("filename"), content));
    }
    parts
}

impl Store {
    fn serve(&mut self, seen: &Seen) -> Answer {
        let (path, query) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
        let query = pairs(query);
        let given = |name: &str| -> Vec<&str> {
            query.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
        };
        let body: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        let segments: Vec<&str> = path.trim_start_matches("/v2/").split('/').collect();
        match (seen.method.as_str(), segments.as_slice()) {
            (_, ["pet", ..]) if seen.header("api_key") != Some("special-key") => refused(401, "no key"),
            ("POST", ["pet"]) | ("PUT", ["pet"]) => {
                let Some(id) = body["id"].as_u64() else { return refused(405, "a pet needs an id") };
                if seen.method == Method::PUT && !self.pets.contains_key(&id) {
                    return refused(404, "Pet not found");
                }
                self.pets.insert(id, body.clone());
                said(&body)
            }
            ("GET", ["pet", "findByStatus"]) => {
                self.pets_with(|pet| given("status").into_iter().any(|status| pet["status"] == status))
            }
            ("GET", ["pet", "findByTags"]) => self.pets_with(|pet| {
                let tags = pet["tags"].as_array().into_iter().flatten();
                tags.into_iter().any(|tag| given("tags").into_iter().any(|wanted| tag["name"] == wanted))
            }),
            ("GET", ["store", "inventory"]) => {
                let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
                for pet in self.pets.values() {
                    *counts.entry(pet["status"].as_str().unwrap_or("none")).or_default() += 1;
                }
                said(&json!(counts))
            }
            ("POST", ["store", "order"]) => {
                let id = self.orders.len() as u64 + 1;
                let mut order = body;
                order["id"] = json!(id);
                self.orders.insert(id, order.clone());
                said(&order)
            }
            ("POST", ["user"]) => self.add_users(&[body]),
            ("POST", ["user", "createWithArray" | "createWithList"]) => {
                self.add_users(body.as_array().map_or(&[], Vec::as_slice))
            }
            ("GET", ["user", "login"]) => {
                let known = given("username").first().and_then(|name| self.users.get(*name));
                match known.is_some_and(|user| given("password") == [user["password"].as_str().unwrap()]) {
                    true => {
                        self.logins += 1;
                        said(&json!(format!("session-{}", self.logins)))
                    }
                    false => refused(400, "Invalid username/password supplied"),
                }
            }
            ("GET", ["user", "logout"]) => done(),
            (verb, ["user", name]) => self.user(verb, name, body),
            (verb, [kind, id, rest @ ..]) => match (id.parse(), rest) {
                (Ok(id), []) if *kind == "pet" => self.pet(verb, id, seen),
                (Ok(id), ["uploadImage"]) => self.picture(id, seen),
                _ => match (rest, *kind, *id) {
                    ([id], "store", "order") => self.order(verb, id.parse().unwrap_or_default()),
                    _ => refused(404, "no such place"),
                },
            },
            _ => refused(404, "no such place"),
        }
    }

    fn pets_with(&self, has: impl Fn(&Value) -> bool) -> Answer {
        said(&self.pets.values().filter(|pet| has(pet)).cloned().collect())
    }

    fn pet(&mut self, verb: &str, id: u64, seen: &Seen) -> Answer {
        let Some(pet) = self.pets.get_mut(&id) else { return refused(404, "Pet not found") };
        match verb {
            "GET" => said(pet),
            "POST" => {
                for (name, value) in pairs(std::str::from_utf8(&seen.body).unwrap()) {
                    pet[name] = json!(value);
                }
                done()
            }
            _ => {
                self.pets.remove(&id);
                done()
            }
        }
    }

    fn picture(&mut self, id: u64, seen: &Seen) -> Answer {
        let mut parts = parts(seen);
        let words = parts.remove("additionalMetadata").map(|(_, words)| String::from_utf8(words).unwrap());
        let (name, bytes) = parts.remove("file").unwrap();
        let message = format!("{}: {} bytes", words.unwrap_or_default(), bytes.len());
        self.pictures.insert(id, (name.unwrap(), bytes));
        said(&json!({"code": 200, "type": "unknown", "message": message}))
    }

    fn order(&mut self, verb: &str, id: u64) -> Answer {
        match (self.orders.get(&id), verb) {
            (None, _) => refused(404, "Order not found"),
            (Some(order), "GET") => said(order),
            (Some(_), _) => {
                self.orders.remove(&id);
                done()
            }
        }
    }

    fn add_users(&mut self, users: &[Value]) -> Answer {
        for user in users {
            self.users.insert(user["username"].as_str().unwrap().to_owned(), user.clone());
        }
        done()
    }

    fn user(&mut self, verb: &str, name: &str, body: Value) -> Answer {
        let name = percent_decode_str(name).decode_utf8().unwrap().into_owned();
        match (self.users.get(&name), verb) {
            (None, _) => refused(404, "User not found"),
            (Some(user), "GET") => said(user),
            (Some(_), "PUT") => self.add_users(&[body]),
            (Some(_), _) => {
                self.users.remove(&name);
                done()
            }
        }
    }
}

/// A client that calls operations in either form and records which ones it called.
struct Visitor {
    client: TestClient,
    form: ToolForm,
    schemas: BTreeMap<String, Value>,
    used: BTreeSet<String>,
}

impl Visitor {
    async fn call(&mut self, operation: &str, arguments: Value) -> Value {
        self.used.insert(operation.to_owned());
        let params = match self.form {
            ToolForm::ThreeTools => {
                json!({"name": "callOperation", "arguments": {"operation": operation, "arguments": arguments}})
            }
            _ => json!({"name": operation, "arguments": arguments}),
        };
        self.client.request("tools/call", params).await.unwrap()
    }

    /// Returns the structured content of a successful call and checks it against the output schema.
    async fn get(&mut self, operation: &str, arguments: Value) -> Value {
        let result = self.call(operation, arguments).await;
        assert_ne!(result["isError"], true, "{operation}: {result}");
        if let Some(schema) = self.schemas.get(operation) {
            let answer = &result["structuredContent"];
            assert!(jsonschema::is_valid(schema, answer), "{operation}: {answer} is not of {schema}");
        }
        result["structuredContent"].clone()
    }

    /// Returns the error of a failed call.
    async fn fail(&mut self, operation: &str, arguments: Value) -> Value {
        let result = self.call(operation, arguments).await;
        assert_eq!(result["isError"], true, "{operation}: {result}");
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
    }
}

/// Connects a visitor to a new store. `budget` determines the form.
async fn visit(budget: usize) -> (Visitor, Service) {
    let store = Mutex::new(Store::default());
    let service = Service::start(move |seen, _| store.lock().unwrap().serve(seen)).await;
    let key = Credential::Header(HeaderName::from_static("api_key"), Secret::new("special-key"));
    let upstream = Upstream::new(&format!("{}/v2", service.address()), key, UpstreamLimits::default());
    let document = published::load(published::EXAMPLES, "2.0/json/petstore.json");
    let bridge = Bridge::builder(document, upstream.unwrap()).list_budget(budget).build().unwrap();
    let mut client = client(&serve(&bridge), Caller::ANONYMOUS, json!({})).await;
    let listed = client.request("tools/list", json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap().iter();
    let schemas =
        tools.filter_map(|tool| Some((tool["name"].as_str()?.to_owned(), tool.get("outputSchema")?.clone())));
    let schemas = schemas.collect();
    (Visitor { client, form: bridge.form(), schemas, used: BTreeSet::new() }, service)
}

async fn pets(visitor: &mut Visitor) {
    let rex =
        json!({"id": 7, "name": "Rex", "photoUrls": [], "status": "available", "tags": [{"name": "big"}]});
    let tom = json!({"id": 8, "name": "Tom", "photoUrls": [], "status": "pending"});
    assert_eq!(visitor.get("addPet", json!({"body": rex})).await, rex);
    visitor.get("addPet", json!({"body": tom})).await;
    let nameless = visitor.fail("addPet", json!({"body": {"id": 9, "photoUrls": []}})).await;
    assert_eq!(nameless["error"], "invalid_request");

    assert_eq!(visitor.get("getPetById", json!({"petId": 7})).await, rex);
    let found = visitor.get("findPetsByStatus", json!({"status": ["available"]})).await;
    assert_eq!(found["items"], json!([rex]));
    let found = visitor.get("findPetsByStatus", json!({"status": ["available", "pending"]})).await;
    assert_eq!(found["items"], json!([rex, tom]));
    assert_eq!(visitor.get("findPetsByTags", json!({"tags": ["big"]})).await["items"], json!([rex]));
    let inventory = visitor.get("getInventory", json!({})).await;
    assert_eq!(inventory, json!({"available": 1, "pending": 1}));

    let mut cat = tom.clone();
    cat["status"] = json!("sold");
    visitor.get("updatePet", json!({"body": cat})).await;
    let form = json!({"petId": 7, "body": {"name": "Rex & Söhne", "status": "sold"}});
    visitor.get("updatePetWithForm", form).await;
    assert_eq!(visitor.get("getPetById", json!({"petId": 7})).await["name"], "Rex & Söhne");
    assert_eq!(visitor.get("getInventory", json!({})).await, json!({"sold": 2}));
    let file = json!({"base64": "iVBORw0KGgr/", "filename": "rex.png", "contentType": "image/png"});
    let body = json!({"additionalMetadata": "from the side", "file": file});
    let kept = visitor.get("uploadFile", json!({"petId": 7, "body": body})).await;
    assert_eq!(kept["message"], format!("from the side: {} bytes", PICTURE.len()));

    visitor.get("deletePet", json!({"petId": 7})).await;
    let gone = visitor.fail("getPetById", json!({"petId": 7})).await;
    assert_eq!((&gone["error"], &gone["message"]), (&json!("resource_not_found"), &json!("Pet not found")));
    let elsewhere = visitor.fail("getPetById", json!({"petId": "7/../8"})).await;
    assert_eq!(elsewhere["error"], "invalid_request");
}

async fn orders(visitor: &mut Visitor) {
    let placed = visitor.get("placeOrder", json!({"body": {"petId": 8, "quantity": 1}})).await;
    assert_eq!(visitor.get("getOrderById", json!({"orderId": placed["id"]})).await, placed);
    visitor.get("deleteOrder", json!({"orderId": placed["id"]})).await;
    let gone = visitor.fail("getOrderById", json!({"orderId": placed["id"]})).await;
    assert_eq!(gone["error"], "resource_not_found");
    let large = visitor.fail("getOrderById", json!({"orderId": 11})).await;
    assert_eq!(large["error"], "invalid_request");
}

async fn users(visitor: &mut Visitor) {
    let user = |name: &str| json!({"username": name, "password": "p&q", "userStatus": 1});
    visitor.get("createUser", json!({"body": user("ann")})).await;
    visitor.get("createUsersWithArrayInput", json!({"body": [user("bob")]})).await;
    visitor.get("createUsersWithListInput", json!({"body": [user("a/b c"), user("dee")]})).await;
    assert_eq!(visitor.get("getUserByName", json!({"username": "a/b c"})).await["username"], "a/b c");
    let login = json!({"username": "ann", "password": "p&q"});
    assert_eq!(visitor.get("loginUser", login).await, json!({"value": "session-1"}));
    let wrong = json!({"username": "ann", "password": "no"});
    assert_eq!(visitor.fail("loginUser", wrong).await["status"], 400);
    visitor.get("logoutUser", json!({})).await;
    let mut changed = user("bob");
    changed["email"] = json!("bob@example.com");
    visitor.get("updateUser", json!({"username": "bob", "body": changed})).await;
    assert_eq!(visitor.get("getUserByName", json!({"username": "bob"})).await, changed);
    visitor.get("deleteUser", json!({"username": "bob"})).await;
    assert_eq!(visitor.fail("getUserByName", json!({"username": "bob"})).await["status"], 404);
}

#[tokio::test]
async fn every_operation_of_a_pet_store_is_used() {
    for budget in [40 * 1024, 0] {
        let (mut visitor, service) = visit(budget).await;
        pets(&mut visitor).await;
        orders(&mut visitor).await;
        users(&mut visitor).await;
        assert_eq!(visitor.used.len(), 20, "{:?}", visitor.used);
        // Requests that their schema rejected were not sent.
        let (picture, targets): (Vec<Seen>, Vec<Seen>) =
            service.seen().into_iter().partition(|seen| seen.target.ends_with("uploadImage"));
        let (name, bytes) = parts(&picture[0]).remove("file").unwrap();
        assert_eq!((name.as_deref(), bytes.as_slice()), (Some("rex.png"), PICTURE));
        assert!(targets.iter().all(|seen| !seen.target.contains("..") && !seen.target.contains("/11")));

        let params = json!({"uri": "openapi:///pet/8"});
        let read = visitor.client.request("resources/read", params).await.unwrap();
        assert_eq!(read["contents"][0]["mimeType"], "application/json");
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("Tom"), "{read}");
    }
}
