//! Parsers of values whose types know nothing of the command line.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use pintle_host::env_spec::EnvSpec;
use pintle_host::named_value::{self, NamedValue};

/// Parses a [`NamedValue`]. Help texts and errors list the names.
#[derive(Clone, Debug)]
pub(super) struct NamedValueParser<T>(PhantomData<T>);

/// Returns the parser of a type.
pub(super) const fn named<T: NamedValue>() -> NamedValueParser<T> {
    NamedValueParser(PhantomData)
}

impl<T: NamedValue> TypedValueParser for NamedValueParser<T> {
    type Value = T;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        // No name has the replacement character, so text that is not UTF-8 is rejected like an unknown name.
        let text = value.to_string_lossy();
        let known = PossibleValuesParser::new(possible_values::<T>());
        let name = known.parse_ref(cmd, arg, OsStr::new(&*text))?;
        named_value::parse(&name)
            .map_err(|reason| clap::Error::raw(ErrorKind::InvalidValue, reason).with_cmd(cmd))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(possible_values::<T>()))
    }
}

fn possible_values<T: NamedValue>() -> impl Iterator<Item = PossibleValue> {
    T::VALUES.iter().map(|value| {
        let possible = PossibleValue::new(value.value_name());
        match value.meaning() {
            Some(meaning) => possible.help(meaning),
            None => possible,
        }
    })
}

/// Parses a text that is not blank.
#[cfg(any(feature = "task", test))]
pub(super) fn parse_text(value: &str) -> Result<String, String> {
    if value.trim().is_empty() { Err("expected a text".to_owned()) } else { Ok(value.to_owned()) }
}

/// Parses an [`EnvSpec`]. Unlike the default parser, never repeats a password in an error.
#[derive(Clone, Debug)]
pub(super) struct EnvSpecParser;

impl TypedValueParser for EnvSpecParser {
    type Value = EnvSpec;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<EnvSpec, clap::Error> {
        let parsed = match value.to_str() {
            Some(text) => text.parse(),
            None => Err(format!("found invalid UTF-8, {}", EnvSpec::EXPECTED)),
        };
        parsed.map_err(|reason: String| {
            let text = value.to_string_lossy();
            let for_arg = arg.map(|arg| format!(" for '{arg}'")).unwrap_or_default();
            let message = format!("invalid value '{}'{for_arg}: {reason}", EnvSpec::redact(&text));
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(cmd)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use clap::ValueEnum;
    use clap::builder::ValueParser;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Level {
        Off,
        Writes,
    }

    impl NamedValue for Level {
        const VALUES: &'static [Self] = &[Self::Off, Self::Writes];

        fn value_name(self) -> &'static str {
            match self {
                Self::Off => "off",
                Self::Writes => "writes",
            }
        }

        fn meaning(self) -> Option<&'static str> {
            match self {
                Self::Off => None,
                Self::Writes => Some("Writes only in the directory"),
            }
        }
    }

    /// The same values, as clap derives them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    enum DerivedLevel {
        Off,
        /// Writes only in the directory
        Writes,
    }

    fn command(parser: impl Into<ValueParser>) -> Command {
        let parser: ValueParser = parser.into();
        let level = Arg::new("level").long("level").value_name("LEVEL").help("The level");
        Command::new("c").arg(level.value_parser(parser))
    }

    #[test]
    fn help_and_errors_equal_those_of_derived_values() {
        let own = || command(named::<Level>());
        let derived = || command(clap::builder::EnumValueParser::<DerivedLevel>::new());
        for is_long in [false, true] {
            let help = |mut command: Command| match is_long {
                true => command.render_long_help().to_string(),
                false => command.render_help().to_string(),
            };
            assert_eq!(help(own()), help(derived()));
        }
        for value in ["writs", "", "WRITES"].map(str::as_bytes).into_iter().chain([&b"off\xff"[..]]) {
            let words = || [OsStr::new("c"), OsStr::new("--level"), OsStr::from_bytes(value)];
            let error = own().try_get_matches_from(words()).unwrap_err();
            let expected = derived().try_get_matches_from(words()).unwrap_err();
            assert_eq!(error.to_string(), expected.to_string());
            assert_eq!(error.kind(), expected.kind());
        }
    }

    #[test]
    fn a_blank_text_is_no_text() {
        for (text, is_text) in [("x", true), (" x ", true), ("", false), (" \n", false)] {
            assert_eq!(parse_text(text).ok().as_deref(), is_text.then_some(text));
        }
    }

    #[test]
    fn names_are_parsed() {
        for level in [Level::Off, Level::Writes] {
            let matches =
                command(named::<Level>()).try_get_matches_from(["c", "--level", level.value_name()]);
            assert_eq!(matches.unwrap().get_one::<Level>("level"), Some(&level));
        }
    }
}
