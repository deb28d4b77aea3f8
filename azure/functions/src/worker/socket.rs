//! The local socket that our own workers connect to: a unix socket in a private folder, or TCP on loopback.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::arrivals::{Arrivals, Reception};
use super::framing::Framing;
use super::outbox::{Closed, Outbox};

/// One connected stream. All methods take `&self`: one task reads while others write.
pub(super) enum Socket {
    #[cfg(unix)]
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
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

    /// Appends what has arrived; zero bytes are the end.
    async fn read(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        loop {
            let read = match self {
                #[cfg(unix)]
                Self::Unix(stream) => {
                    stream.readable().await?;
                    stream.try_read_buf(buffer)
                }
                Self::Tcp(stream) => {
                    stream.readable().await?;
                    stream.try_read_buf(buffer)
                }
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }
}

/// Accepts the streams of our own workers.
pub(super) enum SocketListener {
    #[cfg(unix)]
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl SocketListener {
    /// Listens in the folder, or on loopback where there are no unix sockets. Returns what `--socket` says.
    pub(super) async fn bind(folder: &Path) -> io::Result<(Self, String)> {
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

    async fn accept(&self) -> io::Result<Socket> {
        match self {
            #[cfg(unix)]
            Self::Unix(listener) => Ok(Socket::Unix(listener.accept().await?.0)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }

    /// Serves every stream until this is dropped.
    pub(super) async fn serve(self, arrivals: Arc<Arrivals>) {
        let mut streams = JoinSet::new();
        loop {
            match self.accept().await {
                Ok(socket) if streams.len() < arrivals.max_streams() => {
                    streams.spawn(serve_stream(Arc::new(socket), Arc::clone(&arrivals)));
                }
                Ok(_) => {}
                // No descriptors left, most likely; some may be free again soon.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
            while streams.try_join_next().is_some() {}
        }
    }
}

async fn serve_stream(socket: Arc<Socket>, arrivals: Arc<Arrivals>) {
    let outbox = Arc::new(Outbox::new(Framing::Frames, arrivals.message_limit(), Some(Arc::clone(&socket))));
    let reception = Reception::new(arrivals, Framing::Frames, Arc::clone(&outbox));
    let reading = read(&socket, reception);
    let writing = write(&socket, &outbox);
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}

async fn read(socket: &Socket, mut reception: Reception) {
    loop {
        let read = match reception.time_left() {
            Some(left) => match tokio::time::timeout(left, socket.read(reception.inbox().room())).await {
                Ok(read) => read,
                Err(_) => return,
            },
            None => socket.read(reception.inbox().room()).await,
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

async fn write(socket: &Socket, outbox: &Outbox) {
    while let Ok(bytes) = poll_fn(|context| outbox.poll_take(context)).await {
        if socket.write_all(&bytes).await.is_err() {
            outbox.close(Closed::Done);
            // The reader notices too; it should first take the answers that are still there.
            return tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}
