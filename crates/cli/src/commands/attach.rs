//! `pintle attach`: the conversation in the terminal, as a client of a server.

use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_tui::interrupt::Interrupts;
use pintle_tui::terminal::{self, PresentationChoice};

use crate::arguments::AttachArgs;
use crate::exit::Exit;
use crate::remote::RemoteServer;

/// Converses in a session of a server until the user leaves. The session continues on the server.
pub(crate) async fn attach(args: AttachArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let presentation = PresentationChoice::from(&args.conversation);
    terminal::require(process_env, presentation)?;
    let interrupts = Interrupts::listen()?;
    let remote = RemoteServer::new(&args.url, process_env)?;
    let found = async {
        match &args.session {
            Some(prefix) => remote.find(prefix).await,
            None if args.new => remote.create(args.dir.clone()).await,
            None => newest(&remote).await,
        }
    };
    let session = interrupts.race(found).await?;
    terminal::attach(remote.client, &session, presentation, process_env, &interrupts).await?;
    Ok(Exit::Done)
}

/// Number of sessions searched for the newest one that does not belong to a subagent.
const NEWEST: usize = 100;

async fn newest(remote: &RemoteServer) -> Result<pintle_client::SessionInfo, Failure> {
    let newest = remote.newest(NEWEST).await?.into_iter().find(|session| session.parent.is_none());
    newest.ok_or_else(|| {
        Failure::usage("the server has no sessions").with_hint("`pintle attach --new URL` starts one")
    })
}
