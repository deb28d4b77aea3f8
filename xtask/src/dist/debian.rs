//! The package for Debian and Ubuntu: `bindpost_VERSION_ARCH.deb`, an `ar` file of two tar files.

use anyhow::Result;

use super::contents::{PackageFile, ReleaseContents};
use super::{MODIFIED, ReleaseFile, archive};

/// Debian requires a name and an address. The address receives no mail.
const MAINTAINER: &str = "The bindpost contributors <noreply@bindpost.invalid>";

pub(super) fn package(contents: &ReleaseContents) -> Result<Vec<ReleaseFile>> {
    let files = installed_files(contents)?;
    let control = PackageFile::new("./control", control(contents, &files).into_bytes());
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", archive::gzip(&archive::tar(vec![control])?)?),
        ("data.tar.gz", archive::gzip(&archive::tar(files)?)?),
    ];
    let name = format!("bindpost_{}_{}.deb", debian_version(&contents.version), contents.platform.debian);
    Ok(vec![ReleaseFile { name, content: ar(&members) }])
}

/// The files with the paths at which the package manager installs them.
fn installed_files(contents: &ReleaseContents) -> Result<Vec<PackageFile>> {
    let mut files = vec![
        contents.program.at("./usr/bin/bindpost"),
        contents.readme.at("./usr/share/doc/bindpost/README.md"),
        PackageFile::new("./usr/share/doc/bindpost/copyright", copyright(contents).into_bytes()),
    ];
    files.extend(contents.licenses.iter().map(|file| file.below("./usr/share/doc/bindpost/")));
    for page in &contents.manuals {
        let path = format!("./usr/share/man/man1/{}.gz", page.path);
        files.push(PackageFile::new(path, archive::gzip(&page.content)?));
    }
    files.extend(contents.completions.iter().filter_map(|file| {
        let path = match file.path.as_str() {
            "bindpost.bash" => "./usr/share/bash-completion/completions/bindpost",
            "_bindpost" => "./usr/share/zsh/vendor-completions/_bindpost",
            "bindpost.fish" => "./usr/share/fish/vendor_completions.d/bindpost.fish",
            // Debian has no folder for completions of PowerShell.
            _ => return None,
        };
        Some(file.at(path))
    }));
    Ok(files)
}

fn control(contents: &ReleaseContents, files: &[PackageFile]) -> String {
    format!(
        "Package: bindpost\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {size}\n\
         Depends: {depends}\n\
         Recommends: ca-certificates\n\
         Suggests: nodejs, python3-venv\n\
         Section: net\n\
         Priority: optional\n\
         Homepage: {homepage}\n\
         Description: Model Context Protocol servers from functions and services\n \
         bindpost serves Azure Functions apps, services with an OpenAPI document and\n \
         Azure AI Search as servers of the Model Context Protocol. It contains an\n \
         embedded search service and language workers for Python and Node.\n",
        version = debian_version(&contents.version),
        architecture = contents.platform.debian,
        size = installed_size(files),
        depends = contents.linkage.debian_dependencies(),
        homepage = contents.homepage,
    )
}

/// The size in KiB as `dpkg-gencontrol` counts it: each file rounded up, and one for each folder.
fn installed_size(files: &[PackageFile]) -> usize {
    let sizes: usize = files.iter().map(|file| file.content.len().div_ceil(1024)).sum();
    sizes + archive::folders(files).len()
}

/// Before a release, `1.0.0-rc.1`: Debian sorts it before `1.0.0` if a tilde stands there.
fn debian_version(version: &str) -> String {
    version.replacen('-', "~", 1)
}

fn copyright(contents: &ReleaseContents) -> String {
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: bindpost\n\
         Source: {}\n\
         Comment: The program contains crates by other authors. Their licenses are in\n \
         /usr/share/doc/bindpost/THIRD-PARTY-LICENSES.txt.\n\
         \n\
         Files: *\n\
         Copyright: 2026 The bindpost contributors\n\
         License: Expat or Apache-2.0\n\
         \n\
         License: Expat\n \
         The text is in /usr/share/doc/bindpost/LICENSE-MIT.\n\
         \n\
         License: Apache-2.0\n \
         The text is in /usr/share/doc/bindpost/LICENSE-APACHE and in\n \
         /usr/share/common-licenses/Apache-2.0.\n",
        contents.homepage
    )
}

/// An archive of the Unix program `ar`. Each member begins at an even position.
fn ar(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let header =
            format!("{name:<16}{MODIFIED:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", content.len());
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(content);
        if content.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::super::contents::{PackageFile, ReleaseContents};
    use super::{ar, control, debian_version, installed_size};

    #[test]
    fn the_control_file_names_sizes_and_libraries() {
        let files =
            [PackageFile::new("./usr/bin/bindpost", vec![0; 1025]), PackageFile::new("./usr/x", vec![1])];
        assert_eq!(installed_size(&files), 2 + 1 + 3);
        let control = control(&ReleaseContents::example(), &files);
        for line in [
            "Version: 1.2.3",
            "Architecture: amd64",
            "Installed-Size: 6",
            "Depends: libc6 (>= 2.34), libgcc-s1 (>= 4.2)",
        ] {
            assert!(control.lines().any(|found| found == line), "{line} is not in:\n{control}");
        }
        assert!(control.lines().all(|line| line.starts_with(' ') || line.contains(": ")), "{control}");
    }

    #[test]
    fn members_of_an_archive_begin_at_even_positions() {
        let archive = ar(&[("odd", b"abc".to_vec()), ("even", b"de".to_vec())]);
        assert_eq!(archive.len(), 8 + 60 + 4 + 60 + 2);
        assert_eq!(archive.get(8..12), Some(&b"odd "[..]));
        assert_eq!(archive.get(72..77), Some(&b"even "[..]));
    }

    #[test]
    fn a_version_before_a_release_sorts_before_it() {
        assert_eq!(debian_version("1.0.0-rc.1"), "1.0.0~rc.1");
        assert_eq!(debian_version("1.0.0"), "1.0.0");
    }
}
