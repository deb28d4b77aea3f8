//! End-to-end tests of function apps: the fixture apps in `tests/apps`, the built-in workers, the host, and
//! every way to talk to it. The scenarios include those of the extension's own end-to-end tests.

/// Creates a test for each scenario and each fixture app.
macro_rules! for_all_apps {
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
        mod java {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(crate::served::Language::Java).await;
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
mod tasks;
mod transports;
