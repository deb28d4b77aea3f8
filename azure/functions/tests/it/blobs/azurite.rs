//! Azurite, Microsoft's emulator, shared by all tests of this process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use bindpost_azure_functions::blobs::{BlobSettings, BlobStore};

use super::{ACCOUNT, keyed};
use crate::packages;

/// Runs Azurite. It stops when our end of its standard input closes, also when the tests are killed.
const START: &str =
    "process.stdin.on('end', () => process.exit(0)).on('error', () => process.exit(0)).resume();
    process.argv.splice(1, 0, 'azurite'); require(process.argv.splice(2, 1)[0]);";

/// A running emulator.
pub(crate) struct Azurite {
    port: u16,
    _process: Child,
}

impl Azurite {
    /// Starts it if it does not run yet. It stops with this process.
    pub(crate) fn shared() -> &'static Azurite {
        static SHARED: OnceLock<Azurite> = OnceLock::new();
        SHARED.get_or_init(Azurite::start)
    }

    fn start() -> Azurite {
        let program = packages::npm("azurite", "3.35.0").join("dist/src/blob/main.js");
        let mut process = Command::new("node")
            .args(["-e", START, "--"])
            .arg(program)
            .args(["--blobHost", "127.0.0.1", "--blobPort", "0"])
            .args(["--inMemoryPersistence", "--silent", "--disableTelemetry"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node has to be installed");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = lines
            .find_map(|line| {
                let line = line.unwrap();
                line.contains("successfully listens").then_some(line)
            })
            .expect("Azurite starts");
        // It must not block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let port = ready.rsplit(':').next().unwrap().trim().parse().unwrap();
        Azurite { port, _process: process }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{ACCOUNT}", self.port)
    }

    pub(crate) fn store(&self) -> BlobStore {
        keyed(&self.address(), &BlobSettings::default())
    }
}
