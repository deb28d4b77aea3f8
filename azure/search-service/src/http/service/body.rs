//! Reads request bodies up to a limit, or discards them.

use std::fmt::Display;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bindpost_azure_search_model::ApiError;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::time::timeout;

use crate::budget::Budget;
use crate::http::request::RequestHeaders;

/// The timeout for the next bytes of a body.
const PATIENCE: Duration = Duration::from_secs(30);
/// The timeout for the whole body. A partial body uses memory that other requests may need.
const LONGEST: Duration = Duration::from_secs(120);
/// The maximum capacity that is reserved because of the declared size alone.
const MOST_AT_ONCE: usize = 4 * 1024 * 1024;
/// The maximum size of a rejected body that is still read, and the timeout for it.
const MOST_DISCARDED: usize = 256 * 1024 * 1024;
const DISCARDING: Duration = Duration::from_secs(10);

pub(super) async fn read<B>(
    mut body: Pin<&mut B>,
    headers: &RequestHeaders<'_>,
    most: usize,
    budget: &Budget,
) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    if let Some(encoding) =
        headers.get("content-encoding").filter(|one| !one.eq_ignore_ascii_case("identity"))
    {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedContentEncoding",
            format!(
                "Compressed bodies are not supported. Send the body without Content-Encoding: {encoding}."
            ),
        ));
    }
    let declared = body.size_hint().lower();
    if declared > u64::try_from(most).unwrap_or(u64::MAX) {
        return Err(too_large(most));
    }
    let mut whole = Bytes::new();
    let mut parts = BytesMut::new();
    let latest = Instant::now() + LONGEST;
    loop {
        let patience = PATIENCE.min(latest.saturating_duration_since(Instant::now()));
        let frame = timeout(patience, body.frame()).await.map_err(|_| too_slow())?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            ApiError::invalid(format!("The body of the request could not be read: {error}."))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + parts.len() + data.len() > most {
            return Err(too_large(most));
        }
        budget.take_body(data.len())?;
        // Most bodies come in one piece, which need not be copied.
        if whole.is_empty() && parts.is_empty() {
            whole = data;
            continue;
        }
        if !whole.is_empty() {
            let expected = usize::try_from(declared).unwrap_or(0).min(MOST_AT_ONCE);
            parts.reserve(expected.max(whole.len() + data.len()));
            parts.extend_from_slice(&std::mem::take(&mut whole));
        }
        parts.extend_from_slice(&data);
    }
    Ok(if parts.is_empty() { whole } else { parts.freeze() })
}

/// Reads and discards the rest of a body, within limits.
pub(super) async fn discard<B: Body<Data = Bytes>>(mut body: Pin<&mut B>) {
    let mut taken = 0;
    let _ = timeout(DISCARDING, async {
        while !body.is_end_stream() && taken < MOST_DISCARDED {
            match body.frame().await {
                Some(Ok(frame)) => taken += frame.data_ref().map_or(0, Bytes::len),
                Some(Err(_)) | None => break,
            }
        }
    })
    .await;
}

fn too_large(most: usize) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "RequestEntityTooLarge",
        format!(
            "The body of the request is larger than {most} bytes. Send the documents in smaller batches."
        ),
    )
}

fn too_slow() -> ApiError {
    let (seconds, longest) = (PATIENCE.as_secs(), LONGEST.as_secs());
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        "RequestTimeout",
        format!(
            "No part of the request body arrived for {seconds} seconds, or the whole body took longer than {longest} seconds."
        ),
    )
}
