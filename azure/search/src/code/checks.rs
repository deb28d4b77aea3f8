//! Results of checks, as text, JUnit XML, JSON and Markdown.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The results of a test or a plan.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    pub title: String,
    pub suites: Vec<CheckSuite>,
    pub notes: Vec<String>,
}

/// Checks that belong together: those of one index or one file.
#[derive(Clone, Debug, Default)]
pub struct CheckSuite {
    pub name: String,
    pub checks: Vec<SuiteCheck>,
    /// Means of the suite: `ndcg`, `recall` and so on.
    pub measures: Vec<(&'static str, f64)>,
}

/// One check.
#[derive(Clone, Debug)]
pub struct SuiteCheck {
    pub name: String,
    pub outcome: CheckOutcome,
    /// What was measured.
    pub details: String,
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    Passed,
    /// What is wrong.
    Failed(String),
    /// Why it did not run.
    Skipped(String),
}

impl CheckReport {
    /// Returns the number of all checks, of failed and of skipped ones.
    pub fn counts(&self) -> (usize, usize, usize) {
        let all = || self.suites.iter().flat_map(|suite| &suite.checks);
        let failed = all().filter(|check| matches!(check.outcome, CheckOutcome::Failed(_))).count();
        let skipped = all().filter(|check| matches!(check.outcome, CheckOutcome::Skipped(_))).count();
        (all().count(), failed, skipped)
    }

    pub fn has_failures(&self) -> bool {
        self.counts().1 > 0
    }

    /// Returns the report for a terminal.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for suite in &self.suites {
            let measures: Vec<String> =
                suite.measures.iter().map(|(name, mean)| format!("{name} {mean:.3}")).collect();
            let _ = writeln!(out, "{}  {}", suite.name, measures.join("  "));
            for check in &suite.checks {
                let (sign, text) = match &check.outcome {
                    CheckOutcome::Passed => ('✓', check.details.as_str()),
                    CheckOutcome::Failed(why) => ('✗', why.as_str()),
                    CheckOutcome::Skipped(why) => ('-', why.as_str()),
                };
                let _ = writeln!(out, "  {sign} {}  {}", check.name, text.replace('\n', "\n      "));
            }
        }
        for note in &self.notes {
            let _ = writeln!(out, "Note: {note}");
        }
        let _ = writeln!(out, "{}", self.closing());
        out
    }

    fn closing(&self) -> String {
        let (all, failed, skipped) = self.counts();
        let mut text = format!("{} of {all} checks passed", all - failed - skipped);
        if failed > 0 {
            text += &format!(", {failed} failed");
        }
        if skipped > 0 {
            text += &format!(", {skipped} skipped");
        }
        text
    }

    /// Returns the report as JUnit XML, which CI systems show.
    pub fn to_junit(&self) -> String {
        let (all, failed, skipped) = self.counts();
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(
            out,
            "<testsuites name=\"{}\" tests=\"{all}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\">",
            xml(&self.title)
        );
        for suite in &self.suites {
            let count = |is_counted: fn(&CheckOutcome) -> bool| {
                suite.checks.iter().filter(|check| is_counted(&check.outcome)).count()
            };
            let failed = count(|outcome| matches!(outcome, CheckOutcome::Failed(_)));
            let skipped = count(|outcome| matches!(outcome, CheckOutcome::Skipped(_)));
            let _ = writeln!(
                out,
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\">",
                xml(&suite.name),
                suite.checks.len()
            );
            if !suite.measures.is_empty() {
                out.push_str("    <properties>\n");
                for (name, mean) in &suite.measures {
                    let _ = writeln!(out, "      <property name=\"{}\" value=\"{mean:.4}\"/>", xml(name));
                }
                out.push_str("    </properties>\n");
            }
            for check in &suite.checks {
                let head =
                    format!("    <testcase classname=\"{}\" name=\"{}\"", xml(&suite.name), xml(&check.name));
                let _ = match &check.outcome {
                    CheckOutcome::Passed => writeln!(out, "{head}/>"),
                    CheckOutcome::Failed(why) => writeln!(
                        out,
                        "{head}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                        xml(why.lines().next().unwrap_or_default()),
                        xml(&format!("{why}\n{}", check.details))
                    ),
                    CheckOutcome::Skipped(why) => {
                        writeln!(out, "{head}>\n      <skipped message=\"{}\"/>\n    </testcase>", xml(why))
                    }
                };
            }
            out.push_str("  </testsuite>\n");
        }
        out.push_str("</testsuites>\n");
        out
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> Value {
        let suites: Vec<Value> = self.suites.iter().map(suite_json).collect();
        let (all, failed, skipped) = self.counts();
        json!({"title": self.title, "passed": !self.has_failures(), "checks": all, "failed": failed, "skipped": skipped,
            "suites": suites, "notes": self.notes})
    }

    /// Returns the report as Markdown, for the summary of a CI run or a comment.
    pub fn to_markdown(&self) -> String {
        let sign = if self.has_failures() { "❌" } else { "✅" };
        let mut out = format!("## {sign} {}\n\n{}\n", self.title, self.closing());
        for suite in &self.suites {
            let _ = write!(out, "\n### {}\n\n", suite.name);
            if !suite.measures.is_empty() {
                let names: Vec<&str> = suite.measures.iter().map(|(name, _)| *name).collect();
                let means: Vec<String> =
                    suite.measures.iter().map(|(_, mean)| format!("{mean:.3}")).collect();
                let lines = vec!["---"; names.len()].join(" | ");
                let _ = write!(out, "| {} |\n| {lines} |\n| {} |\n\n", names.join(" | "), means.join(" | "));
            }
            out.push_str("| | Check | Result |\n| --- | --- | --- |\n");
            for check in &suite.checks {
                let (sign, text) = match &check.outcome {
                    CheckOutcome::Passed => ("✅", check.details.as_str()),
                    CheckOutcome::Failed(why) => ("❌", why.as_str()),
                    CheckOutcome::Skipped(why) => ("➖", why.as_str()),
                };
                let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
                let _ = writeln!(out, "| {sign} | {} | {} |", cell(&check.name), cell(text));
            }
        }
        for note in &self.notes {
            let _ = write!(out, "\n> {note}\n");
        }
        out
    }
}

