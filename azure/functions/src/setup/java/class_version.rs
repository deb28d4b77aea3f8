//! [`JavaNeed`]: the version of Java that the classes of an app need.
//!
//! Class files begin with the version that they are compiled for. Only the app's own jars are read, because a library
//! may have classes for newer versions that are never loaded.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::{Decompress, FlushDecompress};
use serde_json::Value;

use crate::json;

/// A version of Java that an app needs, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JavaNeed {
    pub(super) major: u32,
    /// A clause such as `orders.jar is compiled for Java 17`.
    pub(super) reason: String,
}

/// The library with rich MCP results, and the version of Java that it is compiled for.
const MCP_LIBRARY: (&str, u32) = ("azure-functions-java-mcp-", 17);

impl JavaNeed {
    /// Returns what the packaged app in this folder needs. `None` if its jars tell nothing.
    pub(super) fn of_app(app: &Path) -> Option<JavaNeed> {
        let of_jars = script_files(app).into_iter().filter_map(|jar| {
            let major = newest_class(&jar).ok()??;
            let name = jar.file_name()?.to_string_lossy().into_owned();
            Some(JavaNeed { major, reason: format!("{name} is compiled for Java {major}") })
        });
        let libraries = fs::read_dir(app.join("lib")).into_iter().flatten().flatten();
        let of_libraries = libraries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| name.starts_with(MCP_LIBRARY.0))?;
            Some(JavaNeed {
                major: MCP_LIBRARY.1,
                reason: format!("lib/{name} needs Java {}", MCP_LIBRARY.1),
            })
        });
        of_jars.chain(of_libraries).max_by_key(|need| need.major)
    }
}

/// Returns the jars that the `function.json` files of an app name.
fn script_files(app: &Path) -> BTreeSet<PathBuf> {
    let folders = fs::read_dir(app).into_iter().flatten().flatten().map(|entry| entry.path());
    let jars = folders.filter_map(|folder| {
        let text = fs::read_to_string(folder.join("function.json")).ok()?;
        let function = json::parse(&text).ok()?;
        let script = function.get("scriptFile").and_then(Value::as_str)?;
        fs::canonicalize(folder.join(script)).ok()
    });
    jars.collect()
}

/// The maximum size of the directory of a jar, and the maximum number of classes to read.
const LARGEST_DIRECTORY: u64 = 64 * 1024 * 1024;
const MOST_CLASSES: usize = 50_000;
/// The records of a zip file.
const END: [u8; 4] = *b"PK\x05\x06";
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const END_LENGTH: u64 = 22;
const LONGEST_COMMENT: u64 = 65_535;
const ENTRY_LENGTH: usize = 46;
const LOCAL_LENGTH: u64 = 30;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// The number of compressed bytes that begin a class and contain its version.
const HEAD_LENGTH: u64 = 1024;
/// The version of class files for Java 0, if there were one.
const FIRST_CLASS_VERSION: u32 = 44;

/// A class in a jar.
#[derive(Clone, Copy)]
struct ClassEntry {
    method: u16,
    offset: u64,
}

/// Returns the newest version of Java that a class of a jar needs. `None` if it has no class.
fn newest_class(jar: &Path) -> io::Result<Option<u32>> {
    let mut file = File::open(jar)?;
    let (mut newest, mut inflate) = (None, Decompress::new(false));
    for class in class_entries(&mut file)? {
        newest = newest.max(java_version(&mut file, class, &mut inflate)?);
    }
    Ok(newest)
}

/// Reads the directory of a jar. Classes for particular versions, below `META-INF`, are left out.
fn class_entries(file: &mut File) -> io::Result<Vec<ClassEntry>> {
    let length = file.metadata()?.len();
    let start = length.saturating_sub(END_LENGTH + LONGEST_COMMENT);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.read_to_end(&mut tail)?;
    let Some(end) = tail.windows(END.len()).rposition(|window| window == END) else { return Ok(Vec::new()) };
    let (Some(size), Some(offset)) = (long(&tail, end + 12), long(&tail, end + 16)) else {
        return Ok(Vec::new());
    };
    if u64::from(size) > LARGEST_DIRECTORY.min(length) {
        return Ok(Vec::new());
    }
    let mut directory = Vec::new();
    file.seek(SeekFrom::Start(offset.into()))?;
    file.by_ref().take(size.into()).read_to_end(&mut directory)?;

    let mut classes = Vec::new();
    let mut rest = directory.as_slice();
    while rest.starts_with(&ENTRY) && classes.len() < MOST_CLASSES {
        let (Some(method), Some(offset)) = (short(rest, 10), long(rest, 42)) else { break };
        let lengths = [28, 30, 32].map(|at| short(rest, at).map_or(0, usize::from));
        let name = rest.get(ENTRY_LENGTH..ENTRY_LENGTH + lengths[0]).unwrap_or_default();
        if name.ends_with(b".class") && !name.starts_with(b"META-INF/") && name != b"module-info.class" {
            classes.push(ClassEntry { method, offset: offset.into() });
        }
        rest = rest.get(ENTRY_LENGTH + lengths.iter().sum::<usize>()..).unwrap_or_default();
    }
    Ok(classes)
}

