//! MCP over a pipe: one message a line on stdin, one message a line on stdout, nothing else there.
//!
//! Both eras share the pipe: `initialize` opens a session for what follows without an envelope, and a
//! request with an envelope stands alone, before or after.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::{self, INVALID_REQUEST};
use bindpost_mcp_protocol::{ErrorObject, Incoming, Message, Notification, Request, Revision};
use bytes::Bytes;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::task::JoinSet;

use crate::answer::Answer;
use crate::auth::Caller;
use crate::call::Canceller;
use crate::dispatch::Dispatch;
use crate::peer::Peer;
use crate::server::Server;
use crate::session::Session;
use crate::stream::{Popped, Stream};
use crate::transport::{Delivery, Exchange, NoHeaders};

/// The longest line that is read, and how long calls may go on after the client has hung up.
#[derive(Clone, Copy, Debug)]
pub struct StdioLimits {
    /// Bytes of one message.
    pub line: usize,
    /// After the end of the input.
    pub drain: Duration,
}

impl Default for StdioLimits {
    fn default() -> StdioLimits {
        StdioLimits { line: 4 * 1024 * 1024, drain: Duration::from_secs(25) }
    }
}

/// Serves stdin and stdout until stdin ends; everything asked before is answered.
pub async fn serve_stdio(server: &Server) -> io::Result<()> {
    serve(server, tokio::io::stdin(), tokio::io::stdout(), StdioLimits::default()).await
}

/// Serves any pair of pipes until the input ends.
pub async fn serve(
    server: &Server,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    limits: StdioLimits,
) -> io::Result<()> {
    let out = Arc::new(Stream::new(server.stream_limits()));
    let writer = tokio::spawn(write_all(out.clone(), output));
    let mut pipe = Pipe {
        server: server.clone(),
        out: out.clone(),
        session: None,
        running: JoinSet::new(),
        cancellers: Vec::new(),
    };
    let mut input = BufReader::new(input);
    loop {
        match read_line(&mut input, limits.line).await? {
            Line::End => break,
            Line::TooLong => {
                let reason = format!("invalid request: a message is longer than {} bytes", limits.line);
                pipe.refuse(&ErrorObject::new(INVALID_REQUEST, reason)).await;
            }
            Line::Whole(line) if line.trim_ascii().is_empty() => {}
            Line::Whole(line) => pipe.take(line).await,
        }
    }
    pipe.drain(limits.drain).await;
    out.end();
    writer.await.map_err(io::Error::other)?
}

enum Line {
    Whole(Bytes),
    TooLong,
    End,
}

/// Reads up to the next newline; a line that is too long is skipped without being kept.
async fn read_line(input: &mut (impl tokio::io::AsyncBufRead + Unpin), most: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let chunk = input.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(match (too_long, line.is_empty()) {
                (true, _) => Line::TooLong,
                (false, true) => Line::End,
                (false, false) => Line::Whole(line.into()),
            });
        }
        let (part, used, complete) = match chunk.iter().position(|&byte| byte == b'\n') {
            Some(at) => (&chunk[..at], at + 1, true),
            None => (chunk, chunk.len(), false),
        };
        too_long |= line.len() + part.len() > most;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        input.consume(used);
        if complete {
            return Ok(if too_long { Line::TooLong } else { Line::Whole(line.into()) });
        }
    }
}

/// Writes every message of the stream as one line.
async fn write_all(out: Arc<Stream>, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
    let Some(reader) = out.attach(None) else { return Ok(()) };
    while let Popped::Message { message, .. } =
        std::future::poll_fn(|context| out.poll_pop(context, reader)).await
    {
        let written = async {
            output.write_all(&message).await?;
            output.write_all(b"\n").await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            out.end();
            // A reader that is gone is the client's way to say goodbye.
            return if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) };
        }
    }
    Ok(())
}

/// One client at the other end of a pipe.
struct Pipe {
    server: Server,
    out: Arc<Stream>,
    session: Option<Arc<Session>>,
    running: JoinSet<()>,
    cancellers: Vec<Canceller>,
}

impl Pipe {
    async fn take(&mut self, line: Bytes) {
        match jsonrpc::decode(line) {
            Ok(Incoming::One(message)) => self.take_message(message).await,
            Ok(Incoming::Batch(batch)) => self.take_batch(batch).await,
            Err(error) => {
                self.out.send(jsonrpc::encode_error(error.id.as_ref(), &error.error).into()).await;
            }
        }
    }

