//! Java apps of other forms than those that the Maven plugin writes, and with mistakes, served by a host. The tests
//! compile them against the declarations of the built-in worker.

pub(crate) mod built;

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use self::built::{BuiltApp, mcp_property, tool};
use crate::client::{Client, Way, within};
use crate::packages;
use crate::served::{Launch, Served};

async fn client(host: &Served) -> Client {
    host.client(Way::LATEST).await
}

/// Returns the text of a failed call.
async fn failure(client: &mut Client, tool: &str) -> String {
    let result = client.call(tool, json!({})).await;
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

fn warnings(host: &Served) -> Vec<&str> {
    host.report.warnings.iter().map(|warning| warning.message.as_str()).collect()
}

const ORDERS: &str = r#"
package demo;
import com.microsoft.azure.functions.annotation.*;
import java.util.*;
public class Orders {
    public static class Item { String name; int count; double price; }
    public static class Order { List<Item> items = new ArrayList<>(); Map<String, Boolean> flags; String note = "none"; }
    public static class Call { Order arguments; }
    enum State { OPEN, CLOSED }
    public static class Receipt { int total; State state = State.OPEN; String missing; List<String> names = new ArrayList<>(); }

    public Receipt order(@McpToolTrigger(name = "call") Call call) {
        Receipt receipt = new Receipt();
        for (Item item : call.arguments.items) { receipt.total += item.count; receipt.names.add(item.name + "<" + item.price); }
        if (call.arguments.flags != null && call.arguments.flags.get("closed")) receipt.state = State.CLOSED;
        receipt.names.add(call.arguments.note);
        return receipt;
    }

    public String numbers(@McpToolTrigger(name = "call") String call, @McpToolProperty(name = "few") int[] few,
            @McpToolProperty(name = "some") Optional<Integer> some, @McpToolProperty(name = "item") Item item) {
        return few.length + " " + some + " " + (item == null ? "no item" : item.name);
    }

    public Rich rich(@McpToolTrigger(name = "call") String call) { return new Rich("<b>"); }
}
"#;

const RICH: &str = "package demo; public class Rich { public final String text; public Rich(String text) { this.text = text; } }";

/// It has the name of the middleware of the library `azure-functions-java-mcp`, and works like it.
const MIDDLEWARE: &str = r#"
package com.microsoft.azure.functions.mcp;
import com.google.gson.Gson;
import com.microsoft.azure.functions.internal.spi.middleware.*;
import java.util.*;
public class McpToolResultMiddleware implements Middleware {
    public void invoke(MiddlewareContext context, MiddlewareChain chain) throws Exception {
        chain.doNext(context);
        Object value = context.getReturnValue();
        if (!(value instanceof demo.Rich)) return;
        Map<String, Object> block = new LinkedHashMap<>();
        block.put("type", "text");
        block.put("text", ((demo.Rich) value).text + " " + context.getFunctionName());
        Map<String, Object> envelope = new LinkedHashMap<>();
        envelope.put("type", "text");
        envelope.put("content", new Gson().toJson(block));
        context.updateReturnValue(new Gson().toJson(envelope));
    }
}
"#;

#[tokio::test]
async fn an_app_without_gson_binds_and_returns_objects() {
    let mut rich = tool("rich", &[]);
    rich["useResultSchema"] = json!(true);
    let names = ["few", "some", "item"];
    let mut numbers = vec![tool("numbers", &names)];
    numbers.extend(names.map(mcp_property));
    let app = BuiltApp::new()
        .source("demo/Orders.java", ORDERS)
        .source("demo/Rich.java", RICH)
        .source("com/microsoft/azure/functions/mcp/McpToolResultMiddleware.java", MIDDLEWARE)
        .resource(
            "META-INF/services/com.microsoft.azure.functions.internal.spi.middleware.Middleware",
            "com.microsoft.azure.functions.mcp.McpToolResultMiddleware\n",
        )
        .function("Order", "demo.Orders.order", &[tool("order", &[])])
        .function("Numbers", "demo.Orders.numbers", &numbers)
        .function("Rich", "demo.Orders.rich", &[rich]);
    let host = app.launch().await.serve();
    assert_eq!(warnings(&host), [] as [&str; 0]);
    let mut client = client(&host).await;
    let items =
        json!([{"name": "nut", "count": 3, "price": 0.5}, {"name": "bolt", "count": "4", "unknown": []}]);
    let order = json!({"items": items, "flags": {"closed": true}});
    let receipt: Value = serde_json::from_str(&client.text("order", order).await).unwrap();
    assert_eq!(receipt, json!({"total": 7, "state": "CLOSED", "names": ["nut<0.5", "bolt<0.0", "none"]}));
    let numbers = json!({"few": [1, 2, 3], "some": 7, "item": {"name": "nut"}});
    assert_eq!(client.text("numbers", numbers).await, "3 Optional[7] nut");
    assert_eq!(client.text("numbers", json!({"few": []})).await, "0 Optional.empty no item");
    assert_eq!(client.text("rich", json!({})).await, "<b> Rich");
}

const FORMS: &str = r#"
package demo;
import com.microsoft.azure.functions.*;
import com.microsoft.azure.functions.annotation.*;
public class Outer {
    public static class Inner {
        private final String made = "made";
        public String run(@McpToolTrigger(name = "call") String call, ExecutionContext context) {
            context.getLogger().info("ran");
            return made + " " + context.getFunctionName();
        }
    }
    public static String fixed(@McpToolTrigger(name = "call") String call) { return "static"; }
}
"#;

fn forms() -> BuiltApp {
    BuiltApp::new()
        .source("demo/Outer.java", FORMS)
        .function("Nested", "demo.Outer.Inner.run", &[tool("nested", &[])])
        .function("Static", "demo.Outer.fixed", &[tool("static", &[])])
}

/// The declarations are those of the worker, as for an app with a library of version 1.
#[tokio::test]
async fn nested_classes_and_static_methods_run() {
    let host = forms().launch().await.serve();
    let mut client = client(&host).await;
    assert_eq!(client.text("nested", json!({})).await, "made Nested");
    assert_eq!(client.text("static", json!({})).await, "static");
}

/// All classes are in one jar, also those of the library, and there is no folder `lib`.
#[tokio::test]
async fn a_jar_with_its_dependencies_runs() {
    let host = forms().shaded().launch().await.serve();
    assert_eq!(client(&host).await.text("nested", json!({})).await, "made Nested");
}

const MISTAKES: &str = r#"
package demo;
import com.microsoft.azure.functions.*;
import com.microsoft.azure.functions.annotation.*;
public class Mistakes {
    public static class Starts { static final int VALUE = Integer.parseInt("not a number");
        public String run(@McpToolTrigger(name = "call") String call) { return "" + VALUE; } }
    public String twice(@McpToolTrigger(name = "call") String call) { return "a"; }
    public String twice(@McpToolTrigger(name = "call") Object call) { return "b"; }
    String hidden(@McpToolTrigger(name = "call") String call) { return "c"; }
    public String unbound(@McpToolTrigger(name = "call") String call, java.util.Date when) { return "d"; }
    public String other(@McpToolTrigger(name = "other") String call) { return "e"; }
    public String lacks(@McpToolTrigger(name = "call") String call) { return new Missing().toString(); }
    public String fine(@McpToolTrigger(name = "call") String call) { return "fine"; }
    public String primitive(@McpToolTrigger(name = "call") String call, @McpToolProperty(name = "count") int count) { return "" + count; }
}
"#;

#[tokio::test]
async fn mistakes_are_told_and_end_one_call_only() {
    let mut app = BuiltApp::new()
        .source("demo/Mistakes.java", MISTAKES)
        .source("demo/Missing.java", "package demo; public class Missing {}")
        .without_class("demo/Missing")
        .function(
            "Primitive",
            "demo.Mistakes.primitive",
            &[tool("primitive", &["count"]), mcp_property("count")],
        );
    for (name, method) in [
        ("Starts", "Starts.run"),
        ("Twice", "twice"),
        ("Hidden", "hidden"),
        ("Absent", "absent"),
        ("Unbound", "unbound"),
        ("Other", "other"),
        ("Lacks", "lacks"),
        ("Fine", "fine"),
    ] {
        app = app.function(name, &format!("demo.Mistakes.{method}"), &[tool(&name.to_lowercase(), &[])]);
    }
    app = app.function("NoClass", "demo.Nowhere.run", &[tool("noclass", &[])]);
    let host = app.launch().await.options(|options| options.detailed_errors = true).serve();
    let warnings = warnings(&host);
    let told = |function: &str, words: &str| {
        let start = format!("function {function}: the worker cannot load it: ");
        let warning = warnings.iter().find(|warning| warning.starts_with(&start));
        let warning = warning.unwrap_or_else(|| panic!("{function} in {warnings:#?}"));
        assert!(warning.contains(words), "{warning}");
    };
    told("Twice", "Found more than one function with method name \"twice\" in class \"demo.Mistakes\"");
    told("Hidden", "There are no methods named \"hidden\" in class \"demo.Mistakes\"");
    told("Absent", "There are no methods named \"absent\"");
    told("Unbound", "Date");
    told("Other", "Cannot find matched parameter name");
    told("NoClass", "the class demo.Nowhere is not in the app's jar");

    let mut client = client(&host).await;
    for _ in 0..2 {
        let text = failure(&mut client, "starts").await;
        assert!(
            text.contains("The static initialiser of demo.Mistakes$Starts failed: NumberFormatException"),
            "{text}"
        );
    }
    let text = failure(&mut client, "lacks").await;
    assert!(text.contains("The class demo.Missing is missing"), "{text}");
    let text = failure(&mut client, "primitive").await;
    assert!(text.contains("count"), "{text}");
    let wrong = client.call("primitive", json!({"count": "many"})).await;
    let text = wrong["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"many\"") && text.contains("int"), "{text}");
    assert_eq!(client.text("primitive", json!({"count": 5})).await, "5");
    assert_eq!(client.text("fine", json!({})).await, "fine");
}

