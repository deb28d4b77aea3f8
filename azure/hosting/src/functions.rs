//! Runs a server as the custom handler of a function app.
//!
//! The host of Azure Functions starts the program with a port and forwards every request to it. So the
//! program listens on the loopback but is public.

use std::net::{Ipv4Addr, SocketAddr};

use bindpost_mcp_http::Settings;

use crate::principal::IDENTITY_HEADERS;

/// The variables with the port to listen on, newest name first.
const PORTS: [&str; 2] = ["FUNCTIONS_CUSTOMHANDLER_PORT", "FUNCTIONS_HTTPWORKER_PORT"];

/// The value of a port variable is not a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name} is {value:?}, which is not a port. The Functions host sets it to the port of a custom handler, such \
     as 8080. To run without the host, unset it"
)]
pub struct PortError {
    name: &'static str,
    value: String,
}

/// The reason why a server cannot be configured for the platform.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigureError {
    /// The port is invalid.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Clients could forge their identity.
    #[error(
        "the server trusts the identity headers of the platform (`trust_platform_identity`), but App Service \
         authentication is not turned on for {host}: WEBSITE_AUTH_ENABLED is not `true`, so a client could send the \
         header of the platform itself\n  fix: turn on authentication for the app, or use API keys or access tokens"
    )]
    PlatformIdentity {
        /// The host name of the server, or `this app` if the platform does not provide one.
        host: String,
    },
}

