//! Configuration: `config.toml` of the user and of the project, environment variables, and profiles by name.
//!
//! The settings of `pintle run` and of conversations are merged from layers. For other commands, values become flags: the
//! command line is parsed again with the flags that neither it nor its session sets.

mod edit;
mod layers;
mod list;
mod load;
mod schema;
mod settings;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[cfg(feature = "server")]
use pintle_host::SessionSpec;
use pintle_host::{BoundedValue, FieldRow, LayerSpec, Origin, PartialSpec, ProfileRef, Resolved, merge};

use self::load::Configuration;
use self::settings::{Settings, Source, Value};
#[cfg(feature = "mcp")]
use crate::args::McpCommand;
use crate::args::{
    Command, CommandWords, ConfigArgs, ConfigCommand, ConfigurationArgs, EnvArgs, ModelArgs, RunArgs,
};
use crate::command_line::{self, CommandLine};
use crate::config_file::{keys, problem};
use crate::console;
use crate::env_spec::EnvSpec;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::notice::Notice;
use crate::process_env::{self, ProcessEnv};
use crate::provider::{Provider, ProviderName};
use crate::sessions::{Flags, RememberedSettings, Selected};

/// Runs `pintle config`.
pub(crate) async fn command(args: ConfigArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    match args.command.unwrap_or(ConfigCommand::List(args.list)) {
        ConfigCommand::List(args) => list::list(&args, process_env).await,
        ConfigCommand::Edit(args) => edit::edit(&args, process_env).await,
        ConfigCommand::Path => list::paths(process_env).await,
        ConfigCommand::Schema => {
            let text = format!("{:#}\n", schema::schema());
            console::print(&text).await.map(|()| Exit::Done)
        }
    }
}

/// Returns the effective value of each key in the current directory and its source, as a table.
pub(crate) async fn effective(process_env: &ProcessEnv) -> Result<String, Failure> {
    list::effective(process_env).await
}

/// Completes the command line of a command with a session, which remembers these flags.
#[cfg(any(feature = "acp", feature = "compat", feature = "server", feature = "task"))]
pub(crate) async fn complete_run(
    words: &CommandWords,
    remembered: &[String],
    process_env: &ProcessEnv,
) -> Result<RunArgs, Failure> {
    let completed = completed(words, remembered, process_env).await?;
    completed
        .session()
        .cloned()
        .ok_or_else(|| Failure::usage("a session goes on with `pintle run` or in a conversation"))
}

/// Settings of a session besides the configuration and the flags of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionSources {
    /// Defaults of the surface.
    pub(crate) defaults: PartialSpec,
    /// Settings of the kept session that is resumed or forked.
    pub(crate) remembered: RememberedSettings,
    /// Request of a client.
    pub(crate) request: Option<LayerSpec>,
}

impl SessionSources {
    /// Returns the settings of a kept session; those of a new session without one.
    pub(crate) fn of_selected(selected: Option<&Selected>) -> Result<Self, Failure> {
        let remembered = selected.map(Selected::remembered).transpose()?;
        Ok(Self { remembered: remembered.unwrap_or_default(), ..Self::default() })
    }
}

/// The merged settings of a session, and their sources.
struct MergedSession {
    resolved: Resolved,
    sources: SessionSources,
    loaded: Configuration,
}

/// Returns the flags of a session with the settings that the configuration, the flags of this process and the other sources
/// form.
pub(crate) async fn resolve_run(
    args: &RunArgs,
    sources: SessionSources,
    process_env: &ProcessEnv,
) -> Result<RunArgs, Failure> {
    let MergedSession { resolved, sources, loaded } = merge_session(args, sources, process_env).await?;
    let mut run = args.clone().with_settings(&resolved)?;
    let profile = layers::selected_profile(args, &sources.remembered.spec.given);
    for (key, value) in loaded.sources(profile.as_deref()).merge().values {
        if !args.typed.contains(key) {
            run.conversation.set(key, &value.text);
        }
    }
    run.policy.session_rules = session_rules(&sources);
    let kept = sources.remembered.flags.into_iter();
    run.session.given.extend(kept.filter(|(name, _)| !SESSION_RULES.contains(&name.as_str())));
    if let (Some(ProfileRef::Name(name)), Origin::Flag(_)) =
        (&resolved.spec.model.profile, resolved.origin("model.profile"))
    {
        run.session.given.insert(keys::PROFILE.to_owned(), vec![name.clone()]);
    }
    Ok(run)
}

