//! Enumerations whose values have names in flags, files and prompts.

use std::str::FromStr;

use pintle_tools::most_similar;

use crate::failure::Failure;

/// Enumeration whose values have names.
pub trait NamedValue: Copy + Send + Sync + 'static {
    /// All values, in the order of help texts.
    const VALUES: &'static [Self];

    /// Returns the name of the value.
    fn value_name(self) -> &'static str;

    /// Returns the meaning of the value for help texts; `None` if the name explains it.
    fn meaning(self) -> Option<&'static str>;
}

/// Returns the value with this name.
///
/// The error contains the text and the names of all values.
pub fn parse<T: NamedValue>(text: &str) -> Result<T, String> {
    let named = T::VALUES.iter().copied().find(|value| value.value_name() == text);
    named.ok_or_else(|| {
        let names: Vec<&str> = T::VALUES.iter().map(|value| value.value_name()).collect();
        format!("found `{text}`, expected one of {}", names.join(", "))
    })
}

/// Parses a setting of a session that is text.
///
/// A wrong one is a usage failure: a stored session or an application may have it.
pub fn parse_setting<T: FromStr<Err = String>>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|problem| Failure::usage(format!("invalid setting of the session: {problem}")))
}

/// Returns a question that suggests a similar name, or an empty text.
pub(crate) fn suggest_name<'n>(wrong: &str, known: impl Iterator<Item = &'n str>) -> String {
    let similar = most_similar(wrong, known);
    similar.first().map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;
    use crate::provider::{Provider, ProviderName};
    use crate::spec::{SandboxLevel, WorktreeBase};

    /// Checks that the names are these, that each is parsed, and that the error for another text lists them.
    fn check<T>(names: &[&str])
    where
        T: NamedValue + Debug + PartialEq,
    {
        let named: Vec<&str> = T::VALUES.iter().map(|value| value.value_name()).collect();
        assert_eq!(named, names);
        for value in T::VALUES {
            assert_eq!(parse::<T>(value.value_name()), Ok(*value));
        }
        for wrong in ["gateway", "", names[0].to_uppercase().as_str()] {
            let expected = format!("found `{wrong}`, expected one of {}", names.join(", "));
            assert_eq!(parse::<T>(wrong), Err(expected));
        }
    }

    #[test]
    fn values_are_parsed_by_their_names() {
        check::<Provider>(&["openai", "anthropic", "gemini", "openai-compatible"]);
        check::<ProviderName>(&["openai", "anthropic", "gemini", "openai-compatible", "scripted"]);
        check::<SandboxLevel>(&["auto", "full", "writes", "off"]);
        check::<WorktreeBase>(&["head", "changes"]);
    }
}
