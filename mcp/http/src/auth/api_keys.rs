//! [`ApiKeys`]: authenticates callers by API keys.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use bindpost_mcp_server::nearest::nearest;
use bindpost_mcp_server::{Caller, HttpRequest, Identity};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::Map;
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};

use crate::auth::key_file::{KeyFile, KeyFileChange};
use crate::auth::key_line::{KeyLine, Sha256Digest, digest};
use crate::auth::{Authorizer, Denial};

/// Authenticates callers by API keys. Each key has a name. Only digests of the secrets are kept.
///
/// The caller with the key `ops` has the id `key:ops` and the scopes of that key.
///
/// ```
/// use bindpost_mcp_http::{ApiKeys, Auth, Settings};
///
/// let keys = ApiKeys::new()
///     .key("ops", "a long secret")
///     .key_with_scopes("dashboard", "another secret", ["orders.read"]);
/// let settings = Settings { auth: Some(Auth::new(keys)), ..Settings::default() };
/// # let _ = settings;
/// ```
///
/// A client sends its key in the header `x-api-key`. Another header, `Authorization: Bearer` and a query
/// parameter can be enabled. A mistake in the keys (an empty secret, a duplicate name) is reported when the
/// server starts.
pub struct ApiKeys {
    header: HeaderName,
    bearer: bool,
    query: Option<String>,
    accepts: fn(&str) -> bool,
    keys: RwLock<KeyTable>,
    file: Option<KeyFile>,
    problem: Option<String>,
}

#[derive(Default)]
struct KeyTable {
    all: Vec<NamedKey>,
    /// The names of keys that were removed.
    gone: BTreeSet<String>,
    last_version: u64,
}

struct NamedKey {
    name: String,
    digest: Sha256Digest,
    /// Distinguishes successive secrets of a key with the same name.
    version: u64,
    is_from_file: bool,
    caller: Caller,
}

/// The claim with the version of a key that was changed while the server ran.
const VERSION: &str = "keyVersion";
/// The maximum number of keys. Every request is compared with all of them.
const MAX_KEYS: usize = 1_000;
/// The error for every unknown key. It does not reveal how close the key was to a valid one.
const UNKNOWN: &str = "the API key is not known";

impl ApiKeys {
    /// Creates an authorizer without keys.
    pub fn new() -> ApiKeys {
        ApiKeys {
            header: HeaderName::from_static("x-api-key"),
            bearer: false,
            query: None,
            accepts: |_| true,
            keys: RwLock::default(),
            file: None,
            problem: None,
        }
    }

