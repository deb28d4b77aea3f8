//! Writes the shell completions and the man pages of `bindpost` to a folder: `cargo run --example reference -- FOLDER`.
//!
//! `cargo xtask dist` runs it. It is not a command of the program, because the packages contain the files.

use std::path::PathBuf;
use std::{env, fs, io};

use clap::CommandFactory as _;
use clap_complete::Shell;

#[path = "../src/flags.rs"]
#[allow(dead_code, unused_imports, reason = "the definition is printed; no value is read")]
mod flags;

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| io::Error::other("usage: reference FOLDER"))?;
    fs::create_dir_all(&folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
        clap_complete::generate_to(shell, &mut flags::CliFlags::command(), "bindpost", &folder)?;
    }
    // Each command has a page, so a page for `help` would repeat them.
    clap_mangen::generate_to(flags::CliFlags::command().disable_help_subcommand(true), &folder)
}
