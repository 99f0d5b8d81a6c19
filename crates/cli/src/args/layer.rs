//! The flags of a session as a layer of its settings, and resolved settings as flags.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use pintle_agent::Toolset;
use pintle_governance::BudgetLimits;
use pintle_host::{
    BaseUrl, BudgetSpec, CountLimit, EnvironmentSpec, FIELDS, Layer, LayerSpec, ModelSpec, NetworkAccess,
    Origin, PartialEnvironment, PartialLimits, PartialModel, PartialPolicy, PartialSpec, PartialTools,
    ProfileRef, Resolved, SandboxLevel, SessionSpec, WorktreeBase,
};

use super::confinement::Switch;
use super::{CatalogArgs, ConfinementArgs, EnvArgs, ModelArgs, RunArgs, ToolsetName};
use crate::budget::BudgetChoice;
use crate::environment::{Confinement, SandboxName};
use crate::failure::Failure;
use crate::named_value::NamedValue as _;
use crate::sessions::worktree;

impl RunArgs {
    /// Returns the settings of the flags that were typed, each with its flag as the origin. A value of `--profile` that is
    /// not in `profiles` is a file.
    ///
    /// The grant is left out: its file is read when the session is opened.
    pub(crate) fn layer(&self, profiles: &BTreeSet<&str>) -> Result<LayerSpec, Failure> {
        let mut layer = LayerSpec::new(Layer::CommandLine, self.settings(profiles)?, Origin::Default);
        for row in FIELDS {
            if let Some(flag) = row.flags.iter().find(|flag| self.is_typed(flag)) {
                layer = layer.with_origin(row.path, Origin::Flag(format!("--{flag}")));
            }
        }
        Ok(layer)
    }

    /// Returns the flags of a session with these settings. The prompt, the output, the file of the grant, the budget and the
    /// worktree are as they were typed.
    pub(crate) fn with_settings(mut self, resolved: &Resolved) -> Result<Self, Failure> {
        let SessionSpec { model, environment, policy, limits, tools, persistence, .. } = &resolved.spec;
        self.model = model_args(model)?;
        if matches!(resolved.origin("model.catalog"), Origin::Variable(_)) {
            // Messages about the file name the variable.
            self.model.catalog = CatalogArgs::default();
        }
        self.environment = EnvArgs { env: parsed(&environment.kind)?, dir: environment.dir.clone() };
        self.confinement = confinement_args(environment, policy.read_before_write);
        // Some surfaces have another default.
        self.policy.mode = resolved.origins.contains_key("policy.mode").then_some(policy.mode);
        self.policy.after_plan =
            resolved.origins.contains_key("policy.after_plan").then_some(policy.after_plan);
        self.policy.allow.clone_from(&policy.allow);
        self.policy.deny.clone_from(&policy.deny);
        // A flag names a file, which is read when the session is opened.
        self.requested_grant.clone_from(&policy.grant);
        self.wait_approval = policy.wait_approval;
        self.max_turns = limits.max_turns.0;
        self.max_tool_rounds = limits.max_tool_rounds.0;
        self.compact_at = limits.compact_at;
        self.toolset = if tools.toolset == Toolset::Spec { ToolsetName::Spec } else { ToolsetName::Native };
        #[cfg(feature = "mcp")]
        {
            self.servers.mcp_config.clone_from(&tools.server_files);
            self.servers.no_mcp = !tools.use_servers;
        }
        self.session.no_session = !persistence.keep;
        Ok(self)
    }

    /// Returns whether a flag was typed, by its name without dashes.
    pub(crate) fn is_typed(&self, flag: &str) -> bool {
        self.typed.contains(flag)
    }

    fn settings(&self, profiles: &BTreeSet<&str>) -> Result<PartialSpec, Failure> {
        let mut spec = PartialSpec::default();
        spec.model = model(&self.model, profiles);
        spec.environment = self.environment_settings();
        spec.policy = self.policy_settings();
        spec.limits = self.limit_settings()?;
        spec.tools = self.tool_settings();
        spec.persistence.keep = self.session.no_session.then_some(false);
        spec.persistence.worktree = self.session.worktree.map(|base| match base {
            worktree::WorktreeBase::Head => WorktreeBase::Head,
            worktree::WorktreeBase::Changes => WorktreeBase::Changes,
        });
        Ok(spec)
    }

    fn environment_settings(&self) -> PartialEnvironment {
        let Confinement { level, network, confine } = (&self.confinement).into();
        let mut settings = PartialEnvironment::default();
        settings.kind = self.is_typed("env").then(|| self.environment.env.to_string());
        settings.dir.clone_from(&self.environment.dir);
        let has_level = self.is_typed("sandbox") || self.confinement.no_sandbox;
        settings.sandbox = has_level.then(|| sandbox_level(level));
        settings.network = network.map(|is_on| if is_on { NetworkAccess::On } else { NetworkAccess::Off });
        settings.confine = confine.then_some(true);
        settings
    }

