//! Logs: they have the reason why a token was rejected, and no part of the token.

use std::cell::RefCell;
use std::io::{self, Write};

use serde_json::json;

use crate::issuer::TestIssuer;
use crate::requests::{authorize, tokens};

thread_local! {
    /// The log of this thread, if it is recorded.
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Writes to the log of the thread.
#[derive(Debug)]
struct ThreadLog;

impl Write for ThreadLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| {
            if let Some(log) = log {
                log.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_log_has_the_reason_and_no_part_of_the_token() {
    let mut issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let claims =
        json!({"sub": "hidden-subject", "email": "hidden@example.com", "aud": "https://hidden.example"});
    let good = issuer.token(json!({"sub": "hidden-subject"})).await;
    let others = issuer.token(claims).await;
    let unknown = issuer.mint(json!({"header": {"kid": "line\nbreak"}})).await;
    let opaque = "hidden-opaque-token";

    // The subscriber is for the whole process: one of a single thread would miss call sites that
    // another thread has registered before.
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter("bindpost_mcp_oauth=trace")
        .with_ansi(false)
        .with_writer(|| ThreadLog)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    tracing::callsite::rebuild_interest_cache();
    LOG.set(Some(Vec::new()));
    authorize(&tokens, &good).await.unwrap();
    for token in [&others, &unknown, opaque] {
        authorize(&tokens, token).await.unwrap_err();
    }
    issuer.stop().await;
    let cold = crate::requests::tokens(&issuer);
    authorize(&cold, &good).await.unwrap_err();

    let log = String::from_utf8(LOG.take().unwrap()).unwrap();
    for part in [
        "fetched the keys of an issuer",
        "for another audience",
        "signed by an unknown key",
        "not a JWT",
        "WARN",
        "cannot be fetched",
        issuer.url.as_str(),
        "rsa-1",
        r"line\nbreak",
    ] {
        assert!(log.contains(part), "{part} is not in {log}");
    }
    for token in [&good, &others, &unknown] {
        for part in token.split('.') {
            assert!(!log.contains(part), "a part of a token is in {log}");
        }
    }
    assert!(!log.contains("hidden"), "{log}");
}
