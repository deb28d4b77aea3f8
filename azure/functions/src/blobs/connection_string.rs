//! Parses storage connection strings: `name=value;name=value;…`.

use std::collections::HashMap;

use bindpost_net_upstream::Secret;
use reqwest::Url;

use super::connection::{StorageAccount, StorageConnection, StorageCredential};
use super::endpoint::BlobEndpoint;
use super::shared_key::SharedKey;

pub(crate) const ACCOUNT_NAME_RULE: &str =
    "an account name has 3 to 24 lower-case letters and digits, and no address around it";

/// The parts that are used for blobs. Others, such as `QueueEndpoint`, are ignored.
const PARTS: [&str; 8] = [
    "UseDevelopmentStorage",
    "DevelopmentStorageProxyUri",
    "DefaultEndpointsProtocol",
    "AccountName",
    "AccountKey",
    "EndpointSuffix",
    "BlobEndpoint",
    "SharedAccessSignature",
];

/// Parses the connection string of a setting. An error names the part but not its value, which may contain a
/// secret.
pub(crate) fn parse(setting: &str, text: &str) -> Result<StorageConnection, String> {
    let parts = split(text)?;
    let part = |name: &str| parts.get(name).copied();
    if let Some(value) = part("UseDevelopmentStorage") {
        if !value.eq_ignore_ascii_case("true") {
            return Err("UseDevelopmentStorage can only be true; otherwise remove it".into());
        }
        let host = part("DevelopmentStorageProxyUri").map(development_host).transpose()?;
        return Ok(StorageConnection::Development { setting: setting.to_owned(), host });
    }
    let endpoint = endpoint(&parts)?;
    let credential = match (part("AccountKey"), part("SharedAccessSignature")) {
        (Some(_), Some(_)) => {
            return Err("it has both AccountKey and SharedAccessSignature; remove one of them".into());
        }
        (Some(key), None) => {
            let account = part("AccountName").ok_or("AccountName is missing; a key needs it")?;
            let key = SharedKey::new(account, key).map_err(|problem| format!("AccountKey {problem}"))?;
            StorageCredential::SharedKey(key)
        }
        (None, Some(token)) => StorageCredential::Sas(signature(token)?),
        (None, None) => {
            return Err("it has neither AccountKey nor SharedAccessSignature; add one, or use \
                        __accountName for an identity"
                .into());
        }
    };
    StorageAccount::new(endpoint, credential)
        .map(StorageConnection::Account)
        .map_err(|problem| format!("BlobEndpoint {problem}"))
}

fn split(text: &str) -> Result<HashMap<&'static str, &str>, String> {
    let text = text.trim();
    if text.starts_with(['"', '\'']) {
        return Err("it starts with a quotation mark; remove the quotation marks".into());
    }
    let mut found = HashMap::new();
    for (index, part) in text.split(';').map(str::trim).enumerate() {
        if part.is_empty() {
            continue;
        }
        let Some((name, value)) = part.split_once('=') else {
            return Err(format!(
                "part {} has no `=`; a connection string is name=value;name=value;… as the portal shows it",
                index + 1
            ));
        };
        let name = name.trim();
        let Some(known) = PARTS.iter().find(|known| known.eq_ignore_ascii_case(name)) else { continue };
        let value = value.trim();
        if value.is_empty() {
            return Err(format!("{known} is empty"));
        }
        if found.insert(*known, value).is_some() {
            return Err(format!("{known} is given twice"));
        }
    }
    Ok(found)
}

fn endpoint(parts: &HashMap<&'static str, &str>) -> Result<BlobEndpoint, String> {
    let account = parts.get("AccountName").copied();
    let explicit = parts.get("BlobEndpoint").copied();
    if let Some(address) = explicit {
        // Emulators allow any account name. It only has to be valid in a header.
        if account.is_some_and(|account| !account.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err("AccountName has spaces or letters that are not ASCII".into());
        }
        return BlobEndpoint::parse(address).map_err(|problem| format!("BlobEndpoint {problem}"));
    }
    let account = account.ok_or("it has neither AccountName nor BlobEndpoint; add one")?;
    if !is_account_name(account) {
        return Err(format!("AccountName is invalid: {ACCOUNT_NAME_RULE}"));
    }
    let protocol = parts.get("DefaultEndpointsProtocol").copied().unwrap_or("https").to_lowercase();
    if protocol != "http" && protocol != "https" {
        return Err("DefaultEndpointsProtocol is neither http nor https".into());
    }
    let suffix = parts.get("EndpointSuffix").copied().unwrap_or("core.windows.net");
    let is_host = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    if !suffix.chars().all(is_host) || suffix.starts_with('.') {
        return Err("EndpointSuffix is not a domain such as core.windows.net".into());
    }
    BlobEndpoint::parse(&format!("{protocol}://{account}.blob.{suffix}"))
        .map_err(|problem| format!("EndpointSuffix: the resulting address {problem}"))
}

