//! Definitions of indexes, data sources, indexers, skillsets, synonym maps, aliases, knowledge sources
//! and knowledge bases. They are created, replaced and deleted with ETags, and stored in redb.
//!
//! Their meaning is implemented elsewhere. The [`IndexHook`] creates indexes. `checks`
//! validates all other kinds.

mod checks;
mod conditions;
mod etag;
mod kind;
mod members;
mod names;
#[cfg(test)]
pub(crate) mod scratch;
mod secrets;
mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use bindpost_azure_search_model::ApiError;
use serde_json::Value;

pub(crate) use self::conditions::MatchConditions;
pub use self::kind::ResourceKind;
pub(crate) use self::store::ResourceStoreError;

use self::etag::EtagClock;
use self::store::ResourceStore;

/// One stored definition. It is immutable. Every change creates a new one.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceDefinition {
    pub kind: ResourceKind,
    pub name: String,
    /// The ETag with its quotes: `"0x8DE…"`.
    pub etag: String,
    /// The definition without `@odata.etag` and `@odata.context`, including secrets. Responses must use
    /// [`ResourceDefinition::public_json`] instead.
    pub value: Value,
}

impl ResourceDefinition {
    /// Returns the definition for clients: with the ETag and all default members, and without secrets.
    pub fn public_json(&self) -> Value {
        let mut shown = secrets::hide(self.kind, &self.value);
        members::complete(self.kind, &mut shown);
        if let Value::Object(members) = &mut shown {
            members.insert("@odata.etag".to_owned(), Value::from(self.etag.clone()));
        }
        shown
    }
}

/// Creates, changes and deletes the index of a definition. Calls are never concurrent.
///
/// `create` and `check` return the definition to store. A new index is created before its definition is
/// stored, and deleted again if storing fails. An index is updated after its definition is stored, so that
/// its documents are never newer than the definition. If the update fails, the old definition is restored.
pub trait IndexHook: Send + Sync {
    fn create(&self, name: &str, definition: &Value) -> Result<Value, ApiError>;
    fn check(&self, name: &str, old: &Value, new: &Value, allow_downtime: bool) -> Result<Value, ApiError>;
    fn update(&self, name: &str, old: &Value, new: &Value) -> Result<(), ApiError>;
    fn delete(&self, name: &str) -> Result<(), ApiError>;
}

/// A change of a definition.
#[derive(Debug, Clone)]
pub enum ResourceChange {
    Created(Arc<ResourceDefinition>),
    Updated { old: Arc<ResourceDefinition>, new: Arc<ResourceDefinition> },
    Deleted(Arc<ResourceDefinition>),
}

/// All definitions of one service. Reads use memory. Writes go to the disk first.
pub struct ResourceRegistry {
    store: ResourceStore,
    all: RwLock<All>,
    /// Held by a writer from its first check to the commit, so that the checks stay valid.
    writing: Mutex<EtagClock>,
    index_hook: OnceLock<Arc<dyn IndexHook>>,
    watchers: RwLock<Vec<Watcher>>,
}

type All = BTreeMap<ResourceKind, BTreeMap<String, Arc<ResourceDefinition>>>;
type Watcher = Box<dyn Fn(&ResourceChange) + Send + Sync>;

impl ResourceRegistry {
    /// Opens `service.redb` in this folder. Creates the folder if it does not exist.
    pub fn open(folder: &Path) -> Result<Self, ResourceStoreError> {
        let (store, definitions) = ResourceStore::open(folder)?;
        let mut all = All::new();
        for definition in definitions {
            let of_kind = all.entry(definition.kind).or_default();
            of_kind.insert(definition.name.clone(), Arc::new(definition));
        }
        let kept = all.values().flat_map(BTreeMap::values);
        let clock = EtagClock::after(kept.map(|definition| definition.etag.as_str()));
        Ok(Self {
            store,
            all: RwLock::new(all),
            writing: Mutex::new(clock),
            index_hook: OnceLock::new(),
            watchers: RwLock::new(Vec::new()),
        })
    }

