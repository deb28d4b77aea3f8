//! One line per check on stdout: `ok` or `FAIL`. `cargo xtask interop` reads these lines.

use std::time::Duration;

const TOTAL: Duration = Duration::from_secs(60);
const CHECK: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct Report {
    failed: bool,
}

impl Report {
    /// Runs `body`, which makes the checks, and ends the process with the outcome.
    pub async fn run(body: impl AsyncFnOnce(&mut Report) -> anyhow::Result<()>) -> ! {
        let mut report = Self::default();
        match tokio::time::timeout(TOTAL, body(&mut report)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => report.fail("run", &error),
            Err(late) => report.fail("total", &late.into()),
        }
        std::process::exit(report.failed.into())
    }

    /// A check that errs or hangs fails; the checks after it still run.
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