/// Returns the settings of a session, as [`resolve_run`] does.
#[cfg(feature = "server")]
pub(crate) async fn resolve_spec(
    args: &RunArgs,
    sources: SessionSources,
    process_env: &ProcessEnv,
) -> Result<SessionSpec, Failure> {
    let merged = merge_session(args, sources, process_env).await?;
    Ok(merged.resolved.spec)
}

/// Merges the settings of a session, and reports the values that exceed a limit of the user.
async fn merge_session(
    args: &RunArgs,
    mut sources: SessionSources,
    process_env: &ProcessEnv,
) -> Result<MergedSession, Failure> {
    let typed = args.layer(&BTreeSet::new())?;
    sources.remembered = sources.remembered.without_replaced(&typed.spec);
    let directory = directory_of_session(args, &sources, process_env)?;
    let loaded = Scope::new(directory, args.configuration).load(process_env).await?;
    let resolved = merge_layers(layers::of_session(args, &sources, &loaded, process_env)?)?;
    report_bounded(&resolved, |_| true, process_env);
    Ok(MergedSession { resolved, sources, loaded })
}

fn merge_layers(layers: Vec<LayerSpec>) -> Result<Resolved, Failure> {
    merge(layers).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(problems.join("; "))
    })
}

/// Reports the values of some fields that exceed a limit of the user.
fn report_bounded(resolved: &Resolved, is_used: impl Fn(&str) -> bool, process_env: &ProcessEnv) {
    // A stronger value may replace the limit.
    let applies =
        |bounded: &&BoundedValue| is_used(bounded.path) && *resolved.origin(bounded.path) == bounded.limit;
    process_env.notices().report_all(resolved.bounded.iter().filter(applies).filter_map(bounded_notice));
}

/// Flags with rules that a client of a server sets for a session. The rules of a command line apply to one run.
const SESSION_RULES: [&str; 2] = ["allow", "deny"];

/// Returns the rules that a client of a server has set for the session, by flag.
fn session_rules(sources: &SessionSources) -> Flags {
    let mut rules = Flags::new();
    let request = sources.request.as_ref().map(|request| &request.spec);
    for spec in [&sources.remembered.spec.given].into_iter().chain(request) {
        for (name, of_spec) in SESSION_RULES.iter().zip([&spec.policy.allow, &spec.policy.deny]) {
            if !of_spec.is_empty() {
                rules.entry((*name).to_owned()).or_default().extend(of_spec.iter().cloned());
            }
        }
    }
    rules
}

/// Returns the directory of this machine that a session works in, whose project applies; `None` if it works elsewhere, where
/// nothing can be read before the model and the sandbox are selected.
fn directory_of_session(
    args: &RunArgs,
    sources: &SessionSources,
    process_env: &ProcessEnv,
) -> Result<Option<PathBuf>, Failure> {
    let request = sources.request.as_ref().map(|request| &request.spec.environment);
    let remembered = &sources.remembered.spec.given.environment;
    let typed = args.is_typed("env").then(|| args.environment.env.to_string());
    let kind = request.and_then(|request| request.kind.clone()).or(typed).or_else(|| remembered.kind.clone());
    let is_local = kind.is_none_or(|kind| kind == EnvSpec::Local.to_string());
    let requested = request.and_then(|request| request.dir.as_deref());
    let directory = requested.or(args.environment.dir.as_deref()).or(remembered.dir.as_deref());
    is_local.then(|| process_env.directory(directory)).transpose()
}

/// Returns the notice about a value that exceeds a limit of the user; `None` for the mode of a kept session, whose record has
/// the mode that applies.
fn bounded_notice(bounded: &BoundedValue) -> Option<Notice> {
    let BoundedValue { path, origin, limit, .. } = bounded;
    if *path == "policy.mode" && matches!(origin, Origin::Remembered(_)) {
        return None;
    }
    let key = FieldRow::find(path).and_then(|row| row.key).unwrap_or(*path);
    Some(Notice::from(format!("{origin}: `{key}` allows more than {limit}, which applies instead")))
}

/// Completes the command line of a command other than a run, which may have to select a session first.
pub(crate) async fn complete(
    command: Command,
    words: &CommandWords,
    process_env: &ProcessEnv,
) -> Result<Command, Failure> {
    if command.session().is_some() || Scope::of(&command, process_env)?.is_none() {
        return Ok(command);
    }
    completed(words, &[], process_env).await
}

async fn completed(
    words: &CommandWords,
    remembered: &[String],
    process_env: &ProcessEnv,
) -> Result<Command, Failure> {
    let line = command_line::parse_with(words, remembered)?;
    let Some(scope) = Scope::of(&line.arguments.command, process_env)? else {
        return Ok(line.arguments.command);
    };
    let loaded = scope.load(process_env).await?;
    scope.configured(&line, remembered, &loaded, process_env)
}

