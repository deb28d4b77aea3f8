//! [`Entra`]: authentication by access tokens of Entra ID.
//!
//! The app registration of an API (`accessTokenAcceptedVersion`), not the endpoint that a client uses,
//! decides whether the API gets tokens of version 1.0 or 2.0. So both are accepted, and each is validated
//! with the metadata of its own version. Callers are identified by tenant and object id, which are never
//! reused. Names and addresses can be reused. `groups` is passed on with the other claims, but it is missing
//! for users with more than 200 groups: authorize by scopes and app roles instead.

use std::borrow::Cow;

use bindpost_mcp_oauth::{Algorithm, ConfigError, Issuer, TokenAuthorizer, TokenAuthorizerBuilder};

/// Accepts access tokens of Entra ID for an API.
///
/// ```
/// use bindpost_azure_hosting::Entra;
/// use bindpost_mcp_http::{Auth, Settings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tokens = Entra::tenant("aaaabbbb-0000-cccc-1111-dddd2222eeee")
///     // Tokens of version 2.0 contain the client id of the API. Tokens of version 1.0 may contain its URI.
///     .audience("00001111-aaaa-2222-bbbb-3333cccc4444")
///     .audience("api://orders")
///     .build()?;
/// let auth = Auth::new(tokens).resource("https://orders.azurewebsites.net/mcp");
/// let settings = Settings { auth: Some(auth), ..Settings::default() };
/// # let _ = settings;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Entra {
    tenants: AcceptedTenants,
    audiences: Vec<String>,
    cloud: AzureCloud,
    metadata_base: Option<String>,
}

#[derive(Clone, Debug)]
enum AcceptedTenants {
    One(String),
    Some(Vec<String>),
    Any,
}

/// A cloud in which Entra ID runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AzureCloud {
    login: Cow<'static, str>,
    sts: Cow<'static, str>,
}

impl AzureCloud {
    /// The public cloud, in which most tenants are.
    pub const PUBLIC: AzureCloud =
        AzureCloud::known("https://login.microsoftonline.com", "https://sts.windows.net");
    /// Azure Government in the United States.
    pub const US_GOVERNMENT: AzureCloud =
        AzureCloud::known("https://login.microsoftonline.us", "https://sts.windows.net");
    /// Azure operated by 21Vianet in China.
    pub const CHINA: AzureCloud =
        AzureCloud::known("https://login.partner.microsoftonline.cn", "https://sts.chinacloudapi.cn");

    /// Creates a cloud with the address of its login service, `login`, and of its version 1.0 issuers, `sts`.
    /// Neither address ends with a slash.
    pub fn new(login: impl Into<String>, sts: impl Into<String>) -> AzureCloud {
        let [login, sts] =
            [login.into(), sts.into()].map(|url| Cow::Owned(url.trim_end_matches('/').to_owned()));
        AzureCloud { login, sts }
    }

    const fn known(login: &'static str, sts: &'static str) -> AzureCloud {
        AzureCloud { login: Cow::Borrowed(login), sts: Cow::Borrowed(sts) }
    }
}

impl Entra {
    /// Accepts tokens of one tenant, given by its id, a GUID.
    pub fn tenant(tenant: impl Into<String>) -> Entra {
        Entra::for_tenants(AcceptedTenants::One(tenant.into().to_ascii_lowercase()))
    }

    /// Accepts tokens of these tenants, for an API that is registered for several.
    pub fn tenants(tenants: impl IntoIterator<Item = impl Into<String>>) -> Entra {
        let tenants = tenants.into_iter().map(|tenant| tenant.into().to_ascii_lowercase());
        Entra::for_tenants(AcceptedTenants::Some(tenants.collect()))
    }

    /// Accepts tokens of any tenant. Every account is authenticated, so entries must check `tid` themselves.
    pub fn any_tenant() -> Entra {
        Entra::for_tenants(AcceptedTenants::Any)
    }

    fn for_tenants(tenants: AcceptedTenants) -> Entra {
        Entra { tenants, audiences: Vec::new(), cloud: AzureCloud::PUBLIC, metadata_base: None }
    }

    /// Adds an audience of the API: its client id or its App ID URI.
    pub fn audience(mut self, audience: impl Into<String>) -> Entra {
        self.audiences.push(audience.into());
        self
    }

