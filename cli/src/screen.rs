//! The start screen of `bindpost run`, and what all screens use: tables, colors and the width of the terminal.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use bindpost_azure_functions::{AppReport, ArgumentRow, ServerRow, WorkerKind};

/// Maximum number of rows of one table. The number of further rows is printed below it.
const MAX_ROWS: usize = 20;
/// Maximum width of a cell.
const WIDEST: usize = 48;

/// Contents of the start screen.
pub(crate) struct StartScreen<'a> {
    pub(crate) report: &'a AppReport,
    /// The base URL, such as `http://127.0.0.1:7071`.
    pub(crate) base: &'a str,
    pub(crate) auth: &'a str,
    pub(crate) revisions: &'a str,
    pub(crate) ready_ms: u128,
    pub(crate) style: TerminalStyle,
}

/// Draws the whole screen.
pub(crate) fn draw(facts: &StartScreen<'_>) -> String {
    let StartScreen { report, base, auth, revisions, ready_ms, style: paint } = *facts;
    let mut out = String::new();
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(
        out,
        "\n  {} {version}   {}   {}   ready in {ready_ms} ms\n",
        paint.bold("bindpost"),
        without_controls(&report.app),
        without_controls(&worker(report))
    );
    match &report.server {
        None => {
            let _ =
                writeln!(out, "  MCP        {base}/runtime/webhooks/mcp      streamable HTTP: {revisions}");
            let _ = writeln!(out, "             {base}/runtime/webhooks/mcp/sse  HTTP+SSE, for old clients");
            let _ = writeln!(out, "             {base}/mcp                       short form of the first");
        }
        Some(server) => {
            let _ = writeln!(out, "  MCP        {base}/mcp   every other path is forwarded too");
            let _ = writeln!(out, "  Server     {}", without_controls(&describe_server(server)));
        }
    }
    let _ = writeln!(out, "  Health     {base}/_/healthz  {base}/_/readyz");
    let _ = writeln!(out, "  Auth       {auth}");
    if let Some(place) = &report.worker.place {
        let label = if report.server.is_some() { "Program" } else { "Worker " };
        let _ = writeln!(out, "  {label}    {}", without_controls(place));
    }
    if let Some(interpreter) = &report.interpreter {
        let language = if report.runtime.starts_with("java ") { "Java" } else { "Python" };
        let _ = writeln!(out, "  {language:<9}  {}", without_controls(interpreter));
    }
    for notice in &report.notices {
        let _ = writeln!(out, "  Note       {}", without_controls(notice));
    }
    out.push('\n');

    let tools = report.tools.iter().map(|tool| {
        let cells = [
            &tool.name,
            &arguments(&tool.arguments),
            &tool.function,
            &tool
                .http
                .iter()
                .map(|http| format!("← http {http}"))
                .chain(tool.bindings.clone())
                .collect::<Vec<_>>()
                .join(" "),
            &tool.hints.join(" "),
        ];
        cells.map(|cell| cell.clone())
    });
    table(&mut out, "TOOLS", ["NAME", "ARGUMENTS", "FUNCTION", "BINDINGS", "HINTS"], tools, paint);
    let resources = report.resources.iter().map(|resource| {
        let kind = resource.mime_type.clone().unwrap_or_default();
        [
            resource.uri.clone(),
            resource.name.clone(),
            resource.function.clone(),
            resource.bindings.join(" "),
            kind,
        ]
    });
    table(&mut out, "RESOURCES", ["URI", "NAME", "FUNCTION", "BINDINGS", "TYPE"], resources, paint);
    let prompts = report.prompts.iter().map(|prompt| {
        [
            prompt.name.clone(),
            arguments(&prompt.arguments),
            prompt.function.clone(),
            String::new(),
            String::new(),
        ]
    });
    table(&mut out, "PROMPTS", ["NAME", "ARGUMENTS", "FUNCTION", "", ""], prompts, paint);

    let http = report.http.iter().map(|row| {
        let methods = if row.methods.is_empty() { "any".to_owned() } else { row.methods.join(" ") };
        [row.route.clone(), methods, row.function.clone(), row.bindings.join(" "), row.level.to_owned()]
    });
    table(&mut out, "HTTP", ["ROUTE", "METHODS", "FUNCTION", "BINDINGS", "LEVEL"], http, paint);
    let timers = report.timers.iter().map(|row| {
        let next = row.next.clone().unwrap_or_else(|| "never".to_owned());
        [row.schedule.clone(), next, row.function.clone(), row.bindings.join(" ")]
    });
    table(&mut out, "TIMERS", ["SCHEDULE", "NEXT RUN", "FUNCTION", "BINDINGS"], timers, paint);

    for warning in &report.warnings {
        let _ = writeln!(out, "  {} {}", paint.yellow("!"), without_controls(&warning.message));
        if let Some(fix) = &warning.fix {
            let _ = writeln!(out, "      fix: {}", without_controls(fix));
        }
    }
    out
}

