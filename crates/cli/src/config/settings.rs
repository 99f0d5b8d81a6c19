//! Merges the values of all sources.

use std::collections::{BTreeMap, BTreeSet};

use pintle_host::ValueKind;

use crate::command_line::replaced;
use crate::config_file::keys::{self, Key, PROFILE};
use crate::config_file::{File, Setting};

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
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
pub(super) struct Value {
    pub(super) text: String,
    pub(super) source: Source,
}

/// Values of one source.
pub(super) type Layer = BTreeMap<&'static str, Value>;

/// Sources, from the weakest to the strongest.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources<'f> {
    /// The user's file, then the project's.
    pub(super) files: Vec<&'f File>,
    pub(super) variables: Layer,
    /// Value of `--profile`.
    pub(super) profile_flag: Option<String>,
}

/// Effective values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) values: Layer,
    /// Name of the selected profile.
    pub(super) profile: Option<Value>,
}

impl Sources<'_> {
    /// Returns the names of all profiles.
    pub(super) fn profiles(&self) -> BTreeSet<&str> {
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

    /// Returns the profile that is selected by name, and the one that is selected as a file. A flag selects a profile by name
    /// only if a profile has this name.
    pub(super) fn profile(&self) -> (Option<Value>, Option<Value>) {
        let is_name = |value: &Value| match value.source {
            Source::Flag(_) => self.profiles().contains(value.text.as_str()),
            Source::File { .. } | Source::Variable(_) => !keys::is_profile_file(&value.text),
        };
        match self.selected() {
            Some(value) if is_name(&value) => (Some(value), None),
            file => (None, file),
        }
    }

    /// Merges the values.
    pub(super) fn merge(&self) -> Settings {
        let (profile, profile_file) = self.profile();
        let mut layers = Vec::new();
        for file in &self.files {
            layers.push(layer(file, None, &file.settings));
            if let Some((name, settings)) =
                profile.as_ref().and_then(|profile| file.profiles.get_key_value(&profile.text))
            {
                layers.push(layer(file, Some(name), settings));
            }
        }
        layers.push(self.variables.clone());
        let mut values = Layer::new();
        for mut layer in layers {
            // A weaker value has no effect, and a profile name has no flag.
            layer.retain(|name, value| *name != PROFILE || Some(&*value) == profile_file.as_ref());
            let flags: Vec<String> = layer.keys().filter_map(|name| Some(Key::find(name)?.flag())).collect();
            let replaced = replaced(flags.iter().map(String::as_str));
            values
                .retain(|name, _| Key::find(name).is_some_and(|key| !replaced.contains(key.flag().as_str())));
            values.extend(layer);
        }
        Settings { values, profile }
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

impl Settings {
    /// Returns the values as flags. Flags in `given` are left out, with the flags that they replace, as are flags that
    /// the subcommand does not have.
    pub(super) fn flags(&self, given: &BTreeSet<String>, known: &BTreeSet<String>) -> Vec<String> {
        let replaced = replaced(given.iter().map(String::as_str));
        let mut flags = Vec::new();
        for key in keys::all() {
            let flag = key.flag();
            let Some(value) = self.values.get(key.name) else { continue };
            if replaced.contains(flag.as_str()) || !known.contains(&flag) || value.is_read_elsewhere(&key) {
                continue;
            }
            match (key.row.kind, value.text.as_str()) {
                (ValueKind::Switch, "true") => flags.push(format!("--{flag}")),
                (ValueKind::Switch, _) => {}
                (_, text) => flags.push(format!("--{flag}={text}")),
            }
        }
        flags
    }
}

impl Value {
    /// Returns whether the value comes from a variable that the command reads directly and names in its errors.
    fn is_read_elsewhere(&self, key: &Key) -> bool {
        match &self.source {
            Source::Variable(name) => key.name == keys::CATALOG || *name != key.variable(),
            Source::File { .. } | Source::Flag(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn file(name: &str, text: &str) -> File {
        let file = File::parse(name, Path::new("/c"), text);
        assert_eq!(file.problems, [], "{text}");
        file
    }

    /// Merges the files, a variable `KEY=VALUE` and `--profile`, and returns the flags for a command line that has some.
    fn flags(user: &str, project: &str, variable: &str, profile: &str, given: &str) -> String {
        let (user, project) = (file("user", user), file("project", project));
        let variables = variable.split_once('=').map(|(name, text)| {
            let key = Key::find(name).unwrap();
            (key.name, Value { text: text.to_owned(), source: Source::Variable(key.variable()) })
        });
        let sources = Sources {
            files: vec![&user, &project],
            variables: variables.into_iter().collect(),
            profile_flag: Some(profile.to_owned()).filter(|profile| !profile.is_empty()),
        };
        let given = given.split_whitespace().map(str::to_owned).collect();
        let known = keys::all().map(|key| key.flag()).collect();
        sources.merge().flags(&given, &known).join(" ")
    }

    #[test]
    fn stronger_sources_win() {
        let plan = "mode = \"plan\"";
        let ask = "mode = \"ask\"";
        let profiles = "mode = \"plan\"\n[profiles.p]\nmode = \"auto\"";
        let cases = [
            [plan, "", "", "", "", "--mode=plan"],
            [plan, ask, "", "", "", "--mode=ask"],
            [plan, ask, "mode=edit", "", "", "--mode=edit"],
            [plan, ask, "mode=edit", "", "mode", ""],
            [profiles, "", "", "", "", "--mode=plan"],
            [profiles, "", "", "p", "", "--mode=auto"],
            [profiles, "", "", "q", "", "--mode=plan"],
            [profiles, ask, "", "p", "", "--mode=ask"],
            [profiles, "profile = \"p\"", "", "", "", "--mode=auto"],
            [profiles, "", "profile=p", "", "", "--mode=auto"],
            [profiles, "", "mode=edit", "p", "", "--mode=edit"],
        ];
        for case in cases {
            let [user, project, variable, profile, given, expected] = case;
            assert_eq!(flags(user, project, variable, profile, given), expected, "{case:?}");
        }
    }

    #[test]
    fn a_provider_is_not_used_with_weaker_urls_and_models() {
        let user = "provider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\ntimeout = \"9s\"";
        let cases = [
            ["", "", "", "", "--provider=openai --model=m --base-url=http://h --timeout=9s"],
            ["provider = \"gemini\"", "", "", "", "--provider=gemini --timeout=9s"],
            ["model = \"n\"", "", "", "", "--provider=openai --model=n --base-url=http://h --timeout=9s"],
            ["", "provider=anthropic", "", "", "--provider=anthropic --timeout=9s"],
            ["", "", "", "provider", "--timeout=9s"],
            ["", "profile=f.toml", "", "", "--profile=f.toml --timeout=9s"],
            ["", "", "f.toml", "profile", "--timeout=9s"],
        ];
        for case in cases {
            let [project, variable, profile, given, expected] = case;
            assert_eq!(flags(user, project, variable, profile, given), expected, "{case:?}");
        }
    }

    #[test]
    fn the_strongest_profile_is_the_only_one() {
        let user = "profile = \"own.toml\"\n[profiles.p]\nmax_turns = 3\n";
        assert_eq!(flags(user, "", "", "", ""), "--profile=/c/own.toml");
        assert_eq!(flags(user, "profile = \"p\"", "", "", ""), "--max-turns=3");
        assert_eq!(flags(user, "profile = \"p\"", "profile=x.toml", "", ""), "--profile=x.toml");
        assert_eq!(flags(user, "", "", "p", ""), "--max-turns=3");
    }

    #[test]
    fn switches_and_conflicting_flags() {
        let user = "confine = true\nread_before_write = false\nwait_approval = true\nsandbox = \"full\"";
        assert_eq!(flags(user, "", "", "", ""), "--sandbox=full --confine --wait-approval");
        assert_eq!(flags(user, "", "confine=false", "", "no-session no-sandbox"), "");
    }

    #[test]
    fn variables_that_are_read_elsewhere_are_no_flags() {
        assert_eq!(flags("catalog = \"f\"", "", "", "", ""), "--catalog=/c/f");
        assert_eq!(flags("catalog = \"f\"", "", "catalog=g", "", ""), "");
    }
}
