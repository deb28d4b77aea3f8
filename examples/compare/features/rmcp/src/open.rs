use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::handler::server::router::prompt::PromptRouter;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::{InputResponses, ToolCallContext};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{InputResponses as Answers, *};
use rmcp::schemars::{self, JsonSchema};
use rmcp::service::{
    ElicitationError, NotificationContext, RequestContext, SubscriptionContext, SubscriptionSendError,
};
use rmcp::task_manager::{TaskManager, TaskOptions};
use rmcp::{
    ErrorData, Json, RoleServer, ServerHandler, elicit_safe, object, prompt, prompt_handler, prompt_router,
    tool, tool_handler, tool_router,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::time::sleep;
use url::Url;

type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the limits matter")]
struct FindBooks {
    #[schemars(length(min = 2, max = 100))]
    words: String,
    #[serde(default)]
    sort: Sort,
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    limit: u32,
}

fn ten() -> u32 {
    10
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Sort {
    #[default]
    Title,
    Year,
}

#[derive(Deserialize, JsonSchema)]
struct GetBook {
    id: u32,
}

#[derive(Serialize, JsonSchema)]
struct Book {
    title: String,
    pages: u32,
}

#[derive(Deserialize, JsonSchema)]
struct WriteNote {
    name: String,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    author: String,
    title: String,
}

#[derive(Deserialize, JsonSchema)]
struct Reserve {
    book: String,
}

/// What the user enters for a reservation.
#[derive(Deserialize, JsonSchema)]
struct Reservation {
    #[schemars(email)]
    #[expect(dead_code, reason = "no message is sent")]
    email: String,
    #[schemars(range(min = 1, max = 8))]
    weeks: u32,
    pick_up: PickUp,
}

elicit_safe!(Reservation);

// Forms need both attributes of schemars.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline, extend("type" = "string"))]
enum PickUp {
    Desk,
    Locker,
}

#[derive(Deserialize, JsonSchema)]
struct Summarize {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct CheckShelf {
    books: u32,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "no order is stored")]
struct OrderBook {
    title: String,
}

#[derive(Clone)]
enum Change {
    List,
    Note(String),
}

/// What the handlers of all sessions share.
pub struct Shared {
    tools: ToolRouter<Library>,
    prompts: PromptRouter<Library>,
    tasks: TaskManager,
    notes: Mutex<BTreeMap<String, String>>,
    changes: broadcast::Sender<Change>,
    numbers: AtomicU64,
    cancelled_scans: AtomicU64,
    calls: AtomicU64,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            tools: Library::tool_router(),
            prompts: Library::prompt_router(),
            tasks: TaskManager::new(),
            notes: Mutex::new(BTreeMap::from([("rules".into(), "be quiet".into())])),
            changes: broadcast::channel(64).0,
            numbers: AtomicU64::new(0),
            cancelled_scans: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }
}

/// The handler of one session.
pub struct Library {
    shared: Arc<Shared>,
    subscribed: Arc<Mutex<HashSet<String>>>,
    level: Mutex<LoggingLevel>,
}

impl Library {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, subscribed: Arc::default(), level: Mutex::new(LoggingLevel::Info) }
    }
}

fn internal(error: impl Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn is_modern(context: &Context) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Asks a modern client, which calls again with the answer.
fn ask(request: InputRequest) -> CallToolResponse {
    InputRequiredResult::from_input_requests(InputRequests::from([("question".into(), request)])).into()
}

/// Returns the answer of a modern client, or nothing in the first round.
fn answer<T: DeserializeOwned>(answers: Option<Answers>) -> Result<Option<T>, ErrorData> {
    let given = answers.and_then(|mut answers| answers.remove("question"));
    given.map(serde_json::from_value).transpose().map_err(invalid)
}

fn invalid(error: serde_json::Error) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), None)
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn refusal(error: impl Display) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into()
}

async fn rebuild() -> CallToolResult {
    sleep(Duration::from_millis(300)).await;
    CallToolResult::success(vec![ContentBlock::text("rebuilt")])
}

