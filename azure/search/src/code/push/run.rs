//! Runs the steps of a journal.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::journal::{JournalPhase, PushJournal, StepState};
use super::step::PushStep;
use super::{PushReport, PushState};
use crate::code::canonical::comparable;
use crate::code::failure::CodeError;
use crate::code::kinds::CodeKind;
use crate::code::live::{LiveDefinition, etag_of, read_one};
use crate::code::plan::differences;
use crate::code::{RunControl, SecretLookup, secrets};
use crate::service::client::{SearchClient, odata_key};
use crate::tools::index_change::copy::{PageReader, upload, wait_for_equal_counts};
use crate::tools::indexer_runs::status::IndexerStatus;

/// How long a run of an indexer is waited for.
const INDEXER_PATIENCE: Duration = Duration::from_secs(30 * 60);
/// Delays between the polls of an indexer.
const POLLS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// Number of attempts of a step that must not fail, because what it replaces is gone.
const LAST_TRIES: u32 = 5;

/// A push, with its journal.
pub(super) struct PushRun<'a> {
    pub(super) client: &'a SearchClient,
    pub(super) secrets: &'a SecretLookup,
    pub(super) control: &'a RunControl,
    pub(super) journal: PushJournal,
    pub(super) path: &'a Path,
}

impl PushRun<'_> {
    pub(super) fn save(&self) -> Result<(), CodeError> {
        self.journal.write(self.path)
    }

    /// Runs all steps that are not done. A failure rolls back, unless a step was done that cannot be
    /// undone.
    pub(super) async fn apply(&mut self) -> Result<PushReport, CodeError> {
        let total = self.journal.steps.len();
        let mut notes = Vec::new();
        for place in 0..total {
            let Some(step) = self.journal.steps.get(place).cloned() else { break };
            if step.state == StepState::Done {
                continue;
            }
            self.control.report(step.step.to_string(), place as u64, Some(total as u64), "steps");
            let mut tries = 0;
            let done = loop {
                let outcome = match self.control.check_stopped() {
                    Ok(()) => self.run_step(place).await,
                    Err(stopped) => Err(stopped),
                };
                tries += 1;
                match outcome {
                    Err(CodeError::Service { .. }) if self.journal.cannot_go_back() && tries < LAST_TRIES => {
                        sleep(Duration::from_secs(u64::from(tries))).await;
                    }
                    outcome => break outcome,
                }
            };
            if let Err(error) = done {
                if self.journal.cannot_go_back() {
                    let text = format!(
                        "{}: {error}\n  an index was deleted already, so the push is not rolled back\n  fix: push again, which \
                         continues with this step; or push --rollback, which undoes what it can",
                        step.step
                    );
                    return Err(CodeError::Refused(text));
                }
                return self.undo(Some(format!("{}: {error}", step.step))).await;
            }
            if let (
                PushStep::Put { kind: CodeKind::Alias, name, before: Some(before), .. },
                StepState::Pending,
            ) = (&step.step, step.state)
            {
                let old = before.pointer("/indexes/0").and_then(Value::as_str).unwrap_or_default();
                notes.push(format!(
                    "the alias {name} pointed to {old}, which is kept: push --rollback switches back"
                ));
            }
        }
        self.journal.phase = JournalPhase::Applied;
        self.save()?;
        self.control.report("push", total as u64, Some(total as u64), "steps");
        let steps = self.journal.steps.iter().map(|step| step.step.to_string()).collect();
        Ok(PushReport { state: PushState::Applied, steps, notes, error: None })
    }

    async fn run_step(&mut self, place: usize) -> Result<(), CodeError> {
        let Some(entry) = self.journal.steps.get(place).cloned() else { return Ok(()) };
        let was_started = entry.state == StepState::Started;
        self.set(place, StepState::Started, None)?;
        let etag = match &entry.step {
            PushStep::Put { kind, name, body, before, etag, downtime } => {
                let etag = self.known_etag(place, *kind, name).or(etag.clone());
                let before = self.known_body(place, *kind, name).or(before.as_ref()).cloned();
                let put = DefinitionWrite {
                    kind: *kind,
                    name,
                    body,
                    before: before.as_ref(),
                    etag,
                    downtime: *downtime,
                };
                self.write(&put, was_started).await?
            }
            PushStep::Delete { kind, name, before, etag } => {
                let etag = self.known_etag(place, *kind, name).or(etag.clone());
                let deleted = self.delete(*kind, name, before, etag.as_deref()).await;
                if deleted.is_err() && matches!(self.read(*kind, name).await, Ok(Some(_))) {
                    // It is still there, so the push can be rolled back.
                    self.set(place, StepState::Pending, None)?;
                }
                deleted?;
                None
            }
            PushStep::WaitForIndexer { name } => {
                self.wait_for_indexer(name).await?;
                None
            }
            PushStep::Copy { from, to, paging, documents } => {
                let position = entry.position.clone().unwrap_or_default();
                let what = format!("copy {from} to {to}");
                let fail = || CodeError::service(what.clone());
                let mut reader = PageReader::new(self.client.clone(), from, paging.clone(), position);
                loop {
                    self.control.check_stopped()?;
                    let page = reader.next_page().await.map_err(fail())?;
                    if page.is_empty() {
                        break;
                    }
                    let actions = page.iter().filter_map(|document| paging.action(document)).collect();
                    upload(self.client, to, actions).await.map_err(fail())?;
                    // Written after the documents: a repeated page replaces them by themselves.
                    if let Some(entry) = self.journal.steps.get_mut(place) {
                        entry.position = Some(reader.position().clone());
                    }
                    self.save()?;
                    let done = reader.position().documents;
                    self.control.report(what.clone(), done, Some((*documents).max(done)), "documents");
                }
                None
            }
            PushStep::Verify { from, to, etag } => {
                self.verify(from, to, etag.as_deref()).await?;
                None
            }
        };
        self.set(place, StepState::Done, etag)
    }

    fn set(&mut self, place: usize, state: StepState, etag: Option<String>) -> Result<(), CodeError> {
        if let Some(entry) = self.journal.steps.get_mut(place) {
            entry.state = state;
            if etag.is_some() {
                entry.etag = etag;
            }
        }
        self.save()
    }

    /// Returns the ETag that an earlier step of this push gave to a definition.
    fn known_etag(&self, place: usize, kind: CodeKind, name: &str) -> Option<String> {
        let earlier = self.journal.steps.iter().take(place).rev();
        earlier
            .filter(|entry| entry.state == StepState::Done)
            .find(|entry| matches!(&entry.step, PushStep::Put { kind: k, name: n, .. } if *k == kind && n == name))
            .and_then(|entry| entry.etag.clone())
    }

    /// Returns the definition that an earlier step of this push wrote.
    pub(super) fn known_body(&self, place: usize, kind: CodeKind, name: &str) -> Option<&Value> {
        let earlier = self.journal.steps.iter().take(place).rev();
        earlier.filter(|entry| entry.state == StepState::Done).find_map(|entry| match &entry.step {
            PushStep::Put { kind: k, name: n, body, .. } if *k == kind && n == name => Some(body),
            _ => None,
        })
    }

    pub(super) async fn read(&self, kind: CodeKind, name: &str) -> Result<Option<LiveDefinition>, CodeError> {
        let what = format!("cannot read {}/{name}", kind.folder());
        read_one(self.client, kind, name).await.map_err(CodeError::service(what))
    }

    /// Writes a definition. Returns its new ETag.
    pub(super) async fn write(
        &self,
        put: &DefinitionWrite<'_>,
        was_started: bool,
    ) -> Result<Option<String>, CodeError> {
        let DefinitionWrite { kind, name, body, before, etag, downtime } = put;
        let (kind, place) = (*kind, format!("{}/{name}", put.kind.folder()));
        let mut body = (*body).clone();
        let needs_live = was_started || etag.is_none() && before.is_some() || body.to_string().contains("${");
        let live = if needs_live { self.read(kind, name).await? } else { None };
        if let Some(live) = live.as_ref().filter(|live| was_started && is_same(kind, &live.json, &body)) {
            // The request was sent before the crash.
            return Ok(live.etag.clone());
        }
        if let (None, Some(before), Some(live)) = (etag, before, &live)
            && !is_same(kind, &live.json, before)
        {
            return Err(changed_by_others(&place));
        }
        let missing = secrets::resolve(&mut body, live.as_ref().map(|live| &live.json), self.secrets);
        if let Some(variable) = missing.first() {
            return Err(CodeError::Refused(format!(
                "{place}: its secret is not set\n  fix: export {variable}=…"
            )));
        }
        let path = format!("{}{}", kind.collection(self.client), odata_key(name));
        let mut call = self.client.put(path, body.clone()).header("prefer", "return=representation");
        call = match (before, etag) {
            (Some(_), Some(etag)) => call.header("if-match", etag),
            (Some(_), None) => call,
            (None, _) => call.header("if-none-match", "*"),
        };
        if *downtime {
            call = call.query("allowIndexDowntime", "true");
        }
        match call.send().await {
            Ok(answer) => Ok(etag_of(&answer.body).or_else(|| answer.etag())),
            Err(failure) => {
                // The request may have been executed although its response was lost, also by a retry.
                let is_unsure = failure.status.is_none_or(|status| status == 412 || status >= 500);
                if is_unsure
                    && let Ok(Some(live)) = self.read(kind, name).await
                    && is_same(kind, &live.json, &body)
                {
                    return Ok(live.etag);
                }
                match failure.status {
                    Some(412) => Err(changed_by_others(&place)),
                    _ => Err(CodeError::service(place)(failure)),
                }
            }
        }
    }

    pub(super) async fn delete(
        &self,
        kind: CodeKind,
        name: &str,
        before: &Value,
        etag: Option<&str>,
    ) -> Result<(), CodeError> {
        let place = format!("{}/{name}", kind.folder());
        let Some(live) = self.read(kind, name).await? else { return Ok(()) };
        if etag.is_none() && !is_same(kind, &live.json, before) {
            return Err(changed_by_others(&place));
        }
        let mut call = self.client.delete(format!("{}{}", kind.collection(self.client), odata_key(name)));
        if let Some(etag) = etag {
            call = call.header("if-match", etag);
        }
        match call.send().await {
            Ok(_) => Ok(()),
            Err(failure) if failure.status == Some(404) => Ok(()),
            Err(failure) if failure.status == Some(412) => match self.read(kind, name).await? {
                None => Ok(()),
                Some(_) => Err(changed_by_others(&place)),
            },
            Err(failure) => Err(CodeError::service(place)(failure)),
        }
    }

    async fn wait_for_indexer(&self, name: &str) -> Result<(), CodeError> {
        let deadline = Instant::now() + INDEXER_PATIENCE;
        let mut pause = POLLS.0;
        loop {
            self.control.check_stopped()?;
            let what = format!("cannot read the status of indexers/{name}");
            let status =
                IndexerStatus::read(self.client, name, None).await.map_err(CodeError::service(what))?;
            if !status.last().is_some_and(|last| last.is_under_way()) {
                return Ok(());
            }
            if Instant::now() + pause > deadline {
                return Err(CodeError::Refused(format!(
                    "a run of indexers/{name} did not end\n  fix: push again when it has ended"
                )));
            }
            sleep(pause).await;
            pause = (pause * 2).min(POLLS.1);
        }
    }

    async fn verify(&self, from: &str, to: &str, etag: Option<&str>) -> Result<(), CodeError> {
        let what = format!("check of {to}");
        wait_for_equal_counts(self.client, from, to).await.map_err(CodeError::service(what))?;
        let now = self.read(CodeKind::Index, from).await?;
        match (etag, now.and_then(|live| live.etag)) {
            (Some(then), now) if now.as_deref() != Some(then) => Err(CodeError::Refused(format!(
                "the definition of {from} was changed while its documents were copied\n  fix: push again"
            ))),
            _ => Ok(()),
        }
    }
}

/// A definition to write.
pub(super) struct DefinitionWrite<'a> {
    pub(super) kind: CodeKind,
    pub(super) name: &'a str,
    pub(super) body: &'a Value,
    pub(super) before: Option<&'a Value>,
    pub(super) etag: Option<String>,
    pub(super) downtime: bool,
}

/// Whether two definitions of a service are the same but for secrets and defaults.
pub(super) fn is_same(kind: CodeKind, one: &Value, other: &Value) -> bool {
    comparable(kind, one) == comparable(kind, other) || differences(kind, one, other).is_empty()
}

fn changed_by_others(place: &str) -> CodeError {
    CodeError::Refused(format!(
        "{place} was changed by another client since it was read\n  fix: run plan again, then push"
    ))
}
