//! The service process, and an HTTP client that detects its end.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Timeout of a request. It is longer than any request takes on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);

/// A search service that has printed its address.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) key: String,
}

impl Process {
    pub(crate) fn command(data: &Path) -> Command {
        let mut command = crate::bindpost(&["search-service", "--port", "0", "--json", "--data"]);
        command.arg(data);
        command
    }

    pub(crate) fn spawn(data: &Path) -> Child {
        Self::command(data).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bindpost runs")
    }

    pub(crate) fn start(data: &Path) -> Self {
        Self::started(Self::spawn(data), data)
    }

    pub(crate) fn started(mut child: Child, data: &Path) -> Self {
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut said).expect("reads");
        let Ok(said) = serde_json::from_str::<Value>(&said) else {
            let mut error = String::new();
            let _ = child.kill();
            let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut error));
            panic!("the service did not start: {error}");
        };
        let address =
            said["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("a URL").to_owned();
        let keys = fs::read(data.join("keys.json")).expect("keys");
        let keys: Value = serde_json::from_slice(&keys).expect("keys");
        let key = keys["adminKeys"][0].as_str().expect("a key").to_owned();
        Self { child, address, key }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.address, &self.key)
    }

    /// Kills the process and waits for its end.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Like [`Process::kill`], but returns its stderr.
    pub(crate) fn end(&mut self) -> String {
        self.kill();
        let mut said = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut said).expect("reads");
        said
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends requests over one connection.
pub(crate) struct Client {
    address: String,
    key: String,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    pub(crate) fn new(address: &str, key: &str) -> Self {
        Self { address: address.to_owned(), key: key.to_owned(), connection: None }
    }

    /// Sends a request. Returns status and body of the response, or an error if the response is incomplete.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: Option<&Value>) -> io::Result<(u16, Value)> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = self.head(method, path, body.len());
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(connect(&self.address)?),
        };
        connection.get_mut().write_all(format!("{head}{body}").as_bytes())?;
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            connection.read_line(&mut line)?;
            let line = line.strip_suffix("\r\n").ok_or_else(cut)?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(given) = line.strip_prefix("content-length:") {
                length = given.trim().parse().map_err(|_| cut())?;
            }
            status = status.or_else(|| line.split(' ').nth(1)?.parse().ok());
        }
        let mut answer = vec![0; length];
        connection.read_exact(&mut answer)?;
        let text = String::from_utf8_lossy(&answer);
        let answer = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap_or(Value::Null);
        Ok((status.ok_or_else(cut)?, answer))
    }

    /// Sends a request and returns the status only.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<u16, String> {
        self.ask(method, path, body).map(|(status, _)| status).map_err(|error| error.to_string())
    }

    /// Sends an incomplete batch.
    pub(crate) fn send_half(&mut self, path: &str) {
        let head = self.head("POST", path, 1000);
        if let Ok(mut connection) = connect(&self.address) {
            let begun = format!("{head}{{\"value\":[{{\"id\":\"half\",\"text\":\"half\"}},");
            let _ = connection.get_mut().write_all(begun.as_bytes());
            self.connection = Some(connection);
        }
    }

    fn head(&self, method: &str, path: &str, length: usize) -> String {
        format!(
            "{method} {path}?api-version=2025-09-01 HTTP/1.1\r\nhost: {}\r\napi-key: {}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n",
            self.address, self.key
        )
    }
}

fn connect(address: &str) -> io::Result<BufReader<TcpStream>> {
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(LONGEST))?;
    socket.set_nodelay(true)?;
    Ok(BufReader::new(socket))
}
