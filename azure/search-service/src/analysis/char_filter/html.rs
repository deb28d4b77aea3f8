//! The character filter `html_strip`. It removes tags and decodes entities.

use super::EditedText;

/// Inline elements, whose tags are removed. All other tags become a line break, so that words stay separate.
const INLINE: [&str; 33] = [
    "a", "abbr", "acronym", "b", "basefont", "bdo", "big", "cite", "code", "dfn", "em", "font", "i", "img",
    "input", "kbd", "label", "mark", "q", "s", "samp", "select", "small", "span", "strike", "strong", "sub",
    "sup", "textarea", "time", "tt", "u", "var",
];

/// The entity names of U+00A0 to U+00FF in order.
const LATIN: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo",
    "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot",
    "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc",
    "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute",
    "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash",
    "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN", "szlig", "agrave", "aacute", "acirc", "atilde",
    "auml", "aring", "aelig", "ccedil", "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc",
    "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash", "ugrave",
    "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];

const OTHERS: [(&str, char); 24] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("ndash", '–'),
    ("mdash", '—'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bdquo", '„'),
    ("bull", '•'),
    ("hellip", '…'),
    ("euro", '€'),
    ("trade", '™'),
    ("OElig", 'Œ'),
    ("oelig", 'œ'),
    ("Scaron", 'Š'),
    ("scaron", 'š'),
    ("Yuml", 'Ÿ'),
    ("thinsp", ' '),
    ("ensp", ' '),
];

/// Terminators that the rest of the text does not contain. This avoids searching the rest again for
/// every unterminated opening.
#[derive(Default)]
struct MissingTerminators {
    bracket: bool,
    comment_end: bool,
    script_end: bool,
    style_end: bool,
}

pub(crate) fn strip(text: &str, edited: &mut EditedText) {
    let mut missing = MissingTerminators::default();
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(found) = rest.find(['<', '&']) else { break };
        let start = at + found;
        let Some(rest) = text.get(start..) else { break };
        let replaced = if rest.starts_with('&') {
            entity(rest).map(|(length, c)| (length, Some(c)))
        } else {
            markup(rest, &mut missing)
        };
        match replaced {
            Some((length, with)) => {
                edited.keep_to(text, start);
                let mut buffer = [0; 4];
                edited.replace(length, with.map(|c| &*c.encode_utf8(&mut buffer)));
                at = start + length;
            }
            None => at = start + 1,
        }
    }
    edited.keep_to(text, text.len());
}

/// Returns the length of a tag, comment or script and its replacement. Returns `None` if `<` is plain text.
fn markup(text: &str, missing: &mut MissingTerminators) -> Option<(usize, Option<char>)> {
    if missing.bracket {
        return None;
    }
    if text.starts_with("<!--") {
        // An unterminated comment is text.
        let end = if missing.comment_end { None } else { text.get(4..)?.find("-->") };
        missing.comment_end |= end.is_none();
        return end.map(|length| (length + 7, None));
    }
    if text.starts_with("<![CDATA[") {
        return Some((9, None));
    }
    let inside = text.get(1..)?;
    let name_at = usize::from(inside.starts_with('/'));
    let name = inside.get(name_at..)?;
    if name.starts_with('!') || name.starts_with('?') {
        let end = inside.find('>');
        missing.bracket |= end.is_none();
        return end.map(|length| (length + 2, Some('\n')));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let Some(length) = tag_length(text) else {
        missing.bracket = true;
        return None;
    };
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if name_at == 0 && (is("script") || is("style")) {
        let known = if is("script") { &mut missing.script_end } else { &mut missing.style_end };
        let end = if *known { None } else { closing(text.get(length..)?, name) };
        *known |= end.is_none();
        // If the script is unterminated, only its tag is removed.
        return Some((length + end.unwrap_or_default(), Some('\n')));
    }
    let inline = INLINE.iter().any(|known| is(known));
    Some((length, if inline { None } else { Some('\n') }))
}

/// Returns the length of the tag, up to and including the first `>` outside quotes.
fn tag_length(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    // If a quote is unterminated, the first `>` ends the tag.
    text.find('>').map(|at| at + 1)
}

/// Returns the end of the open element, including its closing tag.
fn closing(text: &str, name: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let found = at + text.get(at..)?.find("</")?;
        let rest = text.get(found + 2..)?;
        if rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            return rest.find('>').map(|length| found + 2 + length + 1);
        }
        at = found + 2;
    }
}

fn entity(text: &str) -> Option<(usize, char)> {
    let window = text.get(1..)?;
    let end = window.bytes().take(12).position(|byte| byte == b';')?;
    let name = window.get(..end)?;
    let c = if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        char::from_u32(code)?
    } else if let Some(index) = LATIN.iter().position(|known| *known == name) {
        char::from_u32(0xa0 + u32::try_from(index).ok()?)?
    } else {
        OTHERS.iter().find(|(known, _)| *known == name)?.1
    };
    // Use a plain space, because a no-break space would not end a word.
    Some((end + 2, if c == '\u{a0}' { ' ' } else { c }))
}

#[cfg(test)]
mod tests {
    use super::super::CharFilter;

    #[test]
    fn unterminated_openings_are_fast() {
        for opening in ["<a ", "<!--", "<script>", "<a '", "</", "<!", "&", "<style></"] {
            let text = opening.repeat(200_000);
            assert!(CharFilter::HtmlStrip.apply(&text, usize::MAX).text.len() <= text.len());
        }
    }

    #[test]
    fn tags_are_removed_and_entities_become_characters() {
        for (text, expected) in [
            ("<p>one</p><p>two</p>", "\none\n\ntwo\n"),
            ("un<b>believ</b>able", "unbelievable"),
            ("a < b && c > d", "a < b && c > d"),
            ("x<!-- <b>no</b> -->y", "xy"),
            ("<SCRIPT type=\"a>b\">if (a</b>c) {}</script>z", "\nz"),
            ("<a title='>'>link</a>", "link"),
            ("caf&eacute; &amp; &#233; &#xE9; &nbsp;. &bogus; &", "café & é é  . &bogus; &"),
            ("<!DOCTYPE html>t", "\nt"),
            ("<![CDATA[kept]]>", "kept]]>"),
            ("<script>a<style>b</style>c", "\na\nc"),
            ("open <b", "open <b"),
            ("<é>", "<é>"),
        ] {
            assert_eq!(CharFilter::HtmlStrip.apply(text, usize::MAX).text, expected, "{text}");
        }
    }
}
