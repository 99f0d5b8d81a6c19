//! Flags, files and variables, and the settings that they form.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use pintle_host::{Resolved, merge};
use serde::Deserialize;
use serde_json::Value as Json;

use super::super::load::{is_of_user, is_trusted, remove};
use super::super::{Configuration, SessionSources, layers};
use super::projection;
use crate::arguments::command_line::session_of;
use crate::config::file::File;
use crate::process_env::ProcessEnv;
use crate::sessions::{RememberedFlags, RememberedSettings};

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
    pub(super) remembered: RememberedFlags,
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

    /// Forms layers, and merges them. Also returns the settings as the parts of a session receive them.
    pub(super) fn resolve(&self) -> Result<(Resolved, BTreeMap<&'static str, Json>), String> {
        let typed = session_of(&format!("pintle run {} x", self.flags));
        let remembered = RememberedSettings::from_flags(self.remembered.clone());
        let remembered = remembered.map_err(|failure| failure.message())?;
        let flags = typed.layer(&BTreeSet::new()).map_err(|failure| failure.message())?;
        let remembered = remembered.without_replaced(&flags.spec);
        let sources = SessionSources { remembered, ..SessionSources::default() };
        let layers = layers::of_session(&typed, &sources, &self.configuration(), &self.process_env());
        let layers = layers.map_err(|failure| failure.message())?;
        let resolved = merge(layers).map_err(|problems| format!("{problems:?}"))?;
        let received = projection::of_choices(&resolved.spec);
        Ok((resolved, received))
    }

    fn process_env(&self) -> ProcessEnv {
        ProcessEnv::from_variables(
            self.variables.iter().map(|(name, value)| (name.as_str(), OsStr::new(value))),
        )
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
