//! Given settings, files and variables, and the settings that they form.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;

use super::super::load::remove;
use super::super::{Configuration, GivenSettings, SettingSources, layers};
use super::projection;
use crate::config_file::{File, Setting};
use crate::layers::{Resolved, merge};
use crate::process_env::ProcessEnv;
use crate::sessions::{RememberedFlags, RememberedSettings};
use crate::spec::PartialSpec;

/// Given settings, files and variables.
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
    /// Settings that the program gives.
    pub(super) given: PartialSpec,
    /// Flags that the session remembers.
    pub(super) remembered: RememberedFlags,
    /// Settings that are not the defaults.
    pub(super) expected: Json,
    /// Names of the intended differences, by path.
    pub(super) differs: BTreeMap<String, String>,
}

impl Case {
    /// Forms layers, and merges them. Also returns the settings as the parts of a session receive them.
    pub(super) fn resolve(&self) -> Result<(Resolved, BTreeMap<&'static str, Json>), String> {
        let remembered = RememberedSettings::from_flags(self.remembered.clone());
        let remembered = remembered.map_err(|failure| failure.message())?;
        let remembered = remembered.without_replaced(&self.given);
        let given = GivenSettings::from(self.given.clone());
        let sources = SettingSources { remembered, ..SettingSources::from(given) };
        let layers = layers::session_layers(&sources, &self.configuration(), &self.process_env());
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
        remove(&mut project, Setting::is_of_user);
        if self.untrusted {
            remove(&mut project, Setting::needs_trust);
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
