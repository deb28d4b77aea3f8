//! Built-in values of path expressions: `rand-guid`, `DateTime`, `sys.…`.

use std::time::SystemTime;

use super::date_format::CivilDateTime;

/// The source of built-in values. Tests implement their own.
pub trait BuiltInSource {
    /// Returns the current time.
    fn now(&self) -> SystemTime;
    /// Returns sixteen random bytes, or `None` if the system has no randomness.
    fn random(&self) -> Option<[u8; 16]>;
}

/// The clock and the random number generator of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemSource;

impl BuiltInSource for SystemSource {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
    fn random(&self) -> Option<[u8; 16]> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok().map(|()| bytes)
    }
}

/// A built-in value and its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BuiltInValue {
    /// A new GUID each time.
    Guid(GuidForm),
    /// The current time, in a .NET format.
    Now(String),
    /// The name of the function.
    Function,
}

/// The formats of a GUID in .NET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuidForm {
    /// `N`: digits only.
    Digits,
    /// `D`: dashes.
    Dashes,
    /// `B`: dashes, in braces.
    Braces,
    /// `P`: dashes, in parentheses.
    Parentheses,
    /// `X`: hexadecimal numbers, in braces.
    Numbers,
}

/// The default format of the time. It has dashes, because colons are a problem in paths.
const DEFAULT_TIME: &str = "yyyy-MM-ddTHH-mm-ssK";

/// The format is not a .NET format.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownFormat;

impl BuiltInValue {
    /// Parses the name of a built-in value, in any case. Returns `None` if it is not a built-in value.
    pub(crate) fn parse(name: &str, format: Option<&str>) -> Option<Result<BuiltInValue, UnknownFormat>> {
        let format = format.unwrap_or_default();
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("rand-guid") || is("sys.randguid") {
            Some(GuidForm::parse(format).map(BuiltInValue::Guid).ok_or(UnknownFormat))
        } else if is("datetime") || is("sys.utcnow") {
            let format = if format.is_empty() { DEFAULT_TIME } else { format };
            // Whether a format is valid does not depend on the time.
            let sample = CivilDateTime::from(SystemTime::UNIX_EPOCH).format(format);
            Some(sample.map(|_| BuiltInValue::Now(format.to_owned())).ok_or(UnknownFormat))
        } else if is("sys.methodname") {
            Some(Ok(BuiltInValue::Function))
        } else {
            None
        }
    }

    /// Writes the value. Returns `None` if the system has no randomness.
    pub(crate) fn write(
        &self,
        function: &str,
        surroundings: &dyn BuiltInSource,
        out: &mut String,
    ) -> Option<()> {
        match self {
            BuiltInValue::Guid(form) => out.push_str(&form.write(surroundings.random()?)),
            BuiltInValue::Now(format) => {
                out.push_str(&CivilDateTime::from(surroundings.now()).format(format)?)
            }
            BuiltInValue::Function => out.push_str(function),
        }
        Some(())
    }
}

impl GuidForm {
    fn parse(format: &str) -> Option<GuidForm> {
        match format {
            "" | "D" | "d" => Some(GuidForm::Dashes),
            "N" | "n" => Some(GuidForm::Digits),
            "B" | "b" => Some(GuidForm::Braces),
            "P" | "p" => Some(GuidForm::Parentheses),
            "X" | "x" => Some(GuidForm::Numbers),
            _ => None,
        }
    }

    /// Writes a GUID of version 4 from random bytes.
    fn write(self, random: [u8; 16]) -> String {
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0b11 << 62;
        let guid = u128::from_be_bytes(random) & !VERSION & !VARIANT | 4 << 76 | 0b10 << 62;
        let field = |shift: u32, bits: u32| (guid >> shift) & ((1 << bits) - 1);
        let (a, b, c) = (field(96, 32), field(80, 16), field(64, 16));
        let dashes = || format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", field(48, 16), field(0, 48));
        match self {
            GuidForm::Digits => format!("{guid:032x}"),
            GuidForm::Dashes => dashes(),
            GuidForm::Braces => format!("{{{}}}", dashes()),
            GuidForm::Parentheses => format!("({})", dashes()),
            GuidForm::Numbers => {
                let bytes: Vec<String> =
                    (0..8).rev().map(|at| format!("0x{:02x}", field(at * 8, 8))).collect();
                format!("{{0x{a:08x},0x{b:04x},0x{c:04x},{{{}}}}}", bytes.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: [u8; 16] =
        [0, 0x11, 0x22, 0x33, 0x44, 0x55, 0xf6, 0x77, 0xf8, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];

    #[test]
    fn guids_have_the_forms_of_dotnet() {
        let rows = [
            ("", "00112233-4455-4677-b899-aabbccddeeff"),
            ("D", "00112233-4455-4677-b899-aabbccddeeff"),
            ("N", "0011223344554677b899aabbccddeeff"),
            ("B", "{00112233-4455-4677-b899-aabbccddeeff}"),
            ("P", "(00112233-4455-4677-b899-aabbccddeeff)"),
            ("X", "{0x00112233,0x4455,0x4677,{0xb8,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}"),
            ("n", "0011223344554677b899aabbccddeeff"),
        ];
        for (format, expected) in rows {
            assert_eq!(GuidForm::parse(format).unwrap().write(RANDOM), expected, "{format}");
        }
        assert_eq!(GuidForm::parse("Q"), None);
        assert_eq!(GuidForm::parse("NN"), None);
    }

    #[test]
    fn names_are_found_in_any_case_and_formats_are_checked() {
        let time = |format: &str| Some(Ok(BuiltInValue::Now(format.to_owned())));
        assert_eq!(BuiltInValue::parse("DateTime", None), time("yyyy-MM-ddTHH-mm-ssK"));
        assert_eq!(BuiltInValue::parse("datetime", Some("yyyy")), time("yyyy"));
        assert_eq!(BuiltInValue::parse("Sys.UtcNow", Some("s")), time("s"));
        assert_eq!(
            BuiltInValue::parse("RAND-GUID", Some("N")),
            Some(Ok(BuiltInValue::Guid(GuidForm::Digits)))
        );
        assert_eq!(BuiltInValue::parse("sys.randguid", None), Some(Ok(BuiltInValue::Guid(GuidForm::Dashes))));
        assert_eq!(BuiltInValue::parse("sys.MethodName", None), Some(Ok(BuiltInValue::Function)));
        assert_eq!(BuiltInValue::parse("datetime", Some("x")), Some(Err(UnknownFormat)));
        assert_eq!(BuiltInValue::parse("rand-guid", Some("x9")), Some(Err(UnknownFormat)));
        assert_eq!(BuiltInValue::parse("datetimes", None), None);
        assert_eq!(BuiltInValue::parse("sys", None), None);
    }

    #[test]
    fn the_system_gives_a_new_guid_each_time() {
        assert_ne!(SystemSource.random().unwrap(), SystemSource.random().unwrap());
        assert!(SystemSource.now() > SystemTime::UNIX_EPOCH);
    }
}
