//! Observability: the spans of a session, for any subscriber of `tracing`.
//!
//! A session has a span, each run has one within it, and each model call and tool call has one within its run. The fields have
//! the names of the OpenTelemetry conventions, and contain no text of a user, a model or a tool.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use pintle_agent::{ProviderProfile, Session};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::OpenAiCompatible;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Prints the spans. A real application uses `tracing-subscriber`, or exports them with `tracing-opentelemetry`.
#[derive(Default)]
struct PrintSpans(AtomicU64);

impl Subscriber for PrintSpans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("pintle_agent")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        println!("{}", attributes.metadata().name());
        attributes.record(&mut PrintFields);
        span::Id::from_u64(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut PrintFields);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct PrintFields;

impl Visit for PrintFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if matches!(field.name(), "gen_ai.request.model" | "gen_ai.tool.name" | "pintle.run.tool_calls") {
            println!("  {field} = {value:?}");
        }
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing::subscriber::set_global_default(PrintSpans::default())?;
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider = OpenAiCompatible::builder(server.base_url(Dialect::ChatCompletions)).build()?;
    let client = Client::builder().provider(provider).build()?;
    let directory = tempfile::tempdir()?;
    let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
    let session = Session::builder(client, ProviderProfile::openai_compatible("local-model"), env).build()?;
    session.submit("Which day is it?").await?;
    session.close().await;
    server.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/observability.toml");
