//! Flags as a layer of settings, and the flags of commands without a session for resolved settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pintle_agent::Toolset;
use pintle_host::environment::Confinement;
use pintle_host::failure::Failure;
use pintle_host::named_value::{NamedValue as _, parse_setting};
use pintle_host::{
    BaseUrl, CountLimit, FIELDS, GivenSettings, NetworkAccess, PartialLimits, PartialSpec, PartialTools,
    ProfileRef, Resolved, ValueOrigin,
};

#[cfg(feature = "mcp")]
use super::confinement::Switch;
use super::{CatalogArgs, ConfinementArgs, ModelArgs, PolicyArgs, RunArgs, ToolsetName};

impl RunArgs {
    /// Returns the settings of the flags that were typed, for the session of the run.
    pub(crate) fn given(&self) -> Result<GivenSettings, Failure> {
        Ok(GivenSettings {
            spec: self.settings()?,
            origins: self.origins(),
            flags: self.session.given.clone(),
            grant: self.grant.clone(),
            ignore_config_errors: self.configuration.ignore_config_errors,
        })
    }

    /// Returns the flags that were typed, by the path of their field.
    fn origins(&self) -> BTreeMap<String, ValueOrigin> {
        let typed = FIELDS.iter().filter_map(|row| {
            let flag = row.flags.iter().find(|flag| self.is_typed(flag))?;
            Some((row.path.to_owned(), ValueOrigin::Flag(format!("--{flag}"))))
        });
        typed.collect()
    }

    /// Returns whether a flag was typed, by its name without dashes.
    pub(crate) fn is_typed(&self, flag: &str) -> bool {
        self.typed.contains(flag)
    }

    /// Returns the settings of the flags that were typed. Each value of `--profile` is a file.
    ///
    /// The grant is left out: its file is read when the session is opened.
    fn settings(&self) -> Result<PartialSpec, Failure> {
        let mut spec = PartialSpec::default();
        self.model.set(&mut spec);
        self.confinement.set(&mut spec, self.is_typed("sandbox"));
        self.policy.set(&mut spec);
        spec.environment.kind = self.is_typed("env").then(|| self.environment.env.to_string());
        spec.environment.dir.clone_from(&self.environment.dir);
        spec.policy.wait_approval = self.wait_approval.then_some(true);
        spec.limits = self.limit_settings()?;
        spec.tools = self.tool_settings();
        spec.persistence.keep = self.session.no_session.then_some(false);
        spec.persistence.worktree = self.session.worktree;
        Ok(spec)
    }

    fn limit_settings(&self) -> Result<PartialLimits, Failure> {
        let mut settings = PartialLimits::default();
        settings.max_turns = self.is_typed("max-turns").then_some(CountLimit(self.max_turns));
        settings.max_tool_rounds =
            self.is_typed("max-tool-rounds").then_some(CountLimit(self.max_tool_rounds));
        settings.compact_at = self.is_typed("compact-at").then_some(self.compact_at);
        settings.budget = self.budget.limits()?;
        settings.at_limit = self.budget.at_limit();
        settings.unknown_price = self.budget.unknown_price();
        Ok(settings)
    }

    fn tool_settings(&self) -> PartialTools {
        let mut settings = PartialTools::default();
        settings.toolset = self.is_typed("toolset").then(|| self.toolset.into());
        #[cfg(feature = "mcp")]
        {
            settings.server_files.clone_from(&self.servers.mcp_config);
            settings.use_servers = self.servers.no_mcp.then_some(false);
        }
        settings
    }
}

impl ModelArgs {
    /// Sets the settings of these flags. Each value of `--profile` is a file.
    pub(crate) fn set(&self, spec: &mut PartialSpec) {
        let settings = &mut spec.model;
        settings.provider = self.provider.map(|provider| provider.value_name().to_owned());
        settings.name.clone_from(&self.model);
        settings.base_url = self.base_url.as_ref().map(BaseUrl::new);
        settings.script.clone_from(&self.script);
        settings.dialect = self.dialect.map(|dialect| dialect.name().to_owned());
        settings.profile = self.profile.clone().map(ProfileRef::File);
        settings.reasoning_effort.clone_from(&self.reasoning_effort);
        settings.timeout = self.timeout;
        settings.catalog.clone_from(&self.catalog.catalog);
    }

