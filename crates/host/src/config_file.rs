//! Content of a `config.toml`, and the keys that it may have.

pub mod keys;
pub mod problem;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use self::keys::{KEY_COMMAND, Key, PROFILES, PROVIDERS, TOOL_DIRS};
use self::problem::Problem;
use crate::failure::Failure;
use crate::layers::{Access, ValueKind};
use crate::named_value::suggest_name;
use crate::process_env::{self, ProcessEnv};
use crate::spec::NetworkAccess;

/// Name of the user's file in the directory of the configuration.
pub(crate) const FILE: &str = "config.toml";

/// Longest value that a message repeats, in characters.
const MAX_FOUND: usize = 60;

/// Value of a key in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key.
    pub key: Key,
    /// The value in the form of its flag. Paths are absolute.
    pub value: String,
    /// Line of the key, from 1.
    pub line: usize,
    /// Column of the value, from 1.
    pub column: usize,
}

/// Program that prints the key of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCommand {
    /// Name of the provider.
    pub provider: &'static str,
    /// Program and arguments.
    pub words: Vec<String>,
    /// Line of the words, from 1.
    pub line: usize,
}

/// Directory with manifests of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDirectoryPath {
    /// Its absolute path.
    pub path: PathBuf,
    /// Line of the path, from 1.
    pub line: usize,
}

/// Content of a file. Settings with mistakes are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Name for messages.
    pub name: String,
    /// Settings outside of profiles.
    pub settings: Vec<Setting>,
    /// Settings of the profiles, by name.
    pub profiles: BTreeMap<String, Vec<Setting>>,
    /// Programs that print keys.
    pub key_commands: Vec<KeyCommand>,
    /// Directories with manifests of tools.
    pub tool_dirs: Vec<ToolDirectoryPath>,
    /// Mistakes.
    pub problems: Vec<Problem>,
}

/// Table that a key is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Top,
    Profile,
}

type DeKey<'t> = Spanned<Cow<'t, str>>;

/// Returns the path of the user's file; `None` if no variable names the directory.
pub fn user_path(process_env: &ProcessEnv) -> Option<PathBuf> {
    let directory = process_env.configuration_directory()?;
    process_env::absolute(&directory.join(FILE)).ok()
}

/// Returns the content of the user's file with its mistakes.
pub(crate) fn user_file(process_env: &ProcessEnv) -> File {
    let Some(path) = user_path(process_env) else { return File::default() };
    let name = path.display().to_string();
    match process_env::read_text_if_exists("configuration file", &path) {
        Ok(None) => File { name, ..File::default() },
        Ok(Some(text)) => File::parse(&name, path.parent().unwrap_or(&path), &text),
        Err(failure) => {
            // The message names the file.
            let problem = Problem { origin: String::new(), message: failure.message() };
            File { name, problems: vec![problem], ..File::default() }
        }
    }
}

/// Returns the programs of the user's file that print keys, with their arguments, by provider. Mistakes are left out: they
/// are reported where the configuration is used.
pub(crate) fn key_commands(process_env: &ProcessEnv) -> BTreeMap<&'static str, Vec<String>> {
    let commands = user_file(process_env).key_commands;
    commands.into_iter().map(|command| (command.provider, command.words)).collect()
}

/// Checks the user's file.
///
/// Its mistakes are one usage failure.
pub fn check_user_file(process_env: &ProcessEnv) -> Result<(), Failure> {
    problem::failure(&user_file(process_env).problems).map_or(Ok(()), Err)
}

impl Setting {
    /// Returns whether only the user's file can have the setting.
    #[must_use]
    pub fn is_of_user(&self) -> bool {
        let row = self.key.row;
        let is_profile_file = row.kind == ValueKind::Profile && keys::is_profile_file(&self.value);
        row.access == Access::User || is_profile_file
    }

