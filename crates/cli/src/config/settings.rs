//! Values of the keys, with their sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::file::keys::{self, PROFILE};
use crate::config::file::{File, Setting};

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    File {
        name: String,
        line: usize,
        /// Profile of the file that has the value.
        profile: Option<String>,
    },
    /// Environment variable.
    Variable(String),
    /// Flag, with its dashes.
    Flag(String),
}

/// Value of a key, with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// Values of one source.
pub(super) type Layer = BTreeMap<&'static str, Value>;

/// Sources, from the weakest to the strongest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources<'f> {
    /// The user's file, then the project's.
    pub(super) files: Vec<&'f File>,
    pub(super) variables: Layer,
    /// Value of `--profile`.
    pub(super) profile_flag: Option<String>,
}

/// Effective values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) values: Layer,
    /// Name of the selected profile.
    pub(crate) profile: Option<Value>,
}

impl Sources<'_> {
    /// Returns the names of all profiles.
    pub(crate) fn profiles(&self) -> BTreeSet<&str> {
        self.files.iter().flat_map(|file| file.profiles.keys()).map(String::as_str).collect()
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

/// Returns the values of a file or of a profile in it.
pub(super) fn layer(file: &File, profile: Option<&String>, settings: &[Setting]) -> Layer {
    settings.iter().map(|setting| (setting.key.name, value(file, profile, setting))).collect()
}

fn value(file: &File, profile: Option<&String>, setting: &Setting) -> Value {
    let source = Source::File { name: file.name.clone(), line: setting.line, profile: profile.cloned() };
    Value { text: setting.value.clone(), source }
}