    /// Reads the keys from a file with a line `name = secret` or `name = secret scope1 scope2` for each
    /// key. Empty lines and lines that begin with `#` are ignored. What looks like another format is an error:
    /// a comment after a key, quotes, and commas between scopes or in a secret.
    ///
    /// The file is checked for changes every 5 s. A key that is removed or changed is rejected a few
    /// seconds later, and its sessions and streams end. A change is loaded once the file has not been
    /// modified for a second, because it may be incomplete before. If the modification time changes
    /// continuously, the change is loaded once the content has been the same for a second. If the
    /// content changes continuously, it is loaded 15 s after the first change. If the file cannot be
    /// read or has a mistake, the previous keys stay valid and an error is logged.
    pub fn from_file(path: impl AsRef<Path>) -> io::Result<ApiKeys> {
        let (file, lines) = KeyFile::open(path.as_ref())?;
        let mut keys = KeyTable::default();
        keys.replace_file_keys(lines)
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, file.problem_in_file(&problem)))?;
        keys.last_version = 1;
        if keys.all.is_empty() {
            tracing::warn!("the file of API keys has no keys");
        }
        Ok(ApiKeys { keys: RwLock::new(keys), file: Some(file), ..ApiKeys::new() })
    }

    /// Adds a key.
    pub fn key(self, name: impl Into<String>, secret: impl AsRef<[u8]>) -> ApiKeys {
        self.key_with_scopes(name, secret, [] as [&str; 0])
    }

    /// Adds a key whose caller has these scopes.
    pub fn key_with_scopes(
        mut self,
        name: impl Into<String>,
        secret: impl AsRef<[u8]>,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> ApiKeys {
        let scopes = scopes.into_iter().map(Into::into).collect();
        self.add(KeyLine::new(name.into(), secret.as_ref(), scopes));
        self
    }

    /// Adds a key that is written as in a file: `name = secret` or `name = secret scope1 scope2`.
    ///
    /// ```
    /// use bindpost_mcp_http::{ApiKeys, Authorizer as _};
    ///
    /// assert_eq!(ApiKeys::new().key_line("ops = secret orders.read").problem(), None);
    /// let problem = ApiKeys::new().key_line("ops = secret read, write").problem();
    /// assert!(problem.is_some_and(|problem| problem.ends_with("remove the comma after \"read\"")));
    /// ```
    pub fn key_line(mut self, line: &str) -> ApiKeys {
        self.add(KeyLine::parse(line));
        self
    }

    fn add(&mut self, line: Result<KeyLine, String>) {
        let keys = self.keys.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Err(problem) = line.and_then(|line| keys.add(line, 0, false)) {
            self.problem.get_or_insert(problem);
        }
    }

    /// Reads keys from this header, instead of `x-api-key`.
    pub fn header(mut self, name: &str) -> ApiKeys {
        match HeaderName::try_from(name) {
            Ok(header) => self.header = header,
            Err(_) => {
                self.problem.get_or_insert(format!("an API key cannot be sent in the header {name:?}"));
            }
        }
        self
    }

    /// Reads keys from `Authorization: Bearer …` as well.
    pub fn bearer(mut self) -> ApiKeys {
        self.bearer = true;
        self
    }

    /// Reads keys from this query parameter as well, if no header has one. URLs are written to logs and
    /// browser histories, so use this only for clients that support nothing else.
    pub fn in_query(mut self, parameter: impl Into<String>) -> ApiKeys {
        self.query = Some(parameter.into());
        self
    }

    /// Accepts only the keys with these names. Other keys are unknown, as if the file did not have them. Use it if a file
    /// has keys for several purposes. Default: every name.
    ///
    /// ```
    /// use bindpost_mcp_http::ApiKeys;
    ///
    /// let keys = ApiKeys::new().key("mcp.ops", "a long secret").key("backup", "another secret");
    /// let keys = keys.accept_names(|name| name.starts_with("mcp."));
    /// # let _ = keys;
    /// ```
    pub fn accept_names(mut self, accepts: fn(&str) -> bool) -> ApiKeys {
        self.accepts = accepts;
        self
    }

    /// Sets the interval at which the file is checked for changes. Default: 5 s.
    pub fn look_every(mut self, interval: Duration) -> ApiKeys {
        if let Some(file) = &mut self.file {
            file.look_every(interval);
        }
        self
    }

    /// Returns the key that the request carries.
    fn offered_key<'a>(&self, request: &'a HttpRequest) -> Result<Option<Cow<'a, [u8]>>, Denial> {
        if let Some(value) = single_header(request.headers(), &self.header)? {
            return Ok(Some(value.as_bytes().into()));
        }
        if self.bearer
            && let Some(value) = single_header(request.headers(), &AUTHORIZATION)?
            && let Some((scheme, key)) = value.as_bytes().split_at_checked(6)
            && scheme.eq_ignore_ascii_case(b"bearer")
            && key.first().is_none_or(|byte| *byte == b' ')
        {
            return Ok(Some(key.trim_ascii().into()));
        }
        let (Some(name), Some(query)) = (&self.query, request.uri().query()) else { return Ok(None) };
        let mut values =
            query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(known, _)| known == name);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Denial::malformed(format!("the parameter {name} occurs twice"))),
            (value, None) => Ok(value.map(|(_, value)| decode_percent(value).into())),
        }
    }

    /// Returns the caller with this key. The search takes the same time for every key, known or not.
    fn find(&self, offered: &[u8]) -> Option<Caller> {
        let digest = digest(offered);
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = 0_u64;
        for (number, key) in (1..).zip(&keys.all) {
            found.conditional_assign(&number, key.digest.ct_eq(&digest));
        }
        let index = usize::try_from(found.checked_sub(1)?).ok()?;
        keys.all.get(index).filter(|key| (self.accepts)(&key.name)).map(|key| key.caller.clone())
    }

    /// Reloads the file if it has changed.
    fn reload_if_changed(&self) {
        let Some(file) = &self.file else { return };
        let taken = match file.check_for_changes() {
            KeyFileChange::No => return,
            KeyFileChange::To(lines) => self
                .keys
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .replace_file_keys(lines)
                .map_err(|problem| file.problem_in_file(&problem)),
            KeyFileChange::Broken(problem) => Err(problem),
        };
        match taken {
            Ok(count) => tracing::info!(keys = count, "the file of API keys has changed"),
            Err(problem) => tracing::error!("the API keys were not reloaded: {problem}"),
        }
    }
}

