//! How `host.json` and the settings say that an app is a server of its own.

use bindpost_azure_functions::app::{App, ConfigurationProfile, WorkerRuntime};
use bindpost_azure_functions::function::AuthorizationLevel;
use serde_json::{Value, json};

use crate::folder::Folder;

const PROFILE: &str = "AzureFunctionsJobHost__configurationProfile";

fn host(members: Value) -> String {
    let mut host = json!({
        "version": "2.0", "customHandler": {"description": {"defaultExecutablePath": "python"}},
    });
    host.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    host.to_string()
}

fn folder(members: Value) -> Folder {
    Folder::new().with("host.json", &host(members))
}

/// Returns the routes as `name /template level`.
fn routes(app: &App) -> Vec<String> {
    let routes = &app.self_hosted().expect("it is self-hosted").routes;
    routes
        .iter()
        .map(|route| format!("{} /{} {}", route.function, route.text, route.level.as_str()))
        .collect()
}

#[test]
fn the_profile_decides_before_the_runtime_setting_and_the_variable_wins() {
    for (profile, variable, expected) in [
        (Some("mcp-custom-handler"), None, true),
        (Some("MCP-Custom-Handler"), None, true),
        (Some("web-app-custom-handler"), None, true),
        (None, Some("mcp-custom-handler"), true),
        (Some("mcp-custom-handler"), Some("default"), false),
        (Some("Default"), None, false),
        (Some(""), None, false),
        (None, None, false),
    ] {
        let folder = folder(json!({"configurationProfile": profile})).with("function_app.py", "");
        let mut environment = vec![("FUNCTIONS_WORKER_RUNTIME", "python")];
        environment.extend(variable.map(|value| (PROFILE, value)));
        let app = folder.open(&environment).unwrap();
        assert_eq!(app.self_hosted().is_some(), expected, "{profile:?} {variable:?}");
        let runtime = if expected { WorkerRuntime::Custom } else { WorkerRuntime::Python };
        assert_eq!(app.runtime, runtime, "{profile:?} {variable:?}");
        let profile = if expected { ConfigurationProfile::SelfHosted } else { ConfigurationProfile::Default };
        assert_eq!(app.host.profile, profile);
    }
}

#[test]
fn other_profiles_are_rejected_with_the_platforms_text() {
    let refusal = folder(json!({"configurationProfile": "mcp-custom-handlers"})).refusal(&[]);
    assert_eq!(
        refusal,
        "host.json: configurationProfile: Configuration profile 'mcp-custom-handlers' is not supported. Supported \
         values: '', 'default', 'mcp-custom-handler'.\n  fix: write \"mcp-custom-handler\" if the program of \
         customHandler is a server, or remove it"
    );
    let refusal = Folder::new()
        .with("host.json", r#"{"version": "2.0", "configurationProfile": "mcp-custom-handler"}"#)
        .refusal(&[]);
    assert!(
        refusal.starts_with("host.json: customHandler: is required because configurationProfile"),
        "{refusal}"
    );
    let off = json!({"description": {"defaultExecutablePath": "a"}, "enableProxyingHttpRequest": false});
    let refusal =
        folder(json!({"configurationProfile": "mcp-custom-handler", "customHandler": off})).refusal(&[]);
    assert!(refusal.starts_with("host.json: customHandler.enableProxyingHttpRequest: is false"), "{refusal}");
}

#[test]
fn the_profile_has_one_route_for_every_path_unless_the_app_lists_routes() {
    let app = |http: Value, prefix: Option<&str>| {
        let handler = json!({"description": {"defaultExecutablePath": "python"}, "http": http});
        let members = json!({
            "configurationProfile": "mcp-custom-handler", "customHandler": handler,
            "extensions": {"http": {"routePrefix": prefix}},
        });
        routes(&folder(members).open(&[]).unwrap())
    };
    assert_eq!(app(json!({}), None), ["http-handler1 /{*route} function"]);
    // The samples of Microsoft write the member so.
    let levels = app(json!({"DefaultAuthorizationLevel": "Anonymous"}), None);
    assert_eq!(levels, ["http-handler1 /{*route} anonymous"]);
    assert_eq!(app(json!({}), Some("api")), ["http-handler1 /api/{*route} function"]);
    let listed = json!({
        "defaultAuthorizationLevel": "admin",
        "ROUTES": [{"route": "/mcp"}, {"Route": "files/{*rest}", "AuthorizationLevel": "anonymous"}],
    });
    assert_eq!(app(listed, None), ["http-handler1 /mcp admin", "http-handler2 /files/{*rest} anonymous"]);
}

#[test]
fn settings_add_routes() {
    let folder = folder(json!({"configurationProfile": "mcp-custom-handler"}));
    let app = folder
        .open(&[
            ("AzureFunctionsJobHost__customHandler__http__routes__0__route", "mcp"),
            ("AzureFunctionsJobHost__customHandler__http__routes__0__authorizationLevel", "anonymous"),
            ("AzureFunctionsJobHost__customHandler__port", "8000"),
        ])
        .unwrap();
    assert_eq!(routes(&app), ["http-handler1 /mcp anonymous"]);
    assert_eq!(app.self_hosted().unwrap().port, Some(8000));
}

#[test]
fn mistakes_in_routes_name_the_route() {
    for (route, says) in [
        ("a b", "Route template cannot contain spaces., in \"a b\""),
        ("a//b", "the route has consecutive '/', in \"a//b\""),
        ("a/{b", "host.json: customHandler.http.routes[0].route: "),
    ] {
        let handler = json!({
            "description": {"defaultExecutablePath": "python"}, "http": {"routes": [{"route": route}]},
        });
        let members = json!({"configurationProfile": "mcp-custom-handler", "customHandler": handler});
        let refusal = folder(members).refusal(&[]);
        assert!(refusal.starts_with("host.json: customHandler.http.routes[0].route: "), "{refusal}");
        assert!(refusal.contains(says) && refusal.contains("\n  fix: "), "{refusal}");
    }
    let handler = json!({
        "description": {"defaultExecutablePath": "python"}, "http": {"defaultAuthorizationLevel": "user"},
    });
    let members = json!({"configurationProfile": "mcp-custom-handler", "customHandler": handler});
    let refusal = folder(members).refusal(&[]);
    assert!(
        refusal.contains("customHandler.http.defaultAuthorizationLevel: \"user\" is not an"),
        "{refusal}"
    );
}

/// The profile is a short form of these settings.
#[test]
fn routes_with_proxying_make_an_app_self_hosted_without_a_profile() {
    let handler = |proxies: bool| {
        json!({
            "description": {"defaultExecutablePath": "python"}, "enableProxyingHttpRequest": proxies,
            "http": {"routes": [{"route": "{*route}"}]},
        })
    };
    let runtime = [("FUNCTIONS_WORKER_RUNTIME", "custom")];
    let app = folder(json!({"customHandler": handler(true)})).open(&runtime).unwrap();
    // Without the profile, the default prefix applies.
    assert_eq!(routes(&app), ["http-handler1 /api/{*route} function"]);
    assert_eq!(app.self_hosted().unwrap().routes[0].level, AuthorizationLevel::Function);
    let app = folder(json!({"customHandler": handler(false)})).open(&runtime).unwrap();
    assert!(app.self_hosted().is_none());
}
