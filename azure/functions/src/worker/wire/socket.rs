//! The local socket that our own workers connect to: a unix socket in a private folder, or TCP on
//! the loopback interface.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncReadExt as _;
#[cfg(unix)]
use tokio::net::UnixListener;
#[cfg(unix)]
use tokio::net::unix;
use tokio::net::{TcpListener, tcp};
use tokio::task::JoinSet;

use super::framing::Framing;
use crate::worker::channel::outbox::{CloseReason, WorkerOutbox};
use crate::worker::pool::arrivals::{ExpectedWorkers, IncomingStream};

/// The side of a connected stream that any task may write to.
pub(crate) enum SocketWriter {
    #[cfg(unix)]
    Unix(unix::OwnedWriteHalf),
    Tcp(tcp::OwnedWriteHalf),
}

/// The side that one task reads from.
enum SocketReader {
    #[cfg(unix)]
    Unix(unix::OwnedReadHalf),
    Tcp(tcp::OwnedReadHalf),
}

impl SocketWriter {
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.try_write(bytes),
            Self::Tcp(stream) => stream.try_write(bytes),
        }
    }

    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self {
                #[cfg(unix)]
                Self::Unix(stream) => stream.writable().await?,
                Self::Tcp(stream) => stream.writable().await?,
            }
            match self.try_write(bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl SocketReader {
    /// Appends received bytes to the buffer. Zero bytes are the end of the stream. A read that does not fill
    /// the buffer has emptied the socket, and tokio does not read again. All messages that arrive together
    /// need one system call.
    async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.read_buf(buffer).await,
            Self::Tcp(stream) => stream.read_buf(buffer).await,
        }
    }
}

/// Accepts the streams of our own workers.
pub(crate) enum SocketListener {
    #[cfg(unix)]
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl SocketListener {
    /// Listens on a unix socket in the folder, or on loopback if there is no folder or unix sockets are not available.
    /// Returns the value of `--socket`.
    pub(crate) async fn bind(folder: Option<&Path>) -> io::Result<(Self, String)> {
        #[cfg(unix)]
        if let Some(folder) = folder {
            // Several generations of an app's workers may share the folder.
            let mut name = uuid::Uuid::new_v4().simple().to_string();
            name.truncate(8);
            let path = folder.join(name);
            // The path of a unix socket is limited to about 100 bytes. A long TMPDIR can exceed that.
            if let (Ok(listener), Some(text)) = (UnixListener::bind(&path), path.to_str()) {
                return Ok((Self::Unix(listener), format!("unix:{text}")));
            }
        }
        let _ = folder;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = format!("tcp:{}", listener.local_addr()?);
        Ok((Self::Tcp(listener), address))
    }

    async fn accept(&self) -> io::Result<(SocketReader, SocketWriter)> {
        match self {
            #[cfg(unix)]
            Self::Unix(listener) => {
                let (read, write) = listener.accept().await?.0.into_split();
                Ok((SocketReader::Unix(read), SocketWriter::Unix(write)))
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let (read, write) = stream.into_split();
                Ok((SocketReader::Tcp(read), SocketWriter::Tcp(write)))
            }
        }
    }

    /// Serves every stream until this is dropped.
    pub(crate) async fn serve(self, arrivals: Arc<ExpectedWorkers>) {
        let mut streams = JoinSet::new();
        loop {
            match self.accept().await {
                Ok((read, write)) if streams.len() < arrivals.max_streams() => {
                    streams.spawn(serve_stream(read, Arc::new(write), Arc::clone(&arrivals)));
                }
                Ok(_) => {}
                // Probably no file descriptors are available. Some may be closed soon.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
            while streams.try_join_next().is_some() {}
        }
    }
}

async fn serve_stream(incoming: SocketReader, socket: Arc<SocketWriter>, arrivals: Arc<ExpectedWorkers>) {
    let outbox =
        Arc::new(WorkerOutbox::new(Framing::Frames, arrivals.message_limit(), Some(Arc::clone(&socket))));
    let reception = IncomingStream::new(arrivals, Framing::Frames, Arc::clone(&outbox));
    let reading = read(incoming, reception);
    let writing = write(&socket, &outbox);
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}

async fn read(mut socket: SocketReader, mut reception: IncomingStream) {
    loop {
        let read = match reception.time_left() {
            Some(left) => {
                match tokio::time::timeout(left, socket.read(reception.inbox().read_buffer())).await {
                    Ok(read) => read,
                    Err(_) => return,
                }
            }
            None => socket.read(reception.inbox().read_buffer()).await,
        };
        match read {
            Ok(0) => return reception.end("the worker closed its stream"),
            Ok(_) => {}
            Err(error) => return reception.end(&format!("the stream to the worker broke: {error}")),
        }
        if reception.drain().is_err() {
            return;
        }
    }
}

async fn write(socket: &SocketWriter, outbox: &WorkerOutbox) {
    loop {
        poll_fn(|context| outbox.poll_waiting(context)).await;
        // Let other ready tasks queue their messages first. Messages in one write arrive in one
        // read, and a worker answers them in one write. Without this, the task would run directly
        // after the first message.
        tokio::task::yield_now().await;
        let Ok(bytes) = poll_fn(|context| outbox.poll_take(context)).await else { return };
        if socket.write_all(&bytes).await.is_err() {
            outbox.close(CloseReason::Done);
            // The reader gets the error too. It should first read the remaining answers.
            return tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}
