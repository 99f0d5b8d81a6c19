//! `pintle sessions`, and what other commands show of stored sessions.

pub(crate) mod conversed;
mod delete;
pub(crate) mod export;
pub(crate) mod files;
mod list;
#[cfg(feature = "client")]
mod served;
mod show;
pub(crate) mod verify;

use self::files::{Point, in_place};
use crate::arguments::{DiffArgs, ListFormat, RewindArgs, SessionsArgs, SessionsCommand};
use crate::console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;
use crate::sessions::{Sessions, parse_session_point};

/// Runs `pintle sessions`.
pub(crate) async fn sessions(args: SessionsArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    #[cfg(feature = "client")]
    if let Some(exit) = served::of_server(&args.command, process_env).await? {
        return Ok(exit);
    }
    let sessions = Sessions::open(process_env).await?;
    match args.command {
        SessionsCommand::List(args) => list::list(&sessions, &args, process_env).await,
        SessionsCommand::Show(args) => show::show(&sessions, &args.session, process_env).await,
        SessionsCommand::Export(args) => export::export(&sessions, &args).await,
        SessionsCommand::Verify(args) => verify::verify(&sessions, &args).await,
        SessionsCommand::Diff(args) => diff(&sessions, &args, process_env).await,
        SessionsCommand::Rewind(args) => rewind(&sessions, &args, process_env).await,
        SessionsCommand::Delete(args) => delete::delete(&sessions, &args, process_env).await,
        SessionsCommand::Prune(args) => delete::prune_old(&sessions, &args, process_env).await,
    }
}

/// Runs `pintle sessions diff`: shows the changes of a session in its directory.
async fn diff(sessions: &Sessions, args: &DiffArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (prefix, turns) = parse_session_point(&args.id)?;
    let point = args.checkpoint.as_deref().map_or(Point::Turns(turns.unwrap_or(0)), Point::Checkpoint);
    if args.output == ListFormat::Text && !console::stdout_is_terminal() {
        let patch =
            in_place(sessions, prefix, process_env, async |files| files.patch(&point, process_env).await);
        let patch = patch.await?;
        for path in &patch.omitted {
            files::notify_left_out(&path.to_string_lossy());
        }
        console::print_patch(&patch.bytes).await?;
        return Ok(Exit::Done);
    }
    let text = in_place(sessions, prefix, process_env, async |files| files.diff(&point, args.output).await);
    console::print_patch(text.await?.as_bytes()).await?;
    Ok(Exit::Done)
}

/// Runs `pintle sessions rewind`: reverts the changes of a session in its directory.
async fn rewind(sessions: &Sessions, args: &RewindArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (prefix, turns) = parse_session_point(&args.id)?;
    let point = match (turns, args.checkpoint.as_deref()) {
        (_, Some(checkpoint)) => Point::Checkpoint(checkpoint),
        (Some(turns), None) => Point::Turns(turns),
        (None, None) => {
            return Err(Failure::usage("expected ID@N, with N entries of the history, or --checkpoint")
                .with_hint("`pintle sessions show ID --output json` numbers the entries"));
        }
    };
    let text = in_place(sessions, prefix, process_env, async |files| files.rewind(&point, args).await);
    console::print(&text.await?).await?;
    Ok(Exit::Done)
}
