//! The test of the packages: each is installed into an empty folder, and the program runs from there.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::contents::ReleaseContents;
use crate::servers::ServerProcess;
use crate::workspace;

pub(crate) fn run() -> Result<()> {
    // The debug build, which the other steps have built.
    let program = workspace::build("dev", &["bindpost-cli"])?.join("bindpost");
    let packages = super::folder();
    let contents = super::write_packages(&program, &packages)?;
    workspace::run(
        Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&packages),
    )?;

    let place = InstallPlace { packages, version: contents.version.clone() };
    place.check_version("the archive", &place.unpack_archive(&contents)?)?;
    place.check_version("the Debian package", &place.unpack_debian(&contents)?)?;
    place.check_version("the wheel", &place.install_wheel(&contents)?)?;
    let launcher = place.install_npm(&contents)?;
    place.check_version("the npm package", &launcher)?;
    // The launcher is the only code of its own between the user and the program.
    call_a_tool(&launcher)?;
    place.check_version("cargo install", &place.install_cargo()?)?;
    package_crates()
}

/// The packages, and the folders that they are installed into.
struct InstallPlace {
    packages: PathBuf,
    version: String,
}

impl InstallPlace {
    /// A new, empty folder.
    fn empty_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = workspace::target().join("tmp/dist/installed").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The package whose name ends so.
    fn package(&self, ending: &str) -> Result<PathBuf> {
        let files = fs::read_dir(&self.packages)?.filter_map(Result::ok).map(|entry| entry.path());
        let mut found = files.filter(|path| path.to_string_lossy().ends_with(ending));
        found.next().with_context(|| format!("there is no package {ending}"))
    }

    fn check_version(&self, name: &str, program: &Path) -> Result<()> {
        let said = workspace::output(Command::new(program).arg("--version")).context(name.to_owned())?;
        ensure!(said.trim() == format!("bindpost {}", self.version), "{name}: the program says {said:?}");
        println!("{name}: {}", said.trim());
        Ok(())
    }

    fn unpack_archive(&self, contents: &ReleaseContents) -> Result<PathBuf> {
        let folder = self.empty_folder("archive")?;
        let archive = self.package(&format!("{}.tar.gz", contents.platform.triple))?;
        workspace::run(Command::new("tar").arg("xzf").arg(archive).current_dir(&folder))?;
        let folder = folder.join(format!("bindpost-{}-{}", self.version, contents.platform.triple));
        let completions = folder.join("completions/bindpost.bash");
        let registered = "source \"$0\" && complete -p bindpost >/dev/null";
        workspace::run(Command::new("bash").args(["-c", registered]).arg(completions))?;
        Ok(folder.join("bindpost"))
    }

    fn unpack_debian(&self, contents: &ReleaseContents) -> Result<PathBuf> {
        let folder = self.empty_folder("debian")?;
        let package = self.package(".deb")?;
        if Command::new("dpkg-deb").arg("--version").output().is_ok() {
            let mut field = Command::new("dpkg-deb");
            let depends = workspace::output(field.arg("--field").arg(&package).arg("Depends"))?;
            ensure!(
                depends.trim() == contents.linkage.debian_dependencies(),
                "dpkg-deb reads Depends: {depends}"
            );
            workspace::run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&folder))?;
        } else {
            workspace::run(Command::new("ar").arg("x").arg(package).current_dir(&folder))?;
            workspace::run(Command::new("tar").args(["xzf", "data.tar.gz"]).current_dir(&folder))?;
        }
        let man_page = folder.join("usr/share/man/man1/bindpost.1.gz");
        workspace::run(Command::new("gzip").arg("--test").arg(man_page))?;
        Ok(folder.join("usr/bin/bindpost"))
    }

    fn install_wheel(&self, contents: &ReleaseContents) -> Result<PathBuf> {
        let folder = self.empty_folder("wheel")?;
        workspace::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]);
        workspace::run(pip.arg(self.package(".whl")?))?;
        // pip does not compare the hashes of RECORD, so this does.
        let mut verify = Command::new(folder.join("bin/python"));
        workspace::run(verify.args(["-c", VERIFY_RECORD]).arg(self.package(".whl")?))?;
        let listed = fs::read_dir(folder.join("lib"))?.filter_map(Result::ok).map(|python| {
            python.path().join(format!("site-packages/bindpost-{}.dist-info/licenses", contents.version))
        });
        ensure!(listed.into_iter().any(|licenses| licenses.is_dir()), "pip installed no licenses");
        Ok(folder.join("bin/bindpost"))
    }

    fn install_npm(&self, contents: &ReleaseContents) -> Result<PathBuf> {
        let folder = self.empty_folder("npm")?;
        fs::write(folder.join("package.json"), r#"{"private":true}"#)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"]);
        let platform = format!("{}-{}", contents.platform.npm_os, contents.platform.npm_cpu);
        for name in ["bindpost", &format!("bindpost-{platform}")] {
            npm.arg(self.package(&format!("/{name}-{}.tgz", self.version))?);
        }
        workspace::run(npm.current_dir(&folder)).context("npm is needed (it comes with Node)")?;
        Ok(folder.join("node_modules/.bin/bindpost"))
    }

    /// Installs from the sources as the README says, but with the debug build, which exists.
    fn install_cargo(&self) -> Result<PathBuf> {
        let folder = self.empty_folder("cargo")?;
        let mut cargo =
            workspace::cargo(&["install", "--quiet", "--path", "cli", "--locked", "--debug", "--root"]);
        workspace::run(cargo.arg(&folder))?;
        Ok(folder.join("bin/bindpost"))
    }
}

/// Compares each file of a wheel with its line in RECORD.
const VERIFY_RECORD: &str = "
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
assert wheel.testzip() is None
record = next(name for name in wheel.namelist() if name.endswith('.dist-info/RECORD'))
lines = list(csv.reader(io.TextIOWrapper(wheel.open(record))))
assert sorted(line[0] for line in lines) == sorted(wheel.namelist())
for name, digest, size in lines:
    if name != record:
        data = wheel.read(name)
        found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        assert (digest, size) == ('sha256=' + found, str(len(data))), name
";

/// Starts the demo and calls one of its tools. Then the program, not only the launcher, must end at SIGTERM.
fn call_a_tool(program: &Path) -> Result<()> {
    let folder = workspace::target().join("tmp/dist");
    let mut command = Command::new(program);
    command.args(["demo", "--port", "0"]);
    let server = ServerProcess::start("demo", command, &folder)?;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut stream = TcpStream::connect(format!("127.0.0.1:{}", server.port()))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(
        stream,
        "POST {} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: add\r\n\
         content-length: {}\r\n\r\n{body}",
        server.path(),
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(
        answer.starts_with("HTTP/1.1 200") && answer.contains(r#""total":3.0"#),
        "the demo answers:\n{answer}"
    );
    let port = server.port().to_owned();
    drop(server);
    if TcpStream::connect(format!("127.0.0.1:{port}")).is_ok() {
        bail!("the program still listens after its launcher was stopped");
    }
    println!("the demo of the npm package answers a call and ends with its launcher");
    Ok(())
}

/// Makes the packages that `cargo publish` would upload, without compiling them and without uploading.
fn package_crates() -> Result<()> {
    let metadata = workspace::metadata(&["--no-deps"])?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let published = packages.filter(|package| package["publish"].is_null());
    let mut cargo = workspace::cargo(&["package", "--quiet", "--no-verify", "--allow-dirty"]);
    for name in published.filter_map(|package| package["name"].as_str()) {
        cargo.args(["--package", name]);
    }
    workspace::run(&mut cargo)
}
