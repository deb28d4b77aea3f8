//! Skills: what a folder is read as, its mistakes, and who may read what.

use std::fs;
use std::path::{Path, PathBuf};

use bindpost_mcp_server::protocol::{Message, RequestId, Revision, jsonrpc};
use bindpost_mcp_server::testing::TestClient;
use bindpost_mcp_server::transport::{
    DeliveryTarget, DispatchOutcome, NoHeaders, Peer, RequestOrigin, RequiredAccess,
};
use bindpost_mcp_server::{
    AccessRule, Caller, Identity, ListVisibility, ResourceEntry, Server, Skill, SkillSet, ToolEntry,
};
use serde_json::{Value, json};

use crate::fixture;

/// A folder that is deleted on drop.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> TestFolder {
        let path = std::env::temp_dir().join(format!("bindpost-skills-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        TestFolder(path)
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &TestFolder {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn skill(&self, path: &str) -> &TestFolder {
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        self.file(&format!("{path}/SKILL.md"), manifest(name))
    }

    fn server(&self) -> Result<Server, String> {
        let builder = Server::builder("s", "1").skills(SkillSet::from_folder(&self.0));
        // The paths in messages begin with the folder.
        builder.build().map_err(|error| error.to_string().replace(&*self.0.to_string_lossy(), "skills"))
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn manifest(name: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}\n---\n")
}

fn envelope(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

async fn ask(server: &Server, method: &str, params: Value) -> Result<Value, i64> {
    let mut client = TestClient::connect(server);
    client.request(method, envelope(params)).await.map_err(|error| error.code)
}

fn uris(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["uri"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_folder_is_read_once_with_skills_at_every_level() {
    let folder = TestFolder::new("levels");
    folder.skill("zebra").file("zebra/scripts/run.sh", "echo hi\n").file("zebra/.cache/x", "hidden");
    folder.skill("acme/refunds").skill("acme/refunds/eu").file("README.md", "not a skill");
    let server = folder.server().unwrap();
    fs::write(folder.0.join("zebra/SKILL.md"), "changed").unwrap();

    let list = ask(&server, "skills/list", json!({})).await.unwrap();
    assert_eq!(
        uris(&list["skills"]),
        ["skill://acme/refunds/SKILL.md", "skill://acme/refunds/eu/SKILL.md", "skill://zebra/SKILL.md"]
    );
    assert_eq!(
        uris(&list["skills"][0]["resources"]),
        ["skill://acme/refunds/SKILL.md", "skill://acme/refunds/eu/SKILL.md"]
    );
    assert_eq!(
        uris(&list["skills"][2]["resources"]),
        ["skill://zebra/SKILL.md", "skill://zebra/scripts/run.sh"]
    );
    let read = ask(&server, "resources/read", json!({"uri": "skill://zebra/SKILL.md"})).await.unwrap();
    assert_eq!(read["contents"][0]["text"], manifest("zebra"));
    let resources = ask(&server, "resources/list", json!({})).await.unwrap();
    let described = resources["resources"].as_array().unwrap();
    assert!(described.iter().all(|resource| resource["description"].is_string()), "{resources}");
}

#[test]
fn all_mistakes_of_a_folder_are_reported_at_once_with_file_and_fix() {
    let folder = TestFolder::new("mistakes");
    folder
        .file("empty/notes.md", "text")
        .file("lower/skill.md", manifest("lower"))
        .file("open/SKILL.md", "---\nname: open\n")
        .file("renamed/SKILL.md", manifest("original"))
        .skill("Acme Inc/refunds")
        .skill("ok");
    let error = folder.server().unwrap_err();
    for expected in [
        "skill \"skills/empty\": the folder has files but no SKILL.md; add one, or move the files to a skill",
        "skill \"skills/lower/skill.md\": the name of the file is \"skill.md\"; rename it to \"SKILL.md\"",
        "skill \"skills/open/SKILL.md\": the header is not closed; add a line `---` after it",
        "skill \"skills/renamed/SKILL.md\": the name in the header is \"original\", but the folder is \
         \"renamed\"; rename one of them",
        "skill \"skills/Acme Inc/refunds/SKILL.md\": the folder \"Acme Inc\" of \"Acme Inc/refunds\" cannot be \
         part of a URI",
    ] {
        assert!(error.contains(expected), "{expected}\n{error}");
    }
    assert_eq!(error.lines().count(), 5, "{error}");
}

#[test]
fn a_folder_without_skills_or_that_is_a_skill_is_a_mistake() {
    let folder = TestFolder::new("none");
    assert!(folder.server().unwrap_err().contains("the folder has no skills"));
    folder.file("SKILL.md", manifest("none"));
    assert!(folder.server().unwrap_err().contains("the folder of all skills cannot be a skill"));
    let missing = TestFolder(folder.0.join("missing"));
    assert!(missing.server().unwrap_err().contains("the folder cannot be read"));
}

#[cfg(unix)]
#[tokio::test]
async fn links_out_of_the_folder_and_to_folders_are_not_followed() {
    use std::os::unix::fs::symlink;

    let outside = TestFolder::new("outside");
    outside.file("secret", "secret");
    let folder = TestFolder::new("links");
    folder.skill("a").file("a/.data/real.md", "inside");
    symlink(folder.0.join("a/.data/real.md"), folder.0.join("a/link.md")).unwrap();
    let server = folder.server().unwrap();
    let read = ask(&server, "resources/read", json!({"uri": "skill://a/link.md"})).await.unwrap();
    assert_eq!(read["contents"][0]["text"], "inside");

    symlink(outside.0.join("secret"), folder.0.join("a/secret.md")).unwrap();
    symlink(&folder.0, folder.0.join("a/loop")).unwrap();
    symlink(outside.0.join("missing"), folder.0.join("a/dangling.md")).unwrap();
    fs::create_dir(folder.0.join("b")).unwrap();
    symlink(outside.0.join("secret"), folder.0.join("b/SKILL.md")).unwrap();
    let error = folder.server().unwrap_err();
    for expected in [
        "skill \"skills/a/secret.md\": the symbolic link leads out of the folder of skills",
        "skill \"skills/a/loop\": a symbolic link to a folder is not followed",
        "skill \"skills/a/dangling.md\": the file cannot be read",
        "skill \"skills/b/SKILL.md\": the symbolic link leads out of the folder of skills",
    ] {
        assert!(error.contains(expected), "{expected}\n{error}");
    }
    assert_eq!(error.lines().count(), 4, "{error}");
}

#[test]
fn skills_that_hosts_may_refuse_are_mistakes() {
    let folder = TestFolder::new("limits");
    folder.skill("big").file("big/data", vec![0; 16 * 1024 * 1024]);
    let error = folder.server().unwrap_err();
    assert!(error.contains("skill \"skills/big\": the skill has more than 512 files or 16 MiB"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");

    let files = |count: usize| {
        let skill = Skill::new("many").file("SKILL.md", manifest("many"));
        let skill = (1..count).fold(skill, |skill, at| skill.file(format!("{at}"), ""));
        Server::builder("s", "1").skills(SkillSet::new().skill(skill)).build()
    };
    assert!(files(512).is_ok());
    let error = files(513).unwrap_err().to_string();
    assert!(error.contains("the skill has 513 files"), "{error}");
}

#[test]
fn skills_by_hand_are_checked_as_well() {
    let build = |skills: SkillSet| Server::builder("s", "1").skills(skills).build().unwrap_err().to_string();
    let skill = |path: &str| Skill::new(path).file("SKILL.md", manifest("a"));
    for (skills, expected) in [
        (SkillSet::new().skill(Skill::new("a")), "the skill \"a\" has no file \"SKILL.md\"; add it"),
        (SkillSet::new().skill(skill("a").file("../b", "")), "the invalid segment \"..\""),
        (SkillSet::new().skill(skill("a").file("/b", "")), "the invalid segment \"\""),
        (SkillSet::new().skill(skill("a").file("b", "").file("b", "")), "the file \"a/b\" is also given by"),
        (
            SkillSet::new().skill(skill("a").file("b", "").file("b/c", "")),
            "\"a/b\" is a file, and the folder of",
        ),
        (
            SkillSet::new().skill(skill("x/A").file("b", "")),
            "the name in the header is \"a\", but the folder is",
        ),
    ] {
        let error = build(skills);
        assert!(error.contains(expected), "{expected}\n{error}");
    }
    // A resource of the server may have the same URI.
    let resource = ResourceEntry::text("skill://a/SKILL.md", "a", "other");
    let builder = Server::builder("s", "1").resource(resource).skills(SkillSet::new().skill(skill("a")));
    assert!(builder.build().unwrap_err().to_string().contains("already exists"));
}

#[tokio::test]
async fn replacing_the_catalog_keeps_the_files_of_skills() {
    let server = fixture::skilled(Server::builder("s", "1")).build().unwrap();
    server.catalog().replace([ToolEntry::new("t", async || "x").into()]).unwrap();
    for (method, uri) in [
        ("resources/read", "skill://git-workflow/SKILL.md"),
        ("skills/get", "skill://git-workflow/SKILL.md"),
        ("resources/directory/read", "skill://acme/refunds"),
    ] {
        assert!(ask(&server, method, json!({"uri": uri})).await.is_ok(), "{method}");
    }
}

#[tokio::test]
async fn a_server_without_resources_has_no_skills() {
    let server = fixture::skilled(Server::builder("s", "1")).without_resources().build().unwrap();
    assert_eq!(ask(&server, "skills/list", json!({})).await, Err(-32601));
    let discovered = ask(&server, "server/discover", json!({})).await.unwrap();
    assert_eq!(discovered["capabilities"]["extensions"], Value::Null);
}

/// A public skill, and one for support in a folder beside it.
fn guarded_server() -> Server {
    let public = Skill::new("shop/public").file("SKILL.md", manifest("public"));
    let internal = Skill::new("shop/internal").file("SKILL.md", manifest("internal")).file("docs/x.md", "x");
    Server::builder("s", "1")
        .skills(SkillSet::new().skill(public).access(AccessRule::anonymous()))
        .skills(SkillSet::new().skill(internal).access(AccessRule::default().with_scopes(["support"])))
        .build()
        .unwrap()
}

fn request(method: &str, params: Value) -> bindpost_mcp_server::protocol::Request {
    let text = jsonrpc::encode_request(&RequestId::from(1), method, &envelope(params));
    match jsonrpc::decode_one(text.into()) {
        Ok(Message::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

/// Sends a request to a server whose lists have permitted entries only.
fn list_as(server: &Server, caller: Caller, method: &str, params: Value) -> Value {
    let origin = RequestOrigin {
        peer: Peer::Alone(Revision::V2026_07_28),
        caller,
        delivery: DeliveryTarget::None,
        listing: ListVisibility::Permitted,
        abilities: bindpost_mcp_server::transport::TransportAbilities::NONE,
        guarded: true,
        http: None,
    };
    match server.dispatch(request(method, params), origin, &NoHeaders) {
        DispatchOutcome::Answer(answer) => {
            serde_json::from_slice::<Value>(&answer.into_bytes()).unwrap()["result"].take()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_method_requires_the_access_of_the_set() {
    let server = guarded_server();
    let requires = |method: &str, uri: &str| {
        server.required_access(&request(method, json!({"uri": uri})), &Caller::ANONYMOUS)
    };
    let support = AccessRule::default().with_scopes(["support"]);
    for (method, uri) in [
        ("skills/get", "skill://shop/internal/SKILL.md"),
        ("resources/read", "skill://shop/internal/docs/x.md"),
        ("resources/directory/read", "skill://shop/internal"),
        ("resources/directory/read", "skill://shop/internal/docs"),
    ] {
        assert_eq!(
            requires(method, uri),
            RequiredAccess::Entries(vec![support.clone().into()]),
            "{method} {uri}"
        );
    }
    let open = RequiredAccess::Entries(vec![AccessRule::anonymous().into()]);
    assert_eq!(requires("skills/get", "skill://shop/public/SKILL.md"), open);
    assert_eq!(requires("resources/directory/read", "skill://shop/public"), open);
    assert_eq!(requires("resources/directory/read", "skill://shop"), RequiredAccess::Opening);
    // An unauthenticated caller cannot probe which skills exist.
    assert_eq!(requires("skills/get", "skill://shop/unknown/SKILL.md"), RequiredAccess::Known);
    assert_eq!(requires("resources/directory/read", "skill://unknown"), RequiredAccess::Known);
}

#[test]
fn lists_of_permitted_entries_leave_out_other_skills() {
    let server = guarded_server();
    let supporter = Caller::from(Identity::new("ada").user().scope("support"));
    let seen = |caller: &Caller, method: &str, uri: &str, member: &str| -> Vec<String> {
        let result = list_as(&server, caller.clone(), method, json!({"uri": uri}));
        uris(&result[member]).into_iter().map(str::to_owned).collect()
    };
    let all = ["skill://shop/internal/SKILL.md", "skill://shop/public/SKILL.md"];
    assert_eq!(seen(&supporter, "skills/list", "", "skills"), all);
    assert_eq!(seen(&Caller::ANONYMOUS, "skills/list", "", "skills"), all[1..]);
    let folder = ("resources/directory/read", "skill://shop", "resources");
    assert_eq!(
        seen(&supporter, folder.0, folder.1, folder.2),
        ["skill://shop/internal", "skill://shop/public"]
    );
    assert_eq!(seen(&Caller::ANONYMOUS, folder.0, folder.1, folder.2), ["skill://shop/public"]);
    let page = list_as(&server, supporter, "skills/list", json!({}));
    assert_eq!((&page["ttlMs"], &page["cacheScope"]), (&json!(0), &json!("private")));
}

#[tokio::test]
async fn a_skill_that_is_not_shown_is_unknown() {
    let skill =
        |path: &str, name: &str| Skill::new(path).file("SKILL.md", manifest(name)).file("docs/x.md", "x");
    let set = SkillSet::new().skill(skill("shop/public", "public")).skill(skill("shop/internal", "internal"));
    let server = Server::builder("s", "1")
        .skills(set)
        .show_if(|_, entry| !entry.name().contains("internal"))
        .build()
        .unwrap();
    let listed = ask(&server, "skills/list", json!({})).await.unwrap();
    let uris: Vec<&Value> = listed["skills"].as_array().unwrap().iter().map(|skill| &skill["uri"]).collect();
    assert_eq!(uris, ["skill://shop/public/SKILL.md"]);
    let children = ask(&server, "resources/directory/read", json!({"uri": "skill://shop"})).await.unwrap();
    assert_eq!(children["resources"].as_array().unwrap().len(), 1, "{children}");
    for (method, uri) in [
        ("skills/get", "skill://shop/internal/SKILL.md"),
        ("resources/directory/read", "skill://shop/internal"),
        ("resources/directory/read", "skill://shop/internal/docs"),
    ] {
        assert_eq!(ask(&server, method, json!({"uri": uri})).await, Err(-32602), "{method} {uri}");
        let shown = uri.replace("internal", "public");
        ask(&server, method, json!({"uri": shown})).await.unwrap();
    }
}
