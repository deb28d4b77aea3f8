//! The archive for every Linux: `bindpost-VERSION-TARGET.tar.gz`. The other packages use its tar and gzip.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::contents::{PackageFile, ReleaseContents};
use super::{MODIFIED, ReleaseFile};

pub(super) fn package(contents: &ReleaseContents) -> Result<Vec<ReleaseFile>> {
    let folder = format!("bindpost-{}-{}", contents.version, contents.platform.triple);
    let mut files = vec![contents.program.below(&format!("{folder}/"))];
    files.extend(contents.documents().map(|file| file.below(&format!("{folder}/"))));
    files.extend(contents.completions.iter().map(|file| file.below(&format!("{folder}/completions/"))));
    files.extend(contents.manuals.iter().map(|file| file.below(&format!("{folder}/man/man1/"))));
    Ok(vec![ReleaseFile { name: format!("{folder}.tar.gz"), content: gzip(&tar(files)?)? }])
}

/// A tar file of root's files, with an entry for each folder.
pub(super) fn tar(mut files: Vec<PackageFile>) -> Result<Vec<u8>> {
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut tar = Builder::new(Vec::new());
    for folder in folders(&files) {
        let mut header = header(EntryType::Directory, 0o755, 0);
        tar.append_data(&mut header, folder, std::io::empty())?;
    }
    for file in &files {
        let mut header = header(EntryType::Regular, file.mode(), file.content.len() as u64);
        tar.append_data(&mut header, &file.path, &*file.content)?;
    }
    Ok(tar.into_inner()?)
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(MODIFIED);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// The folders of the files, each with a slash at its end, a parent before its children.
pub(super) fn folders(files: &[PackageFile]) -> BTreeSet<&str> {
    let above =
        |file: &'_ PackageFile| file.path.match_indices('/').map(|(at, _)| at + 1).collect::<Vec<_>>();
    files.iter().flat_map(|file| above(file).into_iter().filter_map(|end| file.path.get(..end))).collect()
}

/// Compresses without a name and a time in the header.
pub(super) fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(content)?;
    Ok(gzip.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::super::contents::{PackageFile, ReleaseContents};
    use super::{folders, package};

    #[test]
    fn lists_the_program_and_what_accompanies_it() {
        let archive = package(&ReleaseContents::example()).unwrap().remove(0);
        let mut tar = tar::Archive::new(GzDecoder::new(&*archive.content));
        let mut paths = Vec::new();
        for entry in tar.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let path = path.strip_prefix("bindpost-1.2.3-x86_64-unknown-linux-gnu/").unwrap().to_owned();
            assert_eq!(
                entry.header().mode().unwrap() & 0o111 != 0,
                path.ends_with('/') || path == "bindpost" || path.is_empty()
            );
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            paths.push(path);
        }
        for path in
            ["bindpost", "LICENSE-MIT", "README.md", "completions/bindpost.fish", "man/man1/bindpost.1"]
        {
            assert!(paths.iter().any(|found| found == path), "{path} is not in {paths:?}");
        }
    }

    #[test]
    fn parents_come_before_their_children() {
        let file = |path: &str| PackageFile::new(path, Vec::new());
        let files = [file("a/c/x"), file("a/b/y"), file("z")];
        assert_eq!(folders(&files).into_iter().collect::<Vec<_>>(), ["a/", "a/b/", "a/c/"]);
    }
}
