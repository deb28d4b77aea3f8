//! Values every path expression can use without any data: `rand-guid`, `DateTime`, `sys.…`.

use std::time::SystemTime;

use super::date_format::Moment;

/// Where built-in values come from. Tests bring their own.
pub trait Surroundings {
    /// The time.
    fn now(&self) -> SystemTime;
    /// Sixteen random bytes; `None` if the system has none.
    fn random(&self) -> Option<[u8; 16]>;
}

/// The clock and the randomness of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

impl Surroundings for Machine {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
    fn random(&self) -> Option<[u8; 16]> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok().map(|()| bytes)
    }
}

/// A built-in value and how to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    /// A new GUID each time.
    Guid(GuidForm),
    /// The time, in a format of .NET.
    Now(String),
    /// The name of the function.
    Function,
}

/// How .NET writes a GUID.
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

/// Without a format; dashes in the time because a colon is trouble in a path.
const DEFAULT_TIME: &str = "yyyy-MM-ddTHH-mm-ssK";

/// The format is none that .NET knows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownFormat;

impl BuiltIn {
    /// The value an expression names, in any case; `None` if it is no built-in one.
    pub(crate) fn parse(name: &str, format: Option<&str>) -> Option<Result<BuiltIn, UnknownFormat>> {
        let format = format.unwrap_or_default();
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("rand-guid") || is("sys.randguid") {
            Some(GuidForm::parse(format).map(BuiltIn::Guid).ok_or(UnknownFormat))
        } else if is("datetime") || is("sys.utcnow") {
            let format = if format.is_empty() { DEFAULT_TIME } else { format };
            // Whether a format is right does not depend on the time.
            let sample = Moment::from(SystemTime::UNIX_EPOCH).format(format);
            Some(sample.map(|_| BuiltIn::Now(format.to_owned())).ok_or(UnknownFormat))
        } else if is("sys.methodname") {
            Some(Ok(BuiltIn::Function))
        } else {
            None
        }
    }

    /// Writes the value; `None` if the machine has no randomness.
    pub(crate) fn write(
        &self,
        function: &str,
        surroundings: &dyn Surroundings,
        out: &mut String,
    ) -> Option<()> {
        match self {
            BuiltIn::Guid(form) => out.push_str(&form.write(surroundings.random()?)),
            BuiltIn::Now(format) => out.push_str(&Moment::from(surroundings.now()).format(format)?),
            BuiltIn::Function => out.push_str(function),
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

    /// A GUID of version 4 from random bytes.
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
        let time = |format: &str| Some(Ok(BuiltIn::Now(format.to_owned())));
        assert_eq!(BuiltIn::parse("DateTime", None), time("yyyy-MM-ddTHH-mm-ssK"));
        assert_eq!(BuiltIn::parse("datetime", Some("yyyy")), time("yyyy"));
        assert_eq!(BuiltIn::parse("Sys.UtcNow", Some("s")), time("s"));
        assert_eq!(BuiltIn::parse("RAND-GUID", Some("N")), Some(Ok(BuiltIn::Guid(GuidForm::Digits))));
        assert_eq!(BuiltIn::parse("sys.randguid", None), Some(Ok(BuiltIn::Guid(GuidForm::Dashes))));
        assert_eq!(BuiltIn::parse("sys.MethodName", None), Some(Ok(BuiltIn::Function)));
        assert_eq!(BuiltIn::parse("datetime", Some("x")), Some(Err(UnknownFormat)));
        assert_eq!(BuiltIn::parse("rand-guid", Some("x9")), Some(Err(UnknownFormat)));
        assert_eq!(BuiltIn::parse("datetimes", None), None);
        assert_eq!(BuiltIn::parse("sys", None), None);
    }

    #[test]
    fn the_machine_gives_a_new_guid_each_time() {
        assert_ne!(Machine.random().unwrap(), Machine.random().unwrap());
        assert!(Machine.now() > SystemTime::UNIX_EPOCH);
    }
}
