//! The mistakes people make most, and what the compiler says to them.
//!
//! Each file in `tests/mistakes` is one mistake. `TRYBUILD=overwrite` writes what the compiler says now.

#[test]
fn mistakes_are_explained_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/mistakes/*.rs");
}