    async fn take_message(&mut self, message: Message) {
        match message {
            Message::Request(request) => {
                let out = self.out.clone();
                match self.start(request) {
                    Started::Answer(answer) => drop(out.send(answer.into_bytes()).await),
                    Started::Running(running) => {
                        self.running.spawn(async move {
                            if let Some(answer) = running.await {
                                out.send(answer.into_bytes()).await;
                            }
                        });
                    }
                }
            }
            Message::Notification(notification) => self.notify(&notification),
            Message::Response(response) => {
                if let Some(session) = &self.session {
                    session.answered(response);
                }
            }
        }
    }

    /// A batch of 2025-03-26: one array with all answers, when all are there.
    async fn take_batch(
        &mut self,
        batch: Vec<Result<Message, bindpost_mcp_protocol::DecodeError>>,
    ) {
        if !self.peer().revision().allows_batches() || self.session.is_none() {
            let reason = "invalid request: batches belong to revision 2025-03-26 only";
            return self.refuse(&ErrorObject::new(INVALID_REQUEST, reason)).await;
        }
        let mut answers = Vec::new();
        let mut later = Vec::new();
        for message in batch {
            match message {
                Ok(Message::Request(request)) => match self.start(request) {
                    Started::Answer(answer) => answers.push(answer.into_bytes()),
                    Started::Running(running) => later.push(running),
                },
                Ok(message) => Box::pin(self.take_message(message)).await,
                Err(error) => {
                    answers.push(jsonrpc::encode_error(error.id.as_ref(), &error.error).into());
                }
            }
        }
        let out = self.out.clone();
        self.running.spawn(async move {
            for answer in futures_util::future::join_all(later).await.into_iter().flatten() {
                answers.push(answer.into_bytes());
            }
            if !answers.is_empty() {
                out.send(join_batch(&answers)).await;
            }
        });
    }

    fn start(&mut self, request: Request) -> Started {
        let alone = Peer::has_envelope(request.params()) || request.method() == "server/discover";
        let peer = if alone {
            match Peer::from_envelope(request.params()) {
                Ok(peer) => peer,
                Err(error) => {
                    let revision = Revision::DISCOVERABLE[0];
                    return Started::Answer(Answer::refused(&request.id, &error, revision));
                }
            }
        } else {
            self.peer()
        };
        let exchange =
            Exchange { peer, caller: Caller::ANONYMOUS, delivery: Delivery::Shared(self.out.clone()) };
        match self.server.dispatch(request, exchange, &NoHeaders) {
            Dispatch::Answer(answer) => Started::Answer(answer),
            Dispatch::Opened(session, answer) => {
                let session = Arc::new(session);
                self.server.attach_stream(&session, &self.out);
                self.session = Some(session);
                Started::Answer(answer)
            }
            Dispatch::Running(running) => {
                self.cancellers.retain(|canceller| !canceller.is_over());
                self.cancellers.push(running.canceller());
                Started::Running(running)
            }
        }
    }

    /// What follows without an envelope belongs to the session; before there is one, we know nothing.
    fn peer(&self) -> Peer {
        match &self.session {
            Some(session) => Peer::Session(session.clone()),
            None => Peer::Alone(Revision::LATEST_WITH_HANDSHAKE),
        }
    }

    fn notify(&mut self, notification: &Notification) {
        if notification.method() == "notifications/cancelled"
            && let Some(id) = notification.params().get("requestId").and_then(|id| id.decode().ok())
        {
            self.cancellers.iter().any(|canceller| canceller.cancel_if(&id));
        }
        self.server.notify(notification, &self.peer());
    }

    async fn refuse(&self, error: &ErrorObject) {
        self.out.send(jsonrpc::encode_error(None, error).into()).await;
    }

    /// The input has ended: nobody answers questions any more, listeners end, calls may finish.
    async fn drain(&mut self, most: Duration) {
        if let Some(session) = &self.session {
            session.stop_asking();
        }
        self.server.shut_down();
        let all = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(most, all).await.is_err() {
            tracing::warn!("calls were still running {} s after the input ended", most.as_secs());
            self.running.abort_all();
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "lives on the stack for a moment")]
enum Started {
    Answer(Answer),
    Running(crate::call::Running),
}

/// Several answers as one JSON array.
pub fn join_batch(answers: &[Bytes]) -> Bytes {
    let mut joined = Vec::with_capacity(answers.iter().map(|answer| answer.len() + 1).sum::<usize>() + 1);
    joined.push(b'[');
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            joined.push(b',');
        }
        joined.extend_from_slice(answer);
    }
    joined.push(b']');
    joined.into()
}
