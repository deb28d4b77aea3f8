//! What is logged: enough to find out why a token was refused, and nothing of the token.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::issuer::TestIssuer;
use crate::requests::{authorize, tokens};

/// A log that is read by a test.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_log_says_why_and_never_whom() {
    let mut issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let claims =
        json!({"sub": "hidden-subject", "email": "hidden@example.com", "aud": "https://hidden.example"});
    let good = issuer.token(json!({"sub": "hidden-subject"})).await;
    let others = issuer.token(claims).await;
    let unknown = issuer.mint(json!({"header": {"kid": "line\nbreak"}})).await;
    let opaque = "hidden-opaque-token";

    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter("bindpost_mcp_oauth=trace")
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // For this thread, which is where all of this test runs.
    let guard = tracing::subscriber::set_default(subscriber);
    authorize(&tokens, &good).await.unwrap();
    for token in [&others, &unknown, opaque] {
        authorize(&tokens, token).await.unwrap_err();
    }
    issuer.stop().await;
    let cold = crate::requests::tokens(&issuer);
    authorize(&cold, &good).await.unwrap_err();
    drop(guard);

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for part in [
        "fetched the keys of an issuer",
        "for another audience",
        "signed by an unknown key",
        "no JWT",
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
