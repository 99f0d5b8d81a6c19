//! Names and values that restrict a session or grant it something. A misspelt one is never ignored.

use pintle_tools::most_similar;
use serde_json::Value;

/// Known options, keys or fields of a surface. `names` contains the ones that restrict a session or grant it something.
#[derive(Debug)]
pub(crate) struct RestrictingNames {
    /// Spellings of these names, each with its name.
    pub(crate) names: &'static [(&'static str, &'static str)],
    /// Spellings of other names, each with its name.
    pub(crate) others: &'static [(&'static str, &'static str)],
    /// Values that no other option has, each with the name of its option.
    pub(crate) values: &'static [(&'static str, &'static str)],
    /// Short options that take a value.
    pub(crate) short: &'static [&'static str],
}

impl RestrictingNames {
    /// Returns the reason why an unknown name with this value cannot be ignored. `subject` is the subject of the
    /// reason.
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

    /// Returns the name in `names` that a misspelt or abbreviated one means.
    pub(crate) fn find_meant(&self, name: &str) -> Option<&'static str> {
        let wanted = letters(name);
        closest(name, self.names, |known| {
            is_abbreviation(&wanted, known)
                || is_extension(name, known, MIN_EXTENDED)
                || is_misspelling(&wanted, known)
        })
    }

    /// Returns the name in `others` that a misspelt or abbreviated one means.
    pub(crate) fn find_other(&self, name: &str) -> Option<&'static str> {
        // `--o` means `-o`.
        if let Some(short) = self.short.iter().find(|short| name.strip_prefix('-') == Some(**short)) {
            return Some(*short);
        }
        let wanted = letters(name);
        closest(name, self.others, |known| {
            let is_near = known.len() >= MIN_DISTINCT || wanted.chars().next() == known.chars().next();
            is_abbreviation(&wanted, known)
                || is_extension(name, known, MIN_OTHER_EXTENDED)
                || is_near && is_misspelling(&wanted, known)
        })
    }

    /// Splits a short option from the value in the same word: `-sread-only`, `-s=read-only`. A known long option with a
    /// single dash is not split: `-cd` is not `-c`.
    pub(crate) fn split_short<'w>(&self, word: &'w str) -> Option<(&'static str, &'w str)> {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        let mut spellings = self.names.iter().chain(self.others).map(|(spelling, _)| *spelling);
        if spellings.any(|spelling| spelling.strip_prefix('-') == Some(name)) {
            return None;
        }
        self.short.iter().find_map(|short| {
            let value = word.strip_prefix(*short).filter(|value| !value.is_empty())?;
            Some((*short, value.strip_prefix('=').unwrap_or(value)))
        })
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

/// Shortest name in `names` that an unknown one may extend, in bytes.
const MIN_EXTENDED: usize = 4;

/// Shortest other name that an unknown one may extend, in bytes: `--model-provider` is not `--model`.
const MIN_OTHER_EXTENDED: usize = 10;

/// Shortest other name whose first letter may be wrong, in bytes: `--fast` is not `--last`.
const MIN_DISTINCT: usize = 7;

/// Returns the meaning of the spelling that is most similar to a name, among the spellings with close letters.
fn closest(
    name: &str,
    spellings: &[(&'static str, &'static str)],
    is_close: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    let close = spellings.iter().filter(|(spelling, _)| is_close(&letters(spelling)));
    let close: Vec<&'static str> = close.map(|(spelling, _)| *spelling).collect();
    let best = most_similar(name, close.iter().copied()).first().copied();
    let best = best.or_else(|| close.first().copied())?;
    spellings.iter().find(|(spelling, _)| *spelling == best).map(|(_, meant)| *meant)
}

/// Returns whether a name is a prefix of a known one. Both contain only letters and digits.
fn is_abbreviation(wanted: &str, known: &str) -> bool {
    wanted.len() >= MIN_ABBREVIATION && known.starts_with(wanted)
}

/// Returns whether a name starts with the letters of a known one that has at least `min` bytes.
fn is_extension(name: &str, known: &str, min: usize) -> bool {
    // The parts of a dotted key name different things.
    !name.contains('.') && known.len() >= min && letters(name).starts_with(known)
}

/// Returns whether a name is close enough to a known one to be a typing error. Both contain only letters and digits.
fn is_misspelling(wanted: &str, known: &str) -> bool {
    let limit = match known.len() {
        0..=3 => return is_misspelt_short(wanted, known),
        4..=6 => 1,
        _ => 2,
    };
    // Longer words cannot be within the limit.
    wanted.len() <= known.len().saturating_add(limit) && strsim::osa_distance(wanted, known) <= limit
}

/// Returns whether a name has the letters of a short one in another order, or one more letter that is at the end or
/// repeats its predecessor. Other differences make another word.
fn is_misspelt_short(wanted: &str, known: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let without_repetition = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.dedup();
        letters
    };
    let has_one_more = wanted.len() == known.len().saturating_add(1);
    sorted(wanted) == sorted(known)
        || has_one_more
            && (wanted.starts_with(known) || without_repetition(wanted) == without_repetition(known))
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

/// Words in the names of options and keys that restrict sessions. A name that contains one of them is never ignored.
const RESTRICTING: &str = "\
    allow allowed allowlist approval approvals approve ask block blocked confine confined deny \
    denied denylist dir directories directory disable disabled disallow disallowed domain domains enforce \
    exclude excluded forbid grant grants guard hook hooks isolate isolated isolation limit limits lock \
    managed mode network only permission permissions policies policy profile profiles protect protected readonly \
    restrict restricted root roots rule rules safe sandbox sandboxed secure strict tool tools trust untrusted \
    whitelist writable";

/// Words that also match with one wrong letter: no harmless word is that close to them.
const UNMISTAKABLE: &str = "approval approvals disallowed network permission permissions readonly restricted sandbox sandboxed writable";

/// Returns whether an option or key with this name could restrict a session.
fn could_restrict(name: &str) -> bool {
    let is_restricting = |word: &String| {
        RESTRICTING.split(' ').any(|known| known == word)
            || UNMISTAKABLE.split(' ').any(|known| strsim::osa_distance(word, known) <= 1)
    };
    // A name in capitals has no word boundaries within its parts.
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

    const OPTIONS: RestrictingNames = RestrictingNames {
        names: &[
            ("--sandbox", "--sandbox"),
            ("--approval", "--ask-for-approval"),
            ("--ask-for-approval", "--ask-for-approval"),
            ("--cd", "--cd"),
            ("--yolo", "--yolo"),
            ("--config", "--config"),
            ("--profile", "--profile"),
        ],
        others: &[
            ("--model", "--model"),
            ("--json", "--json"),
            ("--last", "resume --last"),
            ("--output-schema", "--output-schema"),
            ("--schema", "--output-schema"),
        ],
        values: &[("read-only", "--sandbox"), ("never", "--ask-for-approval")],
        short: &["-s", "-o"],
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
            ("-sandbox", Some("--sandbox")),
            ("--sand", Some("--sandbox")),
            ("--ask_for_approval", Some("--ask-for-approval")),
            ("--askForApproval", Some("--ask-for-approval")),
            ("--ask-for-aproval", Some("--ask-for-approval")),
            ("--aproval", Some("--ask-for-approval")),
            ("--CD", Some("--cd")),
            ("--cdd", Some("--cd")),
            ("--ccd", Some("--cd")),
            ("--cds", Some("--cd")),
            ("--dc", Some("--cd")),
            ("--cmd", None),
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
    fn other_misspelt_names_mean_the_closest_one() {
        for (name, expected) in [
            ("--output-schem", Some("--output-schema")),
            ("--outputSchema", Some("--output-schema")),
            ("--ouptut-schema", Some("--output-schema")),
            ("--uotput-schema", Some("--output-schema")),
            ("--output-schema-file", Some("--output-schema")),
            ("--out", Some("--output-schema")),
            ("--schemas", Some("--output-schema")),
            ("--modle", Some("--model")),
            ("-json", Some("--json")),
            ("--jsonl", Some("--json")),
            ("--last", Some("resume --last")),
            ("--o", Some("-o")),
            ("--fast", None),
            ("--model-provider", None),
            ("--search", None),
            ("-o", None),
            ("--x", None),
        ] {
            assert_eq!(OPTIONS.find_other(name), expected, "{name}");
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
