//! Error messages about options.

use std::path::PathBuf;
use std::time::Duration;

use bindpost::options::{OptionMistake, OptionSource};
use bindpost::{ListVisibility, Options};

use super::{file, from_file, from_variable, values};

/// Returns the error messages about a file.
fn mistakes(text: &str) -> Vec<String> {
    from_file(text).unwrap_err().0.iter().map(OptionMistake::to_string).collect()
}

#[test]
fn an_unknown_key_is_reported_with_the_most_similar_known_one() {
    for (text, expected) in [
        (
            "\n\nallowed_origin = []",
            "unknown key `allowed_origin` in bindpost.toml line 3; did you mean `allowed_origins`?",
        ),
        (
            "ServerName = \"x\"",
            "unknown key `ServerName` in bindpost.toml line 1; did you mean `server_name`?",
        ),
        (
            "call_timeout = \"1s\"",
            "unknown key `call_timeout` in bindpost.toml line 1; did you mean `limits.call_timeout`?",
        ),
        (
            "[http]\nmaxBody = 1",
            "unknown key `http.maxBody` in bindpost.toml line 2; did you mean `http.max_body`?",
        ),
        ("[limit]\ncall_timeout = 1", "unknown key `limit` in bindpost.toml line 1; did you mean `limits`?"),
        (
            "[http]\nqqqqqq = 1",
            "unknown key `http.qqqqqq` in bindpost.toml line 2; known keys: http.max_body, http.body_timeout, \
             http.stream_after, http.keep_alive, http.retry",
        ),
        (
            "\"limits.listeners\" = 1",
            "unknown key `limits.listeners` in bindpost.toml line 1; did you mean `limits.listeners`?",
        ),
    ] {
        assert_eq!(mistakes(text), [expected]);
    }
    for (name, expected) in [
        (
            "BINDPOST_ALLOWED_ORIGIN",
            "unknown variable `BINDPOST_ALLOWED_ORIGIN`; did you mean `BINDPOST_ALLOWED_ORIGINS`?",
        ),
        (
            "BINDPOST_LIMITS_CALL_TIMEOUT",
            "unknown variable `BINDPOST_LIMITS_CALL_TIMEOUT`; did you mean `BINDPOST_LIMITS__CALL_TIMEOUT`?",
        ),
        ("BINDPOST_CONFG", "unknown variable `BINDPOST_CONFG`; did you mean `BINDPOST_CONFIG`?"),
        (
            "BINDPOST_PORT",
            "unknown variable `BINDPOST_PORT`; variables that begin with `BINDPOST_` must be options",
        ),
    ] {
        assert_eq!(from_variable(name, "hunter2").unwrap_err().to_string(), expected);
    }
}