#[tool_router]
impl Library {
    /// Adds two numbers.
    #[tool]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        (a + b).to_string()
    }

    /// Finds books.
    #[tool]
    fn find_books(&self, _: Parameters<FindBooks>) -> String {
        "found".into()
    }

    /// Returns a book.
    #[tool]
    fn get_book(&self, Parameters(GetBook { id }): Parameters<GetBook>) -> Result<Json<Book>, String> {
        match id {
            1 => Ok(Json(Book { title: "Dune".into(), pages: 612 })),
            _ => Err(format!("no book has the id {id}")),
        }
    }

    /// Counts the lines of the catalog.
    #[tool]
    fn count_lines(&self) -> Result<String, ErrorData> {
        let catalog = std::fs::read_to_string("/srv/private/catalog.csv").map_err(internal)?;
        Ok(catalog.lines().count().to_string())
    }

    /// Crashes.
    #[tool]
    async fn crash(&self) -> String {
        panic!("the author did not expect this")
    }

    /// Counts the calls of all clients.
    #[tool]
    fn next_number(&self) -> String {
        (self.shared.numbers.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    /// Writes a note.
    #[tool]
    fn write_note(&self, Parameters(WriteNote { name, text }): Parameters<WriteNote>) -> String {
        let change = match self.shared.notes.lock().unwrap().insert(name.clone(), text) {
            None => Change::List,
            Some(_) => Change::Note(format!("note:///{name}")),
        };
        // No client may be listening.
        let _ = self.shared.changes.send(change);
        "written".into()
    }

    /// Reserves a book.
    #[tool]
    async fn reserve(
        &self,
        Parameters(Reserve { book }): Parameters<Reserve>,
        InputResponses(answers): InputResponses,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let message = "How do you want the book?".to_owned();
        let reservation = if !is_modern(&context) {
            match context.peer.elicit::<Reservation>(message).await {
                Err(ElicitationError::UserDeclined | ElicitationError::UserCancelled) => None,
                Err(error) => return Ok(refusal(error)),
                Ok(reservation) => reservation,
            }
        } else if let Some(result) = answer::<ElicitResult>(answers)? {
            let content = result.content.filter(|_| result.action == ElicitationAction::Accept);
            content.map(serde_json::from_value::<Reservation>).transpose().map_err(invalid)?
        } else {
            let requested_schema = ElicitationSchema::from_type::<Reservation>().map_err(internal)?;
            let form = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
            return Ok(ask(InputRequest::Elicitation(ElicitRequest::new(form))));
        };
        let Some(Reservation { weeks, pick_up, .. }) = reservation else { return Ok(text("declined")) };
        let place = match pick_up {
            PickUp::Desk => "desk",
            PickUp::Locker => "locker",
        };
        Ok(text(format!("{book} {weeks} {place}")))
    }

    /// Lets the user pay a fee.
    #[tool]
    async fn pay_fee(
        &self,
        InputResponses(answers): InputResponses,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let message = "Please pay the fee".to_owned();
        let (url, elicitation_id) = ("https://library.example/pay", "fee".to_owned());
        let action = if !is_modern(&context) {
            let url = Url::parse(url).map_err(internal)?;
            match context.peer.elicit_url(message, url, elicitation_id).await {
                Err(error) => return Ok(refusal(error)),
                Ok(action) => action,
            }
        } else if let Some(result) = answer::<ElicitResult>(answers)? {
            result.action
        } else {
            let url = url.to_owned();
            let page = ElicitRequestParams::UrlElicitationParams { meta: None, message, url, elicitation_id };
            return Ok(ask(InputRequest::Elicitation(ElicitRequest::new(page))));
        };
        Ok(text(if action == ElicitationAction::Accept { "paid" } else { "declined" }))
    }

    /// Summarizes a text with the model of the client.
    #[tool]
    async fn summarize(
        &self,
        Parameters(given): Parameters<Summarize>,
        InputResponses(answers): InputResponses,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let prompt = SamplingMessage::user_text(format!("Summarize: {}", given.text));
        let params = CreateMessageRequestParams::new(vec![prompt], 100);
        let sample = if !is_modern(&context) {
            match context.peer.create_message(params).await {
                Err(error) => return Ok(refusal(error)),
                Ok(sample) => sample,
            }
        } else if let Some(sample) = answer::<CreateMessageResult>(answers)? {
            sample
        } else {
            return Ok(ask(InputRequest::CreateMessage(CreateMessageRequest::new(params))));
        };
        let summary = sample.message.content.first().and_then(|content| content.as_text());
        Ok(summary.map_or_else(|| refusal("the summary is no text"), |summary| text(&summary.text)))
    }

    /// Checks the books of a shelf.
    #[tool]
    async fn check_shelf(
        &self,
        Parameters(CheckShelf { books }): Parameters<CheckShelf>,
        context: Context,
    ) -> Result<String, ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            for book in 1..=books {
                let progress = ProgressNotificationParam::new(token.clone(), book.into());
                context.peer.notify_progress(progress.with_total(books.into())).await.map_err(internal)?;
            }
        }
        let level = LoggingLevel::Warning;
        if level as u8 >= *self.level.lock().unwrap() as u8 {
            let entry = LoggingMessageNotificationParam::new(level, "a book has no title".into());
            context.peer.notify_logging_message(entry).await.map_err(internal)?;
        }
        Ok("checked".into())
    }

    /// Scans for a minute.
    #[tool]
    async fn scan(&self, context: Context) -> String {
        tokio::select! {
            () = sleep(Duration::from_secs(60)) => "scanned".into(),
            () = context.ct.cancelled() => {
                self.shared.cancelled_scans.fetch_add(1, Ordering::Relaxed);
                "cancelled".into()
            }
        }
    }

    /// Returns how many scans were cancelled.
    #[tool]
    fn cancelled_scans(&self) -> String {
        self.shared.cancelled_scans.load(Ordering::Relaxed).to_string()
    }

    /// Rebuilds the index, as a task if the client has tasks.
    #[tool]
    async fn rebuild_index(&self, context: Context) -> CallToolResponse {
        if context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks()) {
            let work = |_| Box::pin(async { Ok(rebuild().await) }) as _;
            return CreateTaskResult::new(self.shared.tasks.spawn(TaskOptions::default(), work)).into();
        }
        rebuild().await.into()
    }

    /// Returns the number of calls.
    #[tool]
    fn audited(&self) -> String {
        self.shared.calls.load(Ordering::Relaxed).to_string()
    }

    /// Orders a book. rmcp has no quotas.
    #[tool]
    fn order_book(&self, _: Parameters<OrderBook>) -> String {
        "ordered".into()
    }

    /// Shows a chart.
    #[tool(meta = MetaObject(object!({ "ui": { "resourceUri": "ui://chart" } })))]
    fn chart(&self) -> String {
        "a chart".into()
    }
}