    /// Returns the flags for settings.
    pub(crate) fn from_resolved(resolved: &Resolved) -> Result<Self, Failure> {
        let spec = &resolved.spec.model;
        Ok(Self {
            provider: spec.provider.as_deref().map(parse_setting).transpose()?,
            model: spec.name.clone(),
            base_url: spec.base_url.as_ref().map(|url| url.as_str().to_owned()),
            script: spec.script.clone(),
            dialect: spec.dialect.as_deref().map(parse_setting).transpose()?,
            profile: profile_file(resolved),
            reasoning_effort: spec.reasoning_effort.clone(),
            timeout: spec.timeout,
            catalog: CatalogArgs::from_resolved(resolved),
        })
    }
}

impl CatalogArgs {
    /// Returns the flags for settings.
    pub(crate) fn from_resolved(resolved: &Resolved) -> Self {
        if matches!(resolved.origin("model.catalog"), ValueOrigin::Variable(_)) {
            // Messages about the file name the variable.
            return Self::default();
        }
        Self { catalog: resolved.spec.model.catalog.clone() }
    }
}

impl ConfinementArgs {
    /// Sets the settings of these flags. `is_level_typed` is whether `--sandbox` was typed.
    pub(crate) fn set(&self, spec: &mut PartialSpec, is_level_typed: bool) {
        let Confinement { level, network, confine } = self.into();
        let settings = &mut spec.environment;
        settings.sandbox = (is_level_typed || self.no_sandbox).then_some(level);
        settings.network = network.map(|is_on| if is_on { NetworkAccess::On } else { NetworkAccess::Off });
        settings.confine = confine.then_some(true);
        spec.policy.read_before_write = self.read_before_write.then_some(true);
    }

    /// Returns the flags for settings.
    #[cfg(feature = "mcp")]
    pub(crate) fn from_spec(spec: &pintle_host::SessionSpec) -> Self {
        let switch = |access: &NetworkAccess| match access {
            NetworkAccess::On => Switch::On,
            // Servers of tools support no list of hosts.
            NetworkAccess::Off | NetworkAccess::Hosts(_) => Switch::Off,
        };
        Self {
            sandbox: spec.environment.sandbox,
            no_sandbox: false,
            network: spec.environment.network.as_ref().map(switch),
            confine: spec.environment.confine,
            read_before_write: spec.policy.read_before_write,
        }
    }
}

impl PolicyArgs {
    /// Sets the settings of these flags.
    pub(crate) fn set(&self, spec: &mut PartialSpec) {
        let settings = &mut spec.policy;
        settings.mode = self.mode;
        settings.after_plan = self.after_plan;
        settings.allow.clone_from(&self.allow);
        settings.deny.clone_from(&self.deny);
    }

    /// Applies settings.
    pub(crate) fn apply(&mut self, resolved: &Resolved) {
        let policy = &resolved.spec.policy;
        // Some surfaces have another default.
        self.mode = resolved.origins.contains_key("policy.mode").then_some(policy.mode);
        self.after_plan = resolved.origins.contains_key("policy.after_plan").then_some(policy.after_plan);
        self.allow.clone_from(&policy.allow);
        self.deny.clone_from(&policy.deny);
    }
}

impl ToolsetName {
    /// Returns the toolset that settings have, or else this default.
    pub(crate) fn or_resolved(self, resolved: &Resolved) -> Self {
        if !resolved.origins.contains_key("tools.toolset") {
            return self;
        }
        if resolved.spec.tools.toolset == Toolset::Spec { Self::Spec } else { Self::Native }
    }
}

/// Returns the file of the profile. The values of a profile with a name are settings themselves.
pub(crate) fn profile_file(resolved: &Resolved) -> Option<PathBuf> {
    match &resolved.spec.model.profile {
        Some(ProfileRef::File(file)) => Some(file.clone()),
        Some(ProfileRef::Name(_)) | None => None,
    }
}

#[cfg(test)]
mod tests;
