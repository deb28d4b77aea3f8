//! The contract of every store. Each check uses its own containers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bindpost_azure_functions::blobs::{
    AzureStore, BlobPath, BlobSettings, BlobStore, LocalStore, StorageConnection,
};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::task::JoinSet;

use super::azurite::Azurite;
use super::proxy::Proxy;
use super::{ACCOUNT, KEY, from_connection_string, keyed, path};
use crate::scratch::Scratch;

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_keeps_the_contract() {
    let folder = Scratch::new();
    let store = LocalStore::open(folder.path(), &BlobSettings::default()).await.unwrap();
    all(&BlobStore::Local(store), "embedded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn azurite_keeps_the_contract_with_a_key() {
    all(&Azurite::shared().store(), "key").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn azurite_keeps_the_contract_with_a_sas_token() {
    let text =
        format!("BlobEndpoint={};SharedAccessSignature={}", Azurite::shared().address(), account_sas());
    let StorageConnection::Account(account) = from_connection_string(&text) else {
        panic!("a SAS token must resolve to an account");
    };
    let store = AzureStore::new(account, &BlobSettings::default()).unwrap();
    all(&BlobStore::Azure(store), "sas").await;
}

/// As in Azure itself, the account is in the host name, and the path begins with the container.
#[tokio::test(flavor = "multi_thread")]
async fn azurite_takes_the_account_from_the_host_name() {
    let azurite = Azurite::shared();
    let proxy = Proxy::rename(azurite.port(), "devstoreaccount1.blob.localhost").await;
    let store = keyed(&format!("http://127.0.0.1:{}", proxy.port()), &BlobSettings::default());
    for name in ["a", "a b/é", "%2e%2e/x", "a?b#c"] {
        let path = BlobPath::new("by-host", name).unwrap();
        assert_eq!(read(&store, &path).await, None);
        write(&store, &path, name).await;
        assert_eq!(read(&store, &path).await.as_deref(), Some(name.as_bytes()));
        assert_eq!(read(&azurite.store(), &path).await.as_deref(), Some(name.as_bytes()), "the same blob");
    }
}

/// Runs every check. `label` separates runs against one account.
async fn all(store: &BlobStore, label: &str) {
    whole_blobs_come_back(store, label).await;
    what_is_missing_is_none(store, label).await;
    a_write_replaces(store, label).await;
    unusual_names_stay_distinct(store, label).await;
    readers_see_whole_blobs(store, label).await;
    many_at_once_make_one_container(store, label).await;
}

async fn read(store: &BlobStore, path: &BlobPath) -> Option<Bytes> {
    store.read(path).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn write(store: &BlobStore, path: &BlobPath, data: impl Into<Bytes>) {
    store.write(path, data.into()).await.unwrap_or_else(|error| panic!("{error}"));
}

async fn whole_blobs_come_back(store: &BlobStore, label: &str) {
    let large: Vec<u8> =
        (0..8u32 << 20).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let every_byte: Vec<u8> = (0..=255).collect();
    // The large one first: the service finds that the container is missing during its upload.
    let contents = [
        ("large", large),
        ("text", "žluťoučký kůň\r\n".as_bytes().to_vec()),
        ("mark", b"\xef\xbb\xbfwith a mark".to_vec()),
        ("bytes", every_byte),
        ("empty", Vec::new()),
    ];
    for (name, content) in &contents {
        write(store, &path(&format!("whole-{label}/{name}")), content.clone()).await;
    }
    for (name, content) in &contents {
        let found = read(store, &path(&format!("whole-{label}/{name}"))).await;
        assert!(found.as_deref() == Some(content.as_slice()), "{name} came back changed");
    }
}

async fn what_is_missing_is_none(store: &BlobStore, label: &str) {
    assert_eq!(read(store, &path(&format!("nowhere-{label}/a"))).await, None);
    write(store, &path(&format!("missing-{label}/a/b")), "x").await;
    assert_eq!(read(store, &path(&format!("missing-{label}/a"))).await, None, "a prefix is not a blob");
    assert_eq!(read(store, &path(&format!("missing-{label}/a/b/c"))).await, None);
    assert_eq!(read(store, &path(&format!("nowhere-{label}/a"))).await, None, "reading creates no container");
}

async fn a_write_replaces(store: &BlobStore, label: &str) {
    let path = path(&format!("replaced-{label}/a"));
    for content in ["a long first version", "short", ""] {
        write(store, &path, content).await;
        assert_eq!(read(store, &path).await.as_deref(), Some(content.as_bytes()));
    }
}

async fn unusual_names_stay_distinct(store: &BlobStore, label: &str) {
    let long = "x".repeat(1024);
    let other_long = format!("{}y", "x".repeat(1023));
    let wide = "é".repeat(1024);
    let deep = format!("{}x", "a/".repeat(253));
    let mut names = vec![long, other_long, wide, deep];
    names.extend(
        [
            "b.json",
            "b.json/inner.json",
            "B.json",
            "b.JSON",
            "%2e%2e",
            "%2e%2e/x",
            "%2E%2E/x",
            "..%2fx",
            "..a",
            "a/..b",
            ".hidden",
            ".tmp-0",
            "/etc/passwd",
            "a//b",
            "a/b",
            "%",
            "%%",
            "%zz",
            "%00",
            "%2F",
            "a b",
            "a+b",
            "a%20b",
            "a&b=c;d",
            "a?b#c",
            "a:b|c*d",
            "<'\">",
            "{x}",
            "[y]",
            "^`",
            "~",
            "~a",
            "+a",
            "$root",
            "con",
            "nul.txt",
            "com1",
            "-",
            "_",
            "\u{e9}",
            "e\u{301}",
            "E\u{301}",
            "日本語/ファイル.txt",
            "🦀",
            " leading",
            "a\u{a0}b",
            "restype=container",
            "a,b@c!d(e)",
        ]
        .map(str::to_owned),
    );
    let container = format!("names-{label}");
    for name in &names {
        write(store, &BlobPath::new(&container, name).unwrap(), name.clone()).await;
    }
    for name in &names {
        let found = read(store, &BlobPath::new(&container, name).unwrap()).await;
        assert_eq!(found.as_deref(), Some(name.as_bytes()), "{name:?}");
    }
    // Rejected before any store sees them.
    for name in
        ["../x", "..", "a/../../x", "a/./b", "a\\b", "..\\x", "a\0", "a\n", "a.", "a./b", "a/", "", "//"]
    {
        assert!(BlobPath::new(&container, name).is_err(), "{name:?}");
    }
    assert!(BlobPath::new(&container, "x".repeat(1025)).is_err());
    for container in ["..", ".", "a/b", "", "Names", "na--mes", ".tmp"] {
        assert!(BlobPath::new(container, "b").is_err(), "{container:?}");
    }
}

/// Concurrent writers of different versions and readers. Each version has its own letter and length.
async fn readers_see_whole_blobs(store: &BlobStore, label: &str) {
    const WRITERS: usize = 4;
    const VERSIONS: usize = 8;
    let path = Arc::new(path(&format!("versions-{label}/a")));
    let version = |writer: usize, version: usize| {
        let letter = b'a' + u8::try_from(writer * VERSIONS + version).unwrap() % 26;
        Bytes::from(vec![letter; 100_000 + 10_000 * usize::from(letter - b'a')])
    };
    write(store, &path, version(0, 0)).await;
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..4 {
        let (store, path, done) = (store.clone(), path.clone(), done.clone());
        readers.spawn(async move {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                let found = read(&store, &path).await.expect("it always exists");
                let letter = found[0];
                assert!(found.iter().all(|&byte| byte == letter), "two versions in one");
                assert_eq!(found.len(), 100_000 + 10_000 * usize::from(letter - b'a'), "half a version");
                seen += 1;
            }
            seen
        });
    }
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (store, path) = (store.clone(), path.clone());
        writers.spawn(async move {
            for number in 0..VERSIONS {
                write(&store, &path, version(writer, number)).await;
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    while let Some(ended) = readers.join_next().await {
        assert!(ended.unwrap() > 0, "a reader never read");
    }
}

async fn many_at_once_make_one_container(store: &BlobStore, label: &str) {
    let mut calls = JoinSet::new();
    for number in 0..50 {
        let store = store.clone();
        let path = path(&format!("many-{label}/{number}"));
        calls.spawn(async move {
            write(&store, &path, number.to_string()).await;
            assert_eq!(read(&store, &path).await.unwrap(), number.to_string());
        });
    }
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
}

/// Returns a token for everything in the emulator's account.
fn account_sas() -> String {
    let (permissions, expires, version) = ("rwdlacup", "2099-01-01T00:00:00Z", "2019-12-12");
    let text = format!("{ACCOUNT}\n{permissions}\nb\nsco\n\n{expires}\n\nhttps,http\n{version}\n");
    let mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).unwrap()).unwrap();
    let signature = STANDARD.encode(mac.chain_update(text.as_bytes()).finalize().into_bytes());
    let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!("sv={version}&ss=b&srt=sco&sp={permissions}&se={expires}&spr=https,http&sig={signature}")
}
