//! The table `[app]`: settings of the program in a type of its own.

use std::collections::BTreeMap;

use bindpost::{Options, OptionsError};
use serde::Deserialize;

use super::from_file;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shop {
    database: String,
    #[serde(default)]
    read_only: bool,
    port: Option<u16>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    pool: Pool,
    #[serde(default)]
    prices: BTreeMap<String, f64>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Fast,
    Safe,
    Limited {
        rate: u32,
    },
}

#[derive(Debug, Default, PartialEq, Deserialize)]
struct Pool {
    size: i8,
    #[serde(default)]
    weights: Vec<f32>,
}

const FILE: &str = r#"
[app]
database = "shop.db"
readOnly = true
tags = ["a", "b"]
mode = "safe"

[app.pool]
size = 3
weights = [1, 0.5]

[app.prices]
tea = 2.5
"#;

fn shop(file: &str, variables: &[(&str, &str)]) -> Result<Shop, OptionsError> {
    from_file(file)?.load_variables(variables.iter().copied())?.app()
}

fn mistakes(file: &str, variables: &[(&str, &str)]) -> String {
    shop(file, variables).unwrap_err().to_string()
}

#[test]
fn a_file_is_read_into_the_type_of_the_program() {
    let expected = Shop {
        database: "shop.db".to_owned(),
        read_only: true,
        tags: vec!["a".to_owned(), "b".to_owned()],
        mode: Mode::Safe,
        pool: Pool { size: 3, weights: vec![1.0, 0.5] },
        prices: BTreeMap::from([("tea".to_owned(), 2.5)]),
        ..Shop::default()
    };
    assert_eq!(shop(FILE, &[]).unwrap(), expected);
    let limited = shop("app = { database = \"x\", mode = { limited = { rate = 5 } } }", &[]).unwrap();
    assert_eq!(limited.mode, Mode::Limited { rate: 5 });
}

#[test]
fn variables_override_the_file_in_the_types_of_the_members() {
    let variables = [
        ("BINDPOST_APP__DATABASE", "42"),
        ("BINDPOST_APP__READ_ONLY", "false"),
        ("BINDPOST_APP__PORT", "8080"),
        ("BINDPOST_APP__TAGS", "x, 7"),
        ("BINDPOST_APP__MODE", "fast"),
        ("BINDPOST_APP__POOL__SIZE", "-4"),
        ("BINDPOST_APP__PRICES__SOUP", "1e1"),
    ];
    let expected = Shop {
        database: "42".to_owned(),
        port: Some(8080),
        tags: vec!["x".to_owned(), "7".to_owned()],
        pool: Pool { size: -4, weights: vec![1.0, 0.5] },
        prices: BTreeMap::from([("soup".to_owned(), 10.0), ("tea".to_owned(), 2.5)]),
        ..Shop::default()
    };
    assert_eq!(shop(FILE, &variables).unwrap(), expected);
    let alone = shop("", &[("BINDPOST_APP__DATABASE", "x"), ("BINDPOST_APP__PORT", "")]).unwrap();
    assert_eq!((alone.database.as_str(), alone.port), ("x", None));
}

#[test]
fn a_later_file_overrides_single_members() {
    let options =
        from_file(FILE).unwrap().load_toml("local.toml", "[app]\nreadOnly = false\npool.size = 9").unwrap();
    let shop: Shop = options.app().unwrap();
    assert_eq!((shop.read_only, shop.pool.size, shop.database.as_str()), (false, 9, "shop.db"));
}

#[test]
fn a_program_without_settings_needs_no_table() {
    #[derive(Deserialize)]
    struct Nothing {}
    assert!(Options::default().app::<Nothing>().is_ok());
}

#[test]
fn mistakes_name_the_key_and_its_line() {
    for (file, expected) in [
        ("", "`app.database` is missing; set it in the file, or set `BINDPOST_APP__DATABASE`"),
        ("[app]\ndatabase = 5", "`app.database` in bindpost.toml line 2 is 5; it can be a string"),
        ("app = 5", "`app` in bindpost.toml line 1 is 5; it can be a table: [app]"),
        (
            "[app]\ndatabase = \"x\"\nport = 70000",
            "`app.port` in bindpost.toml line 3 is 70000; it can be a whole number from 0 to 65535",
        ),
        (
            "[app]\ndatabase = \"x\"\nmode = \"quick\"",
            "`app.mode` in bindpost.toml line 3 is \"quick\"; it can be fast, safe, limited",
        ),
        (
            "[app]\ndatabase = \"x\"\ndata_base = 1\nquux = 2",
            "unknown key `app.data_base` in bindpost.toml line 3; did you mean `database`?\n\
             unknown key `app.quux` in bindpost.toml line 4; known keys: database, readOnly, port, tags, mode, pool, prices",
        ),
        (
            "[app]\ndatabase = \"x\"\n[app.pool]\nsize = 1\nweights = [1,\n\"two\"]",
            "`app.pool.weights` in bindpost.toml line 6 is \"two\"; it can be a number",
        ),
        (
            "[app]\ndatabase = \"x\"\n[app.pool]",
            "`app.pool.size` is missing; set it in the file, or set `BINDPOST_APP__POOL__SIZE`",
        ),
        ("[ap]\ndatabase = \"x\"", "unknown key `ap` in bindpost.toml line 1; did you mean `app`?"),
    ] {
        assert_eq!(mistakes(file, &[]), expected);
    }
}

#[test]
fn mistakes_in_variables_do_not_repeat_their_values() {
    for (name, value, expected) in [
        ("PORT", "s3cret", "`BINDPOST_APP__PORT` is invalid; it can be a whole number from 0 to 65535"),
        ("MODE", "s3cret", "`BINDPOST_APP__MODE` is invalid; it can be fast, safe, limited"),
        ("POOL", "s3cret", "`BINDPOST_APP__POOL` is invalid; it can be a table"),
        ("POOL__WEIGHTS", "1, s3cret", "`BINDPOST_APP__POOL__WEIGHTS` is invalid; it can be a number"),
        ("PROT", "s3cret", "unknown key `BINDPOST_APP__PROT`; did you mean `port`?"),
        ("", "s3cret", "`BINDPOST_APP__` names no key; write the key after `APP__`"),
    ] {
        let variables = [(format!("BINDPOST_APP__{name}"), value)];
        let read =
            from_file(FILE).unwrap().load_variables(variables).and_then(|options| options.app::<Shop>());
        assert_eq!(read.unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_reason_of_the_type_is_shown_for_files_only() {
    #[derive(Debug, Deserialize)]
    struct Place {
        #[expect(dead_code, reason = "it is never read successfully")]
        address: std::net::IpAddr,
    }
    let read = |options: Options| options.app::<Place>().unwrap_err().to_string();
    let file = read(from_file("[app]\naddress = \"here\"").unwrap());
    assert_eq!(file, "`app.address` in bindpost.toml line 2 is invalid: invalid IP address syntax");
    let variable = Options::default().load_variables([("BINDPOST_APP__ADDRESS", "here")]).unwrap();
    assert_eq!(read(variable), "`BINDPOST_APP__ADDRESS` is invalid");
}
