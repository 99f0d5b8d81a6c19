//! `pintle mock serve`: a scripted model server for other programs.

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_testkit::{Dialect, ScriptedServer, ServerOptions};
use pintle_tui::console::Console;
use pintle_tui::interrupt::Interrupts;

use crate::arguments::ServeArgs;
use crate::exit::Exit;
use crate::testkit_models::read_script;

/// Serves until a signal arrives, which is a successful exit.
pub(crate) async fn serve(args: ServeArgs) -> Result<Exit, Failure> {
    let script = read_script(&args.script)?;
    let interrupts = Interrupts::listen()?;
    // Nothing reads the recorded requests.
    let mut options = ServerOptions::new().with_bind(args.listen).with_recorded_bytes(0);
    if let Some(key) = args.api_key {
        options = options.with_api_key(key);
    }
    let server = ScriptedServer::start(script, options).await.or_failed("cannot start the server")?;
    let lines = Dialect::ALL.map(|dialect| format!("{:<18} {}\n", dialect.name(), server.base_url(dialect)));
    Console::new().write(&lines.concat()).await?;
    interrupts.first_signal().await;
    server.shutdown().await;
    Ok(Exit::Done)
}