    fn policy_settings(&self) -> PartialPolicy {
        let mut settings = PartialPolicy::default();
        settings.mode = self.policy.mode;
        settings.after_plan = self.policy.after_plan;
        settings.allow.clone_from(&self.policy.allow);
        settings.deny.clone_from(&self.policy.deny);
        settings.wait_approval = self.wait_approval.then_some(true);
        settings.read_before_write = self.confinement.read_before_write.then_some(true);
        settings
    }

    fn limit_settings(&self) -> Result<PartialLimits, Failure> {
        let choice = BudgetChoice::from(&self.budget);
        let mut settings = PartialLimits::default();
        settings.max_turns = self.is_typed("max-turns").then_some(CountLimit(self.max_turns));
        settings.max_tool_rounds =
            self.is_typed("max-tool-rounds").then_some(CountLimit(self.max_tool_rounds));
        settings.compact_at = self.is_typed("compact-at").then_some(self.compact_at);
        settings.budget = budget(&choice)?;
        settings.at_limit = choice.at_limit;
        settings.unknown_price = choice.unknown_price;
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

fn model(args: &ModelArgs, profiles: &BTreeSet<&str>) -> PartialModel {
    let mut settings = PartialModel::default();
    settings.provider = args.provider.map(|provider| provider.value_name().to_owned());
    settings.name.clone_from(&args.model);
    settings.base_url = args.base_url.as_ref().map(BaseUrl::new);
    settings.script.clone_from(&args.script);
    settings.dialect = args.dialect.map(|dialect| dialect.name().to_owned());
    settings.profile = args.profile.as_deref().map(|profile| profile_ref(profile, profiles));
    settings.reasoning_effort.clone_from(&args.reasoning_effort);
    settings.timeout = args.timeout;
    settings.catalog.clone_from(&args.catalog.catalog);
    settings
}

fn model_args(spec: &ModelSpec) -> Result<ModelArgs, Failure> {
    let profile = match &spec.profile {
        Some(ProfileRef::File(file)) => Some(file.clone()),
        // Its values are settings themselves.
        Some(ProfileRef::Name(_)) | None => None,
    };
    Ok(ModelArgs {
        provider: spec.provider.as_deref().map(parsed).transpose()?,
        model: spec.name.clone(),
        base_url: spec.base_url.as_ref().map(|url| url.as_str().to_owned()),
        script: spec.script.clone(),
        dialect: spec.dialect.as_deref().map(parsed).transpose()?,
        profile,
        reasoning_effort: spec.reasoning_effort.clone(),
        timeout: spec.timeout,
        catalog: CatalogArgs { catalog: spec.catalog.clone() },
    })
}

fn confinement_args(spec: &EnvironmentSpec, read_before_write: bool) -> ConfinementArgs {
    let switch = |access| match access {
        NetworkAccess::On => Switch::On,
        NetworkAccess::Off => Switch::Off,
    };
    ConfinementArgs {
        sandbox: sandbox_name(spec.sandbox),
        no_sandbox: false,
        network: spec.network.map(switch),
        confine: spec.confine,
        read_before_write,
    }
}

/// Parses a setting that is text. A kept session may have a wrong one.
fn parsed<T: FromStr<Err = String>>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|problem| Failure::usage(format!("a setting of the session is wrong: {problem}")))
}

fn profile_ref(value: &Path, profiles: &BTreeSet<&str>) -> ProfileRef {
    match value.to_str().filter(|name| profiles.contains(name)) {
        Some(name) => ProfileRef::Name(name.to_owned()),
        None => ProfileRef::File(value.to_path_buf()),
    }
}

fn budget(choice: &BudgetChoice) -> Result<Option<BudgetSpec>, Failure> {
    let mut limits = BudgetLimits::default();
    choice.apply(&mut limits)?;
    let mut budget = BudgetSpec::default();
    (budget.run, budget.session, budget.day) = (limits.run, limits.session, limits.day);
    Ok((budget != BudgetSpec::default()).then_some(budget))
}

const fn sandbox_level(name: SandboxName) -> SandboxLevel {
    match name {
        SandboxName::Auto => SandboxLevel::Auto,
        SandboxName::Full => SandboxLevel::Full,
        SandboxName::Writes => SandboxLevel::Writes,
        SandboxName::Off => SandboxLevel::Off,
    }
}

const fn sandbox_name(level: SandboxLevel) -> SandboxName {
    match level {
        SandboxLevel::Auto => SandboxName::Auto,
        SandboxLevel::Full => SandboxName::Full,
        SandboxLevel::Writes => SandboxName::Writes,
        SandboxLevel::Off => SandboxName::Off,
    }
}

#[cfg(test)]
mod tests;
