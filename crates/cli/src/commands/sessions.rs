//! `pintle sessions`, and what other commands show of stored sessions.

mod delete;
pub(crate) mod files;
mod list;
#[cfg(feature = "client")]
mod served;
mod show;
pub(crate) mod stored_conversation;
pub(crate) mod verify;

use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sessions::export::export_session;
use pintle_host::sessions::files::{SessionFiles, SessionPoint, with_session_files};
use pintle_host::sessions::{Sessions, parse_session_point};
use pintle_tui::console::{self, Console};

use self::files::RewindSurface;
use crate::arguments::{DiffArgs, ExportArgs, ListFormat, RewindArgs, SessionsArgs, SessionsCommand};
use crate::exit::Exit;

/// Message about two points, of which only one can be meant.
const POINT_AND_CHECKPOINT: &str = "expected either ID@N or ID with --checkpoint, found both";

/// Runs `pintle sessions`.
pub(crate) async fn sessions(args: SessionsArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    #[cfg(feature = "client")]
    if let Some(exit) = served::run_on_server(&args.command, process_env).await? {
        return Ok(exit);
    }
    let sessions = Sessions::open(process_env).await?;
    match args.command {
        SessionsCommand::List(args) => list::list(&sessions, &args, process_env).await,
        SessionsCommand::Show(args) => show::show(&sessions, &args.session, process_env).await,
        SessionsCommand::Export(args) => export(&sessions, &args).await,
        SessionsCommand::Verify(args) => verify::verify(&sessions, &args).await,
        SessionsCommand::Diff(args) => diff(&sessions, &args, process_env).await,
        SessionsCommand::Rewind(args) => rewind(&sessions, &args, process_env).await,
        SessionsCommand::Delete(args) => delete::delete(&sessions, &args, process_env).await,
        SessionsCommand::Prune(args) => delete::prune_old(&sessions, &args, process_env).await,
    }
}

/// Runs `pintle sessions export`: writes a session as JSON lines, Markdown, or one HTML page.
async fn export(sessions: &Sessions, args: &ExportArgs) -> Result<Exit, Failure> {
    let exported = export_session(sessions, &args.id, args.format.into()).await?;
    Console::new().write(&exported.text).await?;
    Ok(if exported.is_damaged { Exit::Failed } else { Exit::Done })
}

/// Runs `pintle sessions diff`: shows the changes of a session in its directory.
async fn diff(sessions: &Sessions, args: &DiffArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (prefix, turns) = parse_session_point(&args.id)?;
    let point = match (turns, args.checkpoint.as_deref()) {
        (Some(_), Some(_)) => return Err(Failure::usage(POINT_AND_CHECKPOINT)),
        (None, Some(checkpoint)) => SessionPoint::Checkpoint(checkpoint),
        (turns, None) => SessionPoint::Entries(turns.unwrap_or(0)),
    };
    if args.output == ListFormat::Text && !console::stdout_is_terminal() {
        let work = async |files: &SessionFiles<'_>| files.patch(&point, process_env).await;
        let patch = with_session_files(sessions, prefix, process_env, work).await?;
        for path in &patch.omitted {
            files::notify_left_out(&path.to_string_lossy());
        }
        console::print_patch(&patch.bytes).await?;
        return Ok(Exit::Done);
    }
    let work = async |files: &SessionFiles<'_>| files::diff(files, &point, args.output).await;
    let text = with_session_files(sessions, prefix, process_env, work).await?;
    console::print_patch(text.as_bytes()).await?;
    Ok(Exit::Done)
}

/// Runs `pintle sessions rewind`: reverts the changes of a session in its directory.
async fn rewind(sessions: &Sessions, args: &RewindArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (prefix, turns) = parse_session_point(&args.id)?;
    let point = match (turns, args.checkpoint.as_deref()) {
        (Some(_), Some(_)) => return Err(Failure::usage(POINT_AND_CHECKPOINT)),
        (None, Some(checkpoint)) => SessionPoint::Checkpoint(checkpoint),
        (Some(turns), None) => SessionPoint::Entries(turns),
        (None, None) => {
            return Err(Failure::usage("expected ID@N, with N entries of the history, or --checkpoint")
                .with_hint("`pintle sessions show ID --output json` numbers the entries"));
        }
    };
    let work =
        async |files: &SessionFiles<'_>| files::rewind(files, &point, args, RewindSurface::Shell).await;
    let text = with_session_files(sessions, prefix, process_env, work).await?;
    console::print(&text).await?;
    Ok(Exit::Done)
}
