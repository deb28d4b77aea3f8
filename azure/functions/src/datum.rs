//! [`Datum`]: a value that is sent to or received from a worker.

mod http;

use bytes::Bytes;

pub use self::http::{HttpRequestData, HttpResponseData, ResponseCookie};

/// A value that is sent to or received from a worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Datum {
    /// No value: `null`, `None` or `undefined`.
    #[default]
    Nothing,
    /// A string.
    Text(String),
    /// JSON text of any kind.
    Json(String),
    /// Binary data.
    Bytes(Bytes),
    /// An integer. Only workers send it.
    Int(i64),
    /// A floating point number. Only workers send it.
    Double(f64),
    /// The request of an HTTP trigger. Only the host sends it.
    HttpRequest(Box<HttpRequestData>),
    /// The response of a function with an HTTP trigger. Only workers send it.
    HttpResponse(Box<HttpResponseData>),
}

impl Datum {
    /// Returns whether this is no value. JSON `null` is no value either: Java sends it for a null.
    pub fn is_nothing(&self) -> bool {
        match self {
            Datum::Nothing => true,
            Datum::Json(json) => json.trim() == "null",
            _ => false,
        }
    }
}

impl From<String> for Datum {
    fn from(text: String) -> Datum {
        Datum::Text(text)
    }
}

impl From<&str> for Datum {
    fn from(text: &str) -> Datum {
        Datum::Text(text.to_owned())
    }
}

impl From<Bytes> for Datum {
    fn from(bytes: Bytes) -> Datum {
        Datum::Bytes(bytes)
    }
}

impl<T: Into<Datum>> From<Option<T>> for Datum {
    fn from(value: Option<T>) -> Datum {
        value.map_or(Datum::Nothing, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_in_json_is_nothing_but_the_word_in_text_is_not() {
        assert!(Datum::Nothing.is_nothing());
        assert!(Datum::Json(" null\n".to_owned()).is_nothing());
        assert!(!Datum::from("null").is_nothing());
        assert!(!Datum::Json("\"null\"".to_owned()).is_nothing());
        assert!(!Datum::from("").is_nothing());
    }

    #[test]
    fn converts_from_what_the_host_has_at_hand() {
        assert_eq!(Datum::from("a"), Datum::Text("a".to_owned()));
        assert_eq!(Datum::from("a".to_owned()), Datum::Text("a".to_owned()));
        assert_eq!(Datum::from(Bytes::from_static(b"a")), Datum::Bytes(Bytes::from_static(b"a")));
        assert_eq!(Datum::from(None::<String>), Datum::Nothing);
        assert_eq!(Datum::from(Some("a")), Datum::Text("a".to_owned()));
    }
}
