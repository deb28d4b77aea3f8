//! Serving and mounting.

use std::path::Path;

use axum::Router;
use axum::routing::get;
use bindpost::http::{self, Endpoint, Settings};
use bindpost::prelude::*;
use bindpost::{Options, stdio};
use serde::Deserialize;
use tokio::net::TcpListener;

/// Says hello.
#[tool(read_only)]
fn hello() -> &'static str {
    "hello"
}

pub fn server() -> Result<Server, BuildError> {
    Server::builder("greeter", "1.0.0").add(entries![hello]).build()
}

/// Serves HTTP, or stdin and stdout for a client that starts the program.
pub async fn serve(server: Server, on_stdio: bool) -> std::io::Result<()> {
    if on_stdio {
        return stdio::serve_stdio(&server).await;
    }
    bindpost::serve(server, "127.0.0.1:7071").await
}

/// Serves on a Unix domain socket, for a proxy on the same machine.
pub async fn serve_unix(server: Server, path: &Path) -> std::io::Result<()> {
    let settings = Settings { health: true, ..Settings::default() };
    http::bind_unix(path, 0o660).await?.serve(server, settings).await
}

/// Serves an axum app with a page of its own, and MCP below `/mcp`.
pub async fn serve_app(server: Server, listener: TcpListener) -> std::io::Result<()> {
    let endpoint = Endpoint::new(server, Settings::default());
    // A mounted endpoint does not know the address. On a public one it needs authentication.
    endpoint.check_address(&listener.local_addr()?)?;
    let app = Router::new().route("/", get(async || "a page")).nest_service("/mcp", endpoint);
    axum::serve(listener, app).await
}

/// The settings of the app itself, in the table `[app]` of the file of options.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AppSettings {
    pub database: String,
    #[serde(default)]
    pub read_only: bool,
}

/// Reads the file that `BINDPOST_CONFIG` names, and variables such as `BINDPOST_ADDRESS`.
pub fn configured() -> Result<(Server, Options, AppSettings), Box<dyn std::error::Error>> {
    let options = Options::new("greeter", "1.0.0").load()?;
    let app: AppSettings = options.app()?;
    let server = options.server().add(entries![hello]).build()?;
    Ok((server, options, app))
}

/// Serves with the options: address, authentication, TLS, limits.
pub async fn serve_configured(server: Server, options: Options) -> Result<(), Box<dyn std::error::Error>> {
    options.bind().await?.serve(server, options.settings()?).await?;
    Ok(())
}

/// Serves an axum app whose settings come from its file of options and from variables.
pub async fn run_app() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::new("greeter", "1.0.0").load()?;
    let listener = TcpListener::bind(options.listen_address()).await?;
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    serve_app_with(&options, listener, stop).await
}

/// Serves until `stop` completes, and then until every accepted request is answered.
pub async fn serve_app_with(
    options: &Options,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn std::error::Error>> {
    // Tools get the settings of the app as `State<AppSettings>`.
    let server = options.server().state(options.app::<AppSettings>()?).add(entries![hello]).build()?;
    // Reads the file of API keys.
    let endpoint = Endpoint::new(server, options.settings()?);
    endpoint.check_address(&listener.local_addr()?)?;
    let app = Router::new().route("/healthz", get(async || "ok")).nest_service("/mcp", endpoint.clone());
    let stopped = async move {
        stop.await;
        // Ends the event streams of MCP clients. axum waits for them otherwise.
        endpoint.drain();
    };
    axum::serve(listener, app).with_graceful_shutdown(stopped).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use tokio::sync::oneshot;

    const FILE: &str = include_str!("mounting.toml");

    /// Returns the status of a request with this head.
    fn status(address: SocketAddr, head: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
        write!(stream, "{head}\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response.split(' ').nth(1).unwrap_or_default().to_owned())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_app_has_the_options_of_its_file() -> Result<(), Box<dyn std::error::Error>> {
        let options = Options::new("greeter", "1.0.0").load_toml("mounting.toml", FILE)?;
        assert_eq!(options.listen_address(), "127.0.0.1:8080");
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let serving = tokio::spawn(async move {
            let served = serve_app_with(&options, listener, stopped).await;
            served.map_err(|error| error.to_string())
        });
        let statuses = tokio::task::spawn_blocking(move || {
            let key = "x-api-key: a-long-random-secret";
            let heads =
                ["GET /healthz HTTP/1.1", "GET /mcp HTTP/1.1", &format!("GET /mcp HTTP/1.1\r\n{key}")];
            heads.into_iter().map(|head| status(address, head)).collect::<Result<Vec<_>, _>>()
        })
        .await??;
        // With its key, the request reaches the endpoint, which misses a header.
        assert_eq!(statuses, ["200", "401", "400"]);
        let _ = stop.send(());
        Ok(serving.await??)
    }

    #[tokio::test]
    async fn an_app_on_a_public_address_needs_authentication() -> Result<(), Box<dyn std::error::Error>> {
        let listener = TcpListener::bind("0.0.0.0:0").await?;
        let error = serve_app(server()?, listener).await.unwrap_err().to_string();
        assert!(error.starts_with("the server has no authentication, but 0.0.0.0:"), "{error}");
        Ok(())
    }

    #[test]
    fn the_settings_of_the_app_are_in_its_table() -> Result<(), Box<dyn std::error::Error>> {
        let file = "address = \"127.0.0.1:0\"\n\n[app]\ndatabase = \"library.db\"\n";
        let options = Options::new("greeter", "1.0.0").load_toml("greeter.toml", file)?;
        let expected = AppSettings { database: "library.db".to_owned(), read_only: false };
        assert_eq!(options.app::<AppSettings>()?, expected);
        Ok(())
    }
}