impl Authorizer for ApiKeys {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        if self.problem.is_some() {
            return Err(Denial::failed());
        }
        self.reload_if_changed();
        match self.offered_key(request)? {
            None => Err(Denial::missing()),
            Some(offered) => self.find(&offered).ok_or_else(|| Denial::invalid(UNKNOWN)),
        }
    }

    fn challenge(&self) -> Option<String> {
        Some(format!("ApiKey header=\"{}\"", self.header))
    }

    fn headers(&self) -> Vec<String> {
        vec![self.header.to_string()]
    }

    fn knows(&self, caller: &Caller) -> bool {
        self.reload_if_changed();
        let Some(name) = caller.id().and_then(|id| id.strip_prefix("key:")) else { return true };
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        match keys.all.iter().find(|key| key.name == name) {
            Some(key) => key.caller.claim(VERSION) == caller.claim(VERSION),
            None => !keys.gone.contains(name),
        }
    }

    fn problem(&self) -> Option<String> {
        self.problem.clone()
    }

    fn warnings(&self, needed: &[String]) -> Vec<String> {
        let known: Vec<&str> = needed.iter().map(String::as_str).collect();
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let accepted = keys.all.iter().filter(|key| (self.accepts)(&key.name));
        let scopes = accepted.flat_map(|key| key.caller.scopes().iter().map(move |scope| (key, scope)));
        let unused = scopes.filter(|(_, scope)| !needed.contains(scope));
        unused
            .map(|(key, scope)| {
                let near = nearest(scope, &known).map(|near| format!("; did you mean {near:?}?"));
                let near = near.unwrap_or_default();
                format!("the API key {:?} has the scope {scope:?}, which no entry requires{near}", key.name)
            })
            .collect()
    }
}

impl KeyTable {
    fn add(&mut self, line: KeyLine, version: u64, is_from_file: bool) -> Result<(), String> {
        if self.all.len() >= MAX_KEYS {
            return Err(line.describe_problem(&format!("exceeds the maximum of {MAX_KEYS} keys")));
        }
        for other in &self.all {
            if other.name == line.name {
                return Err(line.describe_problem("is defined twice"));
            }
            if other.digest == line.digest {
                return Err(line.describe_problem(&format!("has the same secret as {:?}", other.name)));
            }
        }
        let mut identity = Identity::new(format!("key:{}", line.name)).name(&line.name);
        if version > 0 {
            identity = identity.claims(Map::from_iter([(VERSION.to_owned(), version.into())]));
        }
        let caller = identity.scopes(line.scopes).into();
        self.all.push(NamedKey { name: line.name, digest: line.digest, version, is_from_file, caller });
        Ok(())
    }

    /// Replaces the keys of the file. If one of the new keys is invalid, none is replaced.
    fn replace_file_keys(&mut self, lines: Vec<KeyLine>) -> Result<usize, String> {
        let (before, fixed): (Vec<_>, Vec<_>) = self.all.drain(..).partition(|key| key.is_from_file);
        self.all = fixed;
        let fixed = self.all.len();
        let count = lines.len();
        // The keys of the first load have no version. Each later secret gets one.
        let next = if self.last_version > 0 { self.last_version + 1 } else { 0 };
        for line in lines {
            let same = before.iter().find(|key| key.name == line.name && key.digest == line.digest);
            if let Err(problem) = self.add(line, same.map_or(next, |key| key.version), true) {
                self.all.truncate(fixed);
                self.all.extend(before);
                return Err(problem);
            }
        }
        self.last_version = next;
        self.gone.extend(before.into_iter().map(|key| key.name));
        for key in &self.all {
            self.gone.remove(&key.name);
        }
        Ok(count)
    }
}

impl Default for ApiKeys {
    fn default() -> ApiKeys {
        ApiKeys::new()
    }
}

/// Shows only the names of the keys.
impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(keys.all.iter().map(|key| &key.name)).finish()
    }
}

/// Returns the value of a header that may occur only once.
fn single_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Denial> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Denial::malformed(format!("the header {name} occurs twice"))),
        (value, None) => Ok(value),
    }
}

/// Decodes percent-encoded bytes like `%2F`. Everything else is unchanged, including `+`.
fn decode_percent(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (byte, digit(0), digit(1)) {
            bytes.push((high * 16 + low) as u8);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    bytes
}
