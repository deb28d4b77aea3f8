//! `bindpost exec`: replaces this process with another program that ends when the parent process ends.
//!
//! A worker must not outlive its host, even if the host is killed. On Linux a process can request a
//! signal for the end of its parent, but only for itself. The host therefore starts its workers through
//! this command.

use std::convert::Infallible;

use anyhow::{Context as _, bail};

use crate::flags::ExecFlags;

#[cfg(unix)]
pub(crate) fn run(flags: ExecFlags) -> anyhow::Result<Infallible> {
    use std::os::unix::process::CommandExt as _;

    end_with_parent(flags.parent)?;
    let (program, arguments) = flags.command.split_first().context("no program given")?;
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

#[cfg(target_os = "linux")]
fn end_with_parent(parent: u32) -> anyhow::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL)).context("cannot set the parent death signal")?;
    // The parent may have ended before the signal was requested.
    let is_there = getppid().is_some_and(|now| u32::try_from(now.as_raw_nonzero().get()) == Ok(parent));
    if !is_there {
        bail!("the host has ended already");
    }
    Ok(())
}

/// Does nothing: other systems have no such signal. Our own workers end when their connection closes.
#[cfg(all(unix, not(target_os = "linux")))]
fn end_with_parent(_parent: u32) -> anyhow::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn run(_flags: ExecFlags) -> anyhow::Result<Infallible> {
    bail!("exec is not supported on this system")
}
