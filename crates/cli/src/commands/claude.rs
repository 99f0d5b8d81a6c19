//! Agent for a host program that uses Claude Code's `stream-json`, such as its SDK. Its sessions are in the store, so a
//! conversation can move to a terminal and back.

mod channel;
mod conversation;
mod hooks;
mod live;
mod permissions;
mod rules;
mod servers;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::SessionId;
use pintle_compat::claude::{ClaudeSettings, StreamOptions};
use pintle_host::boxed_future::box_future;
use pintle_host::env_spec::EnvironmentChoice;
use pintle_host::environment::{Confinement, EnvTarget};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::sessions::Sessions;
use pintle_host::{Host, SettingSources};
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;

use self::channel::HostChannel;
use self::conversation::ClaudeConversation;
use crate::arguments::RunArgs;
use crate::arguments::command_line;
use crate::commands::run::select;
use crate::exit::Exit;

/// Time for the host to read the last lines.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

/// Characters of a UUID.
const UUID: usize = 36;

/// Converses until the host closes its end.
///
/// The result is an interruption if the host no longer reads.
pub(crate) async fn claude(args: RunArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    args.conversation.refuse()?;
    let options = with_settings(command_line::stream_options(&args.passed)?)?;
    let selected = box_future(|| select(&args, process_env)).await?;
    let mut sources = SettingSources::from_selected(args.given()?, selected.as_ref())?;
    // The host gives the mode.
    sources.remembered.recorded_mode = None;
    let host = Host::new(process_env.clone());
    let mut resolved = box_future(|| host.resolve(sources)).await?;
    resolved.spec.persistence.id = new_id(&options, process_env).await?;
    let spec = &resolved.spec;
    // A resumed session may use another directory than the current one.
    let process_env = &process_env.clone().with_workspace(spec.environment.dir.as_deref());
    EnvTarget::new(EnvironmentChoice::try_from(spec)?, Confinement::from(spec), process_env)?;
    let interrupts = Interrupts::listen()?;
    let host = Host::new(process_env.clone());
    let model = box_future(|| interrupts.race(host.choose_model(spec))).await?;

    let (lines, unwritten) = unbounded_channel();
    let (sender, events) = unbounded_channel();
    let channel = Arc::new(HostChannel::new(lines));
    let (mut reader, mut writer) = (JoinSet::new(), JoinSet::new());
    reader.spawn(channel::read(Arc::clone(&channel), sender));
    writer.spawn(channel::write(Arc::clone(&channel), unwritten));
    let mut conversation = ClaudeConversation::new(
        options,
        resolved,
        selected,
        &model,
        Arc::clone(&channel),
        events,
        &interrupts,
        process_env,
    );
    let ended = box_future(|| conversation.run()).await;
    let closed = conversation.close(ended.is_err()).await;
    channel.end_output();
    // A host that does not read must not keep the process alive.
    let _ = tokio::time::timeout(READER_TIMEOUT, writer.join_next()).await;
    ended.and(closed).map(|()| Exit::Done).map_err(|failure| interrupts.reclassify(failure))
}

/// Reads the settings file, if one is named.
fn with_settings(mut options: StreamOptions) -> Result<StreamOptions, Failure> {
    let Some(path) = &options.settings_file else { return Ok(options) };
    let text = process_env::read_text("settings", path)?;
    let mut warnings = Vec::new();
    let settings = ClaudeSettings::parse(&text, &mut warnings);
    options.settings = settings.or_usage(&format!("--settings {}", path.display()))?;
    warnings.iter().for_each(|warning| console::notice(warning));
    if options.settings.mode.is_some() || options.settings.model.is_some() {
        return Err(Failure::usage(format!(
            "--settings {}: a mode or a model in a file is not supported; use --permission-mode and --model",
            path.display()
        )));
    }
    Ok(options)
}

/// Returns the id that the host chose for a new session.
async fn new_id(options: &StreamOptions, process_env: &ProcessEnv) -> Result<Option<String>, Failure> {
    let Some(id) = &options.session_id else { return Ok(None) };
    if id.len() != UUID || !id.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return Err(Failure::usage(format!("--session-id {id}: expected a UUID")));
    }
    if !options.ephemeral {
        let sessions = Sessions::open(process_env).await?;
        let known = sessions.store().summary(&SessionId::new(id)).await;
        if known.or_failed("cannot read the sessions")?.is_some() {
            return Err(Failure::usage(format!("--session-id {id}: there is a session with this id"))
                .with_hint("--resume continues it"));
        }
    }
    Ok(Some(id.clone()))
}
