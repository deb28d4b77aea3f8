//! Tests of every parsing mode, from the file to the document.

use bindpost_net_json::{JsonPlace, ObjectReader};

use super::*;

#[test]
fn default_indexes_text_files_and_warns_about_others() {
    let bench = Bench::new(json!({}));
    bench.folder.write("a.txt", "hello");
    bench.folder.write("b/c.html", "<p>bold <b>move</b></p>");
    bench.folder.write("d.pdf", b"%PDF-1.4 \x00\xff");
    let result = bench.run();
    assert_eq!(result.status, status::ExecutionStatus::Success);
    assert_eq!((result.items_processed, result.warnings.len()), (3, 1));
    assert!(result.warnings[0].message.contains("application/pdf"));
    let mut found: Vec<_> = bench
        .index
        .all()
        .into_iter()
        .map(|document| (document["metadata_storage_name"].clone(), document["content"].clone()))
        .collect();
    found.sort_by_key(|(name, _)| name.to_string());
    assert_eq!(
        found,
        [
            (json!("a.txt"), json!("hello")),
            (json!("c.html"), json!("bold move")),
            (json!("d.pdf"), json!(""))
        ]
    );
}

#[test]
fn unsupported_files_fail_if_configured() {
    let bench = Bench::new(json!({"failOnUnsupportedContentType": true}));
    bench.folder.write("d.pdf", b"%PDF-1.4");
    let result = bench.run();
    assert_eq!(result.status, status::ExecutionStatus::TransientFailure);
    assert!(result.errors[0].error_message.contains("d.pdf"));
}

#[test]
fn text_must_be_utf8() {
    let bench = Bench::new(json!({"parsingMode": "text"})).tolerate();
    bench.folder.write("a.bin", "\u{feff}plain");
    bench.folder.write("b.txt", b"one\ntwo \xff");
    let result = bench.run();
    assert_eq!((result.items_processed, result.items_failed), (2, 1));
    assert!(result.errors[0].error_message.contains("b.txt, line 2"), "{result:?}");
    assert_eq!(bench.index.all()[0]["content"], "plain");
    assert!(
        IndexerDefinition::parse(&json!({"name": "i", "dataSourceName": "d", "targetIndexName": "x",
            "parameters": {"configuration": {"parsingMode": "text", "encoding": "windows-1252"}}}))
        .is_err()
    );
}

