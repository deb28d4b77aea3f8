//! The shared libraries that a program needs, and the versions of them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// What the dynamic linker loads for a program.
#[derive(Debug, PartialEq)]
pub(super) struct ProgramLinkage {
    /// The libraries, such as `libc.so.6`.
    pub(super) libraries: Vec<String>,
    /// The newest version of the C library that a symbol requires.
    pub(super) glibc: LibraryVersion,
    /// The newest version of the compiler's library that a symbol requires, if the program uses it.
    pub(super) libgcc: Option<LibraryVersion>,
}

/// A version such as 2.34.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LibraryVersion {
    pub(super) major: u32,
    pub(super) minor: u32,
}

impl ProgramLinkage {
    pub(super) fn read(program: &Path) -> Result<Self> {
        Self::parse(&workspace::output(Command::new("objdump").arg("-p").arg(program))?)
    }

    /// Parses the output of `objdump -p`. Every version counts, also those that only weak symbols require,
    /// because the dynamic linker refuses a program if a version is missing.
    fn parse(text: &str) -> Result<Self> {
        let words = || text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut libraries = Vec::new();
        for line in words() {
            if let ["NEEDED", library] = line.as_slice() {
                // Packages and wheels promise these libraries only.
                if !is_libc(library) && *library != LIBGCC {
                    bail!("the program links {library}, for which no package names a dependency");
                }
                libraries.push((*library).to_owned());
            }
        }
        let newest = |family: &str| {
            let versions =
                words().filter_map(|line| LibraryVersion::parse(line.last()?.strip_prefix(family)?));
            versions.max()
        };
        Ok(Self {
            glibc: newest("GLIBC_")
                .context("the program needs no version of glibc; is it linked statically?")?,
            libgcc: newest("GCC_"),
            libraries,
        })
    }

    /// The value of `Depends` in a Debian package.
    pub(super) fn debian_dependencies(&self) -> String {
        let mut depends = vec![format!("libc6 (>= {}.{})", self.glibc.major, self.glibc.minor)];
        if let Some(version) = self.libgcc {
            depends.push(format!("libgcc-s1 (>= {}.{})", version.major, version.minor));
        }
        depends.join(", ")
    }

    #[cfg(test)]
    pub(super) fn example() -> Self {
        Self {
            libraries: vec!["libc.so.6".into()],
            glibc: LibraryVersion { major: 2, minor: 34 },
            libgcc: Some(LibraryVersion { major: 4, minor: 2 }),
        }
    }
}

const LIBGCC: &str = "libgcc_s.so.1";

/// The files of glibc. The wheels of every manylinux version may link them.
fn is_libc(library: &str) -> bool {
    ["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"].contains(&library)
        || library.starts_with("ld-linux-")
}

impl LibraryVersion {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(str::parse);
        Some(Self { major: numbers.next()?.ok()?, minor: numbers.next()?.ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::{LibraryVersion, ProgramLinkage};

    const OBJDUMP: &str = "
Dynamic Section:
  NEEDED               libgcc_s.so.1
  NEEDED               libc.so.6
  RUNPATH              x

Version References:
  required from libgcc_s.so.1:
    0x0b792650 0x00 05 GCC_3.0
    0x09276060 0x00 28 GCC_4.2.0
  required from libc.so.6:
    0x09691a75 0x00 03 GLIBC_2.2.5
    0x069691b4 0x00 02 GLIBC_2.34
    0x0d696919 0x00 16 GLIBC_2.9
";

    #[test]
    fn reads_libraries_and_the_newest_versions() {
        let linkage = ProgramLinkage::parse(OBJDUMP).unwrap();
        assert_eq!(linkage.libraries, ["libgcc_s.so.1", "libc.so.6"]);
        assert_eq!(linkage.glibc, LibraryVersion { major: 2, minor: 34 });
        assert_eq!(linkage.debian_dependencies(), "libc6 (>= 2.34), libgcc-s1 (>= 4.2)");
    }

    #[test]
    fn rejects_a_library_that_no_package_promises() {
        let error = ProgramLinkage::parse(&OBJDUMP.replace("libgcc_s.so.1", "libssl.so.3")).unwrap_err();
        assert!(error.to_string().contains("libssl.so.3"), "{error}");
    }
}
