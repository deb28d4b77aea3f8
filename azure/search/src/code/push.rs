//! `push`: applies a plan step by step. A journal records every step, so that a push that was killed
//! continues, or is undone.

mod journal;
mod run;
mod step;
mod undo;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::failure::CodeError;
use super::files;
use super::folder::SearchFolder;
use super::kinds::CodeKind;
use super::plan::{PlanOptions, SearchPlan, plan};
use super::{RunControl, SecretLookup};
use crate::service::client::SearchClient;
use journal::{JournalPhase, PushJournal};
use run::PushRun;

pub(crate) use step::PushStep;

/// How long a service may take for a request whose client was killed.
const SETTLE: Duration = Duration::from_secs(3);

/// Options of [`push`].
#[derive(Clone, Debug, Default)]
pub struct PushOptions {
    pub plan: PlanOptions,
    /// The fingerprint of the plan that was reviewed. Another plan is refused.
    pub fingerprint: Option<String>,
    /// Identifies the service among those that the folder is pushed to: its URL, or its data folder.
    pub service: String,
}

/// How a push ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PushState {
    NothingToDo,
    Applied,
    /// An earlier push was continued to its end.
    Continued,
    RolledBack,
    /// Some steps could not be undone.
    RolledBackPartly,
}

/// What a push did.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PushReport {
    pub state: PushState,
    /// The steps that were done, or undone.
    pub steps: Vec<String>,
    pub notes: Vec<String>,
    /// Why the push was rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl PushReport {
    /// Whether the service is now as the folder says.
    pub fn is_applied(&self) -> bool {
        matches!(self.state, PushState::NothingToDo | PushState::Applied | PushState::Continued)
    }
}

/// The files of a push: the journal and the lock.
struct PushFiles {
    journal: std::path::PathBuf,
    /// Released when it is dropped, also by a crash.
    _lock: File,
}

impl PushFiles {
    fn open(root: &Path, service: &str) -> Result<PushFiles, CodeError> {
        let folder = files::state_folder(root)?;
        let id = files::fingerprint(&service);
        let path = folder.join(format!("push-{id}.lock"));
        let lock = File::create(&path).map_err(CodeError::file(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(CodeError::Refused(
                    "another push of this folder to this service is under way\n  fix: wait for its end"
                        .to_owned(),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(CodeError::file(&path)(error)),
        }
        Ok(PushFiles { journal: folder.join(format!("push-{id}.json")), _lock: lock })
    }

    /// Waits until the service has finished the last request of an interrupted push. It may have received
    /// the request, and would execute it after its result was checked: a page of a copy, for example, after the
    /// switch of the alias, when other clients have changed its documents.
    async fn settle(&self, journal: &PushJournal) {
        if !journal.has_open_request() {
            return;
        }
        let written = std::fs::metadata(&self.journal).and_then(|journal| journal.modified());
        let age = written.ok().and_then(|written| written.elapsed().ok()).unwrap_or(SETTLE);
        tokio::time::sleep(SETTLE.saturating_sub(age)).await;
    }
}

/// Describes a push of this folder that was interrupted, if there is one.
pub fn interrupted(root: &Path, service: &str) -> Option<String> {
    let path = root.join(files::STATE).join(format!("push-{}.json", files::fingerprint(&service)));
    let journal = PushJournal::read(&path).ok()??;
    journal.is_open().then(|| journal.progress())
}

/// Applies the folder to a service. An interrupted push of the same folder is continued; one of
/// another state of the folder is rolled back first.
pub async fn push(
    client: &SearchClient,
    folder: &SearchFolder,
    options: &PushOptions,
    secrets: &SecretLookup,
    control: &RunControl,
) -> Result<PushReport, CodeError> {
    let files = PushFiles::open(&folder.root, &options.service)?;
    let wanted = fingerprint_of_folder(folder, &options.plan);
    let mut notes = Vec::new();
    if let Some(journal) = PushJournal::read(&files.journal)?.filter(PushJournal::is_open) {
        files.settle(&journal).await;
        let progress = journal.progress();
        let continues = journal.phase == JournalPhase::Applying && journal.folder == wanted;
        let mut run = PushRun { client, secrets, control, journal, path: &files.journal };
        if continues || run.journal.cannot_go_back() {
            let mut report = run.apply().await?;
            if report.state == PushState::Applied {
                report.state = PushState::Continued;
            }
            report.notes.insert(0, format!("continued a push that was interrupted: {progress}"));
            return Ok(report);
        }
        let undone = run.undo(None).await?;
        notes.push(format!("rolled back a push that was interrupted: {progress}"));
        notes.extend(undone.notes);
    }
    let plan = plan(client, folder, &options.plan, secrets, control).await?;
    check(&plan, options)?;
    if plan.push_steps.is_empty() {
        return Ok(PushReport { state: PushState::NothingToDo, steps: Vec::new(), notes, error: None });
    }
    let journal = PushJournal::new(wanted, plan.push_steps);
    let mut run = PushRun { client, secrets, control, journal, path: &files.journal };
    run.save()?;
    let mut report = run.apply().await?;
    notes.append(&mut report.notes);
    report.notes = notes;
    Ok(report)
}

/// Undoes the last push of this folder, whether it was completed or interrupted.
pub async fn roll_back(
    client: &SearchClient,
    root: &Path,
    service: &str,
    secrets: &SecretLookup,
    control: &RunControl,
) -> Result<PushReport, CodeError> {
    let files = PushFiles::open(root, service)?;
    let journal =
        PushJournal::read(&files.journal)?.filter(|journal| journal.phase != JournalPhase::RolledBack);
    let Some(journal) = journal else {
        return Err(CodeError::Refused(
            "no push of this folder to this service can be undone here\n  fix: check out the earlier state of the \
             folder and push it"
                .to_owned(),
        ));
    };
    if journal.is_open() {
        files.settle(&journal).await;
    }
    PushRun { client, secrets, control, journal, path: &files.journal }.undo(None).await
}

fn check(plan: &SearchPlan, options: &PushOptions) -> Result<(), CodeError> {
    if let Some(refusal) = plan.refusal() {
        return Err(CodeError::Refused(format!("the push was not started: {refusal}")));
    }
    match &options.fingerprint {
        Some(reviewed) if *reviewed != plan.fingerprint => Err(CodeError::Refused(format!(
            "the plan is now {}, not the reviewed {reviewed}: the folder or the service was changed\n  fix: run plan again",
            plan.fingerprint
        ))),
        _ => Ok(()),
    }
}

/// Identifies what the folder wants, to know whether an interrupted push is the same.
fn fingerprint_of_folder(folder: &SearchFolder, options: &PlanOptions) -> String {
    let definitions: Vec<_> =
        CodeKind::ALL.into_iter().flat_map(|kind| folder.all(kind).map(move |one| (kind, one))).collect();
    files::fingerprint(&(definitions, options, folder.settings.behind_aliases))
}
