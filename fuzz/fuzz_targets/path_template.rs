//! Parses a path and, on the next line, arguments with `PathTemplate`. The arguments never change the
//! container of the template, and every resolved path is valid.

#![cfg_attr(fuzzing, no_main)]

use bindpost_azure_functions::bindings::arguments::Arguments;
use bindpost_azure_functions::bindings::binding_data::BindingData;
use bindpost_azure_functions::bindings::context::{McpRequest, RequestSubject};
use bindpost_azure_functions::bindings::template::PathTemplate;
use bindpost_azure_functions::blobs::BlobPath;

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let text = bindpost_fuzz::text(data);
    let (path, arguments) = text.split_once('\n').unwrap_or((text, "{}"));
    // The decoder has validated a client's arguments before.
    if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).is_err() {
        return;
    }
    let setting = |name: &str| (!name.contains('x')).then(|| "setting".to_owned());
    let Ok(template) = PathTemplate::parse(path, &setting) else { return };
    assert_eq!(template.as_str(), path);

    let (first, second) = (resolve(&template, arguments), resolve(&template, r#"{"a":"b"}"#));
    let varies = ["rand-guid", "datetime", "sys."].iter().any(|word| path.to_lowercase().contains(word));
    if let (Some((one, _)), Some((other, _))) = (&first, &second)
        && !varies
    {
        assert_eq!(one, other, "an argument has changed the container");
    }
    if let Some((container, name)) = first
        && let Ok(place) = BlobPath::new(&container, &name)
    {
        assert_eq!((place.container(), place.name()), (container.as_str(), name.as_str()));
        assert!(name.split('/').all(|segment| segment != "." && segment != ".."), "{name:?} contains dots");
    }
}

fn resolve(template: &PathTemplate, arguments: &str) -> Option<(String, String)> {
    let request = McpRequest {
        subject: RequestSubject::Tool { name: "tool", arguments: Arguments::parse(Some(arguments)) },
        session_id: Some("session"),
        client_info: None,
        transport: "http-streamable",
        headers: None,
        sent_names: None,
        input_responses: None,
        state: None,
    };
    let context = request.context();
    template.resolve(&BindingData::new(&request, &context, "context", "function")).ok()
}
