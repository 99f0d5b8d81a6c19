//! The configuration of cargo without its secrets.

use std::ffi::OsStr;

use crate::secret::is_secret;

/// Words in the names of settings that hold secrets.
const SECRET: [&str; 4] = ["token", "secret", "password", "credential"];

/// Returns the configuration without lines that may hold a secret; `None` if such a line may be
/// part of a longer value, which cannot be taken apart without a parser.
pub(super) fn without_secrets(text: &str) -> Option<String> {
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        if !may_hold_secret(line) {
            kept.push_str(line);
            kept.push('\n');
        } else if !is_complete_setting(line) {
            return None;
        }
    }
    Some(kept)
}

fn may_hold_secret(line: &str) -> bool {
    let lower = line.to_lowercase();
    let value = line.split_once('=').map_or(line, |(_, value)| value);
    SECRET.iter().any(|word| lower.contains(word))
        || value.split(['"', '\'', ' ', ',']).any(|word| is_secret(OsStr::new("VALUE"), OsStr::new(word)))
}

/// Returns true for a comment, and for a name with a value that ends on the same line.
fn is_complete_setting(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with('#') {
        return true;
    }
    let Some((name, value)) = line.split_once('=') else { return false };
    let value = value.trim();
    let is_name = name.trim().chars().all(|one| one.is_alphanumeric() || "-_.\"' ".contains(one));
    let is_string = |quote: char| {
        let inner = value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
        inner.is_some_and(|inner| !inner.contains(quote))
    };
    let is_table = value.starts_with('{') && value.ends_with('}');
    is_name && (is_string('"') || is_string('\'') || is_table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_dropped_by_line() {
        let text = "[build]\njobs = 2\n[registries.own]\nindex = \"https://own\"\ntoken = \"abc\"\n\
                    # a token\n[registries]\nx = { index = \"y\", token = \"z\" }\n\
                    [http]\nproxy = \"http://user:pass@host:1\"\ntimeout = 3\n";
        let kept = "[build]\njobs = 2\n[registries.own]\nindex = \"https://own\"\n[registries]\n[http]\ntimeout = 3\n";
        assert_eq!(without_secrets(text).as_deref(), Some(kept));
    }

    #[test]
    fn what_cannot_be_taken_apart_is_dropped_whole() {
        for text in ["token = \"\"\"\nabc\"\"\"\n", "a = [\n\"token\",\n]\n", "[token]\na = 1\n"] {
            assert_eq!(without_secrets(text), None, "{text}");
        }
    }
}