    /// Sets the hook that creates indexes. Only the first call has an effect. Without a hook, index
    /// definitions are stored as given.
    pub fn set_index_hook(&self, hook: Arc<dyn IndexHook>) {
        let _ = self.index_hook.set(hook);
    }

    /// Calls `watcher` after every change, in the order of the changes. It must not write definitions itself.
    pub fn watch(&self, watcher: impl Fn(&ResourceChange) + Send + Sync + 'static) {
        self.watchers.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(watcher));
    }

    pub fn get(&self, kind: ResourceKind, name: &str) -> Option<Arc<ResourceDefinition>> {
        self.lock_for_reading().get(&kind)?.get(name).cloned()
    }

    pub fn exists(&self, kind: ResourceKind, name: &str) -> bool {
        self.lock_for_reading().get(&kind).is_some_and(|of_kind| of_kind.contains_key(name))
    }

    /// Returns all definitions of a kind, sorted by name.
    pub fn list(&self, kind: ResourceKind) -> Vec<Arc<ResourceDefinition>> {
        self.lock_for_reading()
            .get(&kind)
            .map(|of_kind| of_kind.values().cloned().collect())
            .unwrap_or_default()
    }

    pub fn count(&self, kind: ResourceKind) -> usize {
        self.lock_for_reading().get(&kind).map_or(0, BTreeMap::len)
    }

    /// Like [`ResourceRegistry::get`], but returns a 404 error with a hint if the definition does not exist.
    pub fn find(&self, kind: ResourceKind, name: &str) -> Result<Arc<ResourceDefinition>, ApiError> {
        self.get(kind, name).ok_or_else(|| self.not_found(kind, name))
    }

    /// Returns the index with this name, or the index of the alias with this name.
    pub fn find_index(&self, name: &str) -> Result<Arc<ResourceDefinition>, ApiError> {
        if let Some(index) = self.get(ResourceKind::Index, name) {
            return Ok(index);
        }
        let alias =
            self.get(ResourceKind::Alias, name).ok_or_else(|| self.not_found(ResourceKind::Index, name))?;
        let target = alias.value.pointer("/indexes/0").and_then(Value::as_str).unwrap_or_default();
        self.find(ResourceKind::Index, target)
    }

    /// POST: creates a definition. Fails with 409 if the name already exists.
    pub fn create(&self, kind: ResourceKind, mut body: Value) -> Result<Arc<ResourceDefinition>, ApiError> {
        let name = names::in_body(kind, &body)?.ok_or_else(|| {
            ApiError::invalid(format!("The definition of the {kind} has no 'name'. Give it one."))
        })?;
        names::check(kind, &name)?;
        let clock = self.lock_for_writing();
        if self.exists(kind, &name) {
            let message = format!(
                "Cannot create {kind} '{name}' because it already exists. Change it with PUT, or delete it first."
            );
            return Err(ApiError::already_exists(&*message).with_detail(kind.exists_code(), message));
        }
        secrets::restore_secrets(kind, &mut body, None);
        self.save(clock, kind, &name, None, body, false)
    }

    /// PUT: creates or replaces a definition. Also returns whether it is new.
    pub fn put(
        &self,
        kind: ResourceKind,
        name: &str,
        mut body: Value,
        conditions: &MatchConditions,
        allow_index_downtime: bool,
    ) -> Result<(Arc<ResourceDefinition>, bool), ApiError> {
        let clock = self.lock_for_writing();
        // An alias may be used instead of its index, as in document requests.
        let target = match kind {
            ResourceKind::Index => {
                self.find_index(name).map_or_else(|_| name.to_owned(), |found| found.name.clone())
            }
            _ => name.to_owned(),
        };
        if let Some(given) = names::in_body(kind, &body)?
            && given != target
            && given != name
        {
            return Err(ApiError::invalid(format!(
                "The {kind} in the body is named '{given}', but the URL names '{name}'. Use the same name in both. \
                 A {kind} cannot be renamed."
            )));
        }
        names::check(kind, &target)?;
        let old = self.get(kind, &target);
        conditions.check(kind, &target, old.as_deref().map(|old| old.etag.as_str()))?;
        if let Value::Object(members) = &mut body {
            members.insert("name".to_owned(), Value::from(target.clone()));
        }
        secrets::restore_secrets(kind, &mut body, old.as_deref().map(|old| &old.value));
        let is_new = old.is_none();
        Ok((self.save(clock, kind, &target, old, body, allow_index_downtime)?, is_new))
    }

    pub fn delete(
        &self,
        kind: ResourceKind,
        name: &str,
        conditions: &MatchConditions,
    ) -> Result<(), ApiError> {
        let _clock = self.lock_for_writing();
        let old = self.get(kind, name);
        conditions.check(kind, name, old.as_deref().map(|old| old.etag.as_str()))?;
        let old = old.ok_or_else(|| self.not_found(kind, name))?;
        checks::check_deletable(kind, name, self)?;
        self.store.remove(kind, name)?;
        self.update_cache(|all| all.entry(kind).or_default().remove(name));
        // The definition is deleted first. Files without a definition only waste space, but a
        // definition without files is damage.
        let hook = self.index_hook.get().filter(|_| kind == ResourceKind::Index);
        let removed = hook.map_or(Ok(()), |hook| hook.delete(name));
        self.notify_watchers(&ResourceChange::Deleted(old));
        removed
    }

    /// Checks a definition, creates or updates its index, and stores it.
    fn save(
        &self,
        mut clock: MutexGuard<'_, EtagClock>,
        kind: ResourceKind,
        name: &str,
        old: Option<Arc<ResourceDefinition>>,
        mut body: Value,
        allow_index_downtime: bool,
    ) -> Result<Arc<ResourceDefinition>, ApiError> {
        let Value::Object(members) = &mut body else {
            return Err(ApiError::invalid(format!("The definition of the {kind} must be a JSON object.")));
        };
        members.retain(|member, _| member != "@odata.etag" && member != "@odata.context");
        checks::check(kind, name, &body, self)?;
        let hook = self.index_hook.get().filter(|_| kind == ResourceKind::Index);
        let value = match (hook, &old) {
            (None, _) => body,
            (Some(hook), None) => hook.create(name, &body)?,
            (Some(hook), Some(old)) => hook.check(name, &old.value, &body, allow_index_downtime)?,
        };
        let new = Arc::new(ResourceDefinition { kind, name: name.to_owned(), etag: clock.next(), value });
        if let Err(error) = self.store.insert(&new) {
            if let (Some(hook), None) = (hook, &old) {
                let _ = hook.delete(name);
            }
            return Err(error);
        }
        if let (Some(hook), Some(old)) = (hook, &old)
            && let Err(error) = hook.update(name, &old.value, &new.value)
        {
            if let Err(error) = self.store.insert(old) {
                tracing::error!(
                    index = name, %error,
                    "could not restore the old definition, so the rejected one is used after a restart"
                );
            }
            return Err(error);
        }
        self.update_cache(|all| all.entry(kind).or_default().insert(name.to_owned(), new.clone()));
        self.notify_watchers(&match old {
            None => ResourceChange::Created(new.clone()),
            Some(old) => ResourceChange::Updated { old, new: new.clone() },
        });
        Ok(new)
    }

    fn not_found(&self, kind: ResourceKind, name: &str) -> ApiError {
        let article = kind.article();
        let mut message = format!("There is no {kind} named '{name}' in this service.");
        let others = self.list(kind);
        if let Some(alike) = others.iter().find(|other| other.name.eq_ignore_ascii_case(name)) {
            message.push_str(&format!(
                " There is {article} {kind} '{}', but names are case-sensitive.",
                alike.name
            ));
        }
        ApiError::not_found(message)
    }

    fn notify_watchers(&self, change: &ResourceChange) {
        for watcher in self.watchers.read().unwrap_or_else(PoisonError::into_inner).iter() {
            watcher(change);
        }
    }

    /// A panic of a writer leaves no partial change in memory, so a poisoned lock can be used.
    fn lock_for_writing(&self) -> MutexGuard<'_, EtagClock> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_for_reading(&self) -> RwLockReadGuard<'_, All> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn update_cache<T>(&self, change: impl FnOnce(&mut All) -> T) {
        change(&mut self.all.write().unwrap_or_else(PoisonError::into_inner));
    }
}