/// Parts of a command line that the configuration depends on.
struct Scope {
    /// Directory whose project applies.
    directory: Option<PathBuf>,
    /// Provider that was typed or remembered.
    provider: Option<ProviderName>,
    /// Value of `--profile`.
    profile: Option<PathBuf>,
    configuration: ConfigurationArgs,
    /// The only flag of the command that corresponds to a key, if its other flags have a different meaning.
    only: Option<&'static str>,
}

impl Scope {
    fn new(directory: Option<PathBuf>, configuration: ConfigurationArgs) -> Self {
        Self { directory, provider: None, profile: None, configuration, only: None }
    }

    /// Loads the configuration, and reports its mistakes and notices.
    async fn load(&self, process_env: &ProcessEnv) -> Result<Configuration, Failure> {
        let loaded = load::load(self.directory.as_deref(), process_env).await?;
        let notices = process_env.notices();
        notices.report_all(problem::check(&loaded.problems, self.configuration.ignore_config_errors)?);
        notices.report_all(loaded.notices.clone());
        Ok(loaded)
    }

    /// Returns the scope of a command; `None` if the command uses no configuration.
    fn of(command: &Command, process_env: &ProcessEnv) -> Result<Option<Self>, Failure> {
        let here = || process_env.directory(None).ok();
        let in_environment = |environment: &EnvArgs| {
            // Elsewhere, nothing can be read before the model and the sandbox are selected.
            let is_local = environment.env == EnvSpec::Local;
            is_local.then(|| process_env.directory(environment.dir.as_deref())).transpose()
        };
        let scope = match command {
            Command::Chat(args) | Command::Run(args) => {
                Self::new(in_environment(&args.environment)?, args.configuration).with_model(&args.model)
            }
            Command::Ask(args) => Self::new(here(), args.configuration).with_model(&args.model),
            Command::Tools(args) => Self::new(here(), args.configuration),
            Command::Models(args) => {
                Self { only: Some(keys::CATALOG), ..Self::new(here(), args.configuration) }
            }
            Command::Prompt(args) => {
                let scope = Self::new(in_environment(&args.environment)?, args.configuration);
                Self { profile: args.profile.clone(), ..scope }
            }
            Command::Rules(args) => {
                let scope = args.command.scope();
                let directory = process_env.directory(scope.dir.as_deref())?;
                Self::new(Some(directory), scope.configuration)
            }
            #[cfg(feature = "acp")]
            Command::Acp(args) => {
                Self::new(in_environment(&args.environment)?, args.configuration).with_model(&args.model)
            }
            #[cfg(feature = "server")]
            Command::Serve(args) => Self::new(in_environment(&args.run.environment)?, args.run.configuration)
                .with_model(&args.run.model),
            #[cfg(feature = "client")]
            Command::Attach(_) => return Ok(None),
            #[cfg(feature = "task")]
            Command::Task(args) => match args.command.session() {
                Some(args) => {
                    Self::new(in_environment(&args.environment)?, args.configuration).with_model(&args.model)
                }
                None => return Ok(None),
            },
            #[cfg(feature = "task")]
            Command::Worker(args) => {
                Self::new(in_environment(&args.run.environment)?, args.run.configuration)
                    .with_model(&args.run.model)
            }
            #[cfg(feature = "server")]
            Command::Tokens(_) => return Ok(None),
            #[cfg(feature = "mcp")]
            Command::Mcp(args) => match &args.command {
                McpCommand::Serve(args) => Self::new(in_environment(&args.environment)?, args.configuration),
                McpCommand::Tools(args) => Self::new(here(), args.configuration),
                McpCommand::List(_)
                | McpCommand::Add(_)
                | McpCommand::Remove(_)
                | McpCommand::Login(_)
                | McpCommand::Logout(_) => return Ok(None),
            },
            Command::Demo(_)
            | Command::Sessions(_)
            | Command::Audit(_)
            | Command::Worktree(_)
            | Command::Approvals(_)
            | Command::Grants(_)
            | Command::Trust(_)
            | Command::Login(_)
            | Command::Logout(_)
            | Command::Doctor(_)
            | Command::Man(_)
            | Command::Config(_)
            | Command::Patch(_)
            | Command::Mock(_)
            | Command::Completions(_) => return Ok(None),
        };
        Ok(Some(scope))
    }

