//! `pintle prompt`: the system prompt, as it would be sent.

use pintle_agent::{Clock as _, EnvironmentContext, ProjectDocs, SystemClock};
use pintle_env::ExecutionEnvironment as _;

use crate::args::ShowPromptArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::Host;
use crate::interrupt::Interrupts;
use crate::provider::Provider;

/// Shows the prompt, with one line end after it. Needs no key.
///
/// # Errors
///
/// A usage failure for a directory that is none or a missing model, else those of writing.
pub(crate) async fn prompt(args: ShowPromptArgs, host: &Host) -> Result<Exit, Failure> {
    let provider = args.provider.or_else(|| Provider::by_key(|name| host.variable(name)));
    let provider = provider.unwrap_or(Provider::OpenAi);
    let model = args.model.as_deref().or_else(|| provider.default_model()).ok_or_else(|| {
        Failure::usage(format!("{} has no default model: name one with --model", provider.name()))
    })?;
    let profile = provider.profile(model);
    let environment = host.environment(&host.directory(args.dir.as_deref())?)?;
    let interrupts = Interrupts::listen()?;
    let text = interrupts
        .unless(async {
            let context = EnvironmentContext::gather(&environment, SystemClock.now().date()).await;
            let docs = ProjectDocs::discover(&environment, context.git_root(), &profile.doc_files).await;
            Ok(profile.build_system_prompt(&context, &docs, None))
        })
        .await;
    let cleaned = environment.cleanup().await;
    Console::new().write(&format!("{}\n", text?)).await?;
    cleaned.map_err(|error| Failure::failed("a command of the prompt is left running").because(&error))?;
    Ok(Exit::Done)
}
