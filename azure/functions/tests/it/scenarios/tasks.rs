//! Functions that run as tasks.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::running::{let_go, was_written};
use crate::client::{Client, Way, within};
use crate::served::{Language, Launch, Served};

for_all_apps! {
    runs_the_selected_tools_as_tasks,
    asks_the_user_of_a_task,
    ends_a_task_with_its_worker,
    ends_a_task_at_the_timeout_of_functions,
    runs_tasks_that_clients_of_2025_11_25_request,
    answers_a_client_without_tasks_before_the_end,
}

const TOOLS: &str = "AzureFunctionsJobHost__extensions__mcp__tasks__tools";

fn launch(app: Language) -> Launch {
    app.launch().setting(&format!("{TOOLS}__0"), "slow*").setting(&format!("{TOOLS}__1"), "AskUserTool")
}

async fn client(host: &Served) -> Client {
    let mut client = host.client(Way::Alone).await;
    client.has_tasks = true;
    client
}

/// Starts `SlowTool` as a task. Returns the task, and the process in which its function runs.
async fn begun(client: &mut Client, name: &str) -> (String, String) {
    let made = client.call("SlowTool", json!({"name": name})).await;
    assert_eq!((&made["resultType"], &made["status"]), (&json!("task"), &json!("working")), "{made}");
    let task = made["taskId"].as_str().unwrap().to_owned();
    let running = until(client, &task, |task| task.get("statusMessage").is_some()).await;
    // The progress of the function is the status of the task.
    (task, running["statusMessage"].as_str().unwrap().to_owned())
}

