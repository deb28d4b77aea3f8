//! `planSearchFolder`, `testSearchFolder`, `pullSearchFolder` and `pushSearchFolder`: search as code for one
//! folder, which the operator of the server chooses.

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use bindpost_mcp_server::{Context, Entry, ToolError, ToolHints};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::code::{
    self, CodeError, PlanOptions, PullOptions, PushOptions, RelevanceOptions, RunControl, SearchFolder,
    SecretLookup,
};
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{DESTROYS, READS, ToolOutline};

/// A folder of definitions that tools may read, and write by `pullSearchFolder`.
#[derive(Clone)]
pub struct ServedFolder {
    pub root: PathBuf,
    /// Returns the secrets of definitions, which no client sees.
    pub secrets: SecretLookup,
    /// Identifies the service, as in [`PushOptions::service`].
    pub service: String,
}

impl std::fmt::Debug for ServedFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServedFolder")
            .field("root", &self.root)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

/// Returns the tools of the folder. In read-only mode, those that write are omitted.
pub(crate) fn entries(shared: &Arc<SearchServerState>, folder: ServedFolder) -> Vec<Entry> {
    let folder = Arc::new(folder);
    let mut entries = vec![
        tool(shared, &folder, plan_outline(), |call| async move { call.plan().await }),
        tool(shared, &folder, test_outline(), |call| async move { call.test().await }),
    ];
    if !shared.read_only {
        entries.push(tool(shared, &folder, pull_outline(), |call| async move { call.pull().await }));
        entries.push(tool(shared, &folder, push_outline(), |call| async move { call.push().await }));
    }
    entries
}

fn plan_properties() -> Value {
    json!({
        "prune": {"type": "boolean", "description": "delete what the folder does not have"},
        "allowDowntime": {"type": "boolean", "description": "an index may be offline for some seconds"},
        "deleteOld": {"type": "boolean", "description": "delete other versions of an index"},
        "clientRequestId": {"type": "string"}
    })
}

fn plan_outline() -> ToolOutline {
    let description = "Compares the folder of definitions with the service: what differs, and whether each change is possible \
                       in place, needs a rebuild behind an alias, or is not possible. Changes nothing.";
    ToolOutline::new("planSearchFolder", description, READS, plan_properties(), &[])
}

fn test_outline() -> ToolOutline {
    let description = "Runs the judged queries of the folder on an embedded service with the sample documents: nDCG, recall, \
                       expected hits. Changes nothing.";
    let properties = json!({
        "names": {"type": "array", "items": {"type": "string"}, "description": "files of judged queries; default all"},
        "onService": {"type": "boolean", "description": "run the queries on the service instead"},
        "clientRequestId": {"type": "string"}
    });
    ToolOutline::new("testSearchFolder", description, READS, properties, &[])
}

fn pull_outline() -> ToolOutline {
    let description = "Writes the definitions of the service to the folder, without secrets. Local changes of these files are \
                       overwritten; the service is not changed.";
    let properties = json!({
        "documents": {"type": "integer", "minimum": 0, "maximum": 10_000, "description": "size of the sample of each index"},
        "clientRequestId": {"type": "string"}
    });
    ToolOutline::new("pullSearchFolder", description, DESTROYS, properties, &[])
}

fn push_outline() -> ToolOutline {
    let description = "Applies the folder to the service as planSearchFolder says: behind aliases, with ETags, and rolled back \
                       if a step fails. rollBack undoes the last push.";
    let mut properties = plan_properties();
    properties["fingerprint"] =
        json!({"type": "string", "description": "of the plan; required unless rollBack"});
    properties["rollBack"] = json!({"type": "boolean"});
    let hints = ToolHints { idempotent: false, ..DESTROYS };
    ToolOutline::new("pushSearchFolder", description, hints, properties, &[])
}

/// Returns a tool without a timeout: tests and pushes may take long.
fn tool<Fut>(
    shared: &Arc<SearchServerState>,
    folder: &Arc<ServedFolder>,
    outline: ToolOutline,
    run: fn(FolderCall) -> Fut,
) -> Entry
where
    Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    let folder = Arc::clone(folder);
    outline.long(shared, move |shared, arguments| {
        let (context, arguments) = arguments.into_parts();
        run(FolderCall { shared, folder: Arc::clone(&folder), context, arguments })
    })
}

/// A call of one of the tools.
struct FolderCall {
    shared: Arc<SearchServerState>,
    folder: Arc<ServedFolder>,
    context: Context,
    arguments: Map<String, Value>,
}

impl FolderCall {
    fn flag(&self, name: &str) -> bool {
        self.arguments.get(name) == Some(&Value::Bool(true))
    }

    fn options(&self) -> PlanOptions {
        PlanOptions {
            prune: self.flag("prune"),
            allow_downtime: self.flag("allowDowntime"),
            delete_old: self.flag("deleteOld"),
            update_secrets: false,
        }
    }

    fn read(&self) -> Result<SearchFolder, ToolError> {
        SearchFolder::read(&self.folder.root).map_err(|error| self.refusal(error).into())
    }

