//! `pintle sessions --server`: sessions of a server.

use pintle_agent::{Record, SessionId, SessionState};
use pintle_client::SessionInfo;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::json_line;
use pintle_tui::client_failure::explain;
use pintle_tui::console::{self, Console};
use pintle_tui::render;

use super::list::{SessionListRow, table, title_or_mark};
use crate::arguments::{ExportArgs, ExportFormat, ListFormat, ListSessionsArgs, SessionArg, SessionsCommand};
use crate::exit::Exit;
use crate::remote::RemoteServer;

/// Runs a command on the sessions of a server; `None` for a command on the local sessions of the user.
pub(super) async fn run_on_server(
    command: &SessionsCommand,
    process_env: &ProcessEnv,
) -> Result<Option<Exit>, Failure> {
    let (text, is_damaged) = match command {
        SessionsCommand::List(args) => {
            let Some(url) = &args.server else { return Ok(None) };
            (list(&RemoteServer::new(url, process_env)?, args).await?, false)
        }
        SessionsCommand::Export(args) => {
            let Some(url) = &args.server else { return Ok(None) };
            export(&RemoteServer::new(url, process_env)?, args).await?
        }
        SessionsCommand::Show(args) => {
            let Some(url) = &args.server else { return Ok(None) };
            show(&RemoteServer::new(url, process_env)?, &args.session).await?
        }
        SessionsCommand::Verify(_)
        | SessionsCommand::Diff(_)
        | SessionsCommand::Rewind(_)
        | SessionsCommand::Delete(_)
        | SessionsCommand::Prune(_) => return Ok(None),
    };
    Console::new().write(&text).await?;
    Ok(Some(if is_damaged { Exit::Failed } else { Exit::Done }))
}

async fn list(remote: &RemoteServer, args: &ListSessionsArgs) -> Result<String, Failure> {
    let found = remote.newest(args.limit as usize).await?;
    let rows: Vec<SessionListRow<'_>> = found.iter().map(row).collect();
    match args.output {
        ListFormat::Json => json_line(&rows),
        ListFormat::Text if rows.is_empty() => Ok("the server has no sessions\n".to_owned()),
        ListFormat::Text => Ok(table(&rows, true).concat()),
    }
}

/// Returns a session as text, and whether its record is damaged.
async fn export(remote: &RemoteServer, args: &ExportArgs) -> Result<(String, bool), Failure> {
    let format = match args.format {
        ExportFormat::Jsonl => pintle_client::ExportFormat::Jsonl,
        ExportFormat::Markdown => pintle_client::ExportFormat::Markdown,
        ExportFormat::Html => pintle_client::ExportFormat::Html,
    };
    let id = remote.find(&args.id).await?.id;
    let text = remote.client.export(&id, format).await.map_err(|error| explain(&error))?;
    Ok((text, damage(remote, &id).await?.is_some()))
}

/// As [`export`].
async fn show(remote: &RemoteServer, args: &SessionArg) -> Result<(String, bool), Failure> {
    let session = remote.find(&args.id).await?;
    let format = match args.output {
        ListFormat::Json => pintle_client::ExportFormat::Jsonl,
        ListFormat::Text => pintle_client::ExportFormat::Markdown,
    };
    let exported = remote.client.export(&session.id, format).await.map_err(|error| explain(&error))?;
    let damage = damage(remote, &session.id).await?;
    let is_damaged = damage.is_some();
    match args.output {
        ListFormat::Json => {
            let record = Record::read(exported.as_bytes()).or_failed("the session cannot be shown")?;
            Ok((super::show::json(&row(&session), &record, damage)?, is_damaged))
        }
        ListFormat::Text => Ok((exported, is_damaged)),
    }
}

/// Returns the damage of a record, with a notice about it: an exported record ends at the damage without a mark.
async fn damage(remote: &RemoteServer, id: &SessionId) -> Result<Option<String>, Failure> {
    let history = remote.client.history(id).await.map_err(|error| explain(&error))?;
    if let Some(damage) = &history.damage {
        let entries = render::plural(history.turns.len() as u64, "entry");
        console::notice(&format!(
            "{damage}; {entries} before it can be read, and everything from there on is left out"
        ));
    }
    Ok(history.damage)
}

/// Returns a session as a list shows it.
fn row(session: &SessionInfo) -> SessionListRow<'_> {
    SessionListRow {
        id: session.id.as_str(),
        state: state(session),
        title: &session.title,
        label: title_or_mark(&session.title),
        // The server does not report the environment.
        environment: String::new(),
        directory: session.directory.clone().unwrap_or_default(),
        provider: None,
        model: session.model.as_deref(),
        cost_usd: session.cost_usd,
        tokens: session.tokens,
        created_at: session.created_at.to_string(),
        updated_at: session.updated_at.to_string(),
    }
}

fn state(session: &SessionInfo) -> &'static str {
    match (session.state, session.live) {
        _ if session.pending_approvals > 0 => "awaiting approval",
        (SessionState::Processing, true) => "running",
        // The server of the session is gone.
        (SessionState::Processing, false) => "unfinished",
        (SessionState::Idle | SessionState::AwaitingInput | SessionState::Closed, _) => "idle",
    }
}