/// Runs the fixture app on one Java.
async fn runs_on(java: &std::path::Path) {
    let launch = Launch::packaged("tests/apps/java");
    let host = launch.setting("languageWorkers__java__defaultExecutablePath", java.to_str().unwrap()).serve();
    let shown = java.display();
    assert!(host.report.warnings.is_empty(), "{shown}: {:?}", host.report.warnings);
    let mut client = client(&host).await;
    let message = "Grüße, 世界 \u{1f980}";
    assert_eq!(client.text("EchoTool", json!({"message": message})).await, message, "{shown}");
    let arguments = json!({"name": "Alice", "job": "FullTime", "age": 30, "isActive": true});
    assert_eq!(client.text("TypedParametersTool", arguments).await, "Alice FullTime 31 active", "{shown}");
    assert_eq!(client.text("SaveTool", json!({"name": "n", "content": message})).await, "saved");
    assert_eq!(client.text("GetTool", json!({"name": "n"})).await, message);
    assert_eq!(failure(&mut client, "FailingTool").await, "An error occurred invoking 'FailingTool'.");
    let large = "x".repeat(3_000_000);
    assert_eq!(client.text("EchoTool", json!({"message": large})).await.len(), large.len());
}

#[tokio::test]
async fn apps_run_on_every_java() {
    // PyPI has runtimes without a compiler. Java 11 has no unix sockets.
    let runtimes = ["11.0.13.1", "21.0.8.2"].map(packages::java_runtime);
    for java in packages::jdks().iter().map(|jdk| jdk.join("bin/java")).chain(runtimes) {
        runs_on(&java).await;
    }
}