#[prompt_router]
impl Library {
    /// Asks for a review of a book.
    #[prompt]
    fn review(&self, Parameters(Review { author, title }): Parameters<Review>) -> Vec<PromptMessage> {
        vec![PromptMessage::new_text(Role::User, format!("Review {title} by {author}."))]
    }
}

#[tool_handler(router = self.shared.tools)]
#[prompt_handler(router = self.shared.prompts)]
impl ServerHandler for Library {
    fn get_info(&self) -> ServerConfig {
        let ui = object!({ "mimeTypes": ["text/html;profile=mcp-app"] });
        let capabilities = ServerCapabilities::builder()
            .enable_extensions_with(ExtensionCapabilities::from([("io.modelcontextprotocol/ui".into(), ui)]))
            .enable_tasks()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::from_build_env())
    }

    // All calls pass here.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        self.shared.calls.fetch_add(1, Ordering::Relaxed);
        self.shared.tools.call(ToolCallContext::new(self, request, context)).await
    }

    async fn list_resource_templates(
        &self,
        _: Page,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let note = ResourceTemplate::new("note:///{name}", "note").with_mime_type("text/plain");
        Ok(ListResourceTemplatesResult::with_all_items(vec![note]))
    }

    async fn list_resources(&self, _: Page, _: Context) -> Result<ListResourcesResult, ErrorData> {
        let notes = self.shared.notes.lock().unwrap();
        let notes = notes.keys().map(|name| Resource::new(format!("note:///{name}"), name));
        Ok(ListResourcesResult::with_all_items(notes.collect()))
    }

    async fn read_resource(
        &self,
        ReadResourceRequestParams { uri, .. }: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = if uri == "ui://chart" {
            let page = tokio::fs::read_to_string("chart.html").await.map_err(internal)?;
            ResourceContents::text(page, uri).with_mime_type("text/html;profile=mcp-app")
        } else {
            let notes = self.shared.notes.lock().unwrap();
            let Some(note) = uri.strip_prefix("note:///").and_then(|name| notes.get(name)) else {
                return Err(ErrorData::resource_not_found(format!("unknown resource: {uri}"), None));
            };
            ResourceContents::text(note, uri).with_mime_type("text/plain")
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(
        &self,
        CompleteRequestParams { r#ref, argument, context, .. }: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let author = context.as_ref().and_then(|context| context.get_argument("author"));
        let known: &[&str] = match (&r#ref, argument.name.as_str(), author.map(String::as_str)) {
            (Reference::Prompt(prompt), "author", _) if prompt.name == "review" => &["Asimov", "Austen"],
            (Reference::Prompt(_), "title", Some("Austen")) => &["Emma", "Persuasion"],
            (Reference::Prompt(_), "title", Some("Asimov")) => &["Foundation"],
            _ => &[],
        };
        let fitting = known.iter().filter(|value| value.starts_with(&argument.value));
        let completion = CompletionInfo::with_all_values(fitting.map(ToString::to_string).collect());
        Ok(CompleteResult::new(completion.map_err(internal)?))
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        *self.level.lock().unwrap() = request.level;
        Ok(())
    }

    // Tells the session of a legacy client about changes.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = self.shared.changes.subscribe();
        let subscribed = self.subscribed.clone();
        tokio::spawn(async move {
            while let Ok(change) = changes.recv().await {
                let sent = match change {
                    Change::List => context.peer.notify_resource_list_changed().await,
                    Change::Note(uri) if subscribed.lock().unwrap().contains(&uri) => {
                        context.peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await
                    }
                    Change::Note(_) => Ok(()),
                };
                if sent.is_err() {
                    break;
                }
            }
        });
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap().insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap().remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change.map_err(internal)?,
                () = context.cancelled() => return Ok(()),
            };
            let sent = match change {
                Change::List => context.sink().notify_resource_list_changed().await,
                Change::Note(uri) => context.sink().notify_resource_updated(uri).await,
            };
            match sent {
                // The client did not ask for this.
                Err(SubscriptionSendError::NotificationNotAccepted(_)) | Ok(()) => {}
                Err(error) => return Err(internal(error)),
            }
        }
    }

    async fn get_task(&self, request: GetTaskParams, _: Context) -> Result<GetTaskResult, ErrorData> {
        self.shared.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.shared.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&request.task_id)
    }
}
