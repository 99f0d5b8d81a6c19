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

use pintle_host::{BoundedValue, FieldRow, Origin, ProfileRef, merge};

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
use crate::sessions::Flags;

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
        .ok_or_else(|| Failure::usage("a session continues with `pintle run` or in a conversation"))
}

/// Returns the flags of a run with the settings that the configuration, the flags that its session remembers, and its own
/// flags form.
pub(crate) async fn resolve_run(
    args: &RunArgs,
    remembered: &[String],
    process_env: &ProcessEnv,
) -> Result<RunArgs, Failure> {
    let flags = layers::flags_of(remembered);
    let scope = Scope::new(directory_of_session(args, &flags, process_env)?, args.configuration);
    let loaded = scope.load(process_env).await?;
    let merged = merge(layers::of_session(args, &flags, &loaded, process_env)?);
    let resolved = merged.map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(problems.join("; "))
    })?;
    // A stronger value may replace the limit.
    let bounded = resolved.bounded.iter().filter(|bounded| *resolved.origin(bounded.path) == bounded.limit);
    process_env.notices().report_all(bounded.filter_map(bounded_notice));
    let mut run = args.clone().with_settings(&resolved)?;
    let profile = layers::selected_profile(args, &flags);
    for (key, value) in loaded.sources(profile.as_deref()).merge().values {
        if !args.typed.contains(key) {
            run.conversation.set(key, &value.text);
        }
    }
    run.policy.session_rules = command_line::session_rules(remembered);
    let kept = flags.into_iter().filter(|(name, _)| !run.policy.session_rules.contains_key(name));
    run.session.given.extend(kept);
    if let (Some(ProfileRef::Name(name)), Origin::Flag(_)) =
        (&resolved.spec.model.profile, resolved.origin("model.profile"))
    {
        run.session.given.insert(keys::PROFILE.to_owned(), vec![name.clone()]);
    }
    Ok(run)
}

/// Returns the directory of this machine that a session works in, whose project applies; `None` if it works elsewhere, where
/// nothing can be read before the model and the sandbox are selected.
fn directory_of_session(
    args: &RunArgs,
    remembered: &Flags,
    process_env: &ProcessEnv,
) -> Result<Option<PathBuf>, Failure> {
    let value = |name: &str| remembered.get(name).and_then(|values| values.first());
    let is_local = match value("env") {
        Some(environment) if !args.typed.contains("env") => *environment == EnvSpec::Local.to_string(),
        Some(_) | None => args.environment.env == EnvSpec::Local,
    };
    let directory = args.environment.dir.as_deref().or_else(|| value("dir").map(Path::new));
    is_local.then(|| process_env.directory(directory)).transpose()
}

/// Returns the notice about a value that exceeds a limit of the user; `None` for the mode of a kept session, whose record has
/// the mode that applies.
fn bounded_notice(bounded: &BoundedValue) -> Option<Notice> {
    let is_recorded = bounded.path == "policy.mode" && matches!(bounded.origin, Origin::Remembered(_));
    (!is_recorded).then(|| Notice::from(bounded.to_string()))
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