fn signature(token: &str) -> Result<Secret, String> {
    let token = token.trim_start_matches('?');
    if token.split('&').any(|part| part.starts_with("sig=")) {
        Ok(Secret::new(token))
    } else {
        Err("SharedAccessSignature has no sig=; copy the whole token".into())
    }
}

fn development_host(address: &str) -> Result<Url, String> {
    let mut host = BlobEndpoint::parse(address)
        .and_then(|_| Url::parse(address).map_err(|_| "is not a URL"))
        .map_err(|problem| format!("DevelopmentStorageProxyUri {problem}"))?;
    host.set_path("");
    Ok(host)
}

/// Returns whether a name is a valid account name: 3 to 24 lower-case letters and digits.
pub(crate) fn is_account_name(name: &str) -> bool {
    (3..=24).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_to_an_account() {
        for (text, expected) in [
            ("AccountName=acc;AccountKey=c2VjcmV0", "https://acc.blob.core.windows.net"),
            (
                " defaultendpointsprotocol=HTTP ; accountname=acc;AccountKey=c2VjcmV0;EndpointSuffix=core.chinacloudapi.cn; ",
                "http://acc.blob.core.chinacloudapi.cn",
            ),
            (
                "AccountName=my-acc;AccountKey=c2VjcmV0;BlobEndpoint=http://azurite:10000/my-acc;QueueEndpoint=http://azurite:10001/my-acc",
                "http://azurite:10000/my-acc",
            ),
            ("BlobEndpoint=https://h.example/;SharedAccessSignature=?sv=1&sig=a%2Bb%3D", "https://h.example"),
        ] {
            let Ok(StorageConnection::Account(account)) = parse("A", text) else { panic!("{text}") };
            assert_eq!(account.endpoint().to_string(), expected);
        }
    }

    #[test]
    fn mistakes_are_named_without_their_values() {
        for (text, words) in [
            ("hush", "part 1 has no `=`"),
            ("\"AccountName=acc;AccountKey=hush\"", "quotation mark"),
            ("AccountName=acc;hush", "part 2"),
            ("AccountName=acc", "neither AccountKey nor SharedAccessSignature"),
            ("AccountKey=aHVzaA==", "neither AccountName nor BlobEndpoint"),
            ("BlobEndpoint=https://h;AccountKey=aHVzaA==", "AccountName is missing"),
            ("AccountName=acc;AccountKey=hush!", "AccountKey is not Base64"),
            ("AccountName=acc;AccountKey=", "AccountKey is empty"),
            ("AccountName=acc;AccountName=acc;AccountKey=aHVzaA==", "AccountName is given twice"),
            ("AccountName=acc;AccountKey=aHVzaA==;SharedAccessSignature=sig=hush", "both"),
            ("AccountName=https://hush;AccountKey=aHVzaA==", "AccountName"),
            ("AccountName=hush hush;AccountKey=aHVzaA==;BlobEndpoint=https://h", "AccountName"),
            ("AccountName=acc;AccountKey=aHVzaA==;DefaultEndpointsProtocol=hush", "DefaultEndpointsProtocol"),
            ("AccountName=acc;AccountKey=aHVzaA==;EndpointSuffix=x/hush", "EndpointSuffix"),
            ("AccountName=acc;AccountKey=aHVzaA==;BlobEndpoint=hush", "BlobEndpoint"),
            ("BlobEndpoint=https://h?sig=hush;SharedAccessSignature=sig=hush", "BlobEndpoint has a query"),
            ("BlobEndpoint=https://h;SharedAccessSignature=hush", "no sig="),
            ("UseDevelopmentStorage=hush", "UseDevelopmentStorage"),
            ("UseDevelopmentStorage=true;DevelopmentStorageProxyUri=hush", "DevelopmentStorageProxyUri"),
        ] {
            let problem = parse("A", text).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
            assert!(!problem.contains("hush") && !problem.contains("aHVzaA"), "{text}: {problem}");
        }
    }
}