fn suite_json(suite: &CheckSuite) -> Value {
    let checks = suite.checks.iter().map(|check| {
        let (outcome, reason) = match &check.outcome {
            CheckOutcome::Passed => ("passed", None),
            CheckOutcome::Failed(why) => ("failed", Some(why)),
            CheckOutcome::Skipped(why) => ("skipped", Some(why)),
        };
        json!({"name": check.name, "outcome": outcome, "reason": reason, "details": check.details})
    });
    let measures: serde_json::Map<String, Value> =
        suite.measures.iter().map(|(name, mean)| ((*name).to_owned(), json!(mean))).collect();
    json!({"name": suite.name, "measures": measures, "checks": checks.collect::<Vec<_>>()})
}

/// Escapes a text for XML, which has no control characters.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() => {}
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> CheckReport {
        let check =
            |name: &str, outcome| SuiteCheck { name: name.to_owned(), outcome, details: "0.9".to_owned() };
        CheckReport {
            title: "Search test".to_owned(),
            suites: vec![CheckSuite {
                name: "hotels".to_owned(),
                checks: vec![
                    check("ndcg@10", CheckOutcome::Passed),
                    check("a \"<b>\" & c\u{7}", CheckOutcome::Failed("lost | key\nsecond line".to_owned())),
                    check("other", CheckOutcome::Skipped("no documents".to_owned())),
                ],
                measures: vec![("ndcg", 0.9)],
            }],
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn junit_has_every_check_and_escapes_its_texts() {
        let xml = report().to_junit();
        assert!(
            xml.contains(
                "<testsuites name=\"Search test\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\">"
            ),
            "{xml}"
        );
        assert!(xml.contains("name=\"a &quot;&lt;b&gt;&quot; &amp; c\">"), "{xml}");
        assert!(xml.contains("<failure message=\"lost | key\">"), "{xml}");
        assert!(xml.contains("<property name=\"ndcg\" value=\"0.9000\"/>"), "{xml}");
        assert_eq!(xml.matches("<testcase").count(), 3);
    }

    #[test]
    fn markdown_and_json_have_the_same_result() {
        let report = report();
        assert!(report.to_markdown().contains("| ❌ | a \"<b>\" & c\u{7} | lost \\| key second line |"));
        let json = report.to_json();
        assert_eq!(
            (&json["passed"], &json["failed"], &json["checks"]),
            (&json!(false), &json!(1), &json!(3))
        );
        assert!(report.to_text().ends_with("1 of 3 checks passed, 1 failed, 1 skipped\n"));
    }
}
