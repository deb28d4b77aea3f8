//! The packages for npm: `bindpost`, a launcher, and `@bindpost/linux-x64`, which contains the program.
//!
//! npm installs the package of the user's platform only, because the launcher lists them as optional dependencies and
//! each names its system.

use std::fs;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::contents::{PLATFORMS, PackageFile, ReleaseContents, TargetPlatform};
use super::{ReleaseFile, archive};
use crate::workspace;

pub(super) fn package(contents: &ReleaseContents) -> Result<Vec<ReleaseFile>> {
    let launcher = fs::read(workspace::root().join("deploy/npm/bindpost.js"))?;
    let launcher = PackageFile::executable("package/bin/bindpost.js", launcher);
    let program = contents.program.at("package/bin/bindpost");
    let platform = contents.platform;
    Ok(vec![
        tarball(contents, "bindpost", launcher_manifest(contents), launcher)?,
        tarball(contents, &file_name(platform), platform_manifest(contents), program)?,
    ])
}

fn tarball(
    contents: &ReleaseContents,
    name: &str,
    manifest: Value,
    program: PackageFile,
) -> Result<ReleaseFile> {
    let mut manifest = serde_json::to_string_pretty(&manifest)?;
    manifest.push('\n');
    let mut files = vec![PackageFile::new("package/package.json", manifest.into_bytes()), program];
    files.extend(contents.documents().map(|file| file.below("package/")));
    let content = archive::gzip(&archive::tar(files)?)?;
    Ok(ReleaseFile { name: format!("{name}-{}.tgz", contents.version), content })
}

fn launcher_manifest(contents: &ReleaseContents) -> Value {
    let platforms: Map<String, Value> =
        PLATFORMS.iter().map(|platform| (package_name(platform), json!(contents.version))).collect();
    let mut manifest = manifest(contents, "bindpost");
    manifest["bin"] = json!({ "bindpost": "bin/bindpost.js" });
    manifest["engines"] = json!({ "node": ">=18" });
    manifest["optionalDependencies"] = Value::Object(platforms);
    manifest
}

fn platform_manifest(contents: &ReleaseContents) -> Value {
    let platform = contents.platform;
    let mut manifest = manifest(contents, &package_name(platform));
    manifest["os"] = json!([platform.npm_os]);
    manifest["cpu"] = json!([platform.npm_cpu]);
    manifest["libc"] = json!(["glibc"]);
    manifest["preferUnplugged"] = json!(true);
    manifest
}

fn manifest(contents: &ReleaseContents, name: &str) -> Value {
    json!({
        "name": name,
        "version": contents.version,
        "description": contents.description,
        "license": contents.license,
        "homepage": contents.homepage,
        "repository": { "type": "git", "url": format!("git+{}.git", contents.homepage) },
    })
}

fn package_name(platform: &TargetPlatform) -> String {
    format!("@bindpost/{}-{}", platform.npm_os, platform.npm_cpu)
}

/// The name that `npm pack` gives a package with a scope.
fn file_name(platform: &TargetPlatform) -> String {
    format!("bindpost-{}-{}", platform.npm_os, platform.npm_cpu)
}

#[cfg(test)]
mod tests {
    use super::super::contents::ReleaseContents;
    use super::{launcher_manifest, platform_manifest};

    #[test]
    fn the_launcher_requires_the_same_version_of_the_program() {
        let contents = ReleaseContents::example();
        let (launcher, platform) = (launcher_manifest(&contents), platform_manifest(&contents));
        assert_eq!(launcher["optionalDependencies"]["@bindpost/linux-x64"], platform["version"]);
        assert_eq!(platform["name"], "@bindpost/linux-x64");
        assert_eq!(
            (&platform["os"][0], &platform["cpu"][0], &platform["libc"][0]),
            (&"linux".into(), &"x64".into(), &"glibc".into())
        );
    }
}
