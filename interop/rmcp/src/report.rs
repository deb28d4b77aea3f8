//! One line per check on stdout: `ok` or `FAIL`. `cargo xtask interop` reads these lines.

use std::time::Duration;

const TOTAL: Duration = Duration::from_secs(60);
const CHECK: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct Report {
    failed: bool,
}

impl Report {
    /// Runs `body`, which runs the checks, and exits with the result.
    pub async fn run(body: impl AsyncFnOnce(&mut Report) -> anyhow::Result<()>) -> ! {
        let mut report = Self::default();
        match tokio::time::timeout(TOTAL, body(&mut report)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => report.fail("run", &error),
            Err(late) => report.fail("total", &late.into()),
        }
        std::process::exit(report.failed.into())
    }

    /// Runs a check. A check that returns an error or hangs fails. Later checks still run.
    pub async fn check(&mut self, name: &str, body: impl Future<Output = anyhow::Result<()>>) {
        match tokio::time::timeout(CHECK, body).await {
            Ok(Ok(())) => self.ok(name),
            Ok(Err(error)) => self.fail(name, &error),
            Err(late) => self.fail(name, &late.into()),
        }
    }

    pub fn ok(&self, name: &str) {
        println!("ok {name}");
    }

    fn fail(&mut self, name: &str, error: &anyhow::Error) {
        self.failed = true;
        println!("FAIL {name}: {}", format!("{error:#}").replace('\n', " "));
    }
}
