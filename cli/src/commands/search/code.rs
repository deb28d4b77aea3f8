//! `bindpost search pull`, `plan`, `test`, `push`, `export` and `import`.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use bindpost_azure_search::code::{
    self, CheckReport, ExportOptions, ImportAction, ImportOptions, PlanOptions, PullOptions, PulledFile,
    PushOptions, PushReport, PushState, RelevanceOptions, RunControl, SearchFolder, SecretLookup,
};
use bindpost_azure_search::{API_VERSION, EmbeddedService, SearchClient};
use serde_json::json;

use super::super::{print_stderr, until_interrupted};
use super::open_service;
use crate::flags::{
    ChangeFlags, ExportFlags, ImportFlags, ImportVerb, OutputFormat, PlanFlags, PullFlags, PushFlags,
    SearchAction, ServiceFlags, TestFlags,
};
use crate::progress::TransferProgress;

/// The exit code of `plan --check` if there is something to do.
const DIFFERS: u8 = 2;

pub(crate) async fn run(action: SearchAction) -> anyhow::Result<ExitCode> {
    let progress = TransferProgress::start();
    let control = control(&progress);
    let done = match action {
        SearchAction::Pull(flags) => pull(flags, &control, &progress).await,
        SearchAction::Plan(flags) => plan(flags, &control, &progress).await,
        SearchAction::Test(flags) => test(flags, &control, &progress).await,
        SearchAction::Push(flags) => push(flags, &control, &progress).await,
        SearchAction::Export(flags) => export(flags, &control, &progress).await,
        SearchAction::Import(flags) => import(flags, &control, &progress).await,
    };
    progress.clear();
    done
}

/// Returns what reports the progress. The first interrupt stops the operation, the second ends the program.
fn control(progress: &Arc<TransferProgress>) -> RunControl {
    let shown = Arc::clone(progress);
    let control = RunControl::new(move |update| shown.update(&update));
    let stop = control.clone();
    tokio::spawn(async move {
        until_interrupted().await;
        print_stderr(format_args!("stopping; press Ctrl-C again to end at once"));
        stop.stop();
        until_interrupted().await;
        std::process::exit(130);
    });
    control
}

/// The service of a command.
struct OpenService {
    client: SearchClient,
    embedded: Option<EmbeddedService>,
    /// Identifies it in journals and checkpoints. The port of the embedded service changes.
    id: String,
}

impl OpenService {
    async fn open(flags: &ServiceFlags, folder: Option<&SearchFolder>) -> anyhow::Result<OpenService> {
        let own = folder.and_then(SearchFolder::api_version);
        let version = flags.api_version.as_deref().or(own).unwrap_or(API_VERSION);
        if flags.endpoint.is_none() && !flags.data.is_dir() {
            bail!(
                "there is no embedded service in {}\n  fix: name a service with --endpoint URL, or the folder of an embedded \
                 one with --data DIR",
                flags.data.display()
            );
        }
        let (client, embedded) = open_service(flags.endpoint.as_deref(), version, &flags.data, 0).await?;
        let id = match &flags.endpoint {
            Some(_) => client.upstream().base().trim_end_matches('/').to_owned(),
            None => std::fs::canonicalize(&flags.data)?.display().to_string(),
        };
        Ok(OpenService { client, embedded, id })
    }

    async fn close(self) -> anyhow::Result<()> {
        match self.embedded {
            Some(embedded) => embedded.stop().await.map_err(|error| anyhow!("{error}")),
            None => Ok(()),
        }
    }
}

/// Returns the lookup of secrets in the environment.
pub(super) fn secrets() -> SecretLookup {
    Arc::new(|name| std::env::var(name).ok())
}

async fn pull(
    flags: PullFlags,
    control: &RunControl,
    progress: &TransferProgress,
) -> anyhow::Result<ExitCode> {
    let known = SearchFolder::read(&flags.folder).ok();
    let service = OpenService::open(&flags.service, known.as_ref()).await?;
    let options = PullOptions { documents: flags.documents, prune: flags.prune };
    let report = code::pull(&service.client, &flags.folder, &options, control).await;
    service.close().await?;
    let report = report?;
    progress.clear();
    let mut unchanged = 0;
    let mut out = std::io::stdout().lock();
    for (file, change) in &report.files {
        let sign = match change {
            PulledFile::Added => "+",
            PulledFile::Changed => "~",
            PulledFile::Deleted => "-",
            PulledFile::Kept => " ",
            PulledFile::Unchanged => {
                unchanged += 1;
                continue;
            }
        };
        let note =
            if *change == PulledFile::Kept { "  not on the service; kept (--prune deletes it)" } else { "" };
        writeln!(out, "  {sign} {file}{note}")?;
    }
    for note in &report.notes {
        writeln!(out, "Note: {note}")?;
    }
    writeln!(out, "{} files, {unchanged} unchanged", report.files.len())?;
    Ok(ExitCode::SUCCESS)
}

