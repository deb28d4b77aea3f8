//! A reference parser: reads JSON with `serde_json`, value by value. It is independent of the
//! scan under test.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The maximum nesting depth.
const MAX_DEPTH: usize = 127;

/// A text that is valid JSON.
pub struct Text<'a> {
    pub root: Node<'a>,
    /// An object has a duplicate member.
    pub ambiguous: bool,
    /// It is nested deeper than allowed. The deeper values were not read.
    pub too_deep: bool,
}

/// A value and its source text.
pub struct Node<'a> {
    pub raw: &'a str,
    pub kind: Kind<'a>,
}

pub enum Kind<'a> {
    /// A number, a boolean or null.
    Scalar,
    String(String),
    Array(Vec<Node<'a>>),
    Object(Vec<Member<'a>>),
}

pub struct Member<'a> {
    /// The source text, quotes included.
    pub raw_name: &'a str,
    pub name: String,
    pub value: Node<'a>,
}

impl<'a> Text<'a> {
    pub fn read(bytes: &'a [u8]) -> Option<Text<'a>> {
        let raw: &RawValue = serde_json::from_str(std::str::from_utf8(bytes).ok()?).ok()?;
        let root = Node { raw: raw.get(), kind: Kind::Scalar };
        let mut text = Text { root, ambiguous: false, too_deep: false };
        text.root = text.node(raw, 0)?;
        Some(text)
    }

    fn node(&mut self, raw: &'a RawValue, depth: usize) -> Option<Node<'a>> {
        let raw = raw.get();
        let depth = depth + usize::from(raw.starts_with(['[', '{']));
        if depth > MAX_DEPTH {
            self.too_deep = true;
            return Some(Node { raw, kind: Kind::Scalar });
        }
        let kind = match raw.as_bytes().first()? {
            b'"' => Kind::String(serde_json::from_str(raw).ok()?),
            b'[' => {
                let elements: Vec<&'a RawValue> = serde_json::from_str(raw).ok()?;
                Kind::Array(elements.into_iter().map(|raw| self.node(raw, depth)).collect::<Option<_>>()?)
            }
            b'{' => {
                let Pairs(pairs) = serde_json::from_str(raw).ok()?;
                let mut members: Vec<Member<'a>> = Vec::new();
                for (name, value) in pairs {
                    let raw_name = name.get();
                    let name: String = serde_json::from_str(raw_name).ok()?;
                    self.ambiguous |= members.iter().any(|member| member.name == name);
                    members.push(Member { raw_name, name, value: self.node(value, depth)? });
                }
                Kind::Object(members)
            }
            _ => Kind::Scalar,
        };
        Some(Node { raw, kind })
    }
}

impl<'a> Node<'a> {
    pub fn members(&self) -> &[Member<'a>] {
        if let Kind::Object(members) = &self.kind { members } else { &[] }
    }

    pub fn member(&self, name: &str) -> Option<&Node<'a>> {
        self.members().iter().find(|member| member.name == name).map(|member| &member.value)
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Kind::String(text) = &self.kind { Some(text) } else { None }
    }

    pub fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    pub fn is_integer(&self) -> bool {
        matches!(self.kind, Kind::Scalar)
            && self.raw.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
    }
}

/// The members of one object, including duplicates.
struct Pairs<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<'de>, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Pairs<'de>, M::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}