/// Reads the version at the start of a class. `None` if it is not a class.
fn java_version(file: &mut File, class: ClassEntry, inflate: &mut Decompress) -> io::Result<Option<u32>> {
    let mut local = Vec::new();
    file.seek(SeekFrom::Start(class.offset))?;
    file.by_ref().take(LOCAL_LENGTH).read_to_end(&mut local)?;
    let (Some(name), Some(extra)) = (short(&local, 26), short(&local, 28)) else { return Ok(None) };
    file.seek(SeekFrom::Current(i64::from(name) + i64::from(extra)))?;
    let (mut data, mut head) = (Vec::new(), [0; 8]);
    file.take(HEAD_LENGTH).read_to_end(&mut data)?;
    match class.method {
        STORED => {
            let Some(start) = data.first_chunk() else { return Ok(None) };
            head = *start;
        }
        DEFLATED => {
            inflate.reset(false);
            // Data that is not valid leaves zeros.
            let _ = inflate.decompress(&data, &mut head, FlushDecompress::None);
        }
        _ => return Ok(None),
    }
    let [0xca, 0xfe, 0xba, 0xbe, _, _, high, low] = head else { return Ok(None) };
    let version = u32::from(u16::from_be_bytes([high, low]));
    Ok(version.checked_sub(FIRST_CLASS_VERSION))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;
    use crate::worker::PrivateFolder;

    fn class(version: u8) -> Vec<u8> {
        let mut class = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, version];
        class.extend(std::iter::repeat_n(7, 1000));
        class
    }

    /// Writes a jar. Entries of odd places are compressed.
    fn jar(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let (mut jar, mut directory) = (Vec::new(), Vec::new());
        for (index, (name, content)) in entries.iter().enumerate() {
            let (method, data) = match index % 2 {
                0 => (STORED, content.clone()),
                _ => {
                    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                    encoder.write_all(content).unwrap();
                    (DEFLATED, encoder.finish().unwrap())
                }
            };
            let offset = u32::try_from(jar.len()).unwrap();
            let name_length = u16::try_from(name.len()).unwrap().to_le_bytes();
            jar.extend(b"PK\x03\x04");
            jar.extend([0; 22]);
            jar.extend(name_length);
            jar.extend([3, 0]);
            jar.extend(name.as_bytes());
            jar.extend([0; 3]);
            jar.extend(data);
            directory.extend(ENTRY);
            directory.extend([0; 6]);
            directory.extend(method.to_le_bytes());
            directory.extend([0; 16]);
            directory.extend(name_length);
            directory.extend([0; 12]);
            directory.extend(offset.to_le_bytes());
            directory.extend(name.as_bytes());
        }
        let (start, size) = (jar.len(), directory.len());
        jar.extend(directory);
        jar.extend(END);
        jar.extend([0; 8]);
        jar.extend(u32::try_from(size).unwrap().to_le_bytes());
        jar.extend(u32::try_from(start).unwrap().to_le_bytes());
        jar.extend([0; 2]);
        jar
    }

    #[test]
    fn the_newest_class_of_a_jar_decides() {
        let folder = PrivateFolder::create().unwrap();
        let path = folder.path().join("a.jar");
        let newest = |entries: &[(&str, Vec<u8>)]| {
            fs::write(&path, jar(entries)).unwrap();
            newest_class(&path).unwrap()
        };
        assert_eq!(newest(&[("a/A.class", class(55)), ("a/B.class", class(61))]), Some(17));
        assert_eq!(newest(&[("a/A.class", class(65)), ("a/B.class", class(55))]), Some(21));
        let for_versions = ("META-INF/versions/21/a/A.class", class(65));
        let others = [for_versions, ("module-info.class", class(69)), ("x.class", b"text".to_vec())];
        assert_eq!(newest(&others), None);
        assert_eq!(newest(&[]), None);
    }

    #[test]
    fn a_damaged_jar_tells_nothing() {
        let folder = PrivateFolder::create().unwrap();
        let path = folder.path().join("a.jar");
        let whole = jar(&[("a/A.class", class(55)), ("a/B.class", class(61))]);
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let _ = newest_class(&path);
            let mut changed = whole.clone();
            changed[length] ^= 0xff;
            fs::write(&path, changed).unwrap();
            let _ = newest_class(&path);
        }
    }

    #[test]
    fn the_jars_of_functions_and_the_mcp_library_are_read() {
        let folder = PrivateFolder::create().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        assert_eq!(JavaNeed::of_app(folder.path()), None);
        write("orders.jar", &jar(&[("a/A.class", class(55))]));
        write("other.jar", &jar(&[("a/A.class", class(69))]));
        write("Save/function.json", br#"{"scriptFile": "../orders.jar"}"#);
        let need = JavaNeed::of_app(folder.path()).unwrap();
        assert_eq!((need.major, need.reason.as_str()), (11, "orders.jar is compiled for Java 11"));
        write("lib/azure-functions-java-mcp-1.0.1.jar", b"");
        let need = JavaNeed::of_app(folder.path()).unwrap();
        assert_eq!(need.reason, "lib/azure-functions-java-mcp-1.0.1.jar needs Java 17");
    }
}