    /// Returns whether a project can have the setting only if it is trusted.
    #[must_use]
    pub fn needs_trust(&self) -> bool {
        self.key.row.access == Access::Trusted
    }
}

impl File {
    /// Parses a file in `directory`, to which its paths are relative. `name` is for messages.
    #[must_use]
    pub fn parse(name: &str, directory: &Path, text: &str) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut reader = Reader { text, directory, end: text.len(), file: Self::default() };
        reader.file.name = name.to_owned();
        // Settings after a syntax error could belong to a table whose header is wrong.
        let start_of = |error: &toml::de::Error| error.span().unwrap_or_default().start;
        if let Some(first) = errors.iter().map(start_of).min() {
            reader.end = reader.line_start(first);
        }
        for (key, value) in entries_before(reader.end, table.get_ref()) {
            reader.entry(key, value);
        }
        for error in &errors {
            let message = error.message().trim().replace('\n', ", ");
            reader.problem(error.span().unwrap_or_default(), message);
        }
        reader.file
    }
}

struct Reader<'t> {
    text: &'t str,
    directory: &'t Path,
    /// Offset of the first line with a syntax error.
    end: usize,
    file: File,
}

impl Reader<'_> {
    fn entry(&mut self, key: &DeKey<'_>, value: &Spanned<DeValue<'_>>) {
        match key.get_ref().as_ref() {
            PROFILES => self.profiles(value),
            KEY_COMMAND => self.key_commands(value),
            TOOL_DIRS => self.tool_dirs(value),
            _ => {
                let setting = self.setting(Level::Top, key, value);
                self.file.settings.extend(setting);
            }
        }
    }

    fn profiles(&mut self, value: &Spanned<DeValue<'_>>) {
        let Some(profiles) = self.table(value, "a table for each profile, such as [profiles.review]") else {
            return;
        };
        for (name, value) in entries_before(self.end, profiles) {
            let text = name.get_ref().as_ref();
            if text.trim().is_empty() || keys::is_profile_file(text) {
                let expected = "expected a name without `/` and `.toml`";
                self.problem(name.span(), format!("found the profile `{text}`, {expected}"));
                continue;
            }
            let Some(table) = self.table(value, "a table with keys") else { continue };
            let entries = entries_before(self.end, table).into_iter();
            let settings = entries.filter_map(|(key, value)| self.setting(Level::Profile, key, value));
            let settings = settings.collect();
            self.file.profiles.insert(text.to_owned(), settings);
        }
    }

    fn key_commands(&mut self, value: &Spanned<DeValue<'_>>) {
        let expected = "a table with an array of words for each provider";
        let Some(commands) = self.table(value, expected) else { return };
        for (provider, value) in entries_before(self.end, commands) {
            let name = provider.get_ref().as_ref();
            let Some(known) = PROVIDERS.iter().find(|known| **known == name) else {
                let meant = suggest_name(name, PROVIDERS.iter().copied());
                let expected = PROVIDERS.join(", ");
                self.problem(
                    provider.span(),
                    format!("unknown provider `{name}`, expected one of {expected}{meant}"),
                );
                continue;
            };
            match value.get_ref().as_array().and_then(words) {
                Some(words) => {
                    let line = self.line_of(value.span().start);
                    self.file.key_commands.push(KeyCommand { provider: known, words, line });
                }
                // Words may be secret.
                None => self.problem(
                    value.span(),
                    format!(
                        "`{KEY_COMMAND}.{name}`: expected an array of words, program and arguments, such as [\"pass\", \
                         \"show\", \"{name}\"]"
                    ),
                ),
            }
        }
    }

    fn tool_dirs(&mut self, value: &Spanned<DeValue<'_>>) {
        let expected = format!("`{TOOL_DIRS}`: expected an array of directories, such as [\"tools\"]");
        let Some(paths) = value.get_ref().as_array() else {
            self.problem(value.span(), expected);
            return;
        };
        for path in paths.iter() {
            match path.get_ref().as_str().filter(|text| !text.trim().is_empty()) {
                Some(text) => {
                    let line = self.line_of(path.span().start);
                    self.file.tool_dirs.push(ToolDirectoryPath { path: self.directory.join(text), line });
                }
                None => self.problem(path.span(), expected.clone()),
            }
        }
    }

    fn setting(&mut self, level: Level, key: &DeKey<'_>, value: &Spanned<DeValue<'_>>) -> Option<Setting> {
        let name = key.get_ref().as_ref();
        let Some(known) = Key::find(name).filter(|known| level == Level::Top || is_in_profile(known)) else {
            self.unknown(level, name, key.span());
            return None;
        };
        let kind = known.row.kind;
        let Some(text) = flag_value(kind, value.get_ref()) else {
            let message = self.wrong(&known, value);
            self.problem(value.span(), message);
            return None;
        };
        let is_path = kind == ValueKind::Path || kind == ValueKind::Profile && keys::is_profile_file(&text);
        let value_text = if is_path { self.directory.join(text).display().to_string() } else { text };
        Some(Setting {
            key: known,
            value: value_text,
            line: self.line_of(key.span().start),
            column: self.column_of(value.span().start),
        })
    }

    fn unknown(&mut self, level: Level, name: &str, span: Range<usize>) {
        let message = match (level, name) {
            (Level::Profile, keys::PROFILE) => "a profile cannot select another one".to_owned(),
            (Level::Profile, PROFILES | KEY_COMMAND | TOOL_DIRS) => {
                format!("`{name}` cannot be part of a profile")
            }
            (Level::Profile, _) => {
                let known = keys::all().filter(is_in_profile).map(|key| key.name);
                format!("unknown key `{name}`{}", meant_or_list(name, known))
            }
            (Level::Top, _) => {
                let known = keys::all().map(|key| key.name).chain([PROFILES, KEY_COMMAND, TOOL_DIRS]);
                format!("unknown key `{name}`{}", meant_or_list(name, known))
            }
        };
        self.problem(span, message);
    }

    /// Describes a value that is not one of the key.
    fn wrong(&self, key: &Key, value: &Spanned<DeValue<'_>>) -> String {
        let kind = key.row.kind;
        let expected = kind.expected();
        if kind == ValueKind::Url {
            // It may contain a password.
            return format!("`{}`: expected {expected}", key.name);
        }
        let value_ref = value.get_ref();
        if kind == ValueKind::Network
            && let Some(lists) = json_of(value_ref).filter(|_| value_ref.is_table())
            && let Err(error) = lists.to_string().parse::<NetworkAccess>()
        {
            return format!("`{}`: {error}", key.name);
        }
        let meant = match (kind, value_ref.as_str(), value_ref.as_table()) {
            (ValueKind::Choice(names), Some(text), _) => suggest_name(text, names.iter().copied()),
            (ValueKind::Profile, _, Some(table)) => suggest_profile(table),
            _ => String::new(),
        };
        // The span of a table may be its header.
        let found = match value_ref.is_table() {
            true => "a table",
            false => self.text.get(value.span()).unwrap_or_default(),
        };
        let found: String = found.lines().next().unwrap_or_default().chars().take(MAX_FOUND).collect();
        format!("`{}`: found {found}, expected {expected}{meant}", key.name)
    }

    fn table<'v>(&mut self, value: &'v Spanned<DeValue<'v>>, expected: &str) -> Option<&'v DeTable<'v>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let found = value.get_ref().type_str();
            self.problem(value.span(), format!("found a value of type {found}, expected {expected}"));
        }
        table
    }

    fn problem(&mut self, span: Range<usize>, message: String) {
        let (line, column) = (self.line_of(span.start), self.column_of(span.start));
        let origin = format!("{}: line {line}, column {column}", self.file.name);
        self.file.problems.push(Problem { origin, message });
    }

    fn line_of(&self, offset: usize) -> usize {
        self.text.get(..offset).unwrap_or(self.text).matches('\n').count() + 1
    }

    fn column_of(&self, offset: usize) -> usize {
        let before = self.text.get(self.line_start(offset)..offset).unwrap_or_default();
        before.chars().count() + 1
    }

    fn line_start(&self, offset: usize) -> usize {
        let before = self.text.get(..offset).unwrap_or(self.text);
        before.rfind('\n').map_or(0, |end| end + 1)
    }
}

