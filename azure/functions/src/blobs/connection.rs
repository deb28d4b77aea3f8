//! [`StorageConnection`]: resolves a binding's `connection` by the settings that it names.

use std::path::{Path, PathBuf};

use bindpost_azure_hosting::identity::TokenSource;
use bindpost_net_upstream::Secret;
use reqwest::Url;

use super::connection_string;
use super::endpoint::{BlobEndpoint, DEVELOPMENT_ACCOUNT};
use super::file_name;
use super::identity_settings::IdentitySettings;
use super::shared_key::SharedKey;

/// The setting of the default connection.
const DEFAULT_SETTING: &str = "AzureWebJobsStorage";
/// The key of the emulator's account. It is public: every emulator has it.
const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The store that a `connection` names.
#[derive(Debug, Clone)]
pub enum StorageConnection {
    /// The embedded store, because no setting names another.
    Embedded {
        /// The setting that would name another store.
        setting: String,
    },
    /// Azurite if it runs, else the embedded store: `UseDevelopmentStorage=true`.
    Development {
        /// The setting with this value.
        setting: String,
        /// `DevelopmentStorageProxyUri`: the host of Azurite, if it does not run on this machine. With it,
        /// Azurite is always used.
        host: Option<Url>,
    },
    /// An Azure storage account.
    Account(StorageAccount),
}

/// A storage account and its credential.
#[derive(Debug, Clone)]
pub struct StorageAccount {
    endpoint: BlobEndpoint,
    credential: StorageCredential,
}

/// The credential for a storage account.
#[derive(Debug, Clone)]
pub enum StorageCredential {
    /// The account's key.
    SharedKey(SharedKey),
    /// A shared access signature, as a query string.
    Sas(Secret),
    /// An access token from the first source that has one.
    Identity(Vec<TokenSource>),
}

/// An invalid setting. The message contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the setting {setting}: {problem}")]
pub struct ConnectionSettingError {
    setting: String,
    problem: String,
}

impl ConnectionSettingError {
    pub(crate) fn new(setting: impl Into<String>, problem: impl Into<String>) -> ConnectionSettingError {
        ConnectionSettingError { setting: setting.into(), problem: problem.into() }
    }
}

impl StorageAccount {
    /// Creates an account. Access tokens are sent only over TLS or within this machine.
    pub fn new(
        endpoint: BlobEndpoint,
        credential: StorageCredential,
    ) -> Result<StorageAccount, &'static str> {
        if matches!(credential, StorageCredential::Identity(_)) && endpoint.is_exposed() {
            return Err("is not https, and access tokens are not sent unencrypted");
        }
        Ok(StorageAccount { endpoint, credential })
    }

    #[allow(clippy::expect_used, reason = "the key is right here, and a test decodes it")]
    pub(crate) fn azurite(endpoint: BlobEndpoint) -> StorageAccount {
        let key = SharedKey::new(DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY).expect("Base64");
        StorageAccount { endpoint, credential: StorageCredential::SharedKey(key) }
    }

    /// Returns the address of the blob service.
    pub fn endpoint(&self) -> &BlobEndpoint {
        &self.endpoint
    }

    pub(crate) fn into_parts(self) -> (BlobEndpoint, StorageCredential) {
        (self.endpoint, self.credential)
    }
}

impl StorageConnection {
    /// Returns the connection that the binding names and no setting has. The default connection is not one:
    /// the embedded store is meant for it.
    pub fn unset_name(&self) -> Option<&str> {
        match self {
            StorageConnection::Embedded { setting } if !is_default(setting) => Some(setting),
            _ => None,
        }
    }

    /// Returns the folder of the embedded store below the folder of all stores. Connections without a setting
    /// have one each, because they name different accounts. No container has a name with an underscore.
    pub(super) fn embedded_folder(&self, folder: &Path) -> PathBuf {
        match self.unset_name() {
            None => folder.to_owned(),
            // Names of settings match in any case, and `__` is another spelling of a colon.
            Some(name) => {
                folder.join(file_name::encode(&format!("_{}", name.replace("__", ":").to_lowercase())))
            }
        }
    }

