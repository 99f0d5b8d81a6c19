//! Names and values that restrict a session or grant it something. A misspelt one is never ignored.

use pintle_tools::most_similar;
use serde_json::Value;

/// Options, keys or fields of a surface that restrict a session or grant it something.
#[derive(Debug)]
pub(crate) struct Authority {
    /// Spellings, each with the name that it means.
    pub(crate) names: &'static [(&'static str, &'static str)],
    /// Values, each with the name whose value it is.
    pub(crate) values: &'static [(&'static str, &'static str)],
    /// Short options of this kind that take a value.
    pub(crate) short: &'static [&'static str],
}

impl Authority {
    /// Returns the reason why an unknown name with this value cannot be ignored. `subject` is the subject of the reason.
    pub(crate) fn objection(&self, subject: &str, name: &str, value: Option<&str>) -> Option<String> {
        let with_name = |meant: &str| format!("{subject} is unknown; did you mean {meant}?");
        if let Some(meant) = self.find_meant(name) {
            return Some(with_name(meant));
        }
        if could_restrict(name) {
            return Some(format!("{subject} is unknown"));
        }
        value.and_then(|value| self.name_with_value(value)).map(with_name)
    }

    /// Returns the reason why an unknown key cannot be ignored, because of its name, its value or a key in its value.
    pub(crate) fn objection_to_key(&self, key: &str, value: &Value) -> Option<String> {
        let own = self.objection("the key", key, value.as_str());
        own.or_else(|| self.objection_to_nested(value))
    }

    fn objection_to_nested(&self, value: &Value) -> Option<String> {
        match value {
            Value::Object(fields) => fields.iter().find_map(|(name, value)| {
                let objection = self.objection(&format!("the key {name} in its value"), name, value.as_str());
                objection.or_else(|| self.objection_to_nested(value))
            }),
            Value::Array(items) => items.iter().find_map(|item| self.objection_to_nested(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
    }

    /// Returns the name that a misspelt or abbreviated one means.
    pub(crate) fn find_meant(&self, name: &str) -> Option<&'static str> {
        if let Some(short) = self.short.iter().find(|short| is_attached(name, short)) {
            return Some(*short);
        }
        let wanted = letters(name);
        // The parts of a key with dots are names of different things.
        let may_extend = !name.contains('.');
        let is_close = |spelling: &str| {
            let known = letters(spelling);
            let is_abbreviation = wanted.len() >= MIN_ABBREVIATION && known.starts_with(&wanted);
            let is_extension =
                may_extend && known.len() >= MIN_EXTENDED && wanted.starts_with(known.as_str());
            is_abbreviation || is_extension || is_misspelling(&wanted, &known)
        };
        let spellings = self.names.iter().map(|(spelling, _)| *spelling);
        let close: Vec<&'static str> = spellings.filter(|spelling| is_close(spelling)).collect();
        let best = most_similar(name, close.iter().copied()).first().copied();
        let best = best.or_else(|| close.first().copied())?;
        self.names.iter().find(|(spelling, _)| *spelling == best).map(|(_, meant)| *meant)
    }

    /// Returns the name that has this value.
    fn name_with_value(&self, value: &str) -> Option<&'static str> {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        if value.is_empty() || !value.chars().all(is_word) {
            return None;
        }
        let wanted = letters(value);
        self.values.iter().find(|(known, _)| letters(known) == wanted).map(|(_, name)| *name)
    }
}

/// Returns the value that is attached to an unknown short option: `never` of `-xnever`.
pub(crate) fn attached_value(name: &str) -> Option<&str> {
    let rest = name.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let mut rest = rest.chars();
    rest.next()?;
    Some(rest.as_str().trim_start_matches('='))
}

/// Shortest abbreviation of a name, in bytes.
const MIN_ABBREVIATION: usize = 3;

/// Shortest name that an unknown one extends, in bytes.
const MIN_EXTENDED: usize = 4;

/// Returns whether a word is a short option with a value: `-snever`.
fn is_attached(word: &str, short: &str) -> bool {
    word.strip_prefix(short).is_some_and(|rest| !rest.is_empty())
}

/// Returns whether a name is close enough to a known one to be a typing error. Both have only letters and digits.
fn is_misspelling(wanted: &str, known: &str) -> bool {
    let limit = match known.len() {
        0..=3 => 0,
        4..=6 => 1,
        _ => 2,
    };
    // Longer words are too far away.
    wanted.len() <= known.len().saturating_add(limit) && strsim::osa_distance(wanted, known) <= limit
}

/// Returns the known name that an unknown one misspells.
pub(crate) fn find_misspelt<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let wanted = letters(name);
    let close: Vec<&str> = known.filter(|known| is_misspelling(&wanted, &letters(known))).collect();
    most_similar(name, close.iter().copied()).first().copied().or_else(|| close.first().copied())
}

