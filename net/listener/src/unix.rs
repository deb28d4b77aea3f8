//! Unix domain sockets.

use std::fmt::{self, Display};
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixSocket, UnixStream};

use crate::bind::BACKLOG;
use crate::socket::{AcceptedClient, ClientSocket, ConnectionListener, ListenerAddress, about_one_client};

/// A Unix domain socket that listens at a path. Its file is deleted when the listener is dropped, or when
/// a drain begins.
#[derive(Debug)]
pub struct UnixSocketListener {
    listener: UnixListener,
    /// The file that belongs to this listener.
    file: Option<SocketFile>,
}

#[cfg(all(feature = "systemd", target_os = "linux"))]
impl UnixSocketListener {
    /// Takes a socket whose file belongs to another process.
    pub(super) fn from_std(listener: std::os::unix::net::UnixListener) -> io::Result<UnixSocketListener> {
        Ok(UnixSocketListener { listener: UnixListener::from_std(listener)?, file: None })
    }
}

/// The address of a Unix domain socket: a path, or none for a socket without a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocketAddress(Option<PathBuf>);

/// Listens on a Unix domain socket at this path. The error names the path.
///
/// `mode` are the permissions of the file, independent of the umask. A client needs the permission to write:
/// 0o600 admits the same user only, 0o660 also the group. No client can connect before they are set.
///
/// A socket file on which no process listens, for example after a crash, is replaced. Any other file at the
/// path is an error.
pub async fn bind_unix(path: impl AsRef<Path>, mode: u32) -> io::Result<UnixSocketListener> {
    let path = path.as_ref();
    let failed = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot listen on unix:{}: {error}", path.display()))
    };
    listen(path, mode).await.map_err(failed)
}

async fn listen(path: &Path, mode: u32) -> io::Result<UnixSocketListener> {
    let socket = UnixSocket::new_stream()?;
    match socket.bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale_socket(path).await?;
            socket.bind(path)?;
        }
        bound => bound?,
    }
    let file = SocketFile::new(path)?;
    // Before `listen`, no client can connect.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    let listener = socket.listen(BACKLOG)?;
    Ok(UnixSocketListener { listener, file: Some(file) })
}

/// Deletes the file of a socket on which no process listens.
async fn remove_stale_socket(path: &Path) -> io::Result<()> {
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        let problem =
            "a file that is not a socket exists there\n  fix: choose another path, or delete the file";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            let problem = format!(
                "a socket exists there, and connecting to it fails: {error}\n  fix: choose another path, or \
                 delete the socket if no process listens on it"
            );
            Err(io::Error::new(io::ErrorKind::AddrInUse, problem))
        }
        Ok(_) => {
            let problem = "another process listens on it\n  fix: stop that process, or choose another path";
            Err(io::Error::new(io::ErrorKind::AddrInUse, problem))
        }
    }
}

/// The file of a socket. It is deleted on drop, unless another file has replaced it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    device_and_inode: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<SocketFile> {
        // The program may change its working directory.
        let path = std::path::absolute(path)?;
        Ok(SocketFile { device_and_inode: device_and_inode(&path)?, path })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if device_and_inode(&self.path).is_ok_and(|found| found == self.device_and_inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn device_and_inode(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

impl Display for UnixSocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => write!(f, "unix:{}", path.display()),
            None => f.write_str("unix:(without a path)"),
        }
    }
}

impl UnixSocketAddress {
    /// Returns the path of the socket file. A socket that another program has opened may have none.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

impl ListenerAddress for UnixSocketAddress {
    fn is_local(&self) -> bool {
        true
    }
}

impl ConnectionListener for UnixSocketListener {
    type Socket = UnixStream;
    type Address = UnixSocketAddress;

    fn address(&self) -> io::Result<UnixSocketAddress> {
        Ok(UnixSocketAddress(self.listener.local_addr()?.as_pathname().map(Path::to_owned)))
    }

    async fn accept(&self) -> io::Result<AcceptedClient<UnixStream>> {
        let (socket, _) = self.listener.accept().await?;
        Ok((socket, None))
    }

    fn into_backlog(self) -> io::Result<impl Iterator<Item = io::Result<AcceptedClient<UnixStream>>>> {
        // Without the file, no further client can connect.
        drop(self.file);
        let listener = self.listener.into_std()?;
        Ok(std::iter::from_fn(move || {
            Some(listener.accept().and_then(|(socket, _)| {
                let socket = socket.set_nonblocking(true).and_then(|()| UnixStream::from_std(socket));
                Ok((socket.map_err(about_one_client)?, None))
            }))
        }))
    }
}

impl ClientSocket for UnixStream {
    fn disable_delay(&self) {}

    fn send_last(self, response: &[u8]) -> io::Result<UnixStream> {
        let mut socket = self.into_std()?;
        socket.write_all(response)?;
        socket.shutdown(Shutdown::Write)?;
        UnixStream::from_std(socket)
    }
}
