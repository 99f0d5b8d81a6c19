//! Values of the keys, with their sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::config_file::keys::{self, PROFILE};
use crate::config_file::{File, Setting};
use crate::layers::ValueOrigin;

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// File.
    File {
        /// Name for messages.
        name: String,
        /// Line of the key, from 1.
        line: usize,
        /// Profile of the file that has the value.
        profile: Option<String>,
    },
    /// Environment variable.
    Variable(String),
    /// Flag, with its dashes.
    Flag(String),
}

impl From<&Source> for ValueOrigin {
    fn from(source: &Source) -> Self {
        match source {
            Source::File { name, line, profile } => {
                Self::File { name: name.clone(), line: *line, profile: profile.clone() }
            }
            Source::Variable(name) => Self::Variable(name.clone()),
            Source::Flag(flag) => Self::Flag(flag.clone()),
        }
    }
}

/// Value of a key, with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The value in the form of its flag.
    pub text: String,
    /// Its source.
    pub source: Source,
}

/// Values by the name of their key.
pub(super) type Values = BTreeMap<&'static str, Value>;

/// Sources, from the weakest to the strongest.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources<'f> {
    /// The user's file, then the project's.
    pub(super) files: Vec<&'f File>,
    pub(super) variables: Values,
    /// Value of `--profile`.
    pub(super) profile_flag: Option<String>,
}

/// Effective values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The values, by the name of their key.
    pub values: BTreeMap<&'static str, Value>,
    /// Name of the selected profile.
    pub profile: Option<Value>,
}

impl<'f> Sources<'f> {
    /// Returns the names of all profiles.
    pub(super) fn profiles(&self) -> BTreeSet<&'f str> {
        let files = self.files.iter().copied();
        files.flat_map(|file: &'f File| file.profiles.keys()).map(String::as_str).collect()
    }

    /// Returns the strongest value of `profile`, which is a name or a file.
    fn selected(&self) -> Option<Value> {
        if let Some(text) = &self.profile_flag {
            return Some(Value { text: text.clone(), source: Source::Flag("--profile".to_owned()) });
        }
        let of_files = self.files.iter().rev().find_map(|file| {
            let setting = file.settings.iter().find(|setting| setting.key.name == PROFILE)?;
            Some(value(file, None, setting))
        });
        self.variables.get(PROFILE).cloned().or(of_files)
    }

    /// Returns the profile that is selected by name; `None` if none or a file is selected. A flag selects a profile by name only
    /// if a profile has this name.
    pub(super) fn profile(&self) -> Option<Value> {
        self.selected().filter(|value| match value.source {
            Source::Flag(_) => self.profiles().contains(value.text.as_str()),
            Source::File { .. } | Source::Variable(_) => !keys::is_profile_file(&value.text),
        })
    }
}

/// Returns the values of a file, or of a profile in it.
pub(super) fn values(file: &File, profile: Option<&String>, settings: &[Setting]) -> Values {
    settings.iter().map(|setting| (setting.key.name, value(file, profile, setting))).collect()
}

fn value(file: &File, profile: Option<&String>, setting: &Setting) -> Value {
    let source = Source::File { name: file.name.clone(), line: setting.line, profile: profile.cloned() };
    Value { text: setting.value.clone(), source }
}
