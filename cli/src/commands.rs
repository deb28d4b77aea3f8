//! One file per command. A command takes plain values, so a test can run it without a shell.

pub(crate) mod demo;
