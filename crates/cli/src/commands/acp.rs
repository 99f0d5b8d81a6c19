//! `pintle acp`: an ACP agent for an editor, on standard input and output.

use pintle_acp::{AcpAgent, EditorHost};
use pintle_host::Host;
use pintle_host::env_spec::EnvSpec;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_tui::interrupt::Interrupts;

use crate::arguments::RunArgs;
use crate::exit::Exit;

/// Serves an editor until it closes its end.
pub(crate) async fn acp(args: &RunArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    refuse(args)?;
    let interrupts = Interrupts::listen()?;
    let host = EditorHost::new(Host::new(process_env.clone())).with_settings(args.given()?);
    let agent = AcpAgent::new(host);
    let serving =
        async { agent.serve(tokio::io::stdin(), tokio::io::stdout()).await.or_failed("the editor is gone") };
    let served = interrupts.race(serving).await;
    served.map(|()| Exit::Done).map_err(|failure| interrupts.reclassify(failure))
}

/// Rejects flags for a single task: the editor sends the task and the directory.
fn refuse(args: &RunArgs) -> Result<(), Failure> {
    let place =
        [("--dir", args.environment.dir.is_some()), ("--env", args.environment.env != EnvSpec::Local)];
    args.refuse_hosted(&place, |flag| format!("`pintle acp` takes no {flag}: the editor decides on that"))
}