fn plan_options(flags: &ChangeFlags) -> PlanOptions {
    PlanOptions {
        prune: flags.prune,
        allow_downtime: flags.allow_downtime,
        delete_old: flags.delete_old,
        update_secrets: flags.update_secrets,
    }
}

async fn plan(
    flags: PlanFlags,
    control: &RunControl,
    progress: &TransferProgress,
) -> anyhow::Result<ExitCode> {
    let folder = SearchFolder::read(&flags.folder)?;
    let service = OpenService::open(&flags.service, Some(&folder)).await?;
    let interrupted = code::interrupted(&flags.folder, &service.id);
    let plan = code::plan(&service.client, &folder, &plan_options(&flags.changes), &secrets(), control).await;
    service.close().await?;
    let mut plan = plan?;
    plan.notes.extend(interrupted.map(|how| {
        format!("a push was interrupted ({how}): push continues or undoes it, push --rollback undoes it")
    }));
    progress.clear();
    let text = match flags.format {
        OutputFormat::Text => plan.to_text(),
        OutputFormat::Json => format!("{:#}\n", serde_json::to_value(&plan)?),
        OutputFormat::Md => plan.to_markdown(),
        OutputFormat::Junit => plan.to_checks().to_junit(),
    };
    print(&text)?;
    Ok(match flags.check && !plan.is_empty() {
        true => ExitCode::from(DIFFERS),
        false => ExitCode::SUCCESS,
    })
}

