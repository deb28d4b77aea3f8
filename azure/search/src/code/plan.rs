//! `plan`: what differs between a folder and a service, what each change needs, and the steps of a push.

mod build;
mod difference;
mod steps;
mod text;

use serde::Serialize;

use super::checks::CheckReport;
use super::failure::CodeError;
use super::folder::{self, SearchFolder};
use super::kinds::CodeKind;
use super::live::LiveState;
use super::push::PushStep;
use super::{RunControl, SecretLookup};
use crate::service::client::SearchClient;
use build::PlanBuilder;

pub(crate) use difference::differences;

/// Options of [`plan`] and of a push.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanOptions {
    /// Whether definitions that the folder does not have are deleted.
    pub prune: bool,
    /// Whether an index may be offline for some seconds, where nothing else is possible.
    pub allow_downtime: bool,
    /// Whether other versions of an index are deleted.
    pub delete_old: bool,
    /// Whether definitions with secrets are written even if nothing else differs.
    pub update_secrets: bool,
}

/// What a definition needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChangeAction {
    Nothing,
    Create,
    /// An update in place.
    Update,
    /// An update that takes the index offline for some seconds.
    UpdateWithDowntime,
    /// A new index behind the aliases of the old one.
    Rebuild,
    /// A new index, whose alias takes the name of the old one. Requests fail for a moment.
    RebuildWithDowntime,
    Delete,
    /// It is not in the folder.
    Keep,
    Impossible,
}

/// One difference between the folder and the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanDifference {
    pub path: String,
    pub change: String,
    /// `inPlace`, `downtime`, `rebuild` or `impossible`.
    pub effect: &'static str,
    pub why: String,
}

/// What changes in one definition.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceChange {
    pub kind: CodeKind,
    /// The name in the folder.
    pub name: String,
    pub action: ChangeAction,
    /// The name of the index in the service, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_name: Option<String>,
    /// The name of the new index of a rebuild.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<PlanDifference>,
    /// Number of documents that a rebuild copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why a push refuses this change, and what makes it possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
}

/// Numbers of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlanSummary {
    pub create: usize,
    pub update: usize,
    pub rebuild: usize,
    pub delete: usize,
    pub blocked: usize,
    pub unchanged: usize,
}

/// What a push would do.
#[derive(Clone, Debug, Serialize)]
pub struct SearchPlan {
    /// Identifies the plan: the same folder and the same service give the same one.
    pub fingerprint: String,
    pub summary: PlanSummary,
    pub changes: Vec<ResourceChange>,
    /// The requests, in their order.
    pub steps: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(crate) push_steps: Vec<PushStep>,
}

impl SearchPlan {
    /// Whether the service is as the folder says.
    pub fn is_empty(&self) -> bool {
        self.push_steps.is_empty() && self.summary.blocked == 0
    }

    /// Returns why a push refuses the plan, with a line for each reason.
    pub fn refusal(&self) -> Option<String> {
        let reasons = self.changes.iter().filter_map(|change| {
            let why = change.blocked.as_ref()?;
            Some(format!("{}: {why}", folder::place(change.kind, &change.name)))
        });
        let reasons: Vec<String> = reasons.collect();
        (!reasons.is_empty()).then(|| CodeError::Problems(reasons).to_string())
    }

    /// Returns the plan as text for people.
    pub fn to_text(&self) -> String {
        text::plain(self)
    }

    /// Returns the plan as Markdown.
    pub fn to_markdown(&self) -> String {
        text::markdown(self)
    }

    /// Returns the plan as a report of checks: a change that a push refuses is a failure.
    pub fn to_checks(&self) -> CheckReport {
        text::checks(self)
    }
}

/// Compares a folder with a service.
pub async fn plan(
    client: &SearchClient,
    folder: &SearchFolder,
    options: &PlanOptions,
    secrets: &SecretLookup,
    control: &RunControl,
) -> Result<SearchPlan, CodeError> {
    control.check_stopped()?;
    let live = LiveState::read(client).await?;
    PlanBuilder::new(client, folder, &live, *options, secrets).build().await
}
