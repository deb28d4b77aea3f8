//! A storage service that sends wrong lengths, times and redirects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bindpost_azure_functions::blobs::{BlobError, BlobSettings, BlobStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::fake::{self, Fake, Reply};
use super::{ACCOUNT, KEY, keyed, path, quick};

/// Answers each connection with the next of these texts, repeats the last one, and closes each connection.
async fn in_turn(answers: &'static [&'static str]) -> String {
    let count = AtomicUsize::new(0);
    fake::raw(move |mut stream| {
        let number = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
        async move {
            fake::send(&mut stream, answers[number]).await;
        }
    })
    .await
}

async fn read(address: &str) -> Result<String, BlobError> {
    let store = keyed(address, &BlobSettings::default());
    let found = store.read(&path("abc/a")).await?.expect("the blob exists");
    Ok(String::from_utf8(found.to_vec()).unwrap())
}

/// Returns the HTTP date in `seconds` from now, on a clock that is wrong by `skew` seconds.
fn date(seconds: i64, skew: i64) -> String {
    let time = chrono::Utc::now() + chrono::TimeDelta::seconds(seconds + skew);
    time.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[tokio::test]
async fn a_throttled_service_is_given_the_time_it_asks_for() {
    for status in [429, 503] {
        let fake = Fake::start(move |_, before| match before {
            0 => Reply::With(status, vec![("retry-after", "1".into())], String::new()),
            // A date is in whole seconds, so the pause may be shorter.
            1 => Reply::With(status, vec![("retry-after", date(2, 0))], String::new()),
            _ => Reply::status(201),
        })
        .await;
        let started = Instant::now();
        keyed(&fake.address(), &BlobSettings::default()).write(&path("abc/a"), "x".into()).await.unwrap();
        assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
        assert_eq!(fake.count(), 3);
    }
}

/// The service uses its own clock and sends its time.
#[tokio::test]
async fn a_wrong_clock_does_not_change_the_pause() {
    for skew in [-86_400, 86_400] {
        let fake = Fake::start(move |_, before| match before {
            0 => {
                let headers = vec![("date", date(0, skew)), ("retry-after", date(2, skew))];
                Reply::With(503, headers, String::new())
            }
            _ => Reply::body("whole"),
        })
        .await;
        let started = Instant::now();
        assert_eq!(read(&fake.address()).await.unwrap(), "whole");
        let took = started.elapsed();
        assert!((Duration::from_secs(1)..Duration::from_secs(8)).contains(&took), "{skew}: {took:?}");
    }
}

#[tokio::test]
async fn an_overlong_pause_is_not_made() {
    for asked in
        ["18446744073709551615", "9999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "99999999999999999999999"]
    {
        // After a second, so that the sum of both overflows.
        let fake = Fake::start(move |_, before| {
            let asked = if before == 0 { "1" } else { asked };
            Reply::With(503, vec![("retry-after", asked.into())], String::new())
        })
        .await;
        let started = Instant::now();
        let error = read(&fake.address()).await.unwrap_err();
        assert!(error.client_message().contains("not available"), "{}", error.client_message());
        assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
        assert!(fake.count() <= 3);
    }
}

/// Without a length and without chunks a truncated blob cannot be distinguished from a complete one.
#[tokio::test]
async fn a_blob_without_a_marked_end_is_rejected() {
    for head in ["HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhalf a bl", "HTTP/1.0 200 OK\r\n\r\nhalf a bl"]
    {
        let address = fake::raw(move |mut stream| async move {
            fake::send(&mut stream, head).await;
        })
        .await;
        let error = read(&address).await.unwrap_err();
        assert!(error.to_string().contains("the length of the blob"), "{error}");
        assert!(error.client_message().contains("could not be read"), "{}", error.client_message());
    }
}

/// The connection ends after half of a blob, then another blob is sent whole. The two are never mixed.
#[tokio::test]
async fn a_blob_that_changes_between_two_tries_is_read_whole() {
    let chunked = "HTTP/1.1 200 OK\r\netag: \"1\"\r\ntransfer-encoding: chunked\r\n\r\n5\r\nold-o\r\n";
    let short = "HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 10\r\n\r\nold-o";
    let whole = "HTTP/1.1 200 OK\r\netag: \"2\"\r\ncontent-length: 7\r\nconnection: close\r\n\r\nnew-new";
    for first in [chunked, short] {
        let answers: &'static [&'static str] = Box::leak(Box::new([first, whole]));
        assert_eq!(read(&in_turn(answers).await).await.unwrap(), "new-new");
    }
}

/// Blobs are never requested in parts, so a partial response is an error.
#[tokio::test]
async fn a_partial_response_is_rejected() {
    let address = in_turn(&["HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-3/8\r\ncontent-length: 4\r\nconnection: close\r\n\r\nhalf"]).await;
    let error = read(&address).await.unwrap_err();
    assert!(error.to_string().contains("206"), "{error}");
}

/// Bytes after a body are not a response to any request.
#[tokio::test]
async fn bytes_beyond_the_length_do_not_become_the_next_answer() {
    let planted = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nplanted";
    let answers: &'static [&'static str] = Box::leak(Box::new([
        Box::leak(format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfirst{planted}").into_boxed_str())
            as &str,
        "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecond",
    ]));
    // The connection stays open, so that it could be reused.
    let count = AtomicUsize::new(0);
    let address = fake::raw(move |mut stream| {
        let number = count.fetch_add(1, Ordering::SeqCst).min(1);
        async move {
            fake::send(&mut stream, answers[number]).await;
            let _ = stream.read(&mut [0; 4096]).await;
        }
    })
    .await;
    let store = keyed(&address, &BlobSettings::default());
    assert_eq!(store.read(&path("abc/a")).await.unwrap().unwrap(), "first");
    assert_eq!(store.read(&path("abc/a")).await.unwrap().unwrap(), "second");
}

#[tokio::test]
async fn endless_responses_are_limited() {
    // An endless error text is not read. Endless interim responses are limited by the time limit.
    let endless_text = fake::raw(|mut stream| async move {
        fake::send(
            &mut stream,
            "HTTP/1.1 403 Forbidden\r\nx-ms-error-code: Early\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .await;
        while fake::send(&mut stream, "a\r\n0123456789\r\n").await {}
    })
    .await;
    let endless_interim = fake::raw(|mut stream| async move {
        while fake::send(&mut stream, "HTTP/1.1 103 Early Hints\r\nx-filler: 0123456789\r\n\r\n").await {}
    })
    .await;
    let endless_head = fake::raw(|mut stream| async move {
        fake::send(&mut stream, "HTTP/1.1 200 OK\r\n").await;
        while fake::send(&mut stream, "x-filler: 0123456789\r\n").await {}
    })
    .await;
    for address in [endless_text, endless_interim, endless_head] {
        let started = Instant::now();
        keyed(&address, &quick()).read(&path("abc/a")).await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
}

/// A signature must not be sent to another service.
#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let other = Fake::start(|_, _| Reply::body("stolen")).await;
        let target = format!("{}/abc/a", other.address());
        let fake =
            Fake::start(move |_, _| Reply::With(status, vec![("location", target.clone())], String::new()))
                .await;
        let store = keyed(&fake.address(), &BlobSettings::default());
        let error = store.read(&path("abc/a")).await.unwrap_err();
        assert!(error.to_string().contains("redirects are not followed"), "{error}");
        store.write(&path("abc/a"), "x".into()).await.unwrap_err();
        assert_eq!(other.count(), 0);
    }
}

/// The service explains a rejection in XML, with the account and the signed text.
#[tokio::test]
async fn the_body_of_an_error_is_not_repeated() {
    for status in [400, 403, 404, 409, 500] {
        let body = format!(
            "<?xml version=\"1.0\"?><Error><Code>AuthenticationFailed</Code><Message>Server failed to authenticate \
             {ACCOUNT}</Message><AuthenticationErrorDetail>The MAC signature {KEY} is not the same as any computed \
             signature: GET /{ACCOUNT}/abc/a</AuthenticationErrorDetail></Error>"
        );
        let fake = Fake::start(move |_, _| {
            let headers = vec![
                ("x-ms-error-code", "AuthenticationFailed".to_owned()),
                ("x-ms-request-id", KEY.to_owned()),
            ];
            Reply::With(status, headers, body.clone())
        })
        .await;
        let store = keyed(&fake.address(), &BlobSettings::default());
        let errors = [
            store.read(&path("abc/a")).await.unwrap_err(),
            store.write(&path("abc/a"), "x".into()).await.unwrap_err(),
        ];
        for error in errors {
            assert!(
                !error.client_message().contains(ACCOUNT) && !error.client_message().contains("abc/a"),
                "{}",
                error.client_message()
            );
            for text in [error.to_string(), format!("{error:?}"), error.client_message()] {
                assert!(!text.contains(KEY) && !text.contains("MAC") && !text.contains('<'), "{text}");
            }
        }
    }
}

/// Starts a service that stores only whole uploads, and closes the connection in the middle of the first
/// ones.
async fn cutting(cuts: usize, size: usize, stored: Arc<std::sync::Mutex<Vec<Vec<u8>>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut seen = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            seen += 1;
            let wanted = if seen <= cuts { size / 2 } else { size };
            let Some(body) = upload(&mut stream, wanted).await else { continue };
            if body.len() == size {
                stored.lock().unwrap().push(body);
                let _ = stream
                    .write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    .await;
            }
        }
    });
    address
}

/// Reads the head of a request and this much of its body.
async fn upload(stream: &mut TcpStream, wanted: usize) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let mut body = vec![0; wanted];
    stream.read_exact(&mut body).await.ok()?;
    Some(body)
}

#[tokio::test]
async fn an_interrupted_upload_is_sent_again_and_stored_once() {
    const SIZE: usize = 4 << 20;
    let data: Vec<u8> = (0..SIZE).map(|at| (at % 251) as u8).collect();
    let stored = Arc::new(std::sync::Mutex::new(Vec::new()));
    let address = cutting(2, SIZE, stored.clone()).await;
    let store: BlobStore = keyed(&address, &BlobSettings::default());
    store.write(&path("abc/a"), data.clone().into()).await.unwrap();
    assert!(*stored.lock().unwrap() == [data.clone()]);
    // If it is interrupted each time, it is an error and nothing is stored.
    let address = cutting(usize::MAX, SIZE, stored.clone()).await;
    let error =
        keyed(&address, &BlobSettings::default()).write(&path("abc/a"), data.into()).await.unwrap_err();
    assert!(error.to_string().contains("broke") && error.to_string().contains("after 3 tries"), "{error}");
    assert_eq!(stored.lock().unwrap().len(), 1);
}
