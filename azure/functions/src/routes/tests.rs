use serde_json::{Value, json};

use super::*;

fn function(name: &str, trigger: Value) -> Arc<Function> {
    let mut binding = json!({"type": "httpTrigger", "direction": "in", "name": "req"});
    for (member, value) in trigger.as_object().unwrap() {
        binding[member] = value.clone();
    }
    let function = Function::from_bindings(name, name, Default::default(), &[binding], &|_| None);
    Arc::new(function.unwrap_or_else(|error| panic!("{error:?}")))
}

fn table(functions: &[(&str, Value)], prefix: &str) -> (RouteTable, Vec<String>) {
    let functions: Vec<Arc<Function>> =
        functions.iter().map(|(name, trigger)| function(name, trigger.clone())).collect();
    let (table, problems) = RouteTable::build(&functions, prefix);
    (table, problems.iter().map(ToString::to_string).collect())
}

/// Returns the function that answers, with its values.
fn answers(table: &RouteTable, method: &str, path: &str) -> String {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    match table.find(&method, path) {
        None => "404".to_owned(),
        Some(MatchedRoute { route, values }) => {
            let values = values.iter().map(|(name, value)| format!(" {name}={value}")).collect::<String>();
            format!("{}{values}", route.function.name)
        }
    }
}

#[test]
fn the_first_function_by_name_that_matches_answers() {
    let (table, problems) = table(
        &[
            ("Zulu", json!({"route": "orders/special"})),
            ("alpha", json!({"route": "orders/{id}", "methods": ["get"]})),
            ("Beta", json!({"route": "orders/{id:int}", "methods": ["get", "post"]})),
            ("Named", json!({})),
            ("Slashes", json!({"route": "/a/b/", "methods": ["GET"]})),
            ("None", json!({"route": "n", "methods": []})),
            ("Everything", json!({"route": "files/{*path}", "methods": ["put"]})),
        ],
        "api",
    );
    assert_eq!(problems, [] as [&str; 0]);
    for (method, path, expected) in [
        // The name of a function decides, not how specific its route is.
        ("GET", "/api/orders/special", "alpha id=special"),
        ("GET", "/api/orders/7", "alpha id=7"),
        // A method that a function does not list is no match: the next function is tried.
        ("POST", "/api/orders/7", "Beta id=7"),
        ("POST", "/api/orders/special", "Zulu"),
        ("DELETE", "/api/orders/7", "404"),
        // HEAD is not implied by GET.
        ("HEAD", "/api/a/b", "404"),
        ("GET", "/api/a/b", "Slashes"),
        ("GET", "/API/Named/", "Named"),
        ("PATCH", "/api/named", "Named"),
        ("TRACE", "/api/n", "None"),
        ("GET", "/named", "404"),
        ("PUT", "/api/files/x/y%20z", "Everything path=x/y z"),
        ("PUT", "/api/files", "Everything"),
    ] {
        assert_eq!(answers(&table, method, path), expected, "{method} {path}");
    }
}

#[test]
fn the_prefix_may_be_empty_or_longer() {
    let routes = [("Root", json!({"route": "{*rest}"}))];
    let (table, _) = self::table(&routes, "");
    assert_eq!(answers(&table, "GET", "/"), "Root");
    assert_eq!(answers(&table, "GET", "/x/y"), "Root rest=x/y");
    let (table, _) = self::table(&routes, "/v1/shop/");
    assert_eq!(answers(&table, "GET", "/v1/shop/x"), "Root rest=x");
    assert_eq!(answers(&table, "GET", "/x"), "404");
}

#[test]
fn routes_that_cannot_be_served_are_reported() {
    let (table, problems) = table(
        &[
            ("Administrators", json!({"route": "administrators/{id}"})),
            ("Broken", json!({"route": "a/{id"})),
            ("First", json!({"route": "same", "methods": ["get", "post"]})),
            ("Other", json!({"route": "same", "methods": ["put"]})),
            ("Runtime", json!({"route": "Runtime/x"})),
            ("Second", json!({"route": "Same", "methods": ["post"]})),
        ],
        "api",
    );
    let served: Vec<&str> = table.routes().iter().map(|route| route.function.name.as_str()).collect();
    assert_eq!(served, ["First", "Other"]);
    assert_eq!(
        problems,
        [
            "function Administrators: httpTrigger.route: The specified route conflicts with one or more built in routes.\n  \
             fix: choose a route that does not begin with admin or runtime",
            "function Broken: httpTrigger.route: the route has an unmatched '{', in \"api/a/{id\"\n  \
             fix: write a route such as orders/{id:int}, or orders/{*rest} for everything below",
            "function Runtime: httpTrigger.route: The specified route conflicts with one or more built in routes.\n  \
             fix: choose a route that does not begin with admin or runtime",
            "function Second: httpTrigger.route: The route specified conflicts with the route defined by function 'First'.\n  \
             fix: choose another route, or methods that the other function does not have",
        ]
    );
}