    /// Parses a command line once more, with the flags of the configuration.
    fn configured(
        &self,
        line: &CommandLine,
        remembered: &[String],
        loaded: &Configuration,
        process_env: &ProcessEnv,
    ) -> Result<Command, Failure> {
        let (mut settings, profile) = self.settings(loaded, process_env)?;
        let bounded = loaded.limit(&mut settings);
        let mut given = line.given.clone();
        if profile.is_some() {
            given.remove("profile");
        }
        let flags = self.flags(&settings, line, &given);
        let names: Vec<&str> =
            flags.iter().filter_map(|word| word.strip_prefix("--")?.split('=').next()).collect();
        let applies = |bounded: &&BoundedValue| {
            FieldRow::find(bounded.path).is_some_and(|row| row.flags.iter().any(|flag| names.contains(flag)))
        };
        process_env.notices().report_all(bounded.iter().filter(applies).filter_map(bounded_notice));
        Ok(line.configured(remembered, &flags, profile.as_deref())?.command)
    }

    fn with_model(self, args: &ModelArgs) -> Self {
        Self { provider: args.provider, profile: args.profile.clone(), ..self }
    }

    /// Returns the effective values, and the name of the profile that `--profile` selects.
    fn settings(
        &self,
        loaded: &Configuration,
        process_env: &ProcessEnv,
    ) -> Result<(Settings, Option<String>), Failure> {
        let flag = self.profile.as_ref().map(|path| path.to_string_lossy().into_owned());
        let mut settings = loaded.sources(flag.as_deref()).merge();
        let is_flag = |value: &Value| matches!(value.source, Source::Flag(_));
        let named = settings.profile.as_ref().filter(|value| is_flag(value)).map(|value| value.text.clone());
        if let (Some(name), None) = (&flag, &named) {
            require_file(name, loaded)?;
        }
        apply_url_variable(&mut settings, self.provider, process_env);
        Ok((settings, named))
    }

    fn flags(&self, settings: &Settings, line: &CommandLine, given: &BTreeSet<String>) -> Vec<String> {
        let mut known = line.known.clone();
        known.retain(|flag| self.only.is_none_or(|only| flag == only));
        if settings.values.contains_key(keys::PROFILE) && matches!(line.arguments.command, Command::Prompt(_))
        {
            // The file sets it.
            known.remove("provider");
        }
        let has_variable = |value: &Value| match &value.source {
            Source::Variable(name) => {
                Provider::ALL.iter().any(|provider| provider.variables().base_url == name)
            }
            Source::File { .. } | Source::Flag(_) => false,
        };
        if settings.values.get(keys::BASE_URL).is_some_and(has_variable) {
            // The provider that the model selects has a variable of this kind as well.
            known.remove("base-url");
        }
        settings.flags(given, &known)
    }
}

/// Rejects a value of `--profile` that is neither a profile nor a file.
fn require_file(name: &str, loaded: &Configuration) -> Result<(), Failure> {
    if keys::is_profile_file(name) || process_env::read_text_if_there("profile", Path::new(name))?.is_some() {
        return Ok(());
    }
    Err(Failure::usage(format!("{} in the configuration, and no such file", loaded.no_profile(name))))
}

/// Replaces a base URL from a file by the value of the provider's variable, which takes precedence.
fn apply_url_variable(settings: &mut Settings, given: Option<ProviderName>, process_env: &ProcessEnv) {
    let configured = || settings.values.get("provider").and_then(|value| provider(&value.text));
    let variable = url_variable(given, configured, process_env);
    let is_own =
        settings.values.get(keys::BASE_URL).is_some_and(|value| matches!(value.source, Source::Variable(_)));
    if let (Some((name, text)), false) = (variable, is_own) {
        let source = Source::Variable(name.to_owned());
        settings.values.insert(keys::BASE_URL, Value { text, source });
    }
}

/// Returns the variable with the base URL of the provider that flags or the configuration name, or else that has a key, and
/// its value.
fn url_variable(
    given: Option<ProviderName>,
    configured: impl FnOnce() -> Option<Provider>,
    process_env: &ProcessEnv,
) -> Option<(&'static str, String)> {
    let provider = match given {
        Some(ProviderName::Scripted) => return None,
        Some(ProviderName::Of(provider)) => Some(provider),
        None => configured().or_else(|| Provider::by_key(|name| process_env.variable(name))),
    };
    let name = provider.unwrap_or(Provider::OpenAiCompatible).variables().base_url;
    Some((name, process_env.variable(name)?))
}

fn provider(name: &str) -> Option<Provider> {
    name.parse().ok()
}

#[cfg(test)]
mod tests;
