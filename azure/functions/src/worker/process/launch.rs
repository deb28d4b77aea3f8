//! The command line and environment of a worker process.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::process::Command;

use super::private_folder::PrivateFolder;
use crate::worker::wire::framing::Framing;

/// How the processes of an app are started.
#[derive(Clone, Debug)]
pub struct WorkerLaunch {
    /// A command that is put before the command line and executes its remaining arguments.
    pub launcher: Vec<OsString>,
    /// The interpreter, or the worker itself.
    pub program: OsString,
    /// Arguments between the program and the worker's path.
    pub arguments: Vec<OsString>,
    /// The file that the interpreter runs.
    pub worker_path: Option<PathBuf>,
    pub framing: Framing,
    /// Whether the interpreter can connect to unix sockets. If not, our own worker connects on the loopback interface.
    pub has_unix_sockets: bool,
    /// The app folder. It is the working directory of the workers.
    pub app_directory: PathBuf,
    /// The folder of the worker's files.
    pub worker_directory: PathBuf,
    /// The app's settings, including the environment of the host. They override the variables that
    /// the host sets.
    pub environment: Vec<(OsString, OsString)>,
    /// `python`, `node`, `java` …
    pub language: String,
    pub runtime_version: Option<String>,
    /// The version that the host reports to the worker.
    pub host_version: String,
    /// Whether the host requests the list of functions from the worker.
    pub indexes: bool,
    /// The number of concurrent processes, from 1 to 10.
    pub processes: usize,
    /// The folder with the files and socket of a bundled worker. It is deleted when the last
    /// reference is dropped.
    pub folder: Option<Arc<PrivateFolder>>,
}

/// The address that a worker connects to.
#[derive(Clone, Debug)]
pub(crate) enum ConnectAddress {
    Grpc(SocketAddr),
    /// The value of `--socket`.
    Frames(String),
}

/// The maximum, because the host applies its own limit.
const MESSAGE_LENGTH: &str = "2147483647";

impl WorkerLaunch {
    /// Returns the command, including the arguments with the address to connect to and the worker id.
    pub(crate) fn command(&self, address: &ConnectAddress, worker_id: &str, request_id: &str) -> Command {
        let line = self.command_line(address, worker_id, request_id);
        let (program, arguments) = line
            .split_first()
            .map_or((OsStr::new(""), &[][..]), |(program, rest)| (program.as_os_str(), rest));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.app_directory)
            .env("FUNCTIONS_WORKER_DIRECTORY", &self.worker_directory)
            .env("FUNCTIONS_APPLICATION_DIRECTORY", &self.app_directory)
            .env("AzureWebJobsScriptRoot", &self.app_directory);
        if let Some(version) = &self.runtime_version {
            command.env("FUNCTIONS_WORKER_RUNTIME_VERSION", version);
        }
        if self.language == "python" {
            // Enough threads for functions that block, and console lines without buffering.
            command.env("PYTHON_THREADPOOL_THREAD_COUNT", "1000").env("PYTHONUNBUFFERED", "1");
            if self.framing == Framing::Grpc {
                // Use the library of the app's environment, not the older one that a public worker includes.
                command.env("PYTHON_ISOLATE_WORKER_DEPENDENCIES", "1");
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn command_line(&self, address: &ConnectAddress, worker_id: &str, request_id: &str) -> Vec<OsString> {
        let mut line = self.launcher.clone();
        line.push(self.program.clone());
        line.extend(self.arguments.iter().cloned());
        line.extend(self.worker_path.iter().map(OsString::from));
        match address {
            // Python reads the first five, Node the others, and Java either. All are passed, in this order.
            ConnectAddress::Grpc(address) => {
                let (host, port) = (address.ip().to_string(), address.port().to_string());
                let uri = format!("http://{address}/");
                line.extend(
                    [
                        ["--host", &host],
                        ["--port", &port],
                        ["--workerId", worker_id],
                        ["--requestId", request_id],
                        ["--grpcMaxMessageLength", MESSAGE_LENGTH],
                        ["--functions-uri", &uri],
                        ["--functions-worker-id", worker_id],
                        ["--functions-request-id", request_id],
                        ["--functions-grpc-max-message-length", MESSAGE_LENGTH],
                    ]
                    .concat()
                    .into_iter()
                    .map(OsString::from),
                );
            }
            ConnectAddress::Frames(address) => line.extend(
                ["--socket", address, "--worker-id", worker_id, "--request-id", request_id]
                    .map(OsString::from),
            ),
        }
        line
    }

    /// Returns the command for messages, without the launcher and the arguments of the protocol.
    pub(crate) fn display_command(&self) -> String {
        let parts = [self.program.clone()].into_iter().chain(self.arguments.iter().cloned());
        let parts = parts.chain(self.worker_path.iter().map(OsString::from));
        parts.map(|part| part.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch() -> WorkerLaunch {
        WorkerLaunch {
            launcher: vec!["bindpost".into(), "child".into()],
            program: "java".into(),
            arguments: vec!["-jar".into()],
            worker_path: Some("worker.jar".into()),
            framing: Framing::Grpc,
            has_unix_sockets: true,
            app_directory: "/app".into(),
            worker_directory: "/worker".into(),
            environment: Vec::new(),
            language: "java".into(),
            runtime_version: None,
            host_version: "4".into(),
            indexes: false,
            processes: 1,
            folder: None,
        }
    }

    #[test]
    fn public_workers_get_nine_fixed_arguments_in_order() {
        let line = launch().command_line(&ConnectAddress::Grpc(([127, 0, 0, 1], 5).into()), "W", "R");
        let expected = "bindpost child java -jar worker.jar --host 127.0.0.1 --port 5 --workerId W --requestId R \
             --grpcMaxMessageLength 2147483647 --functions-uri http://127.0.0.1:5/ --functions-worker-id W \
             --functions-request-id R --functions-grpc-max-message-length 2147483647";
        assert_eq!(line.join(OsStr::new(" ")), OsStr::new(expected));
    }

    #[test]
    fn our_own_workers_get_the_socket() {
        let line = launch().command_line(&ConnectAddress::Frames("unix:/x/socket".into()), "W", "R");
        assert_eq!(
            line[4..].join(OsStr::new(" ")),
            OsStr::new("worker.jar --socket unix:/x/socket --worker-id W --request-id R")
        );
        assert_eq!(launch().display_command(), "java -jar worker.jar");
    }
}
