//! Targets of the smoke tests: a provider, or the scripted server.

use std::time::Duration;

use pintle_agent::{ProviderProfile, SessionConfig};
use pintle_llm::{Client, get_latest_model};
use pintle_providers::{Anthropic, FromEnv as _, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use pintle_tools::CommandTimeouts;

use crate::check::{Checked, during};

/// Key of the scripted server.
const KEY: &str = "sk-smoke";

/// Default time limit of commands in offline runs, instead of ten seconds.
const SHORT: Duration = Duration::from_millis(500);

/// A provider, or the scripted server in its place.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) dialect: Dialect,
    real: Option<Client>,
}

/// A client and, offline, the server behind it, which runs until this is dropped.
#[derive(Debug)]
pub(crate) struct TestClient {
    pub(crate) client: Client,
    _server: Option<ScriptedServer>,
}

impl Target {
    /// Returns the provider of a dialect; `None` without its key.
    pub(crate) fn online(dialect: Dialect) -> Option<Self> {
        let client = Client::from_env().ok()?;
        let is_there = client.providers().any(|provider| provider == dialect.name());
        is_there.then_some(Self { dialect, real: Some(client) })
    }

    /// Returns the scripted server in this dialect.
    pub(crate) fn offline(dialect: Dialect) -> Self {
        Self { dialect, real: None }
    }

    /// Returns a client of the provider, or of a server with this script.
    pub(crate) async fn test_client(&self, script: Script) -> Checked<TestClient> {
        if let Some(client) = &self.real {
            return Ok(TestClient { client: client.clone(), _server: None });
        }
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await;
        let server = during("starting the server", server)?;
        let client = during("making a client", run_input(self.dialect, &server.base_url(self.dialect)))?;
        Ok(TestClient { client, _server: Some(server) })
    }

    /// Returns the newest known model of the provider.
    pub(crate) fn model(&self) -> String {
        let latest = get_latest_model(self.dialect.name(), None);
        latest.map_or_else(|| "local-model".to_owned(), |model| model.id.clone())
    }

    pub(crate) fn profile(&self) -> ProviderProfile {
        let model = self.model();
        match self.dialect {
            Dialect::OpenAiResponses => ProviderProfile::openai(model),
            Dialect::AnthropicMessages => ProviderProfile::anthropic(model),
            Dialect::Gemini => ProviderProfile::gemini(model),
            Dialect::ChatCompletions => ProviderProfile::openai_compatible(model),
        }
    }

    pub(crate) fn config(&self) -> SessionConfig {
        let config = SessionConfig::default().with_max_tool_rounds(30);
        if self.real.is_some() {
            return config;
        }
        config.with_command_timeouts(CommandTimeouts { default: SHORT, ..CommandTimeouts::default() })
    }
}

fn run_input(dialect: Dialect, url: &str) -> Result<Client, pintle_llm::Error> {
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