    /// Resolves a `connection` as Azure Functions does: first `AzureWebJobs<name>`, then `<name>`. The
    /// default name is `Storage`. Each may be a connection string or, as `<name>__…`, a group of settings for
    /// an identity.
    pub fn resolve(
        name: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<StorageConnection, ConnectionSettingError> {
        let name = if name.trim().is_empty() { "Storage" } else { name.trim() };
        let prefixed = format!("AzureWebJobs{name}");
        for setting in [prefixed.as_str(), name] {
            if let Some((setting, value)) = connection_string_of(setting, lookup) {
                return connection_string::parse(&setting, &value)
                    .map_err(|problem| ConnectionSettingError::new(setting, problem));
            }
            if let Some(account) = identity_of(setting, lookup)? {
                return Ok(StorageConnection::Account(account));
            }
        }
        // The setting to name in messages: the long name for `Storage`, otherwise the name itself.
        let setting = if is_default(&prefixed) { prefixed } else { name.to_owned() };
        Ok(StorageConnection::Embedded { setting })
    }
}

/// Returns whether a setting is that of the default connection. Names of settings match in any case.
fn is_default(setting: &str) -> bool {
    setting.eq_ignore_ascii_case(DEFAULT_SETTING)
}

/// Returns the setting of that name, or the connection string of that name where .NET looks for it.
fn connection_string_of(setting: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)> {
    let places = [
        setting.to_owned(),
        format!("ConnectionStrings:{setting}"),
        format!("ConnectionStrings__{setting}"),
        format!("CUSTOMCONNSTR_{setting}"),
    ];
    places.into_iter().find_map(|place| {
        let value = lookup(&place).filter(|value| !value.trim().is_empty())?;
        Some((place, value))
    })
}

/// Returns the account of a group of settings such as `Storage__accountName`.
fn identity_of(
    setting: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<StorageAccount>, ConnectionSettingError> {
    let set = |member: &str| {
        let name = format!("{setting}__{member}");
        let value = lookup(&name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| (name, value.to_owned()))
    };
    let (name, address) = match set("blobServiceUri").or_else(|| set("serviceUri")) {
        Some(found) => found,
        None => match set("accountName") {
            Some((name, account)) if connection_string::is_account_name(&account) => {
                (name, format!("https://{account}.blob.core.windows.net"))
            }
            Some((name, _)) => {
                return Err(ConnectionSettingError::new(name, connection_string::ACCOUNT_NAME_RULE));
            }
            None => return Ok(None),
        },
    };
    let endpoint =
        BlobEndpoint::parse(&address).map_err(|problem| ConnectionSettingError::new(&name, problem))?;
    let sources = IdentitySettings::new(setting, lookup).sources()?;
    let account = StorageAccount::new(endpoint, StorageCredential::Identity(sources));
    account.map(Some).map_err(|problem| ConnectionSettingError::new(name, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(name: &str, settings: &[(&str, &str)]) -> Result<StorageConnection, ConnectionSettingError> {
        let found = |wanted: &str| {
            settings.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_string())
        };
        StorageConnection::resolve(name, &found)
    }

    fn endpoint(name: &str, settings: &[(&str, &str)]) -> String {
        match resolve(name, settings).unwrap() {
            StorageConnection::Account(account) => account.endpoint.to_string(),
            StorageConnection::Development { setting, host } => format!("development {setting} {host:?}"),
            StorageConnection::Embedded { setting } => format!("embedded {setting}"),
        }
    }

    const ONE: &str = "AccountName=one;AccountKey=c2VjcmV0";
    const TWO: &str = "AccountName=two;AccountKey=c2VjcmV0";

    #[test]
    fn the_long_name_comes_first() {
        let both = [("Storage", TWO), ("AzureWebJobsStorage", ONE)];
        for name in ["", " ", "Storage", "AzureWebJobsStorage"] {
            assert_eq!(endpoint(name, &both), "https://one.blob.core.windows.net", "{name:?}");
        }
        assert_eq!(endpoint("", &both[..1]), "https://two.blob.core.windows.net");
        assert_eq!(endpoint("Mine", &[("Mine", ONE)]), "https://one.blob.core.windows.net");
        let elsewhere = [("ConnectionStrings:Mine", ONE), ("AzureWebJobsMine", " ")];
        assert_eq!(endpoint("Mine", &elsewhere), "https://one.blob.core.windows.net");
        let grouped = [("AzureWebJobsMine__accountName", "two"), ("Mine", ONE)];
        assert_eq!(endpoint("Mine", &grouped), "https://two.blob.core.windows.net");
    }

    #[test]
    fn nothing_set_means_embedded() {
        assert_eq!(endpoint("", &[]), "embedded AzureWebJobsStorage");
        assert_eq!(endpoint("Mine", &[("Other", ONE), ("Mine", "")]), "embedded Mine");
        for name in ["", "storage", "azurewebjobsstorage"] {
            assert_eq!(resolve(name, &[]).unwrap().unset_name(), None, "{name}");
        }
        assert_eq!(resolve("Mine", &[]).unwrap().unset_name(), Some("Mine"));
        let folder =
            |name: &str| resolve(name, &[]).unwrap().embedded_folder(Path::new("/b")).display().to_string();
        assert_eq!(
            [folder(""), folder("Mine"), folder("My__One"), folder("my:one")],
            ["/b", "/b/_mine", "/b/_my%3aone", "/b/_my%3aone"]
        );
    }

    #[test]
    fn the_emulator_has_a_shorthand() {
        let found = endpoint("", &[("AzureWebJobsStorage", "UseDevelopmentStorage=true")]);
        assert_eq!(found, "development AzureWebJobsStorage None");
        let value = "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://azurite";
        assert!(endpoint("", &[("Storage", value)]).contains("azurite"));
        StorageAccount::azurite(BlobEndpoint::azurite(None, 1));
    }

    #[test]
    fn identities_have_groups_of_settings() {
        assert_eq!(endpoint("A", &[("A__accountName", "acc")]), "https://acc.blob.core.windows.net");
        for member in ["A__blobServiceUri", "A__serviceUri"] {
            assert_eq!(endpoint("A", &[(member, "https://x.example/")]), "https://x.example");
        }
        for (name, value, word) in [
            ("A__accountName", "Acc!", "24"),
            ("A__blobServiceUri", "http://x.example", "unencrypted"),
            ("A__blobServiceUri", "x", "not a URL"),
        ] {
            let error = resolve("A", &[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_mistake_names_the_setting_and_the_part() {
        let value = "AccountName=acc;AccountKey=hush-hush-secret!";
        let error = resolve("", &[("AzureWebJobsStorage", value)]).unwrap_err().to_string();
        assert!(error.contains("AzureWebJobsStorage") && error.contains("AccountKey"), "{error}");
        assert!(!error.contains("hush"), "{error}");
    }

    #[test]
    fn debug_shows_no_secret() {
        let sas = "BlobEndpoint=https://h;SharedAccessSignature=sv=1&sig=hushhush";
        let secret = [("A__accountName", "acc"), ("A__clientSecret", "hushhush")];
        let group = [secret[0], secret[1], ("A__clientId", "c"), ("A__tenantId", "t")];
        for settings in [&[("A", ONE)][..], &[("A", sas)], &group] {
            let shown = format!("{:?}", resolve("A", settings).unwrap());
            assert!(!shown.contains("hush") && !shown.contains("c2VjcmV0"), "{shown}");
            assert!(!shown.contains("115, 101"), "{shown}");
        }
    }
}