    /// Sets the cloud of the tenants. Default: [`AzureCloud::PUBLIC`].
    pub fn cloud(mut self, cloud: AzureCloud) -> Entra {
        self.cloud = cloud;
        self
    }

    /// Sets the address from which metadata is fetched instead of from the cloud: a mirror, or the issuer of
    /// a test. The expected claims of tokens do not change.
    pub fn metadata_base(mut self, url: impl Into<String>) -> Entra {
        self.metadata_base = Some(url.into().trim_end_matches('/').to_owned());
        self
    }

    /// Returns a builder with these settings, to which limits, a leeway or other issuers can be added.
    pub fn tokens(self) -> TokenAuthorizerBuilder {
        let AzureCloud { login, sts } = &self.cloud;
        let base = self.metadata_base.as_deref().unwrap_or(login);
        // The metadata for all tenants has this literal placeholder instead of a tenant.
        let (place, tenant) = match &self.tenants {
            AcceptedTenants::One(tenant) => (tenant.as_str(), tenant.as_str()),
            AcceptedTenants::Some(_) | AcceptedTenants::Any => ("common", "{tenantid}"),
        };
        let first = Issuer::new(format!("{base}/{place}")).accepts_issuer(format!("{sts}/{tenant}/"));
        let second =
            Issuer::new(format!("{base}/{place}/v2.0")).accepts_issuer(format!("{login}/{tenant}/v2.0"));
        let mut builder = TokenAuthorizer::builder();
        for issuer in [second, first] {
            let issuer = issuer.algorithms([Algorithm::RS256]).keyed_by(["tid", "oid"]);
            builder = builder.issuer(match &self.tenants {
                AcceptedTenants::One(tenant) => issuer.tenants([tenant]),
                AcceptedTenants::Some(tenants) => issuer.tenants(tenants),
                AcceptedTenants::Any => issuer.any_tenant(),
            });
        }
        let servers = match &self.tenants {
            AcceptedTenants::One(tenant) => vec![tenant.as_str()],
            AcceptedTenants::Some(tenants) => tenants.iter().map(String::as_str).collect(),
            AcceptedTenants::Any => vec!["common"],
        };
        let builder =
            builder.authorization_servers(servers.iter().map(|tenant| format!("{login}/{tenant}/v2.0")));
        self.audiences.iter().fold(builder, |builder, audience| builder.audience(audience))
    }

    /// Validates the settings. No request is sent to Entra ID yet.
    pub fn build(self) -> Result<TokenAuthorizer, ConfigError> {
        self.tokens().build()
    }
}

#[cfg(test)]
mod tests {
    use bindpost_mcp_http::Authorizer as _;

    use super::*;

    const A: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
    const B: &str = "bbbbaaaa-0000-cccc-1111-dddd2222eeee";

    #[test]
    fn invalid_settings_are_reported_at_start() {
        for (entra, part) in [
            (Entra::tenant(A), "audience"),
            (Entra::tenant("contoso.onmicrosoft.com").audience("a"), "GUID"),
            (Entra::tenant("").audience("a"), "GUID"),
            (Entra::tenant("common").audience("a"), "GUID"),
            (Entra::tenants([A, "organizations"]).audience("a"), "GUID"),
            (Entra::tenants([""; 0]).audience("a"), "empty"),
            (Entra::tenant(A).audience("a").metadata_base("http://mirror.example"), "https"),
        ] {
            let text = entra.build().unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn clients_are_sent_to_the_cloud_of_the_tenant() {
        let servers = |entra: Entra| entra.audience("a").build().unwrap().authorization_servers();
        let upper = A.to_uppercase();
        assert_eq!(servers(Entra::tenant(upper)), [format!("https://login.microsoftonline.com/{A}/v2.0")]);
        let of = |tenant: &str| format!("https://login.microsoftonline.us/{tenant}/v2.0");
        assert_eq!(servers(Entra::tenants([A, B]).cloud(AzureCloud::US_GOVERNMENT)), [of(A), of(B)]);
        let own = AzureCloud::new("https://login.example/", "https://sts.example/");
        assert_eq!(servers(Entra::any_tenant().cloud(own)), ["https://login.example/common/v2.0"]);
    }
}
