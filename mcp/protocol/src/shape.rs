//! [`ShapeForRevision`]: removes from a definition or a result the members that a revision does not define.
//!
//! Serialisation is the same for all revisions, so a value is shaped first. Old clients parse strictly.
//! An unknown member can make them discard a whole list.

use serde_json::{Map, Value};

use crate::content::{Annotations, Content};
use crate::lifecycle::{Implementation, ServerCapabilities};
use crate::prompts::{GetPromptResult, Prompt};
use crate::resources::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use crate::revision::Revision;
use crate::tools::{CallToolResult, Tool};

/// A value that can be adapted to a revision.
pub trait ShapeForRevision {
    /// Removes or replaces the parts that `revision` does not define.
    fn shape(&mut self, revision: Revision);
}

impl ShapeForRevision for Tool {
    fn shape(&mut self, revision: Revision) {
        if !revision.has_tool_annotations() {
            self.annotations = None;
        }
        if !revision.has_titles() {
            self.title = None;
            self.meta = None;
        }
        if !revision.has_icons() {
            self.icons.clear();
        }
        if !revision.has_task_requests() {
            self.execution = None;
        }
        let structured = match &self.output_schema {
            None => false,
            Some(_) if revision.structures_any_json() => true,
            Some(schema) => revision.has_structured_content() && describes_object(schema),
        };
        if !structured {
            self.output_schema = None;
        }
    }
}

/// Returns whether the root of a schema has `type: object`. Output schemas require it until 2025-11-25.
fn describes_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

impl ShapeForRevision for Resource {
    fn shape(&mut self, revision: Revision) {
        if !revision.has_titles() {
            self.title = None;
            self.meta = None;
        }
        if !revision.has_icons() {
            self.icons.clear();
        }
        shape_annotations(&mut self.annotations, revision);
    }
}

impl ShapeForRevision for ResourceTemplate {
    fn shape(&mut self, revision: Revision) {
        if !revision.has_titles() {
            self.title = None;
            self.meta = None;
        }
        if !revision.has_icons() {
            self.icons.clear();
        }
        shape_annotations(&mut self.annotations, revision);
    }
}

impl ShapeForRevision for Prompt {
    fn shape(&mut self, revision: Revision) {
        if !revision.has_titles() {
            self.title = None;
            self.meta = None;
            self.arguments.iter_mut().for_each(|argument| argument.title = None);
        }
        if !revision.has_icons() {
            self.icons.clear();
        }
    }
}

impl ShapeForRevision for Implementation {
    fn shape(&mut self, revision: Revision) {
        if !revision.has_titles() {
            self.title = None;
        }
        if !revision.has_icons() {
            self.icons.clear();
            self.description = None;
            self.website_url = None;
        }
    }
}

impl ShapeForRevision for ServerCapabilities {
    fn shape(&mut self, revision: Revision) {
        if !revision.has_completions_capability() {
            self.completions = None;
        }
        if !revision.has_extensions() {
            self.extensions.clear();
        }
        if !revision.has_task_requests() {
            self.tasks = None;
        }
    }
}

fn shape_annotations(annotations: &mut Option<Annotations>, revision: Revision) {
    if let Some(annotations) = annotations
        && !revision.has_last_modified()
    {
        annotations.last_modified = None;
    }
}

impl ShapeForRevision for Content {
    fn shape(&mut self, revision: Revision) {
        match self {
            Content::Audio(audio) if !revision.has_audio() => {
                *self = Content::text(format!("[audio of type {}]", audio.mime_type));
            }
            Content::ResourceLink(link) if !revision.has_resource_links() => {
                *self = Content::text(format!("{}: {}", link.title.as_ref().unwrap_or(&link.name), link.uri));
            }
            Content::Text(text) => {
                shape_annotations(&mut text.annotations, revision);
                drop_unless(&mut text.meta, revision.has_titles());
            }
            Content::Image(media) | Content::Audio(media) => {
                shape_annotations(&mut media.annotations, revision);
                drop_unless(&mut media.meta, revision.has_titles());
            }
            Content::ResourceLink(link) => link.shape(revision),
            Content::Resource(embedded) => {
                shape_annotations(&mut embedded.annotations, revision);
                drop_unless(&mut embedded.meta, revision.has_titles());
                embedded.resource.shape(revision);
            }
            Content::Other(_) => {}
        }
    }
}

