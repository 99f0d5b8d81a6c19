//! Scripted models on the scripted server of `pintle-testkit`.

use std::path::Path;

use async_trait::async_trait;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env;
use pintle_host::provider::Provider;
use pintle_host::scripted_models::{ScriptedModel, ScriptedModels};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// Serves each script on loopback in this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestkitModels;

#[async_trait]
impl ScriptedModels for TestkitModels {
    async fn start(
        &self,
        file: &Path,
        provider: Option<Provider>,
        model: Option<String>,
    ) -> Result<ScriptedModel, Failure> {
        let mut script = read_script(file)?;
        script.model = model.or(script.model);
        let of_script = script.dialect.map(provider_of);
        start_script(script, provider.or(of_script).unwrap_or(Provider::OpenAi)).await
    }
}

/// Starts the model of a script.
pub(crate) async fn start_script(script: Script, provider: Provider) -> Result<ScriptedModel, Failure> {
    let model = script.model.clone();
    let server = ScriptedServer::start(script, ServerOptions::new())
        .await
        .or_failed("cannot start the scripted server")?;
    let base_url = server.base_url(dialect_of(provider));
    Ok(ScriptedModel { provider, model, base_url, server: Box::new(server) })
}

/// Reads and validates a script.
pub(crate) fn read_script(path: &Path) -> Result<Script, Failure> {
    let text = process_env::read_text("script", path)?;
    Script::parse(&text)
        .map_err(|error| Failure::usage(format!("invalid script {}", path.display())).caused_by(&error))
}

/// Returns the wire dialect of a provider.
pub(crate) fn dialect_of(provider: Provider) -> Dialect {
    match provider {
        Provider::OpenAi => Dialect::OpenAiResponses,
        Provider::Anthropic => Dialect::AnthropicMessages,
        Provider::Gemini => Dialect::Gemini,
        Provider::OpenAiCompatible => Dialect::ChatCompletions,
    }
}

/// Returns the provider of a wire dialect.
fn provider_of(dialect: Dialect) -> Provider {
    match dialect {
        Dialect::OpenAiResponses => Provider::OpenAi,
        Dialect::AnthropicMessages => Provider::Anthropic,
        Dialect::Gemini => Provider::Gemini,
        Dialect::ChatCompletions => Provider::OpenAiCompatible,
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test writes the scripts that are read")]
mod tests {
    use super::*;

    #[test]
    fn dialects_have_the_names_of_their_providers() {
        for provider in Provider::ALL {
            let dialect = dialect_of(provider);
            assert_eq!((provider_of(dialect), dialect.name()), (provider, provider.name()));
        }
    }

    #[tokio::test]
    async fn flags_replace_the_values_in_a_script() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("script.toml");
        let turn = "[[turn]]\ntext = \"Hello.\"\n";
        for (head, provider, model, expected) in [
            ("", None, None, (Provider::OpenAi, None)),
            ("dialect = \"gemini\"\nmodel = \"a\"\n", None, None, (Provider::Gemini, Some("a"))),
            (
                "dialect = \"gemini\"\nmodel = \"a\"\n",
                Some(Provider::Anthropic),
                Some("b"),
                (Provider::Anthropic, Some("b")),
            ),
        ] {
            std::fs::write(&file, format!("name = \"s\"\n{head}{turn}")).unwrap();
            let started = TestkitModels.start(&file, provider, model.map(str::to_owned)).await.unwrap();
            assert_eq!((started.provider, started.model.as_deref()), expected, "{head:?}");
            assert!(started.base_url.starts_with("http://127.0.0.1:"), "{}", started.base_url);
        }
        std::fs::write(&file, "name = 1").unwrap();
        let failure = TestkitModels.start(&file, None, None).await.unwrap_err();
        assert!(failure.message().starts_with("invalid script "), "{failure:?}");
    }
}
