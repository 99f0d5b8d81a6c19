//! The keys of `config.toml`, for the fields of a session and for the terminal. Parsing, errors, the JSON Schema and the
//! reference page use these rows.

use crate::layers::{Access, DefaultValue, FIELDS, FieldRow, ValueKind};
use crate::provider::Provider;
use crate::spec::Combine;

/// Key that selects a profile, by name or as a file.
pub const PROFILE: &str = "profile";

/// Key whose value depends on the provider.
pub const BASE_URL: &str = "base_url";

/// Key with the catalog of models.
pub(crate) const CATALOG: &str = "catalog";

/// Table with the profiles, by name.
pub const PROFILES: &str = "profiles";

/// Table with the programs that print keys, by provider.
pub const KEY_COMMAND: &str = "key_command";

/// Array of the directories with manifests of tools.
pub const TOOL_DIRS: &str = "tool_dirs";

/// Providers whose key a program may print.
pub const PROVIDERS: &[&str] = Provider::NAMES;

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
        "Background of the terminal, for which colours are chosen",
    )
    .with_key("theme", &["theme"], Access::User)
    .with_default(DefaultValue::Value("auto")),
];

/// A key. Its value sets the flag of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Name.
    pub name: &'static str,
    /// Row of the field that the key sets, or of a setting of the terminal.
    pub row: &'static FieldRow,
}

/// Returns the rows of the settings of a session and of the terminal.
pub fn rows() -> impl Iterator<Item = &'static FieldRow> {
    FIELDS.iter().chain(TERMINAL)
}

/// Returns all keys, in the order of the rows.
pub fn all() -> impl Iterator<Item = Key> {
    rows().filter_map(|row| Some(Key { name: row.key?, row }))
}

impl Key {
    /// Returns the key with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        all().find(|key| key.name == name)
    }

    /// Returns the environment variable that sets the key.
    #[must_use]
    pub fn variable(&self) -> String {
        self.row.variable().unwrap_or_default()
    }
}

/// Returns whether a value of [`PROFILE`] is the path of a file rather than a name.
pub fn is_profile_file(value: &str) -> bool {
    value.contains('/') || value.ends_with(".toml")
}
