//! Log output of the program, on stderr. Stdout belongs to the stdio transport.

use std::fmt::{self, Write as _};
use std::io::IsTerminal as _;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

use crate::screen::TerminalStyle;

/// Starts the log of `bindpost run`. It contains the logs of the functions and, on a
/// terminal, the MCP requests.
pub(crate) fn start_for_functions() {
    let is_terminal = std::io::stderr().is_terminal();
    let usual = match is_terminal {
        true => "warn,function=info,worker=info,host=info,bindpost_mcp_server=info",
        false => "warn,function=info,worker=info,host=info",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let style = TerminalStyle::detect();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(style.color)
        .event_format(LineFormat { style });
    tracing_subscriber::registry().with(filter).with(RequestLayer).with(lines).init();
}

/// Starts the log of any other command.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let color = TerminalStyle::detect().color;
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(color).with_env_filter(filter).init();
}

/// Stores the label of a request in its span, for the log lines of that request.
struct RequestLayer;

/// Label of a request, such as `tools/call save_snippet`.
struct RequestLabel(String);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for RequestLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().name() != "request" {
            return;
        }
        let mut about = RequestVisitor::default();
        attributes.record(&mut about);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(RequestLabel(format!("{} {}", about.method, about.entry)));
        }
    }
}

#[derive(Default)]
struct RequestVisitor {
    method: String,
    entry: String,
}

impl Visit for RequestVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "method" => self.method = value.to_owned(),
            "entry" => self.entry = value.to_owned(),
            _ => {}
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn fmt::Debug) {}
}

/// Writes one event per line: time, level sign, name, message.
struct LineFormat {
    style: TerminalStyle,
}

#[derive(Default)]
struct EventVisitor {
    message: String,
    name: String,
    outcome: String,
    duration_ms: Option<f64>,
}

impl Visit for EventVisitor {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if field.name() == "duration_ms" {
            self.duration_ms = Some(value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            "name" | "function" => self.name = value.to_owned(),
            "outcome" => self.outcome = value.to_owned(),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        }
    }
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut said = EventVisitor::default();
        event.record(&mut said);
        let (sign, code) = match *event.metadata().level() {
            Level::ERROR => ("✗", "31"),
            Level::WARN => ("!", "33"),
            _ => (" ", "0"),
        };
        let paint = |code: &str, text: &str| self.style.with(code, text);
        let time = chrono::Local::now().format("%H:%M:%S%.3f").to_string();
        write!(out, " {} {} ", paint("2", &time), paint(code, sign))?;
        if let Some(duration) = said.duration_ms {
            let about = context.event_scope().and_then(|mut scope| {
                scope.find_map(|span| {
                    span.extensions().get::<RequestLabel>().map(|RequestLabel(about)| about.clone())
                })
            });
            let about = about.unwrap_or_default();
            return writeln!(
                out,
                "→ {}  {}  {duration:.1} ms",
                paint("36", &without_controls(&about)),
                said.outcome
            );
        }
        if !said.name.is_empty() {
            write!(out, "{}  ", paint("1", &without_controls(&said.name)))?;
        }
        // The further lines of a message are indented below the first.
        let mut lines = said.message.lines();
        writeln!(out, "{}", without_controls(lines.next().unwrap_or_default()))?;
        lines.try_for_each(|line| writeln!(out, "                 {}", without_controls(line)))
    }
}

/// Replaces control characters, so that log messages of functions cannot send control
/// sequences to the terminal.
fn without_controls(text: &str) -> String {
    text.chars().map(|sign| if sign.is_control() && sign != '\t' { ' ' } else { sign }).collect()
}
