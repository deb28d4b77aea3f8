//! The package for PyPI: a wheel without Python code. pip copies the program to the `bin` folder of the environment.

use std::io::Write;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use sha2::{Digest, Sha256};

use super::ReleaseFile;
use super::contents::{PackageFile, ReleaseContents};

pub(super) fn package(contents: &ReleaseContents) -> Result<Vec<ReleaseFile>> {
    let version = python_version(&contents.version);
    let tag = format!("py3-none-{}", platform_tag(contents));
    let (data, info) = (format!("bindpost-{version}.data"), format!("bindpost-{version}.dist-info"));
    let mut files = vec![
        contents.program.at(format!("{data}/scripts/bindpost")),
        PackageFile::new(format!("{info}/METADATA"), metadata(contents, &version)?.into_bytes()),
        PackageFile::new(format!("{info}/WHEEL"), wheel(&tag).into_bytes()),
    ];
    files.extend(contents.licenses.iter().map(|file| file.below(&format!("{info}/licenses/"))));
    files.sort_by(|one, other| one.path.cmp(&other.path));
    // The record comes last, as the specification of wheels recommends.
    let record = format!("{info}/RECORD");
    files.push(PackageFile::new(record.clone(), lines_of_record(&files, &record).into_bytes()));
    Ok(vec![ReleaseFile { name: format!("bindpost-{version}-{tag}.whl"), content: zip(&files)? }])
}

/// The oldest glibc that has every symbol version the program needs.
fn platform_tag(contents: &ReleaseContents) -> String {
    let glibc = contents.linkage.glibc;
    format!("manylinux_{}_{}_{}", glibc.major, glibc.minor, contents.platform.python_machine)
}

/// `1.0.0-rc.1` is `1.0.0rc1` for Python.
fn python_version(version: &str) -> String {
    match version.split_once('-') {
        Some((release, before)) => format!("{release}{}", before.replace('.', "")),
        None => version.to_owned(),
    }
}

fn metadata(contents: &ReleaseContents, version: &str) -> Result<String> {
    let readme = std::str::from_utf8(&contents.readme.content)?;
    let license_files: String =
        contents.licenses.iter().map(|file| format!("License-File: {}\n", file.path)).collect();
    Ok(format!(
        "Metadata-Version: 2.4\n\
         Name: bindpost\n\
         Version: {version}\n\
         Summary: {}\n\
         License-Expression: {}\n\
         {license_files}\
         Requires-Python: >=3.8\n\
         Project-URL: Repository, {}\n\
         Description-Content-Type: text/markdown\n\
         \n\
         {readme}",
        contents.description, contents.license, contents.homepage
    ))
}

fn wheel(tag: &str) -> String {
    format!("Wheel-Version: 1.0\nGenerator: bindpost xtask\nRoot-Is-Purelib: false\nTag: {tag}\n")
}

/// A line for each file with its hash and size. The record itself has neither.
fn lines_of_record(files: &[PackageFile], record: &str) -> String {
    let line = |file: &PackageFile| {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.content));
        format!("{},sha256={hash},{}\n", file.path, file.content.len())
    };
    files.iter().map(line).chain([format!("{record},,\n")]).collect()
}

/// A ZIP file: each entry compressed, of 1980-01-01, with the permissions of Unix.
fn zip(files: &[PackageFile]) -> Result<Vec<u8>> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for file in files {
        let offset = size(archive.len())?;
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
        deflate.write_all(&file.content)?;
        let packed = deflate.finish()?;
        let mut crc = Crc::new();
        crc.update(&file.content);

        // The part that the local header and the directory have in common.
        let mut common = Vec::new();
        common.extend([20, 0]); // needs version 2.0
        common.extend([0, 0]); // no flags
        common.extend([8, 0]); // deflated
        common.extend([0, 0, 0x21, 0]); // midnight, 1980-01-01
        common.extend(crc.sum().to_le_bytes());
        common.extend(size(packed.len())?.to_le_bytes());
        common.extend(size(file.content.len())?.to_le_bytes());
        common.extend(u16::try_from(file.path.len())?.to_le_bytes());
        common.extend([0, 0]); // no extra fields

        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend(file.path.as_bytes());
        archive.extend(packed);

        directory.extend(b"PK\x01\x02");
        directory.extend([20, 3]); // made by version 2.0 on Unix
        directory.extend(&common);
        directory.extend([0; 6]); // no comment, first disk, binary
        directory.extend(((0o100_000 | file.mode()) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(file.path.as_bytes());
    }
    let (offset, entries) = (size(archive.len())?, u16::try_from(files.len())?);
    let length = size(directory.len())?;
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend(entries.to_le_bytes());
    archive.extend(entries.to_le_bytes());
    archive.extend(length.to_le_bytes());
    archive.extend(offset.to_le_bytes());
    archive.extend([0, 0]);
    Ok(archive)
}

fn size(length: usize) -> Result<u32> {
    u32::try_from(length).context("a wheel beyond 4 GiB needs ZIP64")
}

#[cfg(test)]
mod tests {
    use super::super::contents::{PackageFile, ReleaseContents};
    use super::{lines_of_record, metadata, platform_tag, python_version, zip};

    #[test]
    fn the_record_has_the_hash_of_each_file_but_its_own() {
        let files = [PackageFile::new("a/b", b"hello\n".to_vec())];
        assert_eq!(
            lines_of_record(&files, "x/RECORD"),
            "a/b,sha256=WJG1tSLV3whtD_CxEPvZ0hu0_HFjrzTQgoai6Eb2vgM,6\nx/RECORD,,\n"
        );
    }

    #[test]
    fn the_tag_and_the_metadata_follow_the_contents() {
        let contents = ReleaseContents::example();
        assert_eq!(platform_tag(&contents), "manylinux_2_34_x86_64");
        let metadata = metadata(&contents, "1.2.3").unwrap();
        assert!(metadata.contains("\nLicense-File: LICENSE-MIT\n"), "{metadata}");
        assert!(metadata.ends_with("\n\ntext of README.md\n"), "{metadata}");
        assert_eq!(python_version("1.0.0-rc.1"), "1.0.0rc1");
    }

    #[test]
    fn a_zip_file_ends_with_its_directory() {
        let archive = zip(&[PackageFile::executable("run", b"x".to_vec())]).unwrap();
        // 30 bytes of local header, 46 of the directory, 22 at the end, two names, and the packed byte.
        assert_eq!(archive.len(), 30 + 46 + 22 + 2 * 3 + 3);
        // The permissions are the upper half of the attributes: -rwxr-xr-x.
        assert_eq!(archive.get(36 + 38..36 + 42), Some(&[0, 0, 0xed, 0x81][..]));
    }
}
