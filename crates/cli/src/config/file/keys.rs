//! The keys of `config.toml`: those of the fields of a session, and those of the terminal. Parsing, errors, the JSON Schema
//! and the reference page use these rows.

use pintle_host::{Access, Combine, DefaultValue, FIELDS, FieldRow, ValueKind};

use crate::provider::Provider;

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
pub(crate) const PROVIDERS: &[&str] = Provider::NAMES;

/// Settings of the terminal, which are not part of a session.
static TERMINAL: &[FieldRow] = &[
    FieldRow::new(
        "terminal.plain",
        ValueKind::Switch,
        Combine::Replace,
        "Conversations in lines without escape sequences, for screen readers",
    )
    .with_key("plain", &["plain"], Access::User)
    .with_default(DefaultValue::Value("false")),
    FieldRow::new(
        "terminal.notify",
        ValueKind::Choice(&["none", "bell", "osc9"]),
        Combine::Replace,
        "Notification when a turn of a conversation ends or a call waits for approval",
    )
    .with_key("notify", &["notify"], Access::User)
    .with_default(DefaultValue::Value("none")),
    FieldRow::new(
        "terminal.title",
        ValueKind::Choice(&["auto", "on", "off"]),
        Combine::Replace,
        "Directory and state of a conversation in the title of the window",
    )
    .with_key("title", &["title"], Access::User)
    .with_default(DefaultValue::Value("auto")),
    FieldRow::new(
        "terminal.theme",
        ValueKind::Choice(&["auto", "light", "dark"]),
        Combine::Replace,
        "Background that the colours of a conversation are chosen for",
    )
    .with_key("theme", &["theme"], Access::User)
    .with_default(DefaultValue::Value("auto")),
];

/// A key. Its value sets the flag of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) row: &'static FieldRow,
}

/// Returns the rows of the settings of a session and of the terminal.
pub(crate) fn rows() -> impl Iterator<Item = &'static FieldRow> {
    FIELDS.iter().chain(TERMINAL)
}

/// Returns all keys, in the order of the rows.
pub(crate) fn all() -> impl Iterator<Item = Key> {
    rows().filter_map(|row| Some(Key { name: row.key?, row }))
}

impl Key {
    /// Returns the key with this name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        all().find(|key| key.name == name)
    }

    /// Returns the flag that the key sets, without dashes.
    #[cfg(test)]
    pub(crate) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Returns the environment variable that sets the key.
    pub(crate) fn variable(&self) -> String {
        self.row.variable().unwrap_or_default()
    }
}

/// Returns whether a value of [`PROFILE`] is the path of a file rather than a name.
pub(crate) fn is_profile_file(value: &str) -> bool {
    value.contains('/') || value.ends_with(".toml")
}
