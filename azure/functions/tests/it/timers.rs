//! Apps whose functions have timer triggers, served by a host: the fixture apps `tests/apps/timers-*`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use http::{HeaderValue, Method};
use serde_json::{Value, json};

use crate::client::{Way, send, within};
use crate::served::{Launch, Served};

/// The status of a timer that was due in 2021 and did not run.
const MISSED: &str = r#"{"Last":"2020-06-01T00:00:00+00:00","Next":"2021-01-01T00:00:00+00:00","LastUpdated":"2020-06-01T00:00:00+00:00"}"#;
const NEW_YEAR: &str = "0 0 0 1 1 *";
const STATUS: &str = ".bindpost/timers/Configured.json";

fn python() -> Launch {
    Launch::copy_of("tests/apps/timers-python").python("1.25.0")
}

fn node() -> Launch {
    Launch::copy_of("tests/apps/timers-node").node("4.16.5")
}

fn java() -> Launch {
    Launch::packaged("tests/apps/timers-java")
}

fn handler() -> Launch {
    Launch::copy_of("tests/apps/timers-handler")
}

/// Returns the lines that a function has written.
fn lines(host: &Served, function: &str) -> Vec<Value> {
    let text = fs::read_to_string(host.file(&format!("{function}.jsonl"))).unwrap_or_default();
    // The last line may not be complete yet.
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits until a function has written lines for which `is_enough` holds.
async fn lines_until(host: &Served, function: &str, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    within(async {
        loop {
            let lines = lines(host, function);
            if is_enough(&lines) {
                return lines;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}

async fn first_lines(host: &Served, function: &str, count: usize) -> Vec<Value> {
    lines_until(host, function, |lines| lines.len() >= count).await
}

async fn wait_for_file(path: &Path, is_ready: impl Fn(&str) -> bool) -> String {
    within(async {
        loop {
            if let Some(text) = fs::read_to_string(path).ok().filter(|text| is_ready(text)) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}

#[tokio::test]
async fn python_functions_run_by_their_schedules() {
    run_by_their_schedules(python()).await;
}

#[tokio::test]
async fn node_functions_run_by_their_schedules() {
    run_by_their_schedules(node()).await;
}

#[tokio::test]
async fn java_functions_run_by_their_schedules() {
    run_by_their_schedules(java()).await;
}

#[tokio::test]
async fn functions_of_a_custom_handler_run_by_their_schedules() {
    run_by_their_schedules(handler()).await;
}

async fn run_by_their_schedules(app: Launch) {
    // The status says that an occurrence was missed, so the function is past due.
    let app = app.setting("TZ", "UTC").setting("SCHEDULE", NEW_YEAR).file(STATUS, MISSED);
    let host = app.serve();
    assert!(host.report.warnings.is_empty(), "{:?}", host.report.warnings);
    let mut rows: Vec<(&str, &str, &Option<String>)> = host
        .report
        .timers
        .iter()
        .map(|row| (row.function.as_str(), row.schedule.as_str(), &row.next))
        .collect();
    rows.sort();
    assert_eq!(
        rows.iter().map(|(function, schedule, _)| (*function, *schedule)).collect::<Vec<_>>(),
        [
            ("Configured", NEW_YEAR),
            ("Failing", "* * * * * *"),
            ("Slow", "00:00:01"),
            ("Startup", NEW_YEAR),
            ("Tick", "* * * * * *")
        ]
    );
    let next_year = rows[0].2.clone().unwrap();
    assert!(next_year.ends_with("-01-01T00:00:00+00:00"), "{next_year}");

    // An app without MCP triggers is served as well.
    let mut client = host.client(Way::LATEST).await;
    assert_eq!(client.list("tools/list", "tools").await, [] as [Value; 0]);

    for line in first_lines(&host, "Tick", 3).await {
        assert_eq!(line["pastDue"], false);
        assert_eq!(line["schedule"], json!({"AdjustForDST": true}));
        assert_eq!(line["status"], Value::Null, "a timer that runs every second has no status");
    }
    let line = &first_lines(&host, "Startup", 1).await[0];
    assert_eq!(line["pastDue"], false);
    assert_eq!(line["status"]["Last"], "0001-01-01T00:00:00");
    assert_eq!(line["status"]["Next"], next_year);
    let blob = host.file(".bindpost/blobs/timers/+startup.txt");
    wait_for_file(&blob, |text| text == "started").await;
    let status =
        wait_for_file(&host.file(".bindpost/timers/Startup.json"), |text| !text.contains("0001-")).await;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!((&status["Next"], &status["Last"]), (&json!(next_year), &status["LastUpdated"]));

    let line = &first_lines(&host, "Configured", 1).await[0];
    assert_eq!(
        (&line["pastDue"], &line["status"]["Next"]),
        (&json!(true), &json!("2021-01-01T00:00:00+00:00"))
    );
    let status = wait_for_file(&host.file(STATUS), |text| text.contains(&next_year)).await;
    assert!(!status.contains("2021"), "{status}");

    // A function that fails is run again, and one that takes longer than its interval never overlaps.
    first_lines(&host, "Failing", 3).await;
    let steps = first_lines(&host, "Slow", 6).await;
    for (at, line) in steps.iter().enumerate() {
        assert_eq!(line["step"], if at % 2 == 0 { "begin" } else { "end" });
    }
    assert_eq!(lines(&host, "Startup").len(), 1);
    assert_eq!(lines(&host, "Configured").len(), 1);
}

#[tokio::test]
async fn a_changed_schedule_is_not_past_due() {
    let host = python().setting("TZ", "UTC").setting("SCHEDULE", "0 0 0 2 1 *").file(STATUS, MISSED).serve();
    first_lines(&host, "Tick", 2).await;
    let status = wait_for_file(&host.file(STATUS), |text| text.contains("-01-02T00:00:00")).await;
    assert!(status.starts_with(r#"{"Last":"0001-01-01T00:00:00""#), "{status}");
    assert_eq!(lines(&host, "Configured"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_reload_replaces_schedules_and_is_no_startup() {
    let settings = |schedule: &str| json!({"Values": {"TZ": "UTC", "SCHEDULE": schedule}}).to_string();
    let app = python().file("local.settings.json", &settings(NEW_YEAR));
    let host = app.options(|options| options.watch = true).serve();
    let old = first_lines(&host, "Tick", 1).await[0]["process"].clone();
    first_lines(&host, "Startup", 1).await;
    // A status that an earlier start has recorded does not matter for the new schedule.
    fs::write(host.file("local.settings.json"), settings("* * * * * *")).unwrap();
    let configured = first_lines(&host, "Configured", 2).await;
    assert!(configured.iter().all(|line| line["process"] != old && line["pastDue"] == false));
    lines_until(&host, "Tick", |lines| lines.iter().any(|line| line["process"] != old)).await;
    assert_eq!(lines(&host, "Startup").len(), 1);
    // Once the new instance runs a function, the old one does not run it any more.
    let ticks = lines(&host, "Tick");
    let newer = ticks.iter().position(|line| line["process"] != old).unwrap();
    assert!(ticks[newer..].iter().all(|line| line["process"] != old));
}

#[tokio::test]
async fn a_run_that_has_begun_is_finished_before_the_host_stops() {
    let host = node().setting("SCHEDULE", NEW_YEAR).serve();
    lines_until(&host, "Slow", |lines| lines.last().is_some_and(|line| line["step"] == "begin")).await;
    let folder = host.stop();
    let text = fs::read_to_string(folder.path().join("Slow.jsonl")).unwrap();
    assert!(text.trim_end().ends_with(r#""step":"end"}"#), "{text}");
}

#[tokio::test]
async fn mistakes_in_schedules_and_zones_are_told() {
    let host =
        python().setting("SCHEDULE", "0 0 0 * * 7").setting("WEBSITE_TIME_ZONE", "Nowhere/Here").serve();
    let warnings: Vec<&str> = host.report.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        warnings,
        [
            "function Configured: timerTrigger.schedule: The schedule expression '0 0 0 * * 7' was not recognized as a \
             valid cron expression or timespan string. As a cron expression the field weekday has \"7\"; write *, or \
             weekdays as numbers from 0 (Sunday) to 6 or as names, such as 1-5 or Mon-Fri.",
            "the setting WEBSITE_TIME_ZONE names the time zone \"Nowhere/Here\", which this system does not know; the \
             schedules of timers use UTC",
        ]
    );
    assert_eq!(host.report.timers.len(), 4);
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// Asks for a run. Returns the status of the response.
async fn request_run(host: &Served, path: &str, headers: &[(&'static str, &str)], body: &str) -> u16 {
    let headers: Vec<(&'static str, String)> =
        headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    send(host.address, Method::POST, path, &headers, body.to_owned()).await.status.as_u16()
}

#[tokio::test]
async fn a_timer_runs_when_it_is_requested() {
    let host = handler().setting("TZ", "UTC").setting("SCHEDULE", NEW_YEAR).serve();
    let status = wait_for_file(&host.file(STATUS), |_| true).await;
    for (path, body) in [
        ("/admin/functions/Configured", r#"{"input": ""}"#),
        ("/ADMIN/functions/configured/", r#"{"input": "{\"a\": 1}"}"#),
        ("/admin/functions/Configured", ""),
    ] {
        let before = lines(&host, "Configured").len();
        assert_eq!(request_run(&host, path, &[JSON], body).await, 202, "{path}");
        let line = first_lines(&host, "Configured", before + 1).await[before].clone();
        assert_eq!(
            (&line["pastDue"], &line["status"]["Last"]),
            (&json!(false), &json!("0001-01-01T00:00:00"))
        );
    }
    // The schedule goes on as before.
    assert_eq!(fs::read_to_string(host.file(STATUS)).unwrap(), status);
}

#[tokio::test]
async fn requests_for_a_timer_that_runs_are_one() {
    let trigger = json!({"type": "timerTrigger", "direction": "in", "name": "timer", "schedule": NEW_YEAR});
    let slow = json!({"bindings": [trigger]}).to_string();
    let host = handler().setting("SCHEDULE", NEW_YEAR).file("Slow/function.json", &slow).serve();
    assert_eq!(request_run(&host, "/admin/functions/Slow", &[JSON], "{}").await, 202);
    first_lines(&host, "Slow", 1).await;
    let requests = (0..100).map(|_| request_run(&host, "/admin/functions/Slow", &[JSON], "{}"));
    let statuses = futures_util::future::join_all(requests).await;
    assert!(statuses.iter().all(|status| *status == 202), "{statuses:?}");
    first_lines(&host, "Slow", 4).await;
    // A third run would begin now.
    assert_eq!(request_run(&host, "/admin/functions/Configured", &[JSON], "{}").await, 202);
    first_lines(&host, "Configured", 1).await;
    let steps: Vec<Value> = lines(&host, "Slow").into_iter().map(|line| line["step"].clone()).collect();
    assert_eq!(steps, ["begin", "end", "begin", "end"]);
}

#[tokio::test]
async fn invalid_requests_for_a_timer_run_nothing() {
    let host = handler().setting("SCHEDULE", NEW_YEAR).serve();
    let path = "/admin/functions/Configured";
    // A web page of another origin can send these requests without asking.
    for headers in
        [&[][..], &[("content-type", "text/plain")], &[("content-type", "text/plain;application/json")]]
    {
        assert_eq!(request_run(&host, path, headers, "{}").await, 415, "{headers:?}");
    }
    let rebound = [JSON, ("host", "evil.example")];
    assert_eq!(request_run(&host, path, &rebound, "{}").await, 403);
    for body in ["[]", "7", "{", "\"input\"", &"[".repeat(60_000)] {
        assert_eq!(request_run(&host, path, &[JSON], body).await, 400, "{:.20}", body);
    }
    assert_eq!(
        request_run(&host, path, &[JSON], &format!("{{\"input\": \"{}\"}}", "x".repeat(70_000))).await,
        413
    );
    for path in [
        "/admin/functions/",
        "/admin/functions/nope",
        "/admin/functions/Configured/x",
        "/admin/functions/..%2fConfigured",
    ] {
        assert_eq!(request_run(&host, path, &[JSON], "{}").await, 404, "{path}");
    }
    let answer = send(host.address, Method::GET, path, &[], String::new()).await;
    assert_eq!((answer.status.as_u16(), &answer.head["allow"]), (405, &HeaderValue::from_static("POST")));
    assert_eq!(lines(&host, "Configured"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_request_for_a_timer_needs_the_master_key() {
    let keys = "mcp_extension = system\n_master = master\ndefault = host\nConfigured.own = own\n";
    let host = handler().setting("SCHEDULE", NEW_YEAR).file(".bindpost/keys", keys).with_keys().serve();
    for key in ["wrong", "system", "host", "own"] {
        // An unknown name is not told apart.
        for name in ["Configured", "nope"] {
            let path = format!("/admin/functions/{name}");
            assert_eq!(
                request_run(&host, &path, &[JSON, ("x-functions-key", key)], "{}").await,
                401,
                "{key}"
            );
            assert_eq!(request_run(&host, &format!("{path}?code={key}"), &[JSON], "{}").await, 401, "{key}");
        }
    }
    let headers = [JSON, ("x-functions-key", "master")];
    assert_eq!(request_run(&host, "/admin/functions/nope", &headers, "{}").await, 404);
    assert_eq!(lines(&host, "Configured"), [] as [Value; 0]);
    assert_eq!(request_run(&host, "/admin/functions/Configured", &headers, "{}").await, 202);
    first_lines(&host, "Configured", 1).await;
}