async fn test(
    flags: TestFlags,
    control: &RunControl,
    progress: &TransferProgress,
) -> anyhow::Result<ExitCode> {
    let mut folder = SearchFolder::read(&flags.folder)?;
    let service = match &flags.endpoint {
        None => None,
        Some(endpoint) => {
            let version = flags.api_version.as_deref().or(folder.api_version()).unwrap_or(API_VERSION);
            Some(open_service(Some(endpoint), version, Path::new(""), 0).await?.0)
        }
    };
    let options = RelevanceOptions { only: flags.only, service };
    let report = match flags.accept {
        true => code::accept(&mut folder, &options, control).await?,
        false => code::test_folder(&folder, &options, control).await?,
    };
    progress.clear();
    print(&formatted(&report, flags.format))?;
    Ok(if report.has_failures() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn formatted(report: &CheckReport, format: OutputFormat) -> String {
    match format {
        OutputFormat::Text => report.to_text(),
        OutputFormat::Json => format!("{:#}\n", report.to_json()),
        OutputFormat::Md => report.to_markdown(),
        OutputFormat::Junit => report.to_junit(),
    }
}

async fn push(
    flags: PushFlags,
    control: &RunControl,
    progress: &TransferProgress,
) -> anyhow::Result<ExitCode> {
    let folder = SearchFolder::read(&flags.folder)?;
    let service = OpenService::open(&flags.service, Some(&folder)).await?;
    let report = match flags.rollback {
        true => roll_back(&flags, &service, control).await,
        false => apply(&flags, &folder, &service, control, progress).await,
    };
    service.close().await?;
    let Some(report) = report? else { return Ok(ExitCode::FAILURE) };
    progress.clear();
    print(&push_text(&report, flags.format)?)?;
    Ok(match report.is_applied() || flags.rollback && report.state == PushState::RolledBack {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

async fn apply(
    flags: &PushFlags,
    folder: &SearchFolder,
    service: &OpenService,
    control: &RunControl,
    progress: &TransferProgress,
) -> anyhow::Result<Option<PushReport>> {
    let mut options = PushOptions {
        plan: plan_options(&flags.changes),
        fingerprint: flags.fingerprint.clone(),
        service: service.id.clone(),
    };
    let interrupted = code::interrupted(&flags.folder, &service.id);
    if !flags.yes {
        let question = match &interrupted {
            Some(how) => {
                format!("A push was interrupted ({how}). Continue it, or undo it if the folder was changed?")
            }
            None => {
                let plan = code::plan(&service.client, folder, &options.plan, &secrets(), control).await?;
                progress.clear();
                print_stderr(format_args!("{}", plan.to_text()));
                if plan.is_empty() || plan.refusal().is_some() {
                    return Ok(Some(
                        code::push(&service.client, folder, &options, &secrets(), control).await?,
                    ));
                }
                // What is confirmed is what is applied.
                options.fingerprint.get_or_insert_with(|| plan.fingerprint.clone());
                "Apply this plan?".to_owned()
            }
        };
        if !confirmed(&question)? {
            print_stderr(format_args!("nothing was changed"));
            return Ok(None);
        }
    }
    Ok(Some(code::push(&service.client, folder, &options, &secrets(), control).await?))
}

async fn roll_back(
    flags: &PushFlags,
    service: &OpenService,
    control: &RunControl,
) -> anyhow::Result<Option<PushReport>> {
    if !flags.yes && !confirmed("Undo the last push of this folder?")? {
        print_stderr(format_args!("nothing was changed"));
        return Ok(None);
    }
    Ok(Some(code::roll_back(&service.client, &flags.folder, &service.id, &secrets(), control).await?))
}

/// Asks on the terminal.
fn confirmed(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("a push needs a confirmation, and stdin is not a terminal\n  fix: add --yes");
    }
    let mut out = std::io::stderr();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn push_text(report: &PushReport, format: OutputFormat) -> anyhow::Result<String> {
    if format == OutputFormat::Json {
        return Ok(format!("{:#}\n", serde_json::to_value(report)?));
    }
    let checks = push_checks(report);
    Ok(match format {
        OutputFormat::Junit => checks.to_junit(),
        OutputFormat::Md => checks.to_markdown(),
        _ => {
            let mut text: String = report.steps.iter().map(|step| format!("  ✓ {step}\n")).collect();
            report.notes.iter().for_each(|note| text += &format!("Note: {note}\n"));
            if let Some(error) = &report.error {
                text += &format!("Failed: {error}\n");
            }
            text + headline(report) + "\n"
        }
    })
}

fn headline(report: &PushReport) -> &'static str {
    match report.state {
        PushState::NothingToDo => "Nothing to do: the service is as the folder says.",
        PushState::Applied => "Applied: the service is as the folder says.",
        PushState::Continued => "Continued and applied: the service is as the folder says.",
        PushState::RolledBack => "Rolled back: the service is as before the push.",
        PushState::RolledBackPartly => "Rolled back, but for what the notes say.",
    }
}

/// Returns a push as a report of checks: one for the push, one for each step.
fn push_checks(report: &PushReport) -> CheckReport {
    use bindpost_azure_search::code::{CheckOutcome, CheckSuite, SuiteCheck};
    let passed = |name: &String| SuiteCheck {
        name: name.clone(),
        outcome: CheckOutcome::Passed,
        details: String::new(),
    };
    let outcome = match &report.error {
        Some(error) => CheckOutcome::Failed(error.clone()),
        None => CheckOutcome::Passed,
    };
    let push = SuiteCheck { name: "push".to_owned(), outcome, details: headline(report).to_owned() };
    let checks = std::iter::once(push).chain(report.steps.iter().map(passed)).collect();
    CheckReport {
        title: "Search push".to_owned(),
        suites: vec![CheckSuite { name: "push".to_owned(), checks, measures: Vec::new() }],
        notes: report.notes.clone(),
    }
}

async fn export(
    flags: ExportFlags,
    control: &RunControl,
    progress: &TransferProgress,
) -> anyhow::Result<ExitCode> {
    let service = OpenService::open(&flags.service, None).await?;
    let options = ExportOptions {
        index: flags.index,
        file: flags.file,
        filter: flags.filter,
        overwrite: flags.overwrite,
        restart: flags.restart,
        service: service.id.clone(),
    };
    let report = code::export(&service.client, &options, control).await;
    service.close().await?;
    let report = report.map_err(|error| resumable(error, "export"))?;
    progress.clear();
    for note in &report.notes {
        print_stderr(format_args!("Note: {note}"));
    }
    let from = match report.continued_from {
        0 => String::new(),
        before => format!(" ({before} of them before the interruption)"),
    };
    print(&format!("{} documents exported to {}{from}\n", report.documents, options.file.display()))?;
    Ok(ExitCode::SUCCESS)
}

async fn import(
    flags: ImportFlags,
    control: &RunControl,
    progress: &TransferProgress,
) -> anyhow::Result<ExitCode> {
    let service = OpenService::open(&flags.service, None).await?;
    let action = match flags.action {
        ImportVerb::Upload => ImportAction::Upload,
        ImportVerb::Merge => ImportAction::Merge,
        ImportVerb::MergeOrUpload => ImportAction::MergeOrUpload,
        ImportVerb::Delete => ImportAction::Delete,
    };
    let options = ImportOptions {
        index: flags.index,
        file: flags.file,
        action,
        max_errors: flags.max_errors,
        restart: flags.restart,
        service: service.id.clone(),
    };
    let report = code::import(&service.client, &options, control).await;
    service.close().await?;
    let report = report.map_err(|error| resumable(error, "import"))?;
    progress.clear();
    let from = match report.continued_from {
        0 => String::new(),
        line => format!(" (continued after line {line})"),
    };
    print(&format!("{} documents imported into {}{from}\n", report.documents, options.index))?;
    if let Some(errors) = &report.errors_file {
        let why = json!(report.rejected);
        print_stderr(format_args!("{why} documents were rejected: see {}", errors.display()));
        if report.stopped {
            print_stderr(format_args!(
                "stopped after {} rejected documents (--max-errors); correct the file and begin again with --restart",
                report.rejected
            ));
        }
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds how an interrupted transfer goes on.
fn resumable(error: code::CodeError, what: &str) -> anyhow::Error {
    match error {
        code::CodeError::Refused(_) => anyhow!("{error}"),
        error => anyhow!("{error}\n  fix: repeat the command, which continues the {what} where it was"),
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