/// Returns the language with the kind of its worker. A custom handler may be written in any language.
fn worker(report: &AppReport) -> String {
    match report.worker.kind {
        WorkerKind::CustomHandler | WorkerKind::SelfHosted => report.worker.kind.as_words().to_owned(),
        kind => format!("{}, {}", report.runtime, kind.as_words()),
    }
}

/// Describes the server of a self-hosted app.
fn describe_server(server: &ServerRow) -> String {
    let named = [&server.name, &server.version].into_iter().flatten().map(String::as_str);
    let mut parts: Vec<String> = vec![named.collect::<Vec<_>>().join(" ")];
    parts.extend(server.revision.as_ref().map(|revision| format!("MCP {revision}")));
    parts.extend(server.problem.clone());
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// Lists the arguments of an entry. `*` marks required arguments.
fn arguments(rows: &[ArgumentRow]) -> String {
    let shown = rows.iter().map(|row| {
        let star = if row.required { "*" } else { "" };
        format!("{}{star}: {}", row.name, row.kind)
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Draws a table. While it is too wide for the terminal, its last column is dropped.
pub(crate) fn table<const N: usize>(
    out: &mut String,
    title: &str,
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    paint: TerminalStyle,
) {
    let all: Vec<[String; N]> = rows.map(|row| row.map(|cell| shorten(&without_controls(&cell)))).collect();
    if all.is_empty() {
        return;
    }
    let rows = all.get(..MAX_ROWS.min(all.len())).unwrap_or_default();
    let widths: Vec<usize> = (0..N)
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            let widest = cells.max().unwrap_or(0);
            let head = heads.get(at).map_or(0, |head| head.len());
            if widest == 0 { 0 } else { widest.max(head) }
        })
        .collect();
    let mut columns: Vec<usize> =
        (0..N).filter(|at| widths.get(*at).is_some_and(|width| *width > 0)).collect();
    let total = |columns: &[usize]| -> usize {
        2 + columns.iter().filter_map(|at| widths.get(*at)).map(|width| width + 2).sum::<usize>()
    };
    while columns.len() > 2 && total(&columns) > paint.width {
        columns.pop();
    }
    let _ = writeln!(out, "  {} ({})", paint.bold(title), all.len());
    let line = |cells: &[&str], bold_first: bool| {
        let mut text = String::from("  ");
        for (number, at) in columns.iter().enumerate() {
            let cell = cells.get(*at).copied().unwrap_or_default();
            let pad = widths.get(*at).copied().unwrap_or(0).saturating_sub(cell.chars().count());
            let shown = if number == 0 && bold_first { paint.bold(cell) } else { cell.to_owned() };
            text.push_str(&shown);
            text.push_str(&" ".repeat(pad + 2));
        }
        text.trim_end().to_owned()
    };
    let _ = writeln!(out, "{}", paint.dim(&line(&heads, false)));
    for row in rows {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        let _ = writeln!(out, "{}", line(&cells, true));
    }
    if all.len() > rows.len() {
        let _ = writeln!(out, "  … {} more", all.len() - rows.len());
    }
    out.push('\n');
}

fn shorten(cell: &str) -> String {
    if cell.chars().count() <= WIDEST {
        return cell.to_owned();
    }
    cell.chars().take(WIDEST - 1).chain(['…']).collect()
}

/// Replaces control characters, so that texts of an app cannot send control sequences to the terminal.
pub(crate) fn without_controls(text: &str) -> String {
    text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect()
}

/// What the terminal shows: the number of columns, and whether it has colors.
#[derive(Clone, Copy)]
pub(crate) struct TerminalStyle {
    pub(crate) width: usize,
    pub(crate) color: bool,
}

impl TerminalStyle {
    /// Returns the style of stderr.
    pub(crate) fn detect() -> TerminalStyle {
        let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(140);
        let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        TerminalStyle { width, color }
    }

    /// Returns the text between the control sequence with this code and that which ends it.
    pub(crate) fn with(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost_azure_functions::{AppWarning, HttpRow, PromptRow, TimerRow, ToolRow, WorkerRow};

    fn report(tools: usize) -> AppReport {
        let tool = |number: usize| ToolRow {
            name: format!("tool{number}"),
            arguments: vec![ArgumentRow {
                name: "n".to_owned(),
                kind: "string[]".to_owned(),
                required: true,
            }],
            function: "f".to_owned(),
            bindings: vec!["→ blob snippets/{mcptoolargs.n}.json".to_owned()],
            hints: vec!["read-only"],
            http: (number == 0).then(|| "GET /api/f".to_owned()),
        };
        AppReport {
            app: "app\u{1b}[31m".to_owned(),
            runtime: "python 3.11".to_owned(),
            tools: (0..tools).map(tool).collect(),
            prompts: vec![PromptRow {
                name: "p".to_owned(),
                arguments: Vec::new(),
                function: "f".to_owned(),
            }],
            http: vec![HttpRow {
                methods: vec!["GET".to_owned(), "POST".to_owned()],
                route: "/api/orders/{id:int}".to_owned(),
                level: "function",
                function: "f".to_owned(),
                bindings: Vec::new(),
            }],
            timers: vec![TimerRow {
                schedule: "0 */5 * * * *".to_owned(),
                next: Some("2026-05-01T10:05:00+02:00".to_owned()),
                function: "f".to_owned(),
                bindings: Vec::new(),
            }],
            warnings: vec![AppWarning { message: "a warning".to_owned(), fix: Some("do it".to_owned()) }],
            ..AppReport::default()
        }
    }

    fn screen(report: &AppReport, width: usize) -> String {
        let base = "http://127.0.0.1:7071";
        let style = TerminalStyle { width, color: false };
        draw(&StartScreen { report, base, auth: "open", revisions: "all", ready_ms: 1, style })
    }

    #[test]
    fn shows_names_arguments_bindings_and_fixes() {
        let screen = screen(&report(1), 200);
        for expected in [
            "TOOLS (1)",
            "tool0",
            "n*: string[]",
            "← http GET /api/f → blob snippets/",
            "read-only",
            "PROMPTS (1)",
            "HTTP (1)",
            "/api/orders/{id:int}  GET POST",
            "TIMERS (1)",
            "0 */5 * * * *  2026-05-01T10:05:00+02:00  f",
            "fix: do it",
        ] {
            assert!(screen.contains(expected), "{expected} is not in\n{screen}");
        }
    }

    #[test]
    fn drops_the_last_columns_first() {
        let narrow = screen(&report(1), 60);
        assert!(!narrow.contains("read-only") && !narrow.contains("→ blob"), "{narrow}");
        assert!(narrow.contains("n*: string[]"), "{narrow}");
    }

    #[test]
    fn prints_the_number_of_hidden_rows() {
        let screen = screen(&report(25), 200);
        assert!(screen.contains("… 5 more") && !screen.contains("tool20"), "{screen}");
    }

    #[test]
    fn says_whose_worker_runs() {
        let head = |kind: WorkerKind, place: Option<&str>| {
            let worker = WorkerRow { kind, place: place.map(str::to_owned) };
            screen(&AppReport { app: "a".to_owned(), worker, ..report(0) }, 200)
        };
        for (runtime, line) in
            [("python 3.11", "\n  Python     .venv\n"), ("java 17.0.1", "\n  Java       .venv\n")]
        {
            let (runtime, interpreter) = (runtime.to_owned(), Some(".venv".to_owned()));
            let shown = screen(&AppReport { runtime, interpreter, ..report(0) }, 200);
            assert!(shown.contains(line), "{shown}");
        }
        let built_in = head(WorkerKind::BuiltIn, None);
        assert!(built_in.contains("   a   python 3.11, built-in worker   ready in 1 ms\n"), "{built_in}");
        assert!(!built_in.contains("  Worker "), "{built_in}");
        let public = head(WorkerKind::Public, Some("/workers/python"));
        assert!(public.contains("   python 3.11, public worker   "), "{public}");
        assert!(public.contains("\n  Worker     /workers/python\n"), "{public}");
        let handler = head(WorkerKind::CustomHandler, Some("./handler"));
        assert!(handler.contains("   a   custom handler   ready"), "{handler}");
        assert!(handler.contains("\n  Worker     ./handler\n"), "{handler}");
    }

    #[test]
    fn shows_the_server_of_a_self_hosted_app() {
        let shown = |server: ServerRow| {
            let worker =
                WorkerRow { kind: WorkerKind::SelfHosted, place: Some("python server.py".to_owned()) };
            screen(&AppReport { server: Some(server), worker, ..report(1) }, 200)
        };
        let found = shown(ServerRow {
            name: Some("weather".to_owned()),
            version: Some("1.2".to_owned()),
            revision: Some("2025-11-25".to_owned()),
            ..ServerRow::default()
        });
        for line in [
            "  MCP        http://127.0.0.1:7071/mcp   every other path is forwarded too\n",
            "\n  Server     weather 1.2, MCP 2025-11-25\n",
            "\n  Program    python server.py\n",
            "   self-hosted server   ready",
            "TOOLS (1)",
        ] {
            assert!(found.contains(line), "{line} is not in\n{found}");
        }
        assert!(!found.contains("/runtime/webhooks/mcp"), "{found}");
        let problem = Some("nothing answers MCP requests at /mcp: HTTP 404".to_owned());
        let nothing = shown(ServerRow { problem, ..ServerRow::default() });
        assert!(
            nothing.contains("\n  Server     nothing answers MCP requests at /mcp: HTTP 404\n"),
            "{nothing}"
        );
    }

    #[test]
    fn replaces_control_characters() {
        assert!(!screen(&report(1), 200).contains('\u{1b}'));
    }
}
