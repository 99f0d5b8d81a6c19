//! A client from the environment (client specification, section 2.2).

#![expect(clippy::disallowed_methods, reason = "the one place below the hosts that reads the environment")]

use pintle_llm::{Client, ClientBuilder, Error, ErrorKind};

use crate::{Anthropic, Gemini, OpenAi};

/// Clients and builders from the standard variables of each provider.
///
/// | provider | key | optional |
/// |---|---|---|
/// | `openai` | `OPENAI_API_KEY` | `OPENAI_BASE_URL`, `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID` |
/// | `anthropic` | `ANTHROPIC_API_KEY` | `ANTHROPIC_BASE_URL` |
/// | `gemini` | `GEMINI_API_KEY`, else `GOOGLE_API_KEY` | `GEMINI_BASE_URL` |
///
/// Providers with a key are registered in this order, so that the first of them is the default. An empty variable
/// counts as unset. An OpenAI-compatible server is never guessed: see [`OpenAiCompatible`](crate::OpenAiCompatible).
pub trait FromEnv: Sized {
    /// What the environment of this process says.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if no provider has a key, or if a variable's value is none that it can have.
    fn from_env() -> Result<Self, Error>;
}

impl FromEnv for Client {
    fn from_env() -> Result<Self, Error> {
        ClientBuilder::from_env()?.build()
    }
}

impl FromEnv for ClientBuilder {
    fn from_env() -> Result<Self, Error> {
        builder_from(|name| std::env::var(name).ok())
    }
}

fn builder_from(lookup: impl Fn(&str) -> Option<String>) -> Result<ClientBuilder, Error> {
    let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let mut builder = Client::builder();
    if let Some(key) = set("OPENAI_API_KEY") {
        let mut openai = OpenAi::builder(key);
        if let Some(url) = set("OPENAI_BASE_URL") {
            openai = openai.base_url(url);
        }
        if let Some(id) = set("OPENAI_ORG_ID") {
            openai = openai.organization(id);
        }
        if let Some(id) = set("OPENAI_PROJECT_ID") {
            openai = openai.project(id);
        }
        builder = builder.provider(openai.build()?);
    }
    if let Some(key) = set("ANTHROPIC_API_KEY") {
        let mut anthropic = Anthropic::builder(key);
        if let Some(url) = set("ANTHROPIC_BASE_URL") {
            anthropic = anthropic.base_url(url);
        }
        builder = builder.provider(anthropic.build()?);
    }
    if let Some(key) = set("GEMINI_API_KEY").or_else(|| set("GOOGLE_API_KEY")) {
        let mut gemini = Gemini::builder(key);
        if let Some(url) = set("GEMINI_BASE_URL") {
            gemini = gemini.base_url(url);
        }
        builder = builder.provider(gemini.build()?);
    }
    let first = builder.providers().next().map(str::to_owned);
    if let Some(first) = first {
        // Specification section 2.2: the first registered provider becomes the default.
        return Ok(builder.default_provider(first));
    }
    Err(Error::new(
        ErrorKind::Configuration,
        "no API key in the environment; set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(variables: &[(&str, &str)]) -> Result<Client, Error> {
        builder_from(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })?
        .build()
    }

    #[test]
    fn providers_with_a_key_are_registered_in_order() {
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
        let rows: &[Row<'_>] = &[
            (&[("OPENAI_API_KEY", "k")], &["openai"]),
            (
                &[("GEMINI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k")],
                &["openai", "anthropic", "gemini"],
            ),
            (&[("GOOGLE_API_KEY", "k"), ("OPENAI_API_KEY", "")], &["gemini"]),
            (&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")], &["anthropic"]),
        ];
        for (variables, expected) in rows {
            let client = client(variables).unwrap();
            assert_eq!(client.providers().collect::<Vec<_>>(), *expected, "{variables:?}");
            assert_eq!(client.default_provider(), expected.first().copied());
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        let error = client(&[("OPENAI_BASE_URL", "http://127.0.0.1:1")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.message().contains("OPENAI_API_KEY"), "{error}");
        let error =
            client(&[("OPENAI_API_KEY", "secret-value"), ("OPENAI_BASE_URL", "nonsense")]).unwrap_err();
        assert_eq!((error.kind(), error.provider()), (ErrorKind::Configuration, Some("openai")));
        let error = client(&[("GEMINI_API_KEY", "secret value")]).unwrap_err();
        assert!(!format!("{error:?}").contains("secret value"), "{error:?}");
    }
}
