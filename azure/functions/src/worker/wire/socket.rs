//! The local socket that our own workers connect to: a unix socket in a private folder, or TCP on loopback.

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
    /// Appends what has arrived; zero bytes are the end. A read that leaves room in the buffer has emptied the socket,
    /// and tokio does not ask again then: one system call for all messages that came together.
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
    /// Listens in the folder, or on loopback where there are no unix sockets. Returns what `--socket` says.
    pub(crate) async fn bind(folder: &Path) -> io::Result<(Self, String)> {
        #[cfg(unix)]
        {
            // Several generations of an app's workers may share the folder.
            let mut name = uuid::Uuid::new_v4().simple().to_string();
            name.truncate(8);
            let path = folder.join(name);
            // The path of a unix socket has room for about 100 bytes; a long TMPDIR can exceed that.
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
                // No descriptors left, most likely; some may be free again soon.
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
        // Whoever else is about to send does so first: what leaves in one write arrives in one read, and a worker
        // answers what it has read together in one write again. Woken by the first message, this task would
        // otherwise run before the others that are ready.
        tokio::task::yield_now().await;
        let Ok(bytes) = poll_fn(|context| outbox.poll_take(context)).await else { return };
        if socket.write_all(&bytes).await.is_err() {
            outbox.close(CloseReason::Done);
            // The reader notices too; it should first take the answers that are still there.
            return tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}
