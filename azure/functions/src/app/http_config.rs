//! [`HttpConfig`]: the section `extensions.http` of `host.json`.

use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::settings::Settings;
use crate::json::ConfigReader;

/// The setting with the maximum size of a request body.
const BODY_LIMIT: &str = "FUNCTIONS_REQUEST_BODY_SIZE_LIMIT";
/// How long browsers remember to use HTTPS, if `hsts.maxAge` is missing.
const HSTS_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// How functions with an HTTP trigger are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// The first part of every route.
    pub route_prefix: String,
    /// How many requests run at the same time. `None` means no limit.
    pub max_concurrent_requests: Option<usize>,
    /// How many requests run or wait. Further ones are rejected. `None` means the host's own limit.
    pub max_outstanding_requests: Option<usize>,
    /// Headers of every response.
    pub custom_headers: Vec<(HeaderName, HeaderValue)>,
    /// `Strict-Transport-Security`, for responses over HTTPS.
    pub hsts: Option<HeaderValue>,
    /// The maximum size of a request body, in bytes.
    pub max_body: u64,
}

impl Default for HttpConfig {
    fn default() -> HttpConfig {
        HttpConfig {
            route_prefix: "api".to_owned(),
            max_concurrent_requests: None,
            max_outstanding_requests: None,
            custom_headers: Vec::new(),
            hsts: None,
            max_body: 100 * 1024 * 1024,
        }
    }
}

impl HttpConfig {
    /// Reads the section. `prefix` is the first part of every route, unless the app has another.
    pub(super) fn read(members: &ConfigReader<'_>, settings: &Settings, prefix: &str) -> HttpConfig {
        let default = HttpConfig::default();
        HttpConfig {
            route_prefix: match members.text("routePrefix") {
                Some(prefix) => prefix.trim().trim_matches('/').to_owned(),
                None => prefix.to_owned(),
            },
            max_concurrent_requests: limit(members, "maxConcurrentRequests"),
            max_outstanding_requests: limit(members, "maxOutstandingRequests"),
            custom_headers: custom_headers(&members.object("customHeaders")),
            hsts: hsts(&members.object("hsts")),
            max_body: settings
                .get(BODY_LIMIT)
                .and_then(|bytes| bytes.trim().parse().ok())
                .unwrap_or(default.max_body),
        }
    }
}

/// Returns a limit of requests. -1 means none.
fn limit(members: &ConfigReader<'_>, name: &str) -> Option<usize> {
    if members.text(name).as_deref().map(str::trim) == Some("-1") {
        return None;
    }
    let number = members.whole_number(name)?;
    if number == 0 {
        members.report_problem(
            name,
            "0 would reject every request",
            Some("write a number from 1 up, or -1 for no limit"),
        );
        return None;
    }
    Some(usize::try_from(number).unwrap_or(usize::MAX))
}

fn custom_headers(members: &ConfigReader<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let mut headers = Vec::new();
    for (name, _) in members.iter() {
        let Some(text) = members.text(name) else { continue };
        match HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::try_from(text).ok()) {
            Some(header) => headers.push(header),
            None => members.report_problem(
                name,
                "is not a valid header",
                Some("use the characters that HTTP allows in headers"),
            ),
        }
    }
    headers
}

fn hsts(members: &ConfigReader<'_>) -> Option<HeaderValue> {
    if !members.flag("isEnabled").unwrap_or(false) {
        return None;
    }
    // The platform writes days as a number of days before the hours: 10.00:00:00 or 10.
    let age = match members.text("maxAge") {
        Some(text) if text.trim().bytes().all(|byte| byte.is_ascii_digit()) => {
            text.trim().parse().ok().map(|days: u64| Duration::from_secs(days.saturating_mul(24 * 3600)))
        }
        Some(_) => members.time("maxAge"),
        None => None,
    };
    let mut text = format!("max-age={}", age.unwrap_or(HSTS_AGE).as_secs());
    for (member, directive) in [("includeSubDomains", "; includeSubDomains"), ("preload", "; preload")] {
        if members.flag(member).unwrap_or(false) {
            text.push_str(directive);
        }
    }
    HeaderValue::try_from(text).ok()
}