/// Returns whether profiles may have the key.
pub fn is_in_profile(key: &Key) -> bool {
    key.row.kind != ValueKind::Profile
}

/// Returns the entries of a table that end before an offset, in the order of the file. The entries of a nested table
/// may be after the offset.
fn entries_before<'v, 't>(
    end: usize,
    table: &'v DeTable<'t>,
) -> Vec<(&'v DeKey<'t>, &'v Spanned<DeValue<'t>>)> {
    let is_before = |(key, value): &(&DeKey<'_>, &Spanned<DeValue<'_>>)| {
        key.span().end <= end && (value.get_ref().is_table() || value.span().end <= end)
    };
    let mut entries: Vec<_> = table.iter().filter(is_before).collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Returns a value in the form of its flag, if it is of this kind.
fn flag_value(kind: ValueKind, value: &DeValue<'_>) -> Option<String> {
    let is_switch = kind == ValueKind::Switch;
    let is_number = matches!(kind, ValueKind::Count | ValueKind::Percent);
    let text = match value {
        DeValue::Table(_) if kind == ValueKind::Network => json_of(value)?.to_string(),
        DeValue::String(text) if !is_switch && !is_number => text.clone().into_owned(),
        // A time may be a number of seconds.
        DeValue::Integer(number) if is_number || kind == ValueKind::Time => {
            u64::from_str_radix(number.as_str(), number.radix()).ok()?.to_string()
        }
        DeValue::Boolean(switch) if is_switch => switch.to_string(),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Boolean(_)
        | DeValue::Float(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => return None,
    };
    kind.accepts(&text).then_some(text)
}

/// Returns a table of lists of texts as JSON; `None` if it has other values.
fn json_of(value: &DeValue<'_>) -> Option<Json> {
    match value {
        DeValue::String(text) => Some(Json::from(&**text)),
        DeValue::Array(array) => array.iter().map(|value| json_of(value.get_ref())).collect(),
        DeValue::Table(table) => {
            let entries = table.iter();
            entries.map(|(key, value)| Some((key.get_ref().to_string(), json_of(value.get_ref())?))).collect()
        }
        DeValue::Integer(_) | DeValue::Boolean(_) | DeValue::Float(_) | DeValue::Datetime(_) => None,
    }
}

/// Returns program and arguments; `None` without a program, or if a value is not a string.
fn words(array: &DeArray<'_>) -> Option<Vec<String>> {
    let words: Option<Vec<String>> =
        array.iter().map(|word| word.get_ref().as_str().map(str::to_owned)).collect();
    words.filter(|words| words.first().is_some_and(|program| !program.trim().is_empty()))
}

/// Returns the header of a profile, as a suggestion for a table that is the value of [`keys::PROFILE`].
fn suggest_profile(table: &DeTable<'_>) -> String {
    let entries = entries_before(usize::MAX, table);
    let profile = entries.iter().find(|(_, value)| value.get_ref().is_table());
    let name = profile.map_or("NAME", |(key, _)| &**key.get_ref());
    format!("; did you mean `[{PROFILES}.{name}]`?")
}

fn meant_or_list<'n>(wrong: &str, known: impl Iterator<Item = &'n str>) -> String {
    let meant = suggest_name(wrong, known);
    if meant.is_empty() { "; `pintle config schema` has all keys".to_owned() } else { meant }
}

#[cfg(test)]
mod tests;
