//! The scripted model, and clients for it.

use pintle_agent::ProviderProfile;
use pintle_llm::{Client, Error};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

use crate::script;

const KEY: &str = "sk-soak";

/// URL of the server for each dialect.
pub(crate) type Urls = [(Dialect, String); 4];

/// Starts a server with the script of a seed.
pub(crate) async fn server(seed: u64) -> Result<ScriptedServer, String> {
    start(script::script(seed)).await
}

/// Starts a server that keeps few records, since its memory counts here.
pub(crate) async fn start(script: Script) -> Result<ScriptedServer, String> {
    let mut options = ServerOptions::new().with_api_key(KEY).with_recorded_bytes(0);
    options.conversations = 64;
    ScriptedServer::start(script, options).await.map_err(|error| format!("the server cannot start: {error}"))
}

pub(crate) fn urls(server: &ScriptedServer) -> Urls {
    Dialect::ALL.map(|dialect| (dialect, server.base_url(dialect)))
}

/// Returns a new client, whose connections end with it.
pub(crate) fn client(dialect: Dialect, url: &str) -> Result<Client, String> {
    build(dialect, url).map_err(|error| format!("no client for {url}: {error}"))
}

fn build(dialect: Dialect, url: &str) -> Result<Client, Error> {
    let builder = Client::builder();
    let builder = match dialect {
        Dialect::OpenAiResponses => builder.provider(OpenAi::builder(KEY).with_base_url(url).build()?),
        Dialect::AnthropicMessages => builder.provider(Anthropic::builder(KEY).with_base_url(url).build()?),
        Dialect::Gemini => builder.provider(Gemini::builder(KEY).with_base_url(url).build()?),
        Dialect::ChatCompletions => {
            builder.provider(OpenAiCompatible::builder(url).with_api_key(KEY).build()?)
        }
    };
    builder.default_provider(dialect.name()).build()
}

pub(crate) fn profile(dialect: Dialect) -> ProviderProfile {
    match dialect {
        Dialect::OpenAiResponses => ProviderProfile::openai("gpt-5.2-codex"),
        Dialect::AnthropicMessages => ProviderProfile::anthropic("claude-opus-4-6"),
        Dialect::Gemini => ProviderProfile::gemini("gemini-3-flash-preview"),
        Dialect::ChatCompletions => ProviderProfile::openai_compatible("local-model"),
    }
}
