//! Flags, files and variables, and the settings that each way forms from them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use pintle_host::{Resolved, merge};
use serde::Deserialize;
use serde_json::Value as Json;

use super::super::load::{is_of_user, is_trusted, remove};
use super::super::{Configuration, Scope, SessionSources, layers};
use super::projection;
use crate::args::{CommandWords, RunArgs};
use crate::command_line::{self, CommandLine, session_of};
use crate::config_file::File;
use crate::process_env::ProcessEnv;
use crate::session_commands::remembered_words;
use crate::sessions::{Flags, RememberedSettings};

/// Settings by path, or the message of the failure.
pub(super) type Outcome = Result<BTreeMap<&'static str, Json>, String>;

/// Flags that were typed, and the words of their command line.
pub(super) type Line = (RunArgs, CommandWords);

/// Flags, files and variables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Case {
    pub(super) about: String,
    /// Content of the user's file, in `/c`.
    pub(super) user: String,
    /// Content of the project's file.
    pub(super) project: String,
    pub(super) untrusted: bool,
    pub(super) variables: BTreeMap<String, String>,
    /// Flags of `pintle run`, separated by spaces.
    pub(super) flags: String,
    /// Flags that the session remembers.
    pub(super) remembered: Flags,
    /// Settings that are not the defaults.
    pub(super) expected: Json,
    /// Names of the intended differences, by path.
    pub(super) differs: BTreeMap<String, String>,
}

impl Case {
    /// Returns whether this build has the flags.
    pub(super) fn is_supported(&self) -> bool {
        let has_servers =
            self.flags.contains("mcp") || self.remembered.keys().any(|name| name.contains("mcp"));
        cfg!(feature = "mcp") || !has_servers
    }

    /// Parses the flags that were typed.
    pub(super) fn line(&self) -> Line {
        session_of(&format!("pintle run {} x", self.flags))
    }

    /// Returns the remembered flags that the typed ones do not replace, as words.
    fn words(&self, typed: &RunArgs) -> Vec<String> {
        remembered_words(&self.remembered, &typed.session.given)
    }

    /// Parses the command line with the remembered flags.
    pub(super) fn old_line(&self, (typed, own): &Line) -> (CommandLine, Vec<String>) {
        let words = self.words(typed);
        let parsed = command_line::parse_with(own, &words);
        (parsed.unwrap_or_else(|failure| panic!("{self:?}: {failure}")), words)
    }

    /// Forms flags of the configuration, and parses the command line with them.
    pub(super) fn as_flags(
        &self,
        (typed, _): &Line,
        (parsed, words): &(CommandLine, Vec<String>),
    ) -> Outcome {
        let with_remembered = parsed.arguments.command.session().unwrap();
        let scope = Scope::new(None, typed.configuration).with_model(&with_remembered.model);
        let process_env = self.process_env();
        let completed = scope.configured(parsed, words, &self.configuration(), &process_env);
        let completed = completed.map_err(|failure| failure.message())?;
        Ok(projection::of_flags(completed.session().unwrap(), &process_env))
    }

    /// Forms layers, and merges them. Also returns the settings of the flags that they become.
    pub(super) fn as_layers(
        &self,
        (typed, _): &Line,
    ) -> Result<(Resolved, BTreeMap<&'static str, Json>), String> {
        let remembered = RememberedSettings::from_flags(self.remembered.clone());
        let remembered = remembered.map_err(|failure| failure.message())?;
        let flags = typed.layer(&BTreeSet::new()).map_err(|failure| failure.message())?;
        let remembered = remembered.without_replaced(&flags.spec);
        let sources = SessionSources { remembered, ..SessionSources::default() };
        let layers = layers::of_session(typed, &sources, &self.configuration(), &self.process_env());
        let layers = layers.map_err(|failure| failure.message())?;
        let resolved = merge(layers).map_err(|problems| format!("{problems:?}"))?;
        let run = typed.clone().with_settings(&resolved).map_err(|failure| failure.message())?;
        Ok((resolved, projection::of_flags(&run, &self.process_env())))
    }

    fn process_env(&self) -> ProcessEnv {
        ProcessEnv::with(self.variables.iter().map(|(name, value)| (name.as_str(), OsStr::new(value))))
    }

    fn configuration(&self) -> Configuration {
        let mut project = File::parse("project", Path::new("/p"), &self.project);
        remove(&mut project, is_of_user);
        if self.untrusted {
            remove(&mut project, is_trusted);
        }
        let mut configuration = Configuration {
            user: File::parse("user", Path::new("/c"), &self.user),
            project,
            is_project_trusted: !self.untrusted,
            ..Configuration::default()
        };
        configuration.read_variables(&self.process_env());
        configuration.check_selected_profiles();
        let Configuration { user, project, problems, .. } = &configuration;
        assert!(user.problems.is_empty() && project.problems.is_empty() && problems.is_empty(), "{self:?}");
        configuration
    }
}
