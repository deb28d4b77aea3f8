//! The start screen of `bindpost run`, and what all screens use: tables, colors and the width of the terminal.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use bindpost_azure_functions::{AppReport, ArgumentRow};

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
        "\n  {} {version}   {}   {} worker   ready in {ready_ms} ms\n",
        paint.bold("bindpost"),
        without_controls(&report.app),
        without_controls(&report.runtime)
    );
    let _ = writeln!(out, "  MCP        {base}/runtime/webhooks/mcp      streamable HTTP: {revisions}");
    let _ = writeln!(out, "             {base}/runtime/webhooks/mcp/sse  HTTP+SSE, for old clients");
    let _ = writeln!(out, "             {base}/mcp                       short form of the first");
    let _ = writeln!(out, "  Health     {base}/_/healthz  {base}/_/readyz");
    let _ = writeln!(out, "  Auth       {auth}");
    for notice in &report.notices {
        let _ = writeln!(out, "  Note       {}", without_controls(notice));
    }
    out.push('\n');

    let tools = report.tools.iter().map(|tool| {
        let cells = [
            &tool.name,
            &arguments(&tool.arguments),
            &tool.function,
            &tool.bindings.join(" "),
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

    for warning in &report.warnings {
        let _ = writeln!(out, "  {} {}", paint.yellow("!"), without_controls(&warning.message));
        if let Some(fix) = &warning.fix {
            let _ = writeln!(out, "      fix: {}", without_controls(fix));
        }
    }
    out
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
    use bindpost_azure_functions::{AppWarning, PromptRow, ToolRow};

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
            "→ blob snippets/",
            "read-only",
            "PROMPTS (1)",
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
    fn replaces_control_characters() {
        assert!(!screen(&report(1), 200).contains('\u{1b}'));
    }
}