/// Polls a task until it meets a condition.
async fn until(client: &mut Client, task: &str, condition: impl Fn(&Value) -> bool) -> Value {
    within(async {
        loop {
            let task = client.result("tasks/get", json!({"taskId": task})).await;
            if condition(&task) {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

async fn ended(client: &mut Client, task: &str) -> Value {
    until(client, task, |task| !["working", "input_required"].contains(&task["status"].as_str().unwrap()))
        .await
}

async fn runs_the_selected_tools_as_tasks(app: Language) {
    let lifetime = "AzureFunctionsJobHost__extensions__mcp__tasks__lifetime";
    let host = launch(app).setting(&format!("{TOOLS}__2"), "EcoTool").setting(lifetime, "00:20:00").serve();
    let idle = host.report.warnings.iter().find(|warning| warning.message.contains("tasks.tools")).unwrap();
    assert_eq!(idle.message, "host.json: extensions.mcp.tasks.tools: \"EcoTool\" matches no tool");
    assert_eq!(idle.fix.as_deref(), Some("write \"EchoTool\""));

    let mut client = client(&host).await;
    assert!(client.greeting["capabilities"]["extensions"].get("io.modelcontextprotocol/tasks").is_some());
    assert_eq!(client.text("EchoTool", json!({"message": "at once"})).await, "at once");

    let (task, _) = begun(&mut client, "as-task").await;
    // The worker is free for other calls, and the client too.
    assert_eq!(client.text("EchoTool", json!({"message": "meanwhile"})).await, "meanwhile");
    let_go(&host, "as-task").await;
    let done = ended(&mut client, &task).await;
    assert_eq!((&done["status"], &done["ttlMs"]), (&json!("completed"), &json!(1_200_000)), "{done}");
    assert_eq!(done["result"]["content"], json!([{"type": "text", "text": "waited"}]));
    assert!(was_written(&host, "as-task"));

    let (task, _) = begun(&mut client, "cancelled-task").await;
    client.result("tasks/cancel", json!({"taskId": task})).await;
    let_go(&host, "cancelled-task").await;
    assert_eq!(ended(&mut client, &task).await["status"], "cancelled");
    assert!(!was_written(&host, "cancelled-task"));

    // A client that does not declare tasks waits.
    let mut other = host.client(Way::Alone).await;
    std::fs::write(host.file("go-ordinary"), "").unwrap();
    assert_eq!(other.text("SlowTool", json!({"name": "ordinary"})).await, "waited");
}

async fn asks_the_user_of_a_task(app: Language) {
    let host = launch(app).serve();
    let mut client = client(&host).await;
    let task = client.call("AskUserTool", json!({})).await["taskId"].as_str().unwrap().to_owned();
    for (message, content) in
        [("Who are you?", json!({"name": "Ada"})), ("Which color?", json!({"color": "blue"}))]
    {
        let asks = until(&mut client, &task, |task| {
            let mut asked = task["inputRequests"].as_object().into_iter().flatten();
            asked.any(|(_, question)| question["params"]["message"] == message)
        })
        .await;
        assert_eq!(asks["status"], "input_required");
        let key = asks["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let answers = json!({key: {"action": "accept", "content": content}});
        client.result("tasks/update", json!({"taskId": task, "inputResponses": answers})).await;
    }
    let done = ended(&mut client, &task).await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada likes blue", "{done}");
}

async fn ends_a_task_with_its_worker(app: Language) {
    let host = launch(app).serve();
    let mut client = client(&host).await;
    let (task, process) = begun(&mut client, "killed").await;
    assert!(Command::new("kill").args(["-9", &process]).status().unwrap().success());
    let done = ended(&mut client, &task).await;
    let why = "An error occurred invoking 'SlowTool'. The worker exited while the function ran.";
    assert_eq!(done["result"]["content"], json!([{"type": "text", "text": why}]), "{done}");
    assert_eq!(done["result"]["isError"], true);
}

async fn ends_a_task_at_the_timeout_of_functions(app: Language) {
    let host = launch(app).setting("AzureFunctionsJobHost__functionTimeout", "00:00:01").serve();
    let mut client = client(&host).await;
    let (task, _) = begun(&mut client, "too-long-task").await;
    let done = ended(&mut client, &task).await;
    assert_eq!(done["result"]["isError"], true, "{done}");
    assert!(!was_written(&host, "too-long-task"));
}

async fn runs_tasks_that_clients_of_2025_11_25_request(app: Language) {
    let host = launch(app).serve();
    let mut client = host.client(Way::LATEST).await;
    let declared = &client.greeting["capabilities"]["tasks"]["requests"]["tools"]["call"];
    assert_eq!(*declared, json!({}), "{}", client.greeting);
    let tools = client.list("tools/list", "tools").await;
    let support = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool.pointer("/execution/taskSupport").cloned()
    };
    assert_eq!((support("SlowTool"), support("EchoTool")), (Some(json!("optional")), None));

    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments, "task": {}});
    let made = client.result("tools/call", call("SlowTool", json!({"name": "requested"}))).await;
    let task = made["task"]["taskId"].as_str().unwrap().to_owned();
    until(&mut client, &task, |task| task.get("statusMessage").is_some()).await;
    let_go(&host, "requested").await;
    let result = client.result("tasks/result", json!({"taskId": task})).await;
    assert_eq!(result["content"], json!([{"type": "text", "text": "waited"}]));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task);
    assert_eq!(ended(&mut client, &task).await["status"], "completed");

    // The questions of a task arrive while the client waits for its result.
    client.answers = |_, params| match params["message"].as_str() {
        Some("Who are you?") => json!({"action": "accept", "content": {"name": "Ada"}}),
        _ => json!({"action": "accept", "content": {"color": "blue"}}),
    };
    let made = client.result("tools/call", call("AskUserTool", json!({}))).await;
    let result = client.result("tasks/result", json!({"taskId": made["task"]["taskId"]})).await;
    assert_eq!(result["content"][0]["text"], "Ada likes blue", "{result}");

    // Without the parameter the client waits.
    std::fs::write(host.file("go-plain"), "").unwrap();
    assert_eq!(client.text("SlowTool", json!({"name": "plain"})).await, "waited");
}

async fn answers_a_client_without_tasks_before_the_end(app: Language) {
    let answer_after = "AzureFunctionsJobHost__extensions__mcp__tasks__answerAfter";
    let host = launch(app).setting(answer_after, "00:00:01").serve();
    for (number, way) in [Way::Alone, Way::Session("2025-06-18"), Way::Cold, Way::Sse].into_iter().enumerate()
    {
        let mut client = host.client(way).await;
        let name = format!("early-{number}");
        let early = client.call("SlowTool", json!({"name": name})).await;
        let says = &early["structuredContent"];
        assert_eq!(
            (&says["status"], &says["pollAfterSeconds"]),
            (&json!("running"), &json!(5)),
            "{way:?}: {early}"
        );
        let arguments = json!({"taskId": says["taskId"]});
        let text = early["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("call the tool task_result with {arguments}")), "{text}");
        let_go(&host, &name).await;
        assert_eq!(client.text("task_result", arguments).await, "waited", "{way:?}");
        assert!(was_written(&host, &name));
    }
    // A client that cancels the task cancels its function.
    let mut client = host.client(Way::LATEST).await;
    let early = client.call("SlowTool", json!({"name": "early-cancelled"})).await;
    let arguments = json!({"taskId": early["structuredContent"]["taskId"], "cancel": true});
    assert_eq!(client.call("task_result", arguments).await["isError"], true);
    let_go(&host, "early-cancelled").await;
    assert_eq!(client.text("EchoTool", json!({"message": "meanwhile"})).await, "meanwhile");
    assert!(!was_written(&host, "early-cancelled"));
}