fn drop_unless(meta: &mut Option<Map<String, Value>>, has: bool) {
    if !has {
        *meta = None;
    }
}

impl ShapeForRevision for ResourceContents {
    fn shape(&mut self, revision: Revision) {
        drop_unless(&mut self.meta, revision.has_titles());
    }
}

impl ShapeForRevision for CallToolResult {
    fn shape(&mut self, revision: Revision) {
        self.content.iter_mut().for_each(|content| content.shape(revision));
        let keep = match &self.structured_content {
            None => true,
            Some(_) if revision.structures_any_json() => true,
            Some(value) => revision.has_structured_content() && value.is_object(),
        };
        if !keep {
            self.structured_content = None;
        }
    }
}

impl ShapeForRevision for GetPromptResult {
    fn shape(&mut self, revision: Revision) {
        self.messages.iter_mut().for_each(|message| message.content.shape(revision));
    }
}

impl ShapeForRevision for ReadResourceResult {
    fn shape(&mut self, revision: Revision) {
        self.contents.iter_mut().for_each(|contents| contents.shape(revision));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shaped<T: ShapeForRevision + serde::Serialize>(mut value: T, revision: Revision) -> Value {
        value.shape(revision);
        serde_json::to_value(value).unwrap()
    }

    fn full_tool() -> Tool {
        serde_json::from_value(json!({
            "name": "t", "title": "T", "description": "d", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
            "icons": [{"src": "data:,"}], "execution": {"taskSupport": "optional"}, "_meta": {"a": 1}, "x-unknown": [1]
        }))
        .unwrap()
    }

    #[test]
    fn a_tool_has_only_the_members_that_its_revision_defines() {
        let members = |revision| {
            let value = shaped(full_tool(), revision);
            value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(members(Revision::V2024_11_05), "description inputSchema name x-unknown");
        assert_eq!(members(Revision::V2025_03_26), "annotations description inputSchema name x-unknown");
        assert_eq!(
            members(Revision::V2025_06_18),
            "_meta annotations description inputSchema name outputSchema title x-unknown"
        );
        assert_eq!(
            members(Revision::V2025_11_25),
            "_meta annotations description execution icons inputSchema name outputSchema title x-unknown"
        );
        assert_eq!(
            members(Revision::V2026_07_28),
            "_meta annotations description icons inputSchema name outputSchema title x-unknown"
        );
    }

    #[test]
    fn structured_content_other_than_an_object_requires_2026_07_28() {
        let tool = Tool { output_schema: Some(json!({"type": "array"}).into()), ..full_tool() };
        assert!(shaped(tool.clone(), Revision::V2025_11_25).get("outputSchema").is_none());
        assert!(shaped(tool, Revision::V2026_07_28).get("outputSchema").is_some());
        let result = CallToolResult::structured(json!([1]));
        assert!(shaped(result.clone(), Revision::V2025_11_25).get("structuredContent").is_none());
        assert!(shaped(result, Revision::V2026_07_28).get("structuredContent").is_some());
    }

    #[test]
    fn old_revisions_get_text_for_content_they_do_not_define() {
        let link = Content::link(Resource { uri: "a://b".into(), name: "b".into(), ..Resource::default() });
        assert_eq!(shaped(link, Revision::V2025_03_26), json!({"type": "text", "text": "b: a://b"}));
        let audio = Content::audio(b"x", "audio/wav");
        assert_eq!(
            shaped(audio, Revision::V2024_11_05),
            json!({"type": "text", "text": "[audio of type audio/wav]"})
        );
    }

    #[test]
    fn unknown_content_and_members_are_kept() {
        let value = json!({"type": "hologram", "beam": [1, 2]});
        let content: Content = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(shaped(content, Revision::V2026_07_28), value);
        let value = json!({"type": "text", "text": "t", "_meta": {"k": 1}, "colour": "red"});
        let content: Content = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(shaped(content, Revision::V2026_07_28), value);
    }
}
