//! The keys of `config.toml`: the table behind parsing, errors, the JSON Schema and the reference page.

use pintle_agent::CompactionPolicy;

use crate::timeout;

/// Key that selects a profile, by name or as a file.
pub(crate) const PROFILE: &str = "profile";

/// Key whose value depends on the provider.
pub(crate) const BASE_URL: &str = "base_url";

/// Key whose variable the command reads directly.
pub(crate) const CATALOG: &str = "catalog";

/// Table with the profiles, by name.
pub(crate) const PROFILES: &str = "profiles";

/// Table with the programs that print keys, by provider.
pub(crate) const KEY_COMMAND: &str = "key_command";

/// Providers whose key a program may print.
pub(crate) const PROVIDERS: &[&str] = &["openai", "anthropic", "gemini", "openai-compatible"];

/// A key. Its value sets the flag of the same name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The default value, or its description.
    pub(crate) default: DefaultValue,
    pub(crate) access: Access,
    pub(crate) meaning: &'static str,
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text that is not empty.
    Text,
    Url,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number.
    Count,
    /// A whole number from 0 to 100.
    Percent,
    /// A time such as `15m`.
    Time,
    Switch,
    /// A file, relative to the directory of the file that contains the path.
    File,
    /// Name of a profile in the configuration, or a file.
    Profile,
}

/// Default of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultValue {
    Value(&'static str),
    /// A number of another crate.
    Percent(u8),
    /// No value has the same effect.
    Words(&'static str),
}

/// Files that may set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The user's file, and the file of every project.
    Safe,
    /// The user's file, and the file of a project that the user trusts.
    Trusted,
    /// Only the user's file.
    User,
}

/// All keys with a flag.
pub(crate) const KEYS: &[Key] = &[
    Key {
        name: "provider",
        kind: Kind::Choice(PROVIDERS),
        default: DefaultValue::Words(
            "the provider of a known model, else the first of openai, anthropic, gemini with a key",
        ),
        access: Access::Trusted,
        meaning: "Model provider",
    },
    Key {
        name: "model",
        kind: Kind::Text,
        default: DefaultValue::Words("the provider's best model"),
        access: Access::Trusted,
        meaning: "Model name",
    },
    Key {
        name: BASE_URL,
        kind: Kind::Url,
        default: DefaultValue::Words("the provider's"),
        access: Access::User,
        meaning: "Base URL of the provider's API, ending in /v1 for openai and openai-compatible",
    },
    Key {
        name: "reasoning_effort",
        kind: Kind::Text,
        default: DefaultValue::Words("the model's"),
        access: Access::Trusted,
        meaning: "Reasoning effort: low, medium, high, or a provider-specific value",
    },
    Key {
        name: PROFILE,
        kind: Kind::Profile,
        default: DefaultValue::Words("none"),
        access: Access::Trusted,
        meaning: "Name of a profile below, or a profile file; a project can select only by name",
    },
    Key {
        name: "timeout",
        kind: Kind::Time,
        default: DefaultValue::Value("15m"),
        access: Access::Safe,
        meaning: "Time after which a model call without text, reasoning or tool call is aborted",
    },
    Key {
        name: CATALOG,
        kind: Kind::File,
        default: DefaultValue::Words("the built-in catalog"),
        access: Access::User,
        meaning: "File of models and prices that overrides the built-in catalog",
    },
    Key {
        name: "toolset",
        kind: Kind::Choice(&["native", "spec"]),
        default: DefaultValue::Value("native"),
        access: Access::Safe,
        meaning: "Toolset offered to the model",
    },
    Key {
        name: "mode",
        kind: Kind::Choice(&["plan", "ask", "edit", "auto"]),
        default: DefaultValue::Words("auto; edit in conversations"),
        access: Access::Trusted,
        meaning: "Treatment of calls that no rule names",
    },
    Key {
        name: "after_plan",
        kind: Kind::Choice(&["ask", "edit", "auto"]),
        default: DefaultValue::Value("edit"),
        access: Access::Trusted,
        meaning: "Mode after an accepted plan",
    },
    Key {
        name: "sandbox",
        kind: Kind::Choice(&["auto", "full", "writes", "off"]),
        default: DefaultValue::Value("auto"),
        access: Access::Trusted,
        meaning: "Level of the sandbox that commands run in",
    },
    Key {
        name: "network",
        kind: Kind::Choice(&["on", "off"]),
        default: DefaultValue::Words("off in a sandbox, otherwise on"),
        access: Access::Trusted,
        meaning: "Network access of sandboxed commands and web tools",
    },
    Key {
        name: "confine",
        kind: Kind::Switch,
        default: DefaultValue::Value("false"),
        access: Access::Trusted,
        meaning: "Restriction of file tools to the working directory",
    },
    Key {
        name: "read_before_write",
        kind: Kind::Switch,
        default: DefaultValue::Value("false"),
        access: Access::Trusted,
        meaning: "Rejection of changes to files that the model has not read",
    },
    Key {
        name: "wait_approval",
        kind: Kind::Switch,
        default: DefaultValue::Value("false"),
        access: Access::Trusted,
        meaning: "Waiting up to 24 hours for `pintle approvals` where there is no terminal",
    },
    Key {
        name: "max_turns",
        kind: Kind::Count,
        default: DefaultValue::Value("0"),
        access: Access::Trusted,
        meaning: "Limit on model responses of a run; 0 is none",
    },
    Key {
        name: "max_tool_rounds",
        kind: Kind::Count,
        default: DefaultValue::Value("0"),
        access: Access::Trusted,
        meaning: "Limit on rounds of tool calls of a run; 0 is none",
    },
    Key {
        name: "compact_at",
        kind: Kind::Percent,
        default: DefaultValue::Percent(CompactionPolicy::AUTOMATIC),
        access: Access::Safe,
        meaning: "Share of the context window, in percent, at which the conversation is summarized; 0 is never",
    },
    Key {
        name: "plain",
        kind: Kind::Switch,
        default: DefaultValue::Value("false"),
        access: Access::User,
        meaning: "Conversations in lines without escape sequences, for screen readers",
    },
    Key {
        name: "notify",
        kind: Kind::Choice(&["none", "bell", "osc9"]),
        default: DefaultValue::Value("none"),
        access: Access::User,
        meaning: "Notification when a turn of a conversation ends or a call waits for approval",
    },
    Key {
        name: "title",
        kind: Kind::Choice(&["auto", "on", "off"]),
        default: DefaultValue::Value("auto"),
        access: Access::User,
        meaning: "Directory and state of a conversation in the title of the window",
    },
    Key {
        name: "theme",
        kind: Kind::Choice(&["auto", "light", "dark"]),
        default: DefaultValue::Value("auto"),
        access: Access::User,
        meaning: "Background that the colours of a conversation are chosen for",
    },
];

