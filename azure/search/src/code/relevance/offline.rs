//! An embedded service with the indexes and the sample documents of a folder, in a temporary folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use std::{env, fs, io, process};

use serde_json::Value;

use crate::code::canonical::to_service;
use crate::code::checks::{CheckOutcome, CheckReport, CheckSuite, SuiteCheck};
use crate::code::failure::CodeError;
use crate::code::folder::{DOCUMENTS, SearchFolder, place};
use crate::code::kinds::CodeKind;
use crate::code::transfer::load_file;
use crate::code::{RunControl, SecretLookup, secrets};
use crate::service::client::{SearchClient, odata_key};
use crate::service::embedded::{EmbeddedOptions, EmbeddedService};

/// Maximum number of rejected documents that a text lists.
const LISTED: usize = 3;

/// An embedded service for the test of a folder.
pub(super) struct OfflineService {
    service: EmbeddedService,
    /// Why the queries of an index cannot run.
    unready: BTreeMap<String, String>,
    _folder: ScratchFolder,
}

impl OfflineService {
    /// Starts the service and loads the tested indexes. The report gets a suite of the definitions.
    pub(super) async fn start(
        folder: &SearchFolder,
        indexes: &BTreeSet<&str>,
        report: &mut CheckReport,
        control: &RunControl,
    ) -> Result<OfflineService, CodeError> {
        let scratch = ScratchFolder::new()?;
        let options = EmbeddedOptions { data: scratch.0.clone(), port: 0 };
        let service = EmbeddedService::start(options)
            .await
            .map_err(|error| CodeError::Refused(format!("the embedded service: {error}")))?;
        let mut offline = OfflineService { service, unready: BTreeMap::new(), _folder: scratch };
        let mut suite = CheckSuite { name: "definitions".to_owned(), ..CheckSuite::default() };
        for kind in [CodeKind::SynonymMap, CodeKind::Index, CodeKind::Alias] {
            for (name, definition) in folder.all(kind) {
                control.check_stopped()?;
                let outcome = offline.create(kind, name, definition).await;
                suite.checks.push(SuiteCheck { name: place(kind, name), outcome, details: String::new() });
            }
        }
        for (index, _) in folder.all(CodeKind::Index).filter(|(index, _)| indexes.contains(index)) {
            offline.load(folder, index, &mut suite, control).await?;
        }
        report.suites.push(suite);
        Ok(offline)
    }

    pub(super) fn client(&self) -> &SearchClient {
        self.service.client()
    }

    /// Returns why the queries of an index cannot run.
    pub(super) fn unready(&self, index: &str) -> Option<String> {
        self.unready.get(index).cloned()
    }

    pub(super) async fn stop(self) {
        // Its data is deleted anyway.
        let _ = self.service.stop().await;
    }

    async fn create(&mut self, kind: CodeKind, name: &str, definition: &Value) -> CheckOutcome {
        let mut body = to_service(kind, definition, name, &|index| index.to_owned());
        // No secret is needed without the services behind it.
        let unused: SecretLookup = Arc::new(|_| Some("not-used".to_owned()));
        secrets::resolve(&mut body, None, &unused);
        let path = format!("{}{}", kind.collection(self.client()), odata_key(name));
        match self.client().put(path, body).send().await {
            Ok(_) => CheckOutcome::Passed,
            Err(failure) => {
                if kind == CodeKind::Index {
                    self.unready.insert(name.to_owned(), format!("{} was refused", place(kind, name)));
                }
                CheckOutcome::Failed(format!("the embedded service refused it: {}", failure.message))
            }
        }
    }

    /// Loads the sample documents of an index.
    async fn load(
        &mut self,
        folder: &SearchFolder,
        index: &str,
        suite: &mut CheckSuite,
        control: &RunControl,
    ) -> Result<(), CodeError> {
        let path = folder.documents_path(index);
        if !path.exists() {
            let why = || {
                format!(
                    "{DOCUMENTS}/{index}.jsonl does not exist\n  fix: write the documents that the queries judge, one JSON object a \
                     line, or run bindpost search pull DIR --documents N"
                )
            };
            self.unready.entry(index.to_owned()).or_insert_with(why);
            return Ok(());
        }
        if self.unready.contains_key(index) {
            return Ok(());
        }
        let (documents, rejected) = load_file(self.client(), index, &path, control).await?;
        let name = format!("{DOCUMENTS}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        let details = format!("{documents} documents");
        let outcome = match rejected.as_slice() {
            [] => CheckOutcome::Passed,
            rejected => {
                let listed: Vec<String> = rejected
                    .iter()
                    .take(LISTED)
                    .map(|one| format!("line {}: {}", one.line, one.message))
                    .collect();
                self.unready.insert(index.to_owned(), format!("documents of {index} were rejected"));
                let count = rejected.len();
                CheckOutcome::Failed(format!("{count} documents were rejected\n{}", listed.join("\n")))
            }
        };
        suite.checks.push(SuiteCheck { name, outcome, details });
        Ok(())
    }
}

/// A folder that is deleted when it is dropped.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn new() -> Result<ScratchFolder, CodeError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("bindpost-search-test-{}-{number}-{}", process::id(), now.as_nanos());
        let path = env::temp_dir().join(name);
        create_private(&path).map_err(CodeError::file(&path))?;
        Ok(ScratchFolder(path))
    }
}

/// Creates a folder that other users cannot read, and that did not exist before.
fn create_private(path: &Path) -> io::Result<()> {
    let mut folder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        folder.mode(0o700);
    }
    folder.create(path)
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
