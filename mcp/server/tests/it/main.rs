//! All tests of the crate, in one binary.

mod callers;
mod conversations;
mod fixture;
mod stdio;
