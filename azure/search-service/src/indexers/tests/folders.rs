//! Tests of the files that a data source may read.

use std::path::Path;

use super::*;

fn define(connection: &str, container: &str, query: Option<&str>) -> Result<DataSourceDefinition, ApiError> {
    DataSourceDefinition::parse(&json!({"name": "ds", "type": "azureblob",
        "container": {"name": container, "query": query},
        "credentials": {"connectionString": connection}}))
}

fn names(folder: &Folder, query: Option<&str>) -> Vec<String> {
    let source = define("UseDevelopmentStorage=true", "docs", query).unwrap();
    source.open(&folder.places()).unwrap().blobs().map(|blob| blob.name).collect()
}

#[test]
fn names_are_sorted_as_storage_accounts_sort_them() {
    let folder = Folder::new();
    for name in ["a/b.txt", "a-b.txt", "a.txt", "a/a/z.txt", "B.txt", "a0.txt"] {
        folder.write(name, "x");
    }
    let mut expected = vec!["a/b.txt", "a-b.txt", "a.txt", "a/a/z.txt", "B.txt", "a0.txt"];
    expected.sort_unstable();
    assert_eq!(names(&folder, None), expected);
    assert_eq!(names(&folder, Some("a/")), ["a/a/z.txt", "a/b.txt"]);
    assert_eq!(names(&folder, Some("a/a")), ["a/a/z.txt"]);
    assert_eq!(names(&folder, Some("/a/b")), ["a/b.txt"]);
    assert!(names(&folder, Some("none/x")).is_empty());
}

#[test]
fn names_outside_the_folder_are_rejected() {
    let good = "UseDevelopmentStorage=true";
    for container in ["..", ".", "a/b", "a\\b", "/etc", ""] {
        assert!(define(good, container, None).is_err(), "{container}");
    }
    for query in ["..", "a/../..", "a\\b", "a/./b"] {
        assert!(define(good, "docs", Some(query)).is_err(), "{query}");
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_the_folder_are_not_followed() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let docs = folder.0.join("blobs/docs");
    fs::create_dir_all(folder.0.join("secret")).unwrap();
    fs::write(folder.0.join("secret/key.txt"), "x").unwrap();
    folder.write("in/a.txt", "x");
    symlink(folder.0.join("secret/key.txt"), docs.join("out.txt")).unwrap();
    symlink(folder.0.join("secret"), docs.join("outside")).unwrap();
    symlink(&docs, docs.join("round")).unwrap();
    symlink(docs.join("in/a.txt"), docs.join("inner.txt")).unwrap();
    symlink("nowhere", docs.join("broken.txt")).unwrap();
    assert_eq!(names(&folder, None), ["in/a.txt", "inner.txt"]);
    assert!(names(&folder, Some("outside/")).is_empty());
    // A container that is a link to a folder outside the root does not exist.
    symlink(folder.0.join("secret"), folder.0.join("blobs/leak")).unwrap();
    let leak = define("UseDevelopmentStorage=true", "leak", None).unwrap();
    assert!(leak.open(&folder.places()).unwrap_err().message.contains("does not exist"));
    let source = define("UseDevelopmentStorage=true", "docs", None).unwrap().open(&folder.places()).unwrap();
    for name in ["../../secret/key.txt", "outside/key.txt", "out.txt", "/etc/hosts"] {
        let blob = source::Blob { name: name.to_owned(), size: 0, modified: 0 };
        assert!(source.open(&blob).is_err() && !source.exists(name), "{name}");
    }
}

#[test]
fn folders_must_be_allowed_by_the_operator() {
    let folder = Folder::new();
    folder.write("a b.txt", "x");
    let address = |path: &Path| format!("file://{}/", path.to_str().unwrap());
    let open = |connection: &str, allowed: &[PathBuf]| {
        let places = AllowedFolders { blobs: PathBuf::new(), allowed: allowed.to_vec() };
        define(connection, "docs", None).unwrap().open(&places)
    };
    let root = folder.0.join("blobs");
    for connection in [address(&root), format!("BlobEndpoint={};AccountName=x", address(&root))] {
        let source = open(&connection, std::slice::from_ref(&folder.0)).unwrap();
        assert_eq!(source.blobs().count(), 1);
        for allowed in [vec![], vec![folder.0.join("other")], vec![folder.0.join("blobs/docs")]] {
            let error = open(&connection, &allowed).unwrap_err();
            assert!(error.message.contains("--indexer-folder"));
            assert!(!error.message.contains(folder.0.to_str().unwrap()));
        }
    }
    let up = format!("{}/../..", address(&root));
    assert!(open(&up, &[root]).is_err());
}

#[test]
fn the_emulator_account_is_the_folder_of_the_service() {
    let folder = Folder::new();
    let long = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Eby8;BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1";
    assert!(define(long, "docs", None).unwrap().open(&folder.places()).is_ok());
}

#[test]
fn accounts_and_other_kinds_are_stored_and_fail_when_run() {
    let mut bench = Bench::new(json!({}));
    bench.source["credentials"]["connectionString"] =
        json!("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=c2VjcmV0");
    let result = bench.run();
    assert_eq!(result.status, status::ExecutionStatus::TransientFailure);
    let message = result.error_message.unwrap();
    assert!(message.contains("UseDevelopmentStorage=true") && !message.contains("c2VjcmV0"));
    assert_eq!(bench.status()["status"], "error");
    bench.source["type"] = json!("azuresql");
    assert!(bench.run().error_message.unwrap().contains("azuresql"));
    bench.source["type"] = json!("floppy");
    assert!(DataSourceDefinition::parse(&bench.source).is_err());
}

#[test]
fn a_missing_container_fails_the_run_and_deletes_nothing() {
    let mut bench = Bench::new(json!({}));
    bench.source["dataDeletionDetectionPolicy"] =
        json!({"@odata.type": "#Microsoft.Azure.Search.NativeBlobSoftDeleteDeletionDetectionPolicy"});
    bench.folder.write("a.txt", "x");
    bench.succeed();
    fs::rename(bench.folder.0.join("blobs/docs"), bench.folder.0.join("blobs/moved")).unwrap();
    let result = bench.run();
    assert!(result.error_message.unwrap().contains("'docs'"));
    assert_eq!(bench.index.keys().len(), 1);
}

#[test]
fn addresses_escape_special_characters() {
    let folder = Folder::new();
    folder.write("ä b/c#.txt", "x");
    let source = define("UseDevelopmentStorage=true", "docs", None).unwrap().open(&folder.places()).unwrap();
    let blob = source.blobs().next().unwrap();
    let metadata = parse::blob_metadata(&source, &blob);
    assert_eq!(metadata["metadata_storage_path"], "http://local/docs/%C3%A4%20b/c%23.txt");
    assert_eq!(metadata["metadata_storage_name"], "c#.txt");
    assert_eq!(metadata["metadata_storage_file_extension"], ".txt");
    assert_eq!(metadata["metadata_storage_content_type"], "text/plain");
}
