//! `bindpost exec`: becomes another program that ends when our parent does.
//!
//! A worker must not outlive its host, even one that is killed. The system can see to that, but only if the
//! process asks for it itself; so the host starts its workers by way of this command.

use std::convert::Infallible;

use anyhow::{Context as _, bail};

use crate::flags::ExecFlags;

#[cfg(unix)]
pub(crate) fn run(flags: ExecFlags) -> anyhow::Result<Infallible> {
    use std::os::unix::process::CommandExt as _;

    end_with_parent(flags.parent)?;
    let (program, arguments) = flags.command.split_first().context("there is no program to become")?;
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

#[cfg(target_os = "linux")]
fn end_with_parent(parent: u32) -> anyhow::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL)).context("cannot ask to end with the host")?;
    // It may have ended before we asked.
    let is_there = getppid().is_some_and(|now| u32::try_from(now.as_raw_nonzero().get()) == Ok(parent));
    if !is_there {
        bail!("the host has ended already");
    }
    Ok(())
}

/// Other systems have nothing like it; our own workers end when their connection does.
#[cfg(all(unix, not(target_os = "linux")))]
fn end_with_parent(_parent: u32) -> anyhow::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn run(_flags: ExecFlags) -> anyhow::Result<Infallible> {
    bail!("this system cannot do that")
}
