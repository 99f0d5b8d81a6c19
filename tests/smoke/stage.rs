//! Where the steps are run: at a provider, or at a server that plays one.

use std::time::Duration;

use pintle_agent::{ProviderProfile, SessionConfig};
use pintle_llm::{Client, get_latest_model};
use pintle_providers::{Anthropic, FromEnv as _, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use pintle_tools::CommandTimeouts;

use crate::check::{Checked, during};

/// The key of the server that plays.
const KEY: &str = "sk-smoke";

/// How long a command runs offline, where nobody wants to wait for the ten seconds of the default.
const SHORT: Duration = Duration::from_millis(500);

/// A provider, or one that is played.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) dialect: Dialect,
    real: Option<Client>,
}

/// A client and, offline, the server behind it, which plays as long as it is held.
#[derive(Debug)]
pub(crate) struct Cast {
    pub(crate) client: Client,
    _server: Option<ScriptedServer>,
}

impl Stage {
    /// The provider of a dialect; `None` without its key.
    pub(crate) fn online(dialect: Dialect) -> Option<Self> {
        let client = Client::from_env().ok()?;
        let is_there = client.providers().any(|provider| provider == dialect.name());
        is_there.then_some(Self { dialect, real: Some(client) })
    }

    /// A server on loopback in this dialect.
    pub(crate) fn offline(dialect: Dialect) -> Self {
        Self { dialect, real: None }
    }

    /// The provider, or one that follows this script.
    pub(crate) async fn cast(&self, script: Script) -> Checked<Cast> {
        if let Some(client) = &self.real {
            return Ok(Cast { client: client.clone(), _server: None });
        }
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await;
        let server = during("starting the server", server)?;
        let client = during("making a client", played(self.dialect, &server.base_url(self.dialect)))?;
        Ok(Cast { client, _server: Some(server) })
    }

    /// The newest model of the provider that is known.
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

fn played(dialect: Dialect, url: &str) -> Result<Client, pintle_llm::Error> {
    let builder = Client::builder();
    let builder = match dialect {
        Dialect::OpenAiResponses => builder.provider(OpenAi::builder(KEY).base_url(url).build()?),
        Dialect::AnthropicMessages => builder.provider(Anthropic::builder(KEY).base_url(url).build()?),
        Dialect::Gemini => builder.provider(Gemini::builder(KEY).base_url(url).build()?),
        Dialect::ChatCompletions => builder.provider(OpenAiCompatible::builder(url).api_key(KEY).build()?),
    };
    builder.default_provider(dialect.name()).build()
}
