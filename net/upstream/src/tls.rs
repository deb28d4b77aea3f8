//! The TLS of every HTTP client: rustls on ring, with the certificates of the machine.

use reqwest::{Client, ClientBuilder};
use rustls::crypto::{CryptoProvider, ring};

/// Returns a builder of HTTP clients. Without a provider of cryptography reqwest would panic, so this installs
/// one for the process. A provider that the program has installed before is kept.
pub fn client_builder() -> ClientBuilder {
    if CryptoProvider::get_default().is_none() {
        // It fails only if another thread has installed one in the meantime.
        let _ = ring::default_provider().install_default();
    }
    Client::builder()
}
