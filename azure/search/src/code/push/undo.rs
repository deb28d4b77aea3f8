//! Undoes the steps of a journal, last first.

use serde_json::Value;

use super::journal::{JournalPhase, JournalStep, StepState};
use super::run::{DefinitionWrite, PushRun, is_same};
use super::step::PushStep;
use super::{PushReport, PushState};
use crate::code::failure::CodeError;
use crate::code::kinds::CodeKind;
use crate::code::secrets;
use crate::service::failure::ServiceFailure;

impl PushRun<'_> {
    /// Undoes every step that was begun. What another client has changed since is kept. If the service
    /// cannot be reached, the journal stays open and the next push continues.
    pub(super) async fn undo(&mut self, error: Option<String>) -> Result<PushReport, CodeError> {
        self.journal.phase = JournalPhase::RollingBack;
        if error.is_some() {
            self.journal.error.clone_from(&error);
        }
        self.save()?;
        let total = self.journal.steps.len();
        let (mut undone, mut kept) = (Vec::new(), Vec::new());
        for place in (0..total).rev() {
            let Some(entry) = self.journal.steps.get(place).cloned() else { continue };
            if !matches!(entry.state, StepState::Started | StepState::Done) {
                continue;
            }
            self.control.report(
                format!("undo: {}", entry.step),
                (total - place) as u64,
                Some(total as u64),
                "steps",
            );
            let outcome = match self.undo_step(place, &entry).await {
                Ok(outcome) => outcome,
                Err(failure) => {
                    let cause = error
                        .or(self.journal.error.clone())
                        .map(|cause| format!("{cause}\n"))
                        .unwrap_or_default();
                    return Err(CodeError::Refused(format!(
                        "{cause}the rollback could not be completed: {failure}\n  fix: push again, which continues the \
                         rollback"
                    )));
                }
            };
            let state = match outcome {
                UndoOutcome::Undone(text) => {
                    undone.extend(text);
                    StepState::Undone
                }
                UndoOutcome::Kept(text) => {
                    kept.push(text);
                    StepState::Kept
                }
            };
            if let Some(entry) = self.journal.steps.get_mut(place) {
                entry.state = state;
            }
            self.save()?;
        }
        self.journal.phase = JournalPhase::RolledBack;
        self.save()?;
        let state = if kept.is_empty() { PushState::RolledBack } else { PushState::RolledBackPartly };
        Ok(PushReport { state, steps: undone, notes: kept, error: error.or(self.journal.error.clone()) })
    }

    async fn undo_step(&self, place: usize, entry: &JournalStep) -> Result<UndoOutcome, CodeError> {
        match &entry.step {
            PushStep::Put { kind, name, body, before, .. } => {
                let before = self.known_body(place, *kind, name).or(before.as_ref());
                self.undo_put(*kind, name, (body, before), entry.etag.as_deref()).await
            }
            PushStep::Delete { kind: CodeKind::Index, name, .. } => {
                match self.read(CodeKind::Index, name).await? {
                    Some(_) => Ok(UndoOutcome::Undone(None)),
                    None => Ok(UndoOutcome::Kept(format!("the index {name} was deleted with its documents"))),
                }
            }
            PushStep::Delete { kind, name, before, .. } => {
                if self.read(*kind, name).await?.is_some() {
                    return Ok(UndoOutcome::Undone(None));
                }
                let place = format!("{}/{name}", kind.folder());
                if !secrets::resolve(&mut before.clone(), None, self.secrets).is_empty() {
                    return Ok(UndoOutcome::Kept(format!(
                        "{place} was deleted, and its secrets are not known"
                    )));
                }
                let put = DefinitionWrite {
                    kind: *kind,
                    name,
                    body: before,
                    before: None,
                    etag: None,
                    downtime: false,
                };
                match self.write(&put, false).await {
                    Ok(_) => Ok(UndoOutcome::Undone(Some(format!("created {place} again")))),
                    Err(CodeError::Service { failure, .. }) if is_refusal(&failure) => {
                        Ok(UndoOutcome::Kept(format!("{place} cannot be created again: {}", failure.message)))
                    }
                    Err(error) => Err(error),
                }
            }
            // An index that was created is deleted with its documents; the others change nothing.
            PushStep::Copy { .. } | PushStep::Verify { .. } | PushStep::WaitForIndexer { .. } => {
                Ok(UndoOutcome::Undone(None))
            }
        }
    }

    async fn undo_put(
        &self,
        kind: CodeKind,
        name: &str,
        (body, before): (&Value, Option<&Value>),
        etag: Option<&str>,
    ) -> Result<UndoOutcome, CodeError> {
        let place = format!("{}/{name}", kind.folder());
        let live = self.read(kind, name).await?;
        let Some(live) = live else {
            return Ok(match before {
                None => UndoOutcome::Undone(None),
                Some(_) => UndoOutcome::Kept(format!("{place} was deleted by another client")),
            });
        };
        if before.is_some_and(|before| is_same(kind, &live.json, before) && is_same(kind, before, &live.json))
        {
            return Ok(UndoOutcome::Undone(None));
        }
        // A definition that this push wrote twice has another ETag after its last change was undone.
        let has_our_etag = etag.is_some() && etag == live.etag.as_deref();
        let is_ours = has_our_etag || is_same(kind, &live.json, body);
        if !is_ours {
            return Ok(UndoOutcome::Kept(format!("{place} was changed by another client since")));
        }
        let Some(before) = before else {
            return Ok(match self.delete(kind, name, body, live.etag.as_deref()).await {
                Ok(()) => UndoOutcome::Undone(Some(format!("deleted {place}"))),
                Err(CodeError::Service { failure, .. })
                    if failure.status.is_some_and(|status| status < 500) =>
                {
                    UndoOutcome::Kept(format!("{place} cannot be deleted: {}", failure.message))
                }
                Err(error) => return Err(error),
            });
        };
        let (old, note) = match kind {
            CodeKind::Index => with_added_fields(before, &live.json),
            _ => (before.clone(), None),
        };
        let none: crate::code::SecretLookup = std::sync::Arc::new(|_| None);
        let run = PushRun { secrets: &none, journal: self.journal.clone(), ..*self };
        let put = DefinitionWrite {
            kind,
            name,
            body: &old,
            before: Some(&live.json),
            etag: live.etag.clone(),
            downtime: kind == CodeKind::Index,
        };
        match (run.write(&put, false).await, note) {
            (Ok(_), None) => Ok(UndoOutcome::Undone(Some(format!("restored {place}")))),
            (Ok(_), Some(note)) => Ok(UndoOutcome::Kept(format!("restored {place}, but {note}"))),
            (Err(CodeError::Service { failure, .. }), _) if is_refusal(&failure) => {
                Ok(UndoOutcome::Kept(format!("{place} cannot be restored: {}", failure.message)))
            }
            (Err(error @ CodeError::Refused(_)), _) => Ok(UndoOutcome::Kept(error.to_string())),
            (Err(error), _) => Err(error),
        }
    }
}

/// Whether the service refused a request, so that repeating it does not help.
fn is_refusal(failure: &ServiceFailure) -> bool {
    failure.status.is_some_and(|status| status < 500 && !matches!(status, 408 | 429))
}

/// What became of a step.
enum UndoOutcome {
    /// What was done, if anything had to be.
    Undone(Option<String>),
    Kept(String),
}

/// Adds the fields that an index has got to its old definition: an index cannot lose fields.
fn with_added_fields(before: &Value, live: &Value) -> (Value, Option<String>) {
    let mut old = before.clone();
    let names = |definition: &Value| -> Vec<Value> {
        definition.get("fields").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let known = names(before);
    let is_new = |field: &Value| !known.iter().any(|other| other.get("name") == field.get("name"));
    let added: Vec<Value> = names(live).into_iter().filter(|field| is_new(field)).collect();
    if added.is_empty() {
        return (old, None);
    }
    let told: Vec<&str> = added.iter().filter_map(|field| field.get("name")?.as_str()).collect();
    let note = format!("it keeps the new fields {}: an index cannot lose fields", told.join(", "));
    if let Some(Value::Array(fields)) = old.get_mut("fields") {
        fields.extend(added.iter().cloned());
    }
    (old, Some(note))
}
