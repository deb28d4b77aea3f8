//! Common mistakes, and the compiler's error messages for them.
//!
//! Each file in `tests/mistakes` is one mistake. `TRYBUILD=overwrite` rewrites the expected messages.

#[test]
fn mistakes_are_explained_at_their_location() {
    trybuild::TestCases::new().compile_fail("tests/mistakes/*.rs");
}