/// Configures a server for the Azure platform, if it runs there. Returns the address on which a custom handler
/// must listen.
///
/// - The platform's host names become allowed hosts, and its identity headers are removed from requests unless
///   they are trusted.
/// - A custom handler is [behind a proxy](Settings::behind_proxy): it does not start without authentication, unless
///   [`Settings::open_to_all`] is set. All its clients have the address of the host, so the limit on
///   connections for each address does not apply.
/// - It is an error to trust the platform's identity headers if the platform does not authenticate callers. Azure
///   Functions Core Tools, which run an app for development, are an exception.
///
/// ```
/// use bindpost_azure_hosting::{environment, functions};
/// use bindpost_mcp_http::Settings;
///
/// # fn main() -> Result<(), functions::ConfigureError> {
/// let mut settings = Settings::default();
/// let address = functions::configure(&mut settings, environment::variable)?;
/// let address = address.unwrap_or(([127, 0, 0, 1], 7071).into());
/// # let _ = address;
/// # Ok(())
/// # }
/// ```
pub fn configure(
    settings: &mut Settings,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<SocketAddr>, ConfigureError> {
    let port = custom_handler_port(&environment)?;
    let hosts = allowed_hosts(&environment);
    let authenticates =
        || environment("WEBSITE_AUTH_ENABLED").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    if settings.trust_platform_identity && !authenticates() {
        // The tools that run an app locally set the name too. So do containers, which others can reach.
        let is_local = |host: &String| host.starts_with("localhost:");
        let public = hosts.iter().find(|host| !is_local(host)).map(String::as_str);
        let develops = || environment("AZURE_FUNCTIONS_ENVIRONMENT").as_deref() == Some("Development");
        if let Some(host) = public.or((port.is_some() && !develops()).then_some("this app")) {
            return Err(ConfigureError::PlatformIdentity { host: host.to_owned() });
        }
    }
    settings.allowed_hosts.extend(hosts);
    settings.identity_headers.extend(IDENTITY_HEADERS.map(str::to_owned));
    if port.is_some() {
        settings.behind_proxy = true;
        settings.connections.connections_per_address = None;
    }
    Ok(port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
}

/// Returns the port to listen on, on 127.0.0.1, if the host of Azure Functions has started this program.
///
/// ```
/// use bindpost_azure_hosting::functions;
///
/// # fn main() -> Result<(), functions::PortError> {
/// let port = functions::custom_handler_port(|name| {
///     (name == "FUNCTIONS_CUSTOMHANDLER_PORT").then(|| "8080".to_owned())
/// })?;
/// assert_eq!(port, Some(8080));
/// # Ok(())
/// # }
/// ```
pub fn custom_handler_port(environment: impl Fn(&str) -> Option<String>) -> Result<Option<u16>, PortError> {
    let set = PORTS.into_iter().find_map(|name| Some((name, environment(name)?)));
    let Some((name, value)) = set else { return Ok(None) };
    match value.trim().parse::<u16>() {
        Ok(port) if port > 0 => Ok(Some(port)),
        _ => Err(PortError { name, value: value.chars().take(100).collect() }),
    }
}

/// Returns the host names of this program, if it runs on Azure. Add them to the allowed hosts. Custom domains
/// are not included, because the platform does not provide them.
///
/// ```
/// use bindpost_azure_hosting::functions;
///
/// let hosts = functions::allowed_hosts(|name| {
///     (name == "WEBSITE_HOSTNAME").then(|| "orders.azurewebsites.net".to_owned())
/// });
/// assert_eq!(hosts, ["orders.azurewebsites.net"]);
/// ```
pub fn allowed_hosts(environment: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let host = environment("WEBSITE_HOSTNAME");
    // A star would allow every host.
    let is_host = |host: &str| {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
        !host.is_empty() && host.bytes().all(legal)
    };
    host.map(|host| host.trim().to_ascii_lowercase()).filter(|host| is_host(host)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn the_newer_name_comes_first() {
        let [new, old] = PORTS;
        for (variables, port) in [
            (&[][..], None),
            (&[(new, "8080")], Some(8080)),
            (&[(old, "8081")], Some(8081)),
            (&[(old, "8081"), (new, "8080")], Some(8080)),
            (&[(new, " 65535\n")], Some(65535)),
            (&[("PORT", "80")], None),
        ] {
            assert_eq!(custom_handler_port(of(variables)), Ok(port), "{variables:?}");
        }
    }

    #[test]
    fn an_invalid_port_is_reported() {
        for value in ["", "0", "65536", "-1", "80a", "http", "%PORT%", "8080;8081"] {
            for name in PORTS {
                let variables = [(name, value)];
                let text = custom_handler_port(of(&variables)).unwrap_err().to_string();
                assert!(
                    text.starts_with(&format!("{name} is {value:?}")) && text.contains("unset"),
                    "{text}"
                );
            }
        }
        // If the new variable is invalid, the old one is not used.
        let variables = [(PORTS[0], "x"), (PORTS[1], "80")];
        assert!(custom_handler_port(of(&variables)).is_err());
    }

    #[test]
    fn a_server_is_configured_for_its_platform() {
        let name = ("WEBSITE_HOSTNAME", "orders.azurewebsites.net");
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 8080)));
        for (variables, expected, hosts, behind_proxy) in [
            (&[][..], None, &["own.example"][..], false),
            (&[name], None, &["own.example", "orders.azurewebsites.net"], false),
            (&[(PORTS[0], "8080")], address, &["own.example"], true),
            (&[name, (PORTS[1], "8080")], address, &["own.example", "orders.azurewebsites.net"], true),
        ] {
            let mut settings =
                Settings { allowed_hosts: vec!["own.example".to_owned()], ..Settings::default() };
            assert_eq!(configure(&mut settings, of(variables)), Ok(expected), "{variables:?}");
            assert_eq!(settings.connections.connections_per_address.is_none(), behind_proxy);
            assert_eq!(
                (&settings.allowed_hosts[..], settings.behind_proxy),
                (&hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>()[..], behind_proxy)
            );
        }
        assert!(configure(&mut Settings::default(), of(&[(PORTS[0], "x")])).is_err());
    }

    #[test]
    fn the_platform_is_trusted_only_if_it_authenticates_callers() {
        let (port, local) = ((PORTS[0], "8080"), ("WEBSITE_HOSTNAME", "localhost:7071"));
        let name = ("WEBSITE_HOSTNAME", "orders.azurewebsites.net");
        for (variables, trusted) in [
            (&[][..], true),
            (&[("WEBSITE_HOSTNAME", "localhost:7071")], true),
            (&[name], false),
            (&[name, ("WEBSITE_AUTH_ENABLED", "False")], false),
            (&[name, ("WEBSITE_AUTH_ENABLED", "True")], true),
            // A custom handler, on the platform, in a container, and in Core Tools.
            (&[port], false),
            (&[port, name], false),
            (&[port, local], false),
            (&[port, local, ("AZURE_FUNCTIONS_ENVIRONMENT", "Production")], false),
            (&[port, local, ("WEBSITE_AUTH_ENABLED", "True")], true),
            (&[port, local, ("AZURE_FUNCTIONS_ENVIRONMENT", "Development")], true),
            (&[port, name, ("AZURE_FUNCTIONS_ENVIRONMENT", "Development")], false),
        ] {
            let configured = |trust_platform_identity: bool| {
                let mut settings = Settings { trust_platform_identity, ..Settings::default() };
                configure(&mut settings, of(variables)).map(drop)
            };
            assert_eq!(configured(true).is_ok(), trusted, "{variables:?}");
            assert_eq!(configured(false), Ok(()), "{variables:?}");
            if let Err(error) = configured(true) {
                let text = error.to_string();
                let host = if variables.contains(&name) { name.1 } else { "this app" };
                assert!(text.contains(host) && text.contains("fix:"), "{text}");
            }
        }
    }

    #[test]
    fn hosts_are_those_of_the_platform() {
        for (value, hosts) in [
            (Some("Orders.azurewebsites.net"), &["orders.azurewebsites.net"][..]),
            (Some("localhost:7071"), &["localhost:7071"]),
            (None, &[]),
            (Some(""), &[]),
            (Some("*"), &[]),
            (Some("a b"), &[]),
            (Some("a.example,*"), &[]),
            (Some("https://a.example/"), &[]),
        ] {
            let variables: Vec<_> = value.map(|value| ("WEBSITE_HOSTNAME", value)).into_iter().collect();
            assert_eq!(allowed_hosts(of(&variables)), hosts, "{value:?}");
        }
    }
}