#[test]
fn an_invalid_value_is_reported_with_the_expected_value() {
    let duration = "a duration like 250ms, 30s, 5m or 1h, from";
    for (text, expected) in [
        ("title = 3", "`title` in bindpost.toml line 1 is 3; it can be a text"),
        ("server_name = \" \"", "`server_name` in bindpost.toml line 1 is \" \"; it can be a non-empty text"),
        ("json_only = \"true\"", "`json_only` in bindpost.toml line 1 is \"true\"; it can be true or false"),
        (
            "page_size = 0",
            "`page_size` in bindpost.toml line 1 is 0; it can be a number from 1 to 1000000000",
        ),
        (
            "page_size = -5",
            "`page_size` in bindpost.toml line 1 is -5; it can be a number from 1 to 1000000000",
        ),
        (
            "page_size = 1.5",
            "`page_size` in bindpost.toml line 1 is 1.5; it can be a number from 1 to 1000000000",
        ),
        (
            "page_size = 99999999999999999999",
            "`page_size` in bindpost.toml line 1 is 99999999999999999999; it can be a number from 1 to 1000000000",
        ),
        (
            "sessions = \"always\"",
            "`sessions` in bindpost.toml line 1 is \"always\"; it can be required, optional, stateless or off",
        ),
        (
            "supported_protocol_versions = [\n\"2025-11-25\",\n\"2025-11-26\", 2024-01-01]",
            "`supported_protocol_versions` in bindpost.toml line 3 has \"2025-11-26\" in it; each can be 2024-11-05, \
             2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28\n`supported_protocol_versions` in bindpost.toml line 3 \
             has 2024-01-01 in it; each can be 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28",
        ),
        (
            "supported_protocol_versions = []",
            "`supported_protocol_versions` in bindpost.toml line 1 is an empty list; it can be a list of one or more, \
             each 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28",
        ),
        (
            "allowed_origins = \"https://a.example\"",
            "`allowed_origins` in bindpost.toml line 1 is \"https://a.example\"; it can be a list, each an origin like \
             https://example.com, without a path",
        ),
        (
            "limits.call_timeout = 30",
            &format!(
                "`limits.call_timeout` in bindpost.toml line 1 is 30; it can be {duration} 1ms to 8760h, or none"
            ),
        ),
        (
            "limits.call_timeout = \"30\"",
            &format!(
                "`limits.call_timeout` in bindpost.toml line 1 is \"30\"; it can be {duration} 1ms to 8760h, or none"
            ),
        ),
        (
            "session_limits.sweep = \"0s\"",
            &format!(
                "`session_limits.sweep` in bindpost.toml line 1 is \"0s\"; it can be {duration} 1ms to 8760h"
            ),
        ),
        (
            "auth.leeway = \"10m\"",
            &format!("`auth.leeway` in bindpost.toml line 1 is \"10m\"; it can be {duration} 0s to 5m"),
        ),
        (
            "http.max_body = \"4MB\"",
            "`http.max_body` in bindpost.toml line 1 is \"4MB\"; it can be a number of bytes or a size like 64KiB or \
             4MiB, from 1 to 1024GiB",
        ),
        ("limits = 3", "`limits` in bindpost.toml line 1 is 3; it can be a table: [limits]"),
        (
            "[[limits]]\nlisteners = 1",
            "`limits` in bindpost.toml line 1 is a list; it can be a table: [limits]",
        ),
        ("[title]\nx = 1", "`title` in bindpost.toml line 1 is a table; it can be a text"),
        (
            "state_key = \"abc\"",
            "`state_key` in bindpost.toml line 1 is invalid; it can be 64 hexadecimal digits",
        ),
        (
            "auth.api_keys = [\"a = b\", \"hunter2\"]",
            "`auth.api_keys` in bindpost.toml line 1 is invalid (number 2 of the list); each can be a line \
             `name = secret` or `name = secret scope1 scope2`",
        ),
        // A reference to a secret store that was not resolved. Its text is not a secret.
        (
            "auth.api_keys = [\"@Vault(SecretUri=https://vault.example/keys)\"]",
            "`auth.api_keys` in bindpost.toml line 1 is invalid (number 1 of the list); each can be a line \
             `name = secret` or `name = secret scope1 scope2`",
        ),
    ] {
        assert_eq!(from_file(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn texts_with_an_invalid_format_are_rejected() {
    for (key, right, wrong) in [
        (
            "address",
            &["localhost:1", "[::1]:80", "0.0.0.0:0", "my-host.example:65535"][..],
            &["localhost", ":80", "a:b", "::1:80", "a:65536", "http://a:1", "[x]:1", ""][..],
        ),
        ("path", &["/", "/mcp", "/a/b/"], &["mcp", "", "//a", "/a b", "/a?b", "/ä"]),
        ("auth.api_key_header", &["x-api-key", "X_Key"], &["", "x key", "x:key", "ä"]),
        ("auth.realm", &["mcp", "my orders"], &["", "a\\\"b", "ä"]),
        (
            "auth.resource",
            &["https://a.example", "http://localhost:7071/mcp", "https://[::1]/"],
            &[
                "a.example/mcp",
                "ftp://a.example",
                "https://",
                "https://a.example?x",
                "https://a.example/#x",
                "https://me@a.example",
            ],
        ),
    ] {
        for text in right {
            from_file(&format!("{key} = \"{text}\"")).unwrap();
        }
        for text in wrong.iter().filter(|text| !(text.is_empty() && key == "auth.resource")) {
            assert!(from_file(&format!("{key} = \"{text}\"")).is_err(), "{key} {text:?}");
        }
    }
    for (key, right, wrong) in [
        (
            "allowed_origins",
            &["https://a.example", "http://[::1]:3000", "vscode-webview://abc", "https://a.example/"][..],
            &["*", "a.example", "https://a.example/x", "https://", "null", "https://*.a.example"][..],
        ),
        ("identity_headers", &["x-user-", "X-Token"], &["", "x user", "x-user:"]),
        (
            "allowed_hosts",
            &["*", "a.example", "a.example:1", "[::1]:1", "10.0.0.1"],
            &["", "https://a.example", "a.example/x", "a:b", "*.a.example"],
        ),
        (
            "auth.issuers",
            &["https://a.example/b", "http://127.0.0.1:1", "http://localhost/x", "http://[::1]"],
            &["http://a.example", "a.example", "http://localhost.evil.example", ""],
        ),
        ("auth.algorithms", &["RS256", "EdDSA"], &["none", "HS256", "rs256", ""]),
    ] {
        for text in right {
            from_file(&format!("{key} = [\"{text}\"]")).unwrap();
        }
        for text in wrong {
            assert!(from_file(&format!("{key} = [\"{text}\"]")).is_err(), "{key} {text:?}");
        }
    }
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_sources() {
    let path = file(
        "mistakes.toml",
        "titel = \"x\"\npage_size = \"ten\"\njson_only\n[limits]\nrunning_calls = 0\n[limits.stream]\nblocked = 5\n",
    );
    let name = path.to_str().unwrap();
    let error = Options::default()
        .load_variables([
            ("BINDPOST_SSE", "maybe"),
            ("BINDPOST_CONFIG", name),
            ("BINDPOST_ALOWED_HOSTS", "x"),
            ("BINDPOST_ALLOWED_ORIGINS", "https://a.example, b, c"),
        ])
        .unwrap_err();
    let places: Vec<OptionSource> = error.0.iter().map(|mistake| mistake.place.clone()).collect();
    let line = |line| OptionSource::Line { file: name.to_owned(), line };
    let variable = |name: &str| OptionSource::Variable(name.to_owned());
    assert_eq!(
        places,
        [
            line(1),
            line(2),
            line(3),
            line(5),
            line(7),
            variable("BINDPOST_ALLOWED_ORIGINS"),
            variable("BINDPOST_ALLOWED_ORIGINS"),
            variable("BINDPOST_ALOWED_HOSTS"),
            variable("BINDPOST_SSE"),
        ],
        "{error}"
    );
    let text = error.to_string();
    assert_eq!(text.lines().count(), 9);
    assert!(
        text.starts_with(&format!("unknown key `titel` in {name} line 1; did you mean `title`?\n")),
        "{text}"
    );
}

#[test]
fn invalid_toml_is_reported_line_by_line() {
    for (text, line) in
        [("title = ", 1), ("\n\ntitle = \"x", 3), ("title = 1\ntitle = 2", 2), ("[limits", 1), ("= 3", 1)]
    {
        let error = from_file(text).unwrap_err();
        let found =
            error.0.iter().any(|mistake| mistake.text.contains(&format!("line {line} is not TOML: ")));
        assert!(found, "{text:?}: {error}");
    }
}

#[test]
fn an_unreadable_file_is_reported() {
    let error = from_variable("BINDPOST_CONFIG", "no/such/file.toml").unwrap_err().to_string();
    assert!(
        error.starts_with("`BINDPOST_CONFIG` names \"no/such/file.toml\", which cannot be read: "),
        "{error}"
    );
    let error = Options::default().load_file("no/such/file.toml").unwrap_err().to_string();
    assert!(error.starts_with("no/such/file.toml cannot be read: "), "{error}");
    let large = file("large.toml", &"# nothing but a comment\n".repeat(50_000));
    let error = Options::default().load_file(large).unwrap_err().to_string();
    assert!(error.ends_with("larger than 1 MiB"), "{error}");
    let latin = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("latin.toml");
    std::fs::write(&latin, b"title = \"\xe4\"").unwrap();
    assert!(Options::default().load_file(latin).is_err());
    assert_eq!(
        values(&Options::default().load_file(file("ok.toml", "title = \"x\"")).unwrap())["title"],
        "\"x\""
    );
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf8_is_reported() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let value = OsStr::from_bytes(b"\xff");
    let error = Options::default().load_variables([("BINDPOST_TITLE", value)]).unwrap_err();
    assert_eq!(error.to_string(), "`BINDPOST_TITLE` is not UTF-8");
}

#[test]
fn no_error_contains_the_value_of_a_variable() {
    let secret = "hunter2-hunter2";
    for key in Options::default().keys() {
        for value in [secret.to_owned(), format!("=, {secret}, {secret}=")] {
            if let Err(error) = from_variable(&key.variable, &value) {
                assert!(!error.to_string().contains("hunter2"), "{error}");
                assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
            }
        }
    }
    let options = from_variable("BINDPOST_AUTH__API_KEYS", "ops=hunter2").unwrap();
    assert!(!format!("{options:?} {:?}", options.keys()).contains("hunter2"));
    let options = from_variable("BINDPOST_AUTH__API_KEYS", "ops=hunter2, ops=hunter2").unwrap();
    let error = options.settings().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`BINDPOST_AUTH__API_KEYS` cannot be used: the API key \"ops\" is defined twice"
    );
}

#[test]
fn values_set_by_the_program_are_checked_too() {
    let options = Options::new("", "1.0.0")
        .path("mcp")
        .allowed_origins(["a.example"])
        .supported_protocol_versions([])
        .session_limits(|sessions| sessions.sweep = Duration::ZERO);
    let error = options.settings().unwrap_err();
    let texts: Vec<&str> = error.0.iter().map(|mistake| mistake.text.split(';').next().unwrap()).collect();
    assert_eq!(
        texts,
        [
            "`server_name` is \"\"",
            "`supported_protocol_versions` is an empty list",
            "`path` is \"mcp\"",
            "`allowed_origins` has \"a.example\" in it",
            "`session_limits.sweep` is \"0s\"",
        ]
    );
    assert!(error.0.iter().all(|mistake| mistake.place == OptionSource::Program));
}

#[test]
fn contradicting_options_are_reported() {
    let settings =
        |text: &str| from_file(text).unwrap().settings().map(|_| ()).map_err(|error| error.to_string());
    for (text, expected) in [
        ("path = \"/sse/\"", "`sse_path` is \"/sse\", the same as another path"),
        (
            "sse_message_path = \"/mcp\"",
            "`sse_message_path` in bindpost.toml line 1 is \"/mcp\", the same as",
        ),
        ("tls.key = \"k\"", "`tls.key` in bindpost.toml line 1 has no effect without `tls.certificate`"),
        (
            "tls.certificate = \"c\"",
            "`tls.certificate` in bindpost.toml line 1 has no effect without `tls.key`",
        ),
        (
            "tls.look_every = \"9s\"",
            "`tls.look_every` in bindpost.toml line 1 has no effect without `tls.cert",
        ),
        ("auth.realm = \"x\"", "`auth.realm` in bindpost.toml line 1 has no effect without `auth.api_keys`"),
        (
            "auth.audiences = [\"x\"]",
            "`auth.audiences` in bindpost.toml line 1 has no effect without `auth.api_keys`",
        ),
        (
            "[auth]\napi_keys = [\"a = b\"]\nleeway = \"1s\"",
            "`auth.leeway` in bindpost.toml line 3 has no effect without `auth.issuers`",
        ),
        (
            "[auth]\nissuers = [\"https://a.example\"]\naudiences = [\"x\"]\napi_key_bearer = true",
            "`auth.api_key_bearer` in bindpost.toml line 4 has no effect without `auth.api_keys` or",
        ),
        (
            "auth.issuers = [\"https://a.example\"]",
            "`auth.issuers` in bindpost.toml line 1 needs `auth.audiences` or `auth.resource`",
        ),
        (
            "[auth]\nissuers = [\"https://a.example\", \"https://a.example\"]\naudiences = [\"x\"]",
            "`auth.issuers` in bindpost.toml line 2 cannot be used: \"https://a.example\" is the name of two issuers",
        ),
        (
            "auth.api_keys_file = \"no/such/file\"",
            "`auth.api_keys_file` in bindpost.toml line 1 cannot be used: no/such/file, ",
        ),
        (
            "auth.api_keys = [\"ops = secret read, write\"]",
            "`auth.api_keys` in bindpost.toml line 1 cannot be used: scopes are separated by spaces; remove the \
             comma after \"read\"",
        ),
    ] {
        let error = settings(text).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    settings("path = \"/sse\"\nsse = false").unwrap();
    // Options that are not set, or set to their default, require nothing else.
    settings("[auth]\nissuers = []\nrealm = \"mcp\"").unwrap();
    Options::default().auth(|auth| auth.listing = ListVisibility::Permitted).settings().unwrap();
}

#[test]
fn an_empty_variable_does_not_disable_authentication() {
    let file = "[auth]\napi_keys = [\"ops = secret\"]";
    for name in ["BINDPOST_AUTH__API_KEYS", "BINDPOST_AUTH__ISSUERS", "BINDPOST_AUTH__API_KEYS_FILE"] {
        let options = from_file(file).unwrap().load_variables([(name, "")]).unwrap();
        let error = options.settings().unwrap_err().to_string();
        assert_eq!(error, format!("`{name}` is empty; set a value, or remove the variable"));
    }
    // An empty variable does not remove a limit either.
    assert!(from_variable("BINDPOST_LIMITS__CALL_TIMEOUT", "").is_err());
}

#[test]
fn an_address_is_of_tcp_of_a_unix_socket_or_of_systemd() {
    for address in
        ["localhost:80", "[::1]:0", "unix:/run/a b.sock", "unix:mcp.sock", "systemd", "systemd:mcp"]
    {
        from_file(&format!("address = \"{address}\"")).unwrap();
    }
    for address in ["localhost", "unix:", "systemd:", "/run/mcp.sock", "unix"] {
        let error = from_file(&format!("address = \"{address}\"")).unwrap_err().to_string();
        assert!(error.contains("or unix: and a path, or systemd"), "{error}");
    }
}

#[test]
fn an_empty_variable_does_not_turn_https_off() {
    let options = from_file("[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"").unwrap();
    let empty = [("BINDPOST_TLS__CERTIFICATE", ""), ("BINDPOST_TLS__KEY", "")];
    let error = options.load_variables(empty).unwrap().settings().unwrap_err().to_string();
    let expected = empty.map(|(name, _)| format!("`{name}` is empty; set a value, or remove the variable"));
    assert_eq!(error, expected.join("\n"));
}

#[test]
fn an_invalid_line_hides_no_other_mistake() {
    let lines = |text: &str| -> Vec<usize> {
        let line = |mistake: &OptionMistake| match mistake.place {
            OptionSource::Line { line, .. } => line,
            _ => 0,
        };
        from_file(text).unwrap_err().0.iter().map(line).collect()
    };
    assert_eq!(lines("titel = 1\njson_only\n[limits]\nlistners = 1"), [1, 2, 4]);
    assert_eq!(lines("title = yes\npath = 1\n[limits]\nlisteners = 1s\nrunning_calls = 0"), [1, 2, 4, 5]);
    // The table of the lines below is unknown, so they are not checked.
    assert_eq!(lines("titel = 1\n[limits\nlisteners = \"x\""), [1, 2]);
}