    async fn plan(self) -> Result<Value, ToolError> {
        let (folder, options) = (&self.read()?, &self.options());
        let (client, secrets) = (&self.shared.client, &self.folder.secrets);
        let work = |control| async move { code::plan(client, folder, options, secrets, &control).await };
        let plan = self.watch(work).await?;
        Ok(json!({"text": plan.to_text(), "plan": plan}))
    }

    async fn test(self) -> Result<Value, ToolError> {
        let folder = self.read()?;
        let names = self.arguments.get("names").and_then(Value::as_array).into_iter().flatten();
        let options = RelevanceOptions {
            only: names.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
            service: self.flag("onService").then(|| self.shared.client.clone()),
        };
        let (folder, options) = (&folder, &options);
        let work = |control| async move { code::test_folder(folder, options, &control).await };
        Ok(self.watch(work).await?.to_json())
    }

    async fn pull(self) -> Result<Value, ToolError> {
        let documents = self.arguments.get("documents").and_then(Value::as_u64).unwrap_or(0);
        let options =
            PullOptions { documents: usize::try_from(documents).unwrap_or(usize::MAX), prune: false };
        let question = "Overwrite the files of the folder with the definitions of the service?";
        self.shared.confirm(&self.context, question).await?;
        let (client, root, options) = (&self.shared.client, &self.folder.root, &options);
        let work = |control| async move { code::pull(client, root, options, &control).await };
        let report = self.watch(work).await?;
        let files: Vec<Value> = report
            .files
            .iter()
            .map(|(file, change)| json!({"file": file, "change": format!("{change:?}").to_lowercase()}))
            .collect();
        Ok(json!({"files": files, "notes": report.notes}))
    }

    async fn push(self) -> Result<Value, ToolError> {
        let (client, service) = (&self.shared.client, &self.folder.service);
        let report = if self.flag("rollBack") {
            self.shared.confirm(&self.context, "Undo the last push of the folder?").await?;
            let (root, secrets) = (&self.folder.root, &self.folder.secrets);
            let work =
                |control| async move { code::roll_back(client, root, service, secrets, &control).await };
            self.watch(work).await?
        } else {
            let Some(fingerprint) = self.arguments.get("fingerprint").and_then(Value::as_str) else {
                let text = "`fingerprint` is missing: call planSearchFolder, and send back the fingerprint of its plan";
                return Err(ServiceFailure::new(Kind::InvalidRequest, text).into());
            };
            let folder = self.read()?;
            let question = format!("Apply the plan {fingerprint} to the service?");
            self.shared.confirm(&self.context, &question).await?;
            let options = PushOptions {
                plan: self.options(),
                fingerprint: Some(fingerprint.to_owned()),
                service: service.clone(),
            };
            let (folder, options, secrets) = (&folder, &options, &self.folder.secrets);
            let work = |control| async move { code::push(client, folder, options, secrets, &control).await };
            self.watch(work).await?
        };
        serde_json::to_value(&report)
            .map_err(|error| ToolError::with_source("the report cannot be written", error))
    }

    /// Runs an operation and reports its progress. A call that is cancelled stops it at its next step.
    async fn watch<T, Fut>(&self, work: impl FnOnce(RunControl) -> Fut) -> Result<T, ToolError>
    where
        Fut: Future<Output = Result<T, CodeError>>,
    {
        let (said, mut heard) = mpsc::unbounded_channel();
        let control = RunControl::new(move |update| {
            let _ = said.send(update);
        });
        let (mut running, mut shown, mut is_stopped) = (pin!(work(control.clone())), 0.0, false);
        loop {
            tokio::select! {
                done = &mut running => return done.map_err(|error| self.refusal(error).into()),
                Some(update) = heard.recv() => {
                    // The operations count several things in turn, and progress must increase.
                    shown += 1.0;
                    let of = update.total.map(|total| format!(" of {total}")).unwrap_or_default();
                    let message = format!("{}: {}{of} {}", update.what, update.done, update.unit);
                    self.context.progress(shown, None, Some(&message)).await;
                }
                () = self.context.cancelled(), if !is_stopped => {
                    is_stopped = true;
                    control.stop();
                }
            }
        }
    }

    /// Returns an error as clients receive it, without the path of the folder.
    fn refusal(&self, error: CodeError) -> ServiceFailure {
        if let CodeError::Service { what, failure } = error {
            return failure.with("while", what);
        }
        let root = self.folder.root.display().to_string();
        let message = match &error {
            CodeError::File { path, source } => {
                tracing::warn!(path = %path.display(), error = %source, "a file of the folder cannot be used");
                let file = path.strip_prefix(&self.folder.root).map(|file| file.display().to_string());
                format!("{} cannot be read or written", file.unwrap_or_else(|_| "a file".to_owned()))
            }
            error => error.to_string().replace(&format!("{root}/"), "").replace(&root, "the folder"),
        };
        ServiceFailure::new(Kind::InvalidRequest, message)
    }
}