impl Key {
    /// Returns the key with this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Returns the flag that the key sets, without dashes.
    #[cfg(test)]
    pub(crate) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Returns the environment variable that sets the key.
    pub(crate) fn variable(&self) -> String {
        format!("PINTLE_{}", self.name.to_uppercase())
    }
}

impl DefaultValue {
    /// Returns the default for display.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Value(value) => value.to_owned(),
            Self::Percent(value) => value.to_string(),
            Self::Words(words) => format!("({words})"),
        }
    }
}

impl Access {
    /// Returns the name in the reference.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Trusted => "trusted",
            Self::User => "user",
        }
    }
}

impl Kind {
    /// Returns the expected values, for messages.
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Text => "a text that is not empty".to_owned(),
            Self::Url => "a URL that begins with https:// or http://".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Count => "a whole number from 0".to_owned(),
            Self::Percent => "a whole number from 0 to 100".to_owned(),
            Self::Time => "a time from 1ms to 24h, such as \"90s\" or \"15m\"".to_owned(),
            Self::Switch => "true or false".to_owned(),
            Self::File => "the path of a file".to_owned(),
            Self::Profile => "the name of a profile, or the path of a file".to_owned(),
        }
    }

    /// Returns whether a TOML integer is a value. Times may be seconds.
    pub(crate) fn takes_integer(self) -> bool {
        matches!(self, Self::Count | Self::Percent | Self::Time)
    }

    /// Returns whether a TOML string is a value.
    pub(crate) fn takes_string(self) -> bool {
        !matches!(self, Self::Count | Self::Percent | Self::Switch)
    }

    /// Returns whether a text is a value.
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Text | Self::File | Self::Profile => !text.trim().is_empty(),
            Self::Url => is_url(text),
            Self::Choice(words) => words.contains(&text),
            Self::Count => text.parse::<u64>().is_ok(),
            Self::Percent => text.parse::<u8>().is_ok_and(|number| number <= 100),
            Self::Time => timeout::parse(text).is_ok(),
            Self::Switch => matches!(text, "true" | "false"),
        }
    }
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '['))
}

/// Returns whether a value of [`PROFILE`] is the path of a file rather than a name.
pub(crate) fn is_profile_file(value: &str) -> bool {
    value.contains('/') || value.ends_with(".toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_rejected() {
        let cases = [
            (Kind::Text, " "),
            (Kind::Url, "ftp://host"),
            (Kind::Url, "https://"),
            (Kind::Url, "127.0.0.1:8080"),
            (Kind::Choice(&["a"]), "b"),
            (Kind::Count, "-1"),
            (Kind::Percent, "101"),
            (Kind::Time, "25h"),
            (Kind::Switch, "yes"),
            (Kind::File, ""),
        ];
        for (kind, value) in cases {
            assert!(!kind.accepts(value), "{kind:?}: {value}");
        }
    }
}
