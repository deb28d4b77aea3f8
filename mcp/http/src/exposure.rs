//! Why a server without authentication is not served: other machines can reach it.

use std::ffi::OsStr;

use crate::guard::Guard;
use crate::listener::ListenerAddress;
use crate::settings::Settings;

/// The variables by which the host of a custom handler tells a program its port on the loopback interface. The
/// host forwards requests of other machines to that port.
const FORWARDED_PORTS: [&str; 2] = ["FUNCTIONS_CUSTOMHANDLER_PORT", "FUNCTIONS_HTTPWORKER_PORT"];

/// Returns why other machines can reach this address although it has no authentication, unless that is
/// intended.
pub(crate) fn listener_problem(address: &impl ListenerAddress, settings: &Settings) -> Option<String> {
    if is_guarded(settings) {
        return None;
    }
    if !address.is_local() {
        let what = format!("{address} can be reached from other machines");
        return Some(describe(&what, "listen on 127.0.0.1"));
    }
    settings_problem(settings)
}

/// The same for a server whose address is not known, because another library listens.
pub(crate) fn settings_problem(settings: &Settings) -> Option<String> {
    problem_with(settings, |name| std::env::var_os(name).is_some_and(|value| value != OsStr::new("")))
}

/// Returns which settings are for our own listener, if another library listens instead.
pub(crate) fn mount_problem(settings: &Settings) -> Option<&'static str> {
    settings.tls.as_ref().map(|_| {
        "`Settings::tls` (options `tls.certificate` and `tls.key`) is set, but the endpoint is mounted in an app, which \
         accepts the connections, so nothing is encrypted\n  fix: set up TLS in the app or in a proxy and remove the \
         setting, or serve with `http::bind` instead of mounting the endpoint"
    })
}

/// Returns whether callers are authenticated, or need not be.
fn is_guarded(settings: &Settings) -> bool {
    settings.auth.is_some() || settings.open_to_all
}

fn problem_with(settings: &Settings, is_set: impl Fn(&str) -> bool) -> Option<String> {
    if is_guarded(settings) {
        return None;
    }
    let (what, remedy) = if let Some(name) = FORWARDED_PORTS.into_iter().find(|name| is_set(name)) {
        let what =
            format!("{name} is set: the host that started it forwards requests of other machines to it");
        (what, format!("unset {name} if nothing forwards requests"))
    } else if settings.behind_proxy {
        let what = "a proxy or platform forwards requests of other machines to it (`behind_proxy`)";
        (what.to_owned(), "unset `Settings::behind_proxy` if nothing forwards requests".to_owned())
    } else {
        let host = Guard::first_public_host(&settings.allowed_hosts)?;
        let what = format!("`allowed_hosts` has {host:?}, which is not a name of the loopback interface");
        (what, "remove that name from `Settings::allowed_hosts`".to_owned())
    };
    Some(describe(&what, &remedy))
}

fn describe(what: &str, remedy: &str) -> String {
    format!(
        "the server has no authentication, but {what}; without authentication every caller may call everything\n  \
         fix: set `Settings::auth` (option `auth`: API keys in BINDPOST_AUTH__API_KEYS, or the issuers of tokens in \
         BINDPOST_AUTH__ISSUERS), {remedy}, or set `Settings::open_to_all` (option `open_to_all`) if that is intended"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_a_custom_handler_means_that_requests_are_forwarded() {
        let open = Settings { open_to_all: true, ..Settings::default() };
        for name in FORWARDED_PORTS {
            let problem = problem_with(&Settings::default(), |known| known == name).unwrap();
            for part in [name, "Settings::auth", "BINDPOST_AUTH__API_KEYS", "fix:", "Settings::open_to_all"] {
                assert!(problem.contains(part), "{problem}");
            }
            assert_eq!(problem_with(&open, |known| known == name), None);
        }
        assert_eq!(problem_with(&Settings::default(), |_| false), None);
    }
}