/// Returns the letters and digits of a name in lower case.
fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Words in the names of options and keys that restrict sessions. A name with one of them is never ignored.
const RESTRICTING: &str = "\
    allow allowed allowlist approval approvals approve ask block blocked confine confined deny \
    denied denylist dir directories directory disable disabled disallow disallowed domain domains enforce \
    exclude excluded forbid grant grants guard hook hooks isolate isolated isolation limit limits lock \
    managed mode network only permission permissions policies policy profile profiles protect protected readonly \
    restrict restricted root roots rule rules safe sandbox sandboxed secure strict tool tools trust untrusted \
    whitelist writable";

/// Words that also count with one wrong letter: no harmless word is that close to them.
const UNMISTAKABLE: &str = "approval approvals disallowed network permission permissions readonly restricted sandbox sandboxed writable";

/// Returns whether an option or key with this name could restrict a session.
fn could_restrict(name: &str) -> bool {
    let is_restricting = |word: &String| {
        RESTRICTING.split(' ').any(|known| known == word)
            || UNMISTAKABLE.split(' ').any(|known| strsim::osa_distance(word, known) <= 1)
    };
    // A name in capitals has no words within its parts.
    words(name).iter().chain(&words(&name.to_lowercase())).any(is_restricting)
}

/// Returns the words of a name in lower case: split at punctuation and before upper-case letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Authority = Authority {
        names: &[
            ("--sandbox", "--sandbox"),
            ("--approval", "--ask-for-approval"),
            ("--ask-for-approval", "--ask-for-approval"),
            ("--cd", "--cd"),
            ("--yolo", "--yolo"),
            ("--config", "--config"),
            ("--profile", "--profile"),
        ],
        values: &[("read-only", "--sandbox"), ("never", "--ask-for-approval")],
        short: &["-s"],
    };

    #[test]
    fn names_with_a_restricting_word_are_recognized() {
        for name in [
            "--allowedTools",
            "--tool-filter",
            "sandbox_mode",
            "permissions.audit",
            "--no-network",
            "--NO-NETWORK",
            "--no-netwrk",
            "permisions.audit",
        ] {
            assert!(could_restrict(name), "{name}");
        }
        for name in [
            "--color",
            "--debug-to-stderr",
            "model_verbosity",
            "--betas",
            "--toolbar",
            "features.x",
            "project_doc_max_bytes",
            "--package-manager",
        ] {
            assert!(!could_restrict(name), "{name}");
        }
    }

    #[test]
    fn misspelt_names_mean_the_closest_one() {
        for (name, expected) in [
            ("--sandboxx", Some("--sandbox")),
            ("--sandbx", Some("--sandbox")),
            ("--snadbox", Some("--sandbox")),
            ("--SANDBOX", Some("--sandbox")),
            ("-sandbox", Some("-s")),
            ("-sread-only", Some("-s")),
            ("--sand", Some("--sandbox")),
            ("--ask_for_approval", Some("--ask-for-approval")),
            ("--askForApproval", Some("--ask-for-approval")),
            ("--ask-for-aproval", Some("--ask-for-approval")),
            ("--aproval", Some("--ask-for-approval")),
            ("--CD", Some("--cd")),
            ("--confg", Some("--config")),
            ("--yoloo", Some("--yolo")),
            ("--continue", None),
            ("--confirm", None),
            ("--provider", None),
            ("--id", None),
            ("--color", None),
            ("-", None),
        ] {
            assert_eq!(OPTIONS.find_meant(name), expected, "{name}");
        }
    }

    #[test]
    fn values_that_restrict_name_their_option() {
        for (value, expected) in [
            ("read-only", Some("--sandbox")),
            ("Read_Only", Some("--sandbox")),
            ("never", Some("--ask-for-approval")),
            ("Never!", None),
            ("always", None),
            ("", None),
        ] {
            let objection = OPTIONS.objection("it", "--new", Some(value));
            let expected = expected.map(|name| format!("it is unknown; did you mean {name}?"));
            assert_eq!(objection, expected, "{value}");
        }
        assert_eq!(attached_value("-xnever"), Some("never"));
        assert_eq!(attached_value("-x=never"), Some("never"));
        assert_eq!(attached_value("--xnever"), None);
    }

    #[test]
    fn keys_are_judged_with_the_keys_and_values_within() {
        for (value, expected) in [
            (serde_json::json!("low"), None),
            (serde_json::json!("never"), Some("the key is unknown; did you mean --ask-for-approval?")),
            (
                serde_json::json!([{"x": {"sandbx": 1}}]),
                Some("the key sandbx in its value is unknown; did you mean --sandbox?"),
            ),
            (serde_json::json!({"x": {"deny": []}}), Some("the key deny in its value is unknown")),
        ] {
            assert_eq!(OPTIONS.objection_to_key("new", &value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn a_misspelt_name_is_no_extension_of_another() {
        let known = ["Stop", "PreToolUse", "PostToolUse"];
        for (name, expected) in [
            ("preToolUse", Some("PreToolUse")),
            ("PreTolUse", Some("PreToolUse")),
            ("StopFailure", None),
            ("Setup", None),
        ] {
            assert_eq!(find_misspelt(name, known.into_iter()), expected, "{name}");
        }
    }
}
