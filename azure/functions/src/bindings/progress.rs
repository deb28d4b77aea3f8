//! Parses progress that a function reports by a log line: `mcp-progress 3/10 Reading files`.

/// The progress of an invocation, from one log line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgressUpdate<'a> {
    /// The progress so far.
    pub progress: f64,
    /// The total, if it is known.
    pub total: Option<f64>,
    /// The current step.
    pub message: Option<&'a str>,
}

/// Parses a log line. Returns `None` for an ordinary log line.
///
/// The format is the word, a space and the progress, a number without a sign. Optional are `/` and a total
/// above zero, and then white space and a message. A line that does not match exactly stays a log line.
pub fn parse(line: &str) -> Option<ProgressUpdate<'_>> {
    let rest = line.strip_prefix("mcp-progress ")?.trim();
    let (numbers, message) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let (progress, total) = match numbers.split_once('/') {
        Some((progress, total)) => (progress, Some(number(total).filter(|total| *total > 0.0)?)),
        None => (numbers, None),
    };
    let message = Some(message.trim_start()).filter(|message| !message.is_empty());
    Some(ProgressUpdate { progress: number(progress)?, total, message })
}

fn number(text: &str) -> Option<f64> {
    let plain = text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    // A number with so many digits that it overflows to infinity is invalid too.
    text.parse().ok().filter(|number: &f64| plain && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(progress: f64, total: Option<f64>, message: Option<&str>) -> Option<ProgressUpdate<'_>> {
        Some(ProgressUpdate { progress, total, message })
    }

    #[test]
    fn reads_progress_total_and_message() {
        assert_eq!(
            parse("mcp-progress 3/10 Reading files"),
            progress(3.0, Some(10.0), Some("Reading files"))
        );
        assert_eq!(parse("mcp-progress 0.5"), progress(0.5, None, None));
        assert_eq!(parse("mcp-progress 7 half way"), progress(7.0, None, Some("half way")));
        assert_eq!(parse("mcp-progress 1.5/3"), progress(1.5, Some(3.0), None));
        assert_eq!(parse("mcp-progress  0/2 \t a / b \n"), progress(0.0, Some(2.0), Some("a / b")));
        assert_eq!(parse("mcp-progress 11/10"), progress(11.0, Some(10.0), None), "more than planned");
    }

    #[test]
    fn other_lines_stay_log_lines() {
        for line in [
            "",
            "mcp-progress",
            "mcp-progress ",
            "mcp-progressed 3",
            "MCP-PROGRESS 3",
            " mcp-progress 3",
            "mcp-progress three",
            "mcp-progress -1",
            "mcp-progress +1",
            "mcp-progress .5",
            "mcp-progress 1e3",
            "mcp-progress inf",
            "mcp-progress NaN",
            "mcp-progress 1.2.3",
            "mcp-progress 3/",
            "mcp-progress 3/0",
            "mcp-progress 3/x",
            "mcp-progress /3",
            "mcp-progress 3/4/5",
            "mcp-progress 50%",
        ] {
            assert_eq!(parse(line), None, "{line:?}");
        }
        assert_eq!(parse(&format!("mcp-progress {}", "9".repeat(400))), None);
    }
}
