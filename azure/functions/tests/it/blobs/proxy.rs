//! A TCP proxy that cuts connections in the middle of an upload, or gives the server another host name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A proxy in front of a port of this machine.
pub(crate) struct Proxy {
    port: u16,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    /// Changes the host name in the requests, which must be small enough for one packet.
    pub(crate) async fn rename(server: u16, host: &'static str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut upstream = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                tokio::spawn(async move {
                    let (mut from_server, mut to_server) = upstream.split();
                    let (mut from_client, mut to_client) = client.split();
                    let up = async {
                        let mut piece = vec![0; 65536];
                        while let Ok(length @ 1..) = from_client.read(&mut piece).await {
                            let text = std::str::from_utf8(&piece[..length]).unwrap();
                            let renamed = text.replace(&format!("127.0.0.1:{port}"), host);
                            if to_server.write_all(renamed.as_bytes()).await.is_err() {
                                break;
                            }
                        }
                    };
                    tokio::select! {
                        () = up => {}
                        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
                    }
                });
            }
        });
        Proxy { port, cuts: Arc::default() }
    }

    /// Cuts the first `cuts` connections that carry this many bytes to the server.
    pub(crate) async fn start(server: u16, after: usize, cuts: usize) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let upstream = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                tokio::spawn(carry(client, upstream, after, cuts, count.clone()));
            }
        });
        Proxy { port, cuts: made }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns how many connections were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    after: usize,
    cuts: usize,
    made: Arc<AtomicUsize>,
) {
    let (mut up, mut down, mut sent) = (vec![0; 16384], vec![0; 16384], 0);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(length @ 1..) = read else { return };
                sent += length;
                if sent >= after && made.load(Ordering::SeqCst) < cuts {
                    made.fetch_add(1, Ordering::SeqCst);
                    // The server sees the end of the stream in the middle of the body.
                    return;
                }
                if server.write_all(&up[..length]).await.is_err() { return }
            }
            read = server.read(&mut down) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&down[..length]).await.is_err() { return }
            }
        }
    }
}