#[tokio::test]
async fn an_app_for_a_newer_java_is_rejected_before_it_starts() {
    let java = packages::java_runtime("11.0.13.1");
    let launch = forms().class_version(61).launch().await;
    let launch = launch.setting("languageWorkers__java__defaultExecutablePath", java.to_str().unwrap());
    let told = launch.refusal().await;
    let expected = format!(
        "no suitable Java was found: app.jar is compiled for Java 17; found 11.0.13 ({})",
        java.display()
    );
    assert!(told.starts_with(&expected), "{told}");
}

#[tokio::test]
async fn arguments_for_the_virtual_machine_come_from_settings() {
    let source = r#"
package demo;
import com.microsoft.azure.functions.annotation.*;
public class Settings {
    public String read(@McpToolTrigger(name = "call") String call) {
        return System.getProperty("one") + ", " + System.getProperty("two") + ", " + System.getProperty("file.encoding");
    }
}
"#;
    let app = BuiltApp::new().source("demo/Settings.java", source).function(
        "Read",
        "demo.Settings.read",
        &[tool("read", &[])],
    );
    let launch = app.launch().await.setting("WORDS", "b c");
    let launch = launch.setting("JAVA_OPTS", "-Done=a \"-Dtwo=%WORDS%\" -Dfile.encoding=ISO-8859-1");
    let host = launch.setting("languageWorkers__java__arguments", "-Done=z").serve();
    assert_eq!(client(&host).await.text("read", json!({})).await, "z, b c, ISO-8859-1");
}

/// The project of the fixture app, copied with its sources.
#[tokio::test]
async fn a_project_is_packaged_and_packaged_again_when_a_source_changes() {
    let launch = Launch::copy_of("tests/apps/http-java").java();
    let host = launch.options(|options| (options.install, options.watch) = (true, true)).serve();
    let mut client = client(&host).await;
    assert_eq!(client.text("greet", json!({})).await, "Hello from a tool.");

    let packaged = host.file("target/azure-functions/fixture");
    assert!(packaged.join("fixture-1.jar").is_file());
    let body = r#"{"text": "kept"}"#;
    let saved = crate::http_functions::post(&host, "/api/save/a?name=n", body).await;
    assert_eq!(saved, "saved");
    assert!(host.file(".bindpost/blobs/notes").is_dir());
    assert!(!packaged.join(".bindpost").exists(), "a build deletes its output");

    let source = host.file("src/main/java/fixture/Functions.java");
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("Hello from a tool.", "Hello again.")).unwrap();
    let greeting = async {
        while client.text("greet", json!({})).await != "Hello again." {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    within(greeting).await;
}