#[test]
fn json_gives_one_document_for_each_file() {
    let bench = Bench::new(json!({"parsingMode": "json"}));
    bench.folder.write("a.json", r#"{"id": "1", "title": "t", "count": 3, "tags": ["x"], "other": {}}"#);
    assert_eq!(bench.succeed(), 1);
    let document = &bench.index.all()[0];
    assert_eq!(
        (&document["id"], &document["count"], &document["tags"]),
        (&json!("1"), &json!(3), &json!(["x"]))
    );
}

#[test]
fn json_arrays_lie_below_their_root() {
    let bench = Bench::new(json!({"parsingMode": "jsonArray", "documentRoot": "/level1/level2"}));
    bench.folder.write("a.json", r#"{"level1": {"level2": [{"id": "1"}, {"id": "2"}]}}"#);
    assert_eq!(bench.succeed(), 2);
    assert_eq!(bench.index.keys(), ["1", "2"]);
}

#[test]
fn json_lines_without_keys_get_generated_keys() {
    let bench = Bench::new(json!({"parsingMode": "jsonLines"}));
    bench.folder.write("a.jsonl", "{\"title\": \"a\"}\n{\"title\": \"b\"}\n");
    assert_eq!(bench.succeed(), 2);
    let keys = bench.index.keys();
    assert_eq!(keys.len(), 2);
    assert!(keys.iter().all(|key| key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')));
}

#[test]
fn delimited_text_converts_its_columns() {
    let bench = Bench::new(json!({"parsingMode": "delimitedText"}));
    bench.folder.write("a.csv", "id, count, day\n1,5,2016-01-12\n2,,\"2016-07-07\"\n");
    assert_eq!(bench.succeed(), 2);
    let documents = bench.index.all();
    assert_eq!(documents[0]["count"], 5);
    assert_eq!(documents[0]["day"], "2016-01-12T00:00:00Z");
    assert_eq!(documents[1]["count"], Value::Null);
}

#[test]
fn delimited_text_uses_headers_and_delimiter_of_the_indexer() {
    let bench = Bench::new(json!({"parsingMode": "delimitedText", "firstLineContainsHeaders": false,
        "delimitedTextHeaders": "id,title", "delimitedTextDelimiter": "|"}));
    bench.folder.write("a.csv", "1|one, two\n2|\"with | bar\"\n");
    assert_eq!(bench.succeed(), 2);
    assert_eq!(bench.index.all()[1]["title"], "with | bar");
}

#[test]
fn invalid_rows_are_reported_and_the_others_indexed() {
    let bench = Bench::new(json!({"parsingMode": "delimitedText"})).tolerate();
    bench.folder.write("a.csv", b"id,title\n1,a\n2,b,c\n3,\xff\n4,x\n");
    let result = bench.run();
    assert_eq!((result.items_processed, result.items_failed), (4, 2));
    assert!(result.errors[0].error_message.contains("a.csv, line 3"), "{:?}", result.errors);
    assert!(result.errors[1].error_message.contains("a.csv, line 4"), "{:?}", result.errors);
    assert_eq!(bench.index.keys(), ["1", "4"]);
}

#[test]
fn markdown_gives_sections_or_an_outline() {
    let bench = Bench::new(json!({"parsingMode": "markdown"}));
    bench.folder.write("a.md", "# A\none\n## B\ntwo\n");
    assert_eq!(bench.succeed(), 2);
    let bench = Bench::new(json!({"parsingMode": "markdown", "markdownParsingSubmode": "oneToOne"}));
    bench.folder.write("a.md", "# A\none\n## B\ntwo\n");
    assert_eq!(bench.succeed(), 1);
}

#[test]
fn extensions_select_files() {
    let bench =
        Bench::new(json!({"indexedFileNameExtensions": ".txt, .md", "excludedFileNameExtensions": ".MD"}));
    for name in ["a.txt", "b.md", "c.TXT", "d"] {
        bench.folder.write(name, "x");
    }
    assert_eq!(bench.succeed(), 2);
}

#[test]
fn storage_metadata_is_indexed_without_reading() {
    let bench = Bench::new(json!({"parsingMode": "json", "dataToExtract": "storageMetadata"}));
    bench.folder.write("a.json", "not json");
    assert_eq!(bench.succeed(), 1);
    let document = &bench.index.all()[0];
    assert_eq!((&document["metadata_storage_size"], document.get("content")), (&json!(8), None));
}

#[test]
fn files_that_are_too_large_fail_or_keep_their_metadata() {
    let limits = IndexerLimits { document_bytes: 4, ..IndexerLimits::default() };
    let bench = Bench::with(json!({}), Index::default(), limits);
    bench.folder.write("a.txt", "12345");
    assert!(bench.run().errors[0].error_message.contains("5 bytes"));
    let only = json!({"indexStorageMetadataOnlyForOversizedDocuments": true});
    let bench = Bench::with(only, Index::default(), limits);
    bench.folder.write("a.txt", "12345");
    assert_eq!(bench.succeed(), 1);
}

#[test]
fn invalid_files_become_warnings_if_configured() {
    let bench = Bench::new(json!({"parsingMode": "json", "failOnUnprocessableDocument": false}));
    bench.folder.write("a.json", "{");
    bench.folder.write("b.json", "{\"id\": \"1\"}");
    let result = bench.run();
    assert_eq!((result.status, result.warnings.len()), (status::ExecutionStatus::Success, 1));
    assert_eq!(bench.index.keys(), ["1"]);
}

#[test]
fn skills_feed_output_field_mappings() {
    let mut bench = Bench::new(json!({}));
    bench.indexer["skillsetName"] = json!("s");
    bench.indexer["outputFieldMappings"] =
        json!([{"sourceFieldName": "/document/content/pages", "targetFieldName": "tags"}]);
    bench.skillset = Some(json!({"name": "s", "skills": [
        {"@odata.type": "#Microsoft.Skills.Text.SplitSkill", "context": "/document/content",
         "textSplitMode": "sentences", "inputs": [{"name": "text", "source": "/document/content"}],
         "outputs": [{"name": "textItems", "targetName": "pages"}]},
        {"@odata.type": "#Microsoft.Skills.Text.KeyPhraseExtractionSkill", "inputs": [], "outputs": []}]}));
    bench.folder.write("a.txt", "One. Two.");
    let result = bench.run();
    assert_eq!(result.status, status::ExecutionStatus::Success, "{result:?}");
    assert_eq!(bench.index.all()[0]["tags"], json!(["One. ", "Two."]));
    assert!(result.warnings[0].message.contains("skipped"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
    #[test]
    fn no_file_panics_in_any_mode(bytes: Vec<u8>, text in "[#<>!\\-\\[\\]{}\",:a-z0-9ä\n ]{0,120}") {
        let folder = Folder::new();
        folder.write("bytes.html", &bytes);
        folder.write("text.html", &text);
        let source = DataSourceDefinition::parse(&json!({"name": "ds", "type": "azureblob",
            "container": {"name": "docs"}, "credentials": {"connectionString": "UseDevelopmentStorage=true"}}));
        let source = source.unwrap().open(&folder.places()).unwrap();
        for mode in ["default", "text", "json", "jsonArray", "jsonLines", "delimitedText", "markdown"] {
            let configuration = json!({"parsingMode": mode});
            let configuration = ObjectReader::new(&configuration, JsonPlace::default()).unwrap();
            let options = parse::ParseOptions::parse(&configuration).unwrap();
            for blob in source.blobs() {
                if let Ok(items) = parse::parse_blob(&source, &blob, &options, &IndexerLimits::default()) {
                    assert!(items.count() <= 200 + bytes.len());
                }
            }
        }
    }
}
