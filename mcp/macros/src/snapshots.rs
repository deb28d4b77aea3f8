//! Snapshots of the generated code in `tests/snapshots`: `x.rs` is the source, `x.expanded.rs` the
//! expansion. `UPDATE_SNAPSHOTS=1` rewrites them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proc_macro2::TokenStream;
use quote::ToTokens as _;
use syn::{Attribute, Item};

use crate::attributes::{EntryKind, tokens_of};

#[test]
fn expansions_match_their_snapshots() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let mut sources: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    sources.retain(|path| !path.to_string_lossy().ends_with(".expanded.rs"));
    sources.sort();
    assert!(sources.len() >= 5, "{sources:?}");
    for source in sources {
        let expanded = format(&expand(&std::fs::read_to_string(&source).unwrap()));
        let kept = source.with_extension("expanded.rs");
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(&kept, &expanded).unwrap();
        }
        let expected = std::fs::read_to_string(&kept).unwrap_or_default();
        assert_eq!(
            expanded,
            expected,
            "{}: run with UPDATE_SNAPSHOTS=1 and check the difference",
            source.display()
        );
    }
}

/// Expands the attributes of bindpost in a source.
fn expand(source: &str) -> TokenStream {
    let file = syn::parse_file(source).unwrap();
    file.items.into_iter().map(expand_item).collect()
}

fn expand_item(mut item: Item) -> TokenStream {
    let attributes = match &mut item {
        Item::Fn(function) => &mut function.attrs,
        Item::Impl(block) => &mut block.attrs,
        Item::Struct(other) => &mut other.attrs,
        _ => return item.into_token_stream(),
    };
    let is_ours = |attribute: &Attribute| {
        let name = attribute.path().get_ident().map(ToString::to_string).unwrap_or_default();
        name == "tools" || EntryKind::ALL.iter().any(|kind| kind.attribute() == name)
    };
    let Some(at) = attributes.iter().position(is_ours) else { return item.into_token_stream() };
    let attribute = attributes.remove(at);
    let (options, item) = (tokens_of(&attribute), item.into_token_stream());
    match EntryKind::ALL.into_iter().find(|kind| attribute.path().is_ident(kind.attribute())) {
        Some(kind) => crate::entry::expand_function(kind, options, item),
        None => crate::toolbox::expand_impl(options, item),
    }
}

fn format(tokens: &TokenStream) -> String {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    rustfmt.stdin.take().unwrap().write_all(tokens.to_string().as_bytes()).unwrap();
    let output = rustfmt.wait_with_output().unwrap();
    assert!(output.status.success(), "{tokens}");
    String::from_utf8(output.stdout).unwrap()
}
