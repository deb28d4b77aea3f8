//! The journal of a push: its steps and how far they are. It is on disk before a request is sent.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::step::PushStep;
use crate::code::failure::CodeError;
use crate::code::{files, folder};
use crate::tools::index_change::copy::CopyPosition;

/// How far a push is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum JournalPhase {
    Applying,
    RollingBack,
    Applied,
    RolledBack,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum StepState {
    Pending,
    /// Its request may have been sent.
    Started,
    Done,
    Undone,
    /// It could not be undone.
    Kept,
}

/// A step in the journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JournalStep {
    pub(super) state: StepState,
    pub(super) step: PushStep,
    /// The ETag that the definition got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) etag: Option<String>,
    /// How far a copy is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) position: Option<CopyPosition>,
}

/// The journal of a push.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushJournal {
    version: u32,
    pub(super) phase: JournalPhase,
    /// The fingerprint of the folder that is pushed.
    pub(super) folder: String,
    /// Why it is rolled back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) steps: Vec<JournalStep>,
}

impl PushJournal {
    pub(super) fn new(folder: String, steps: Vec<PushStep>) -> PushJournal {
        let pending = |step| JournalStep { state: StepState::Pending, step, etag: None, position: None };
        PushJournal {
            version: 1,
            phase: JournalPhase::Applying,
            folder,
            error: None,
            steps: steps.into_iter().map(pending).collect(),
        }
    }

    pub(super) fn read(path: &Path) -> Result<Option<PushJournal>, CodeError> {
        let Some(text) = folder::read_text(path)? else { return Ok(None) };
        let journal: PushJournal = serde_json::from_str(&text).map_err(|error| {
            CodeError::Refused(format!(
                "{}: not a journal that this version can read: {error}\n  fix: check the service, then delete the file",
                path.display()
            ))
        })?;
        Ok(Some(journal))
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), CodeError> {
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        files::replace(path, &text)
    }

    /// Whether the push was interrupted.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, JournalPhase::Applying | JournalPhase::RollingBack)
    }

    /// Whether a request that changes the service may have been sent without its outcome being recorded.
    pub(super) fn has_open_request(&self) -> bool {
        let is_open = |one: &JournalStep| one.state == StepState::Started && one.step.writes();
        self.phase == JournalPhase::RollingBack || self.steps.iter().any(is_open)
    }

    /// Whether an index was deleted. Its documents cannot be restored, so the push goes on.
    pub(super) fn cannot_go_back(&self) -> bool {
        let is_begun = |step: &JournalStep| matches!(step.state, StepState::Started | StepState::Done);
        self.phase == JournalPhase::Applying
            && self.steps.iter().any(|one| one.step.is_final() && is_begun(one))
    }

    /// Describes how far it is: `4 of 9 steps, next: copy …`.
    pub(super) fn progress(&self) -> String {
        let done = self.steps.iter().filter(|step| step.state == StepState::Done).count();
        let next = match self.phase {
            JournalPhase::RollingBack => Some("being rolled back".to_owned()),
            _ => {
                let open =
                    |step: &&JournalStep| matches!(step.state, StepState::Pending | StepState::Started);
                self.steps.iter().find(open).map(|step| format!("next: {}", step.step))
            }
        };
        format!("{done} of {} steps done, {}", self.steps.len(), next.unwrap_or_default())
    }
}
