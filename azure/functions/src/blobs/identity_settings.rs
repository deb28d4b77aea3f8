//! Reads the identity of a connection from its group of settings, such as `Storage__credential`.

use bindpost_azure_hosting::identity::{SettingError, TokenSource, authority, managed_sources};
use bindpost_net_upstream::Secret;
use reqwest::Url;

use super::connection::ConnectionSettingError;

/// The settings of one connection, and those that Azure itself sets.
pub(crate) struct IdentitySettings<'a> {
    setting: &'a str,
    lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> IdentitySettings<'a> {
    pub(crate) fn new(setting: &'a str, lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        IdentitySettings { setting, lookup }
    }

    /// Returns the token sources to try, in order.
    ///
    /// Without a `credential` setting, the source that the environment provides is used. If it provides none,
    /// the managed identity of a virtual machine and the Azure CLI are tried.
    pub(crate) fn sources(&self) -> Result<Vec<TokenSource>, ConnectionSettingError> {
        match self.member("credential").map(|wish| wish.to_lowercase()).as_deref() {
            Some("managedidentity") => Ok(vec![self.managed()?]),
            Some("workloadidentity") => Ok(vec![self.workload()?]),
            Some("clientsecret") => Ok(vec![self.client_secret()?]),
            Some("azurecli") => Ok(vec![TokenSource::azure_cli()]),
            Some(_) => {
                let known = "must be one of managedidentity, workloadidentity, clientsecret, azurecli";
                Err(ConnectionSettingError::new(self.name_of("credential"), known))
            }
            None if self.member("clientSecret").is_some() => Ok(vec![self.client_secret()?]),
            None => self.environment_sources(),
        }
    }

    fn environment_sources(&self) -> Result<Vec<TokenSource>, ConnectionSettingError> {
        if let (Some(tenant), Some(client_id), Some(secret)) = (
            self.setting_value("AZURE_TENANT_ID"),
            self.setting_value("AZURE_CLIENT_ID"),
            self.setting_value("AZURE_CLIENT_SECRET"),
        ) {
            let (authority, secret) = (self.authority()?, Secret::new(secret));
            return Ok(vec![TokenSource::ClientSecret { authority, tenant, client_id, secret }]);
        }
        if self.setting_value("AZURE_FEDERATED_TOKEN_FILE").is_some() {
            return Ok(vec![self.workload()?]);
        }
        Ok(managed_sources(&|name| self.setting_value(name), self.member("clientId"))?)
    }

    fn managed(&self) -> Result<TokenSource, ConnectionSettingError> {
        Ok(TokenSource::managed(&|name| self.setting_value(name), self.member("clientId"))?)
    }

    fn workload(&self) -> Result<TokenSource, ConnectionSettingError> {
        let needed =
            |name| ConnectionSettingError::new(name, "is required for a workload identity, but is not set");
        let file = self.setting_value("AZURE_FEDERATED_TOKEN_FILE");
        let tenant = self.member("tenantId").or_else(|| self.setting_value("AZURE_TENANT_ID"));
        let client_id = self.member("clientId").or_else(|| self.setting_value("AZURE_CLIENT_ID"));
        Ok(TokenSource::Workload {
            token_file: file.ok_or_else(|| needed("AZURE_FEDERATED_TOKEN_FILE"))?.into(),
            tenant: tenant.ok_or_else(|| needed("AZURE_TENANT_ID"))?,
            client_id: client_id.ok_or_else(|| needed("AZURE_CLIENT_ID"))?,
            authority: self.authority()?,
        })
    }

    fn client_secret(&self) -> Result<TokenSource, ConnectionSettingError> {
        let member = |name| {
            let problem = "is required for a client secret, but is not set";
            self.member(name).ok_or_else(|| ConnectionSettingError::new(self.name_of(name), problem))
        };
        Ok(TokenSource::ClientSecret {
            tenant: member("tenantId")?,
            client_id: member("clientId")?,
            secret: Secret::new(member("clientSecret")?),
            authority: self.authority()?,
        })
    }

    fn authority(&self) -> Result<Url, SettingError> {
        authority(self.setting_value("AZURE_AUTHORITY_HOST").as_deref())
    }

    fn name_of(&self, member: &str) -> String {
        format!("{}__{member}", self.setting)
    }

    fn member(&self, member: &str) -> Option<String> {
        self.setting_value(&self.name_of(member))
    }

    fn setting_value(&self, name: &str) -> Option<String> {
        let value = (self.lookup)(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }
}

impl From<SettingError> for ConnectionSettingError {
    fn from(error: SettingError) -> ConnectionSettingError {
        ConnectionSettingError::new(error.variable, error.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(settings: &[(&str, &str)]) -> Vec<&'static str> {
        let lookup = |wanted: &str| {
            settings.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_string())
        };
        IdentitySettings::new("A", &lookup).sources().unwrap().iter().map(TokenSource::name).collect()
    }

    #[test]
    fn the_credential_setting_overrides_the_environment() {
        let app = [("IDENTITY_ENDPOINT", "http://127.0.0.1:1/"), ("IDENTITY_HEADER", "x")];
        let pod = [("AZURE_FEDERATED_TOKEN_FILE", "/t"), ("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c")];
        let secret = [("A__tenantId", "t"), ("A__clientId", "c"), ("A__clientSecret", "s")];
        assert_eq!(names(&[]), ["the machine's managed identity", "the Azure CLI"]);
        assert_eq!(names(&app), ["the app's managed identity"]);
        assert_eq!(names(&pod), ["the workload identity"]);
        assert_eq!(names(&secret), ["the client secret"]);
        assert_eq!(names(&[pod[1], pod[2], ("AZURE_CLIENT_SECRET", "s")]), ["the client secret"]);
        let all = [&app[..], &pod, &secret].concat();
        for (wish, chosen) in [
            ("managedidentity", "the app's managed identity"),
            ("ManagedIdentity", "the app's managed identity"),
            ("workloadidentity", "the workload identity"),
            ("clientsecret", "the client secret"),
            ("azurecli", "the Azure CLI"),
        ] {
            assert_eq!(names(&[&all[..], &[("A__credential", wish)]].concat()), [chosen]);
        }
        assert_eq!(names(&[("A__credential", "managedidentity")]), ["the machine's managed identity"]);
    }
}
