//! The process of a worker: its start, its console, signals to its process group, and its exit.

pub(crate) mod console;
pub(crate) mod launch;
pub(crate) mod own;
pub(crate) mod private_folder;

use std::fmt;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use self::console::ProcessConsole;

/// How long to read the console of a process that has exited.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A running or ended process. Dropping it kills the process and its children.
pub(crate) struct ChildProcess {
    pid: u32,
    exit: watch::Receiver<Option<ProcessExit>>,
    kill: watch::Sender<bool>,
}

/// How a process is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    Terminate,
    Kill,
}

impl ChildProcess {
    /// Starts the command in its own process group, so that all its processes can be killed.
    pub(crate) async fn start(mut command: Command, console: Arc<ProcessConsole>) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = spawn(command).await?;
        let pid = child.id().ok_or_else(|| io::Error::other("the process has no id"))?;
        let stdout = child.stdout.take().map(|pipe| tokio::spawn(Arc::clone(&console).read(pipe, false)));
        let stderr = child.stderr.take().map(|pipe| tokio::spawn(console.read(pipe, true)));
        let (sender, exit) = watch::channel(None);
        let (kill, kill_wanted) = watch::channel(false);
        tokio::spawn(reap(child, pid, [stdout, stderr], kill_wanted, sender));
        Ok(Self { pid, exit, kill })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn exit(&self) -> Option<ProcessExit> {
        *self.exit.borrow()
    }

    /// Waits for the exit of the process and the end of its console.
    pub(crate) async fn wait_for_exit(&self) -> ProcessExit {
        match self.exit.clone().wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or_default(),
            Err(_) => ProcessExit::default(),
        }
    }

    /// Signals the process and its children, unless it has exited. A stopped process reacts only to `Kill`.
    pub(crate) fn signal(&self, signal: StopSignal) {
        if self.exit().is_none() {
            #[cfg(unix)]
            signal_group(self.pid, signal);
            if !cfg!(unix) || signal == StopSignal::Kill {
                self.kill.send_replace(true);
            }
        }
    }

    /// Returns whether the process exits within the limit.
    pub(crate) async fn ends_within(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.wait_for_exit()).await.is_ok()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.signal(StopSignal::Kill);
    }
}

async fn reap(
    mut child: Child,
    pid: u32,
    console: [Option<JoinHandle<()>>; 2],
    mut kill: watch::Receiver<bool>,
    exit: watch::Sender<Option<ProcessExit>>,
) {
    let wanted = async { kill.wait_for(|wanted| *wanted).await.is_ok() };
    let status = tokio::select! {
        status = child.wait() => status,
        true = wanted => {
            let _ = child.start_kill();
            child.wait().await
        }
    };
    // Child processes must not outlive the process or keep its console open.
    #[cfg(unix)]
    signal_group(pid, StopSignal::Kill);
    let _ = pid;
    let last_words = async {
        for reader in console.into_iter().flatten() {
            let _ = reader.await;
        }
    };
    let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
    exit.send_replace(Some(status.map(ProcessExit::from).unwrap_or_default()));
}

#[cfg(unix)]
fn signal_group(pid: u32, signal: StopSignal) {
    use rustix::process::{Pid, Signal as Posix, kill_process_group};
    let signal = match signal {
        StopSignal::Terminate => Posix::TERM,
        StopSignal::Kill => Posix::KILL,
    };
    if let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // An error usually means that the group no longer exists.
        let _ = kill_process_group(group, signal);
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessExit {
    code: Option<i32>,
    signal: Option<i32>,
}

/// The exit code with which a public worker requests a restart.
const RESTART: i32 = 200;

impl ProcessExit {
    pub(crate) fn wants_restart(self) -> bool {
        self.code == Some(RESTART)
    }
}

impl From<ExitStatus> for ProcessExit {
    fn from(status: ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        Self { code: status.code(), signal }
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(9)) => f.write_str("signal 9, SIGKILL"),
            (None, Some(11)) => f.write_str("signal 11, SIGSEGV"),
            (None, Some(15)) => f.write_str("signal 15, SIGTERM"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => f.write_str("exit code unknown"),
        }
    }
}

struct SpawnRequest {
    command: Command,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// Starts the command from one thread that lives as long as this program.
///
/// A launcher may ask the kernel to signal the worker when its parent exits. For the kernel, the parent is
/// the thread that created the process, and a thread of the runtime may end before the program does.
async fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<mpsc::Sender<SpawnRequest>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, received) = mpsc::channel::<SpawnRequest>();
        // If the thread cannot be started, the channel is closed and the send below fails.
        let _ = std::thread::Builder::new().name("spawner".into()).spawn(move || {
            for mut order in received {
                let _guard = order.runtime.enter();
                let _ = order.reply.send(order.command.spawn());
            }
        });
        orders
    });
    let gone = || io::Error::other("the thread that starts processes has ended");
    let (reply, child) = oneshot::channel();
    spawner.send(SpawnRequest { command, runtime: Handle::current(), reply }).map_err(|_| gone())?;
    child.await.map_err(|_| gone())?
}
