//! [`Client`]: a client in memory.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_protocol::Revision;
use bytes::Bytes;

use super::Transport;
use crate::auth::Caller;
use crate::pipe::Pipe;
use crate::server::Server;
use crate::stream::{Popped, Stream};

/// How long calls may go on after the input has ended.
const DRAIN: Duration = Duration::from_secs(5);

/// A client of a server in the same process, at the other end of a [`Pipe`].
#[derive(Debug)]
pub struct Client {
    pipe: Pipe,
    out: Arc<Stream>,
    reader: Option<u64>,
}

impl Client {
    /// A new client that has said nothing yet.
    pub fn connect(server: &Server) -> Client {
        Client::connect_as(server, Caller::ANONYMOUS)
    }

    /// The same, with an identity.
    pub fn connect_as(server: &Server, caller: Caller) -> Client {
        let out = Arc::new(Stream::new(server.stream_limits()));
        let reader = out.attach(None);
        Client { pipe: Pipe::new(server.clone(), out.clone(), caller), out, reader }
    }

    /// Sends a message: JSON text, right or wrong.
    pub async fn send(&mut self, message: impl Into<Bytes>) {
        self.pipe.take(message.into()).await;
    }

    /// Waits for the server's next message; `None` when there will be none.
    pub async fn next(&mut self) -> Option<Bytes> {
        let reader = self.reader?;
        match poll_fn(|context| self.out.poll_pop(context, reader)).await {
            Popped::Message { message, .. } => Some(message),
            Popped::End | Popped::HangUp | Popped::Replaced => None,
        }
    }

    /// Says that nothing more will be sent, and waits until everything is answered.
    pub async fn end_input(&mut self) {
        self.pipe.drain(DRAIN).await;
        self.out.end();
    }
}

impl Transport for Client {
    const NAME: &'static str = "memory";

    async fn send(&mut self, message: &str, _: Revision) -> io::Result<()> {
        Client::send(self, message.to_owned()).await;
        Ok(())
    }

    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        Ok(self.next().await)
    }

    async fn end_input(&mut self) -> io::Result<()> {
        Client::end_input(self).await;
        Ok(())
    }
}
