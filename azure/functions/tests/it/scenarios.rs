//! What clients of a function app see, end to end: the fixture apps in `tests/apps`, our own workers, the host,
//! and every way to talk to it. The scenarios are those of the extension's own end-to-end tests, then more.

/// Makes a test of each scenario and each fixture app.
macro_rules! for_both_apps {
    ($($scenario:ident),+ $(,)?) => {
        mod python {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(crate::served::Language::Python).await;
            })+
        }
        mod node {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(crate::served::Language::Node).await;
            })+
        }
    };
}

mod asking;
mod bindings;
mod context;
mod failures;
mod lists;
mod results;
mod running;
mod transports;
