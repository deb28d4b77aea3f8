//! Markdown: sections below their headings.

use serde_json::{Map, Value, json};

use super::{Items, ParsedItem};

/// `oneToMany`: each section is an item with the headings above it.
pub(super) fn sections(text: &str, depth: usize) -> Items {
    let mut headings: Vec<String> = vec![String::new(); 6];
    let mut items = Vec::new();
    for piece in pieces(text, depth) {
        if let Some((level, name)) = piece.heading {
            for (at, heading) in headings.iter_mut().enumerate().skip(level - 1) {
                *heading = if at == level - 1 { name.to_owned() } else { String::new() };
            }
        }
        let content = piece.content.trim();
        if content.is_empty() {
            continue;
        }
        let number = items.len() as u64 + 1;
        let above: Map<String, Value> = (1..=depth)
            .zip(&headings)
            .map(|(level, name)| (format!("h{level}"), Value::from(name.as_str())))
            .collect();
        let fields = [
            ("content", Value::from(content)),
            ("sections", Value::Object(above)),
            ("ordinal_position", Value::from(number)),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        items.push(Ok(ParsedItem { fields, number: Some(number), warnings: Vec::new() }));
    }
    Box::new(items.into_iter())
}

/// `oneToOne`: one item with the whole text and a tree of its headings.
pub(super) fn outline(text: &str, depth: usize) -> ParsedItem {
    // Open sections, outermost first: the level and the content so far.
    let mut open: Vec<(usize, Map<String, Value>)> = Vec::new();
    let mut roots = Vec::new();
    let mut position = 0;
    for piece in pieces(text, depth) {
        let Some((level, name)) = piece.heading else { continue };
        position += 1;
        while open.last().is_some_and(|(above, _)| *above >= level) {
            close(&mut open, &mut roots);
        }
        let section = json!({
            "header_level": format!("h{level}"),
            "header_name": name,
            "content": piece.content.trim(),
            "ordinal_position": position,
            "sections": [],
        });
        if let Value::Object(section) = section {
            open.push((level, section));
        }
    }
    while !open.is_empty() {
        close(&mut open, &mut roots);
    }
    let fields = [("document_content", Value::from(text)), ("sections", Value::Array(roots))];
    ParsedItem {
        fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ..ParsedItem::default()
    }
}

fn close(open: &mut Vec<(usize, Map<String, Value>)>, roots: &mut Vec<Value>) {
    let Some((_, section)) = open.pop() else { return };
    let siblings = match open.last_mut() {
        Some((_, above)) => above.get_mut("sections").and_then(Value::as_array_mut),
        None => None,
    };
    siblings.unwrap_or(roots).push(Value::Object(section));
}

struct MarkdownSection<'a> {
    /// Level and text. `None` for the text before the first heading.
    heading: Option<(usize, &'a str)>,
    content: &'a str,
}

fn pieces(text: &str, depth: usize) -> Vec<MarkdownSection<'_>> {
    let mut pieces = Vec::new();
    let mut heading_now = None;
    let (mut content_start, mut at, mut fence) = (0, 0, None);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        // A heading sign within fenced code is not a heading.
        let mark = trimmed.get(..3).filter(|mark| *mark == "```" || *mark == "~~~");
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        if fence.is_some() || mark.is_some() || line.starts_with("    ") {
            continue;
        }
        if let Some(found) = heading(trimmed).filter(|(level, _)| *level <= depth) {
            pieces.push(MarkdownSection {
                heading: heading_now,
                content: text.get(content_start..start).unwrap_or(""),
            });
            (heading_now, content_start) = (Some(found), at);
        }
    }
    pieces.push(MarkdownSection { heading: heading_now, content: text.get(content_start..).unwrap_or("") });
    pieces
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let name = line.trim_start_matches('#');
    let level = line.len() - name.len();
    let fits = (1..=6).contains(&level) && (name.is_empty() || name.starts_with([' ', '\t']));
    fits.then(|| (level, name.trim().trim_end_matches('#').trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "before\n# A\none\n## B #\ntwo\n```\n# no heading\n```\n# C\n### D\nthree\n#hash\n";

    #[test]
    fn sections_have_the_headings_above_them() {
        let items: Vec<ParsedItem> = sections(PAGE, 6).map(Result::unwrap).collect();
        assert_eq!(items.len(), 4);
        assert_eq!(items[0].fields["sections"]["h1"], "");
        assert_eq!(items[2].fields["sections"]["h1"], "A");
        assert_eq!(items[2].fields["sections"]["h2"], "B");
        assert!(items[2].fields["content"].as_str().unwrap().contains("# no heading"));
        assert_eq!(items[3].fields["sections"]["h2"], "");
        assert_eq!(items[3].fields["sections"]["h3"], "D");
        assert_eq!(items[3].fields["ordinal_position"], 4);
    }

    #[test]
    fn deeper_headings_stay_in_the_content() {
        let items: Vec<ParsedItem> = sections(PAGE, 1).map(Result::unwrap).collect();
        assert_eq!(items.len(), 3);
        assert!(items[1].fields["content"].as_str().unwrap().contains("## B"));
    }

    #[test]
    fn an_outline_nests_sections() {
        let item = outline(PAGE, 6);
        let sections = &item.fields["sections"];
        assert_eq!(sections[0]["header_name"], "A");
        assert_eq!(sections[0]["sections"][0]["header_level"], "h2");
        assert_eq!(sections[1]["sections"][0]["content"], "three\n#hash");
        assert_eq!(item.fields["document_content"], PAGE);
    }
}
