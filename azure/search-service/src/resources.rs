//! Definitions: indexes, data sources, indexers, skillsets, synonym maps, aliases, knowledge sources and
//! knowledge bases. Created, replaced and deleted under their ETags, and kept in redb.
//!
//! What a definition means is for others: an index is made by the [`IndexHook`], the shape of every other kind
//! is checked in `checks`.

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

use serde_json::Value;

use crate::ApiError;

pub use self::conditions::MatchConditions;
pub use self::kind::ResourceKind;
pub use self::store::ResourceStoreError;

use self::etag::EtagClock;
use self::store::ResourceStore;

/// One definition as it is kept. It never changes; a new state is a new one.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceDefinition {
    pub kind: ResourceKind,
    pub name: String,
    /// With its quotes: `"0x8DE…"`.
    pub etag: String,
    /// Without `@odata.etag` and `@odata.context`, and with its secrets. Answer [`ResourceDefinition::shown`] instead.
    pub value: Value,
}

impl ResourceDefinition {
    /// What a client may see: the ETag and members without a value added, secrets taken out.
    pub fn public_json(&self) -> Value {
        let mut shown = secrets::hide(self.kind, &self.value);
        members::complete(self.kind, &mut shown);
        if let Value::Object(members) = &mut shown {
            members.insert("@odata.etag".to_owned(), Value::from(self.etag.clone()));
        }
        shown
    }
}

/// What makes, changes and removes the index behind a definition. Calls come one at a time.
///
/// `create` and `check` return the definition to keep. A new index is made before its definition is kept, and taken
/// back with `delete` when that fails. An index is changed with `update` after its definition is kept, so that no
/// document is ever ahead of it; when that fails, the old definition is put back.
pub trait IndexHook: Send + Sync {
    fn create(&self, name: &str, definition: &Value) -> Result<Value, ApiError>;
    fn check(&self, name: &str, old: &Value, new: &Value, allow_downtime: bool) -> Result<Value, ApiError>;
    fn update(&self, name: &str, old: &Value, new: &Value) -> Result<(), ApiError>;
    fn delete(&self, name: &str) -> Result<(), ApiError>;
}

/// What has happened to a definition.
#[derive(Debug, Clone)]
pub enum ResourceChange {
    Created(Arc<ResourceDefinition>),
    Updated { old: Arc<ResourceDefinition>, new: Arc<ResourceDefinition> },
    Deleted(Arc<ResourceDefinition>),
}

/// All definitions of one service. Reading takes them from memory; writing goes to the disk first.
pub struct ResourceRegistry {
    store: ResourceStore,
    all: RwLock<All>,
    /// Whoever writes holds it from the first check to the commit, so that checks stay true.
    writing: Mutex<EtagClock>,
    index_hook: OnceLock<Arc<dyn IndexHook>>,
    watchers: RwLock<Vec<Watcher>>,
}

type All = BTreeMap<ResourceKind, BTreeMap<String, Arc<ResourceDefinition>>>;
type Watcher = Box<dyn Fn(&ResourceChange) + Send + Sync>;

impl ResourceRegistry {
    /// Opens `service.redb` in this folder, which is made if it is not there.
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

    /// Who makes indexes. Only the first call counts; without any, definitions of indexes are kept as given.
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

    /// In the order of their names.
    pub fn list(&self, kind: ResourceKind) -> Vec<Arc<ResourceDefinition>> {
        self.lock_for_reading()
            .get(&kind)
            .map(|of_kind| of_kind.values().cloned().collect())
            .unwrap_or_default()
    }

    pub fn count(&self, kind: ResourceKind) -> usize {
        self.lock_for_reading().get(&kind).map_or(0, BTreeMap::len)
    }

    /// Like [`ResourceRegistry::get`], but a 404 that says what to do.
    pub fn find(&self, kind: ResourceKind, name: &str) -> Result<Arc<ResourceDefinition>, ApiError> {
        self.get(kind, name).ok_or_else(|| self.not_found(kind, name))
    }

    /// The index of this name, or the one that an alias of this name stands for.
    pub fn find_index(&self, name: &str) -> Result<Arc<ResourceDefinition>, ApiError> {
        if let Some(index) = self.get(ResourceKind::Index, name) {
            return Ok(index);
        }
        let alias =
            self.get(ResourceKind::Alias, name).ok_or_else(|| self.not_found(ResourceKind::Index, name))?;
        let target = alias.value.pointer("/indexes/0").and_then(Value::as_str).unwrap_or_default();
        self.find(ResourceKind::Index, target)
    }

    /// POST: fails with 409 if there is one of this name.
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

    /// PUT: creates or replaces. Also says whether it is new.
    pub fn put(
        &self,
        kind: ResourceKind,
        name: &str,
        mut body: Value,
        conditions: &MatchConditions,
        allow_index_downtime: bool,
    ) -> Result<(Arc<ResourceDefinition>, bool), ApiError> {
        let clock = self.lock_for_writing();
        // An alias may stand for its index here, as it does when documents are asked for.
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
                "The {kind} in the body is named '{given}', but the address names '{name}'. Make both the same; \
                 a {kind} cannot be renamed."
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
        // The definition goes first: files without a definition are only lost space, the reverse is damage.
        let hook = self.index_hook.get().filter(|_| kind == ResourceKind::Index);
        let removed = hook.map_or(Ok(()), |hook| hook.delete(name));
        self.notify_watchers(&ResourceChange::Deleted(old));
        removed
    }

    /// Checks a definition, has its index made, and keeps it.
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
                tracing::error!(index = name, %error, "the next start uses the definition that was refused");
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
            message.push_str(&format!(" There is {article} {kind} '{}': case counts in names.", alike.name));
        }
        ApiError::not_found(message)
    }

    fn notify_watchers(&self, change: &ResourceChange) {
        for watcher in self.watchers.read().unwrap_or_else(PoisonError::into_inner).iter() {
            watcher(change);
        }
    }

    /// A panic of a writer leaves nothing half done in memory, so its lock may be taken over.
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
