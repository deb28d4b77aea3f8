//! MCP over stdio: one message per line on stdin and on stdout, and no other output on stdout.
//!
//! This module reads and writes lines. [`Pipe`] handles the messages.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::ErrorObject;
use bindpost_mcp_protocol::jsonrpc::INVALID_REQUEST;
use bytes::Bytes;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

use crate::auth::Caller;
use crate::peer::stream::{MessageStream, StreamRead};
use crate::server::Server;
use crate::transport::pipe::Pipe;

/// The limits of the stdio transport.
#[derive(Clone, Copy, Debug)]
pub struct StdioLimits {
    /// The maximum number of bytes of one line, which is one message.
    pub line: usize,
    /// How long running calls may continue after the end of the input.
    pub drain: Duration,
}

impl Default for StdioLimits {
    fn default() -> StdioLimits {
        StdioLimits { line: 4 * 1024 * 1024, drain: Duration::from_secs(25) }
    }
}

/// Serves stdin and stdout until stdin ends. Requests received before the end are answered.
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
    let out = server.new_stream();
    let writer = tokio::spawn(write_all(out.clone(), output));
    let mut pipe = Pipe::new(server.clone(), out.clone(), Caller::ANONYMOUS);
    let mut input = BufReader::new(input);
    loop {
        match read_line(&mut input, limits.line).await? {
            InputLine::End => break,
            InputLine::TooLong => {
                let reason = format!("invalid request: a message is longer than {} bytes", limits.line);
                pipe.send_error(&ErrorObject::new(INVALID_REQUEST, reason)).await;
            }
            InputLine::Whole(line) if line.trim_ascii().is_empty() => {}
            InputLine::Whole(line) => pipe.receive(line).await,
        }
    }
    pipe.drain(limits.drain).await;
    out.end();
    writer.await.map_err(io::Error::other)?
}

enum InputLine {
    Whole(Bytes),
    TooLong,
    End,
}

/// Reads up to the next newline. A line that is too long is skipped and not buffered.
async fn read_line(input: &mut (impl tokio::io::AsyncBufRead + Unpin), most: usize) -> io::Result<InputLine> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let chunk = input.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(match (too_long, line.is_empty()) {
                (true, _) => InputLine::TooLong,
                (false, true) => InputLine::End,
                (false, false) => InputLine::Whole(line.into()),
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
            return Ok(if too_long { InputLine::TooLong } else { InputLine::Whole(line.into()) });
        }
    }
}

/// Writes every message of the stream as one line.
async fn write_all(out: Arc<MessageStream>, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
    let Some(reader) = out.attach(None) else { return Ok(()) };
    while let StreamRead::Message { message, .. } =
        std::future::poll_fn(|context| out.poll_pop(context, reader)).await
    {
        let written = async {
            output.write_all(&message).await?;
            output.write_all(b"\n").await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            out.end();
            // The client disconnected, which is not an error.
            return if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) };
        }
    }
    Ok(())
}
