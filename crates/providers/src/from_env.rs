//! Clients from environment variables (client specification, section 2.2).

use pintle_llm::{Client, ClientBuilder, Error, ErrorKind};

use crate::{Anthropic, Gemini, OpenAi};

/// Construction of a [`Client`] or [`ClientBuilder`] from the standard variables of each provider.
///
/// | provider | key | optional |
/// |---|---|---|
/// | `openai` | `OPENAI_API_KEY` | `OPENAI_BASE_URL`, `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID` |
/// | `anthropic` | `ANTHROPIC_API_KEY` | `ANTHROPIC_BASE_URL` |
/// | `gemini` | `GEMINI_API_KEY`, else `GOOGLE_API_KEY` | `GEMINI_BASE_URL` |
///
/// Providers with a key are registered in this order, and the first of them is the default. An empty variable
/// counts as unset. An OpenAI-compatible server is never guessed: see [`OpenAiCompatible`](crate::OpenAiCompatible).
pub trait FromEnv: Sized {
    /// Reads the variables through `lookup`, which returns the value of a variable or `None`: from a secret store, a
    /// configuration file or a test, without touching the environment of the process.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if no provider has a key, or if the value of a variable is invalid.
    fn from_vars(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Error>;

    /// Reads the variables from the environment of this process.
    ///
    /// # Errors
    ///
    /// As for [`from_vars`](Self::from_vars).
    #[expect(clippy::disallowed_methods, reason = "the only reader of the environment below the command")]
    fn from_env() -> Result<Self, Error> {
        Self::from_vars(|name| std::env::var(name).ok())
    }
}

impl FromEnv for Client {
    fn from_vars(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        ClientBuilder::from_vars(lookup)?.build()
    }
}

impl FromEnv for ClientBuilder {
    fn from_vars(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let var = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let openai = openai(var).transpose()?;
        let anthropic = anthropic(var).transpose()?;
        let gemini = gemini(var).transpose()?;
        let mut builder = Client::builder();
        if let Some(openai) = openai {
            builder = builder.provider(openai);
        }
        if let Some(anthropic) = anthropic {
            builder = builder.provider(anthropic);
        }
        if let Some(gemini) = gemini {
            builder = builder.provider(gemini);
        }
        // Client specification, section 2.2: the first registered provider becomes the default.
        let first = builder.providers().next().map(str::to_owned);
        match first {
            Some(first) => Ok(builder.default_provider(first)),
            None => Err(Error::new(
                ErrorKind::Configuration,
                "no API key in the environment; set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY",
            )),
        }
    }
}

fn openai(var: impl Fn(&str) -> Option<String>) -> Option<Result<OpenAi, Error>> {
    let mut builder = OpenAi::builder(var("OPENAI_API_KEY")?);
    if let Some(url) = var("OPENAI_BASE_URL") {
        builder = builder.base_url(url);
    }
    if let Some(id) = var("OPENAI_ORG_ID") {
        builder = builder.organization(id);
    }
    if let Some(id) = var("OPENAI_PROJECT_ID") {
        builder = builder.project(id);
    }
    Some(builder.build())
}

fn anthropic(var: impl Fn(&str) -> Option<String>) -> Option<Result<Anthropic, Error>> {
    let mut builder = Anthropic::builder(var("ANTHROPIC_API_KEY")?);
    if let Some(url) = var("ANTHROPIC_BASE_URL") {
        builder = builder.base_url(url);
    }
    Some(builder.build())
}

fn gemini(var: impl Fn(&str) -> Option<String>) -> Option<Result<Gemini, Error>> {
    let mut builder = Gemini::builder(var("GEMINI_API_KEY").or_else(|| var("GOOGLE_API_KEY"))?);
    if let Some(url) = var("GEMINI_BASE_URL") {
        builder = builder.base_url(url);
    }
    Some(builder.build())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(variables: &[(&str, &str)]) -> Result<Client, Error> {
        Client::from_vars(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn providers_with_a_key_are_registered_in_order() {
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
        let cases: &[Case<'_>] = &[
            (&[("OPENAI_API_KEY", "k")], &["openai"]),
            (
                &[("GEMINI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k")],
                &["openai", "anthropic", "gemini"],
            ),
            (&[("GOOGLE_API_KEY", "k"), ("OPENAI_API_KEY", "")], &["gemini"]),
            (&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")], &["anthropic"]),
        ];
        for (variables, expected) in cases {
            let client = client(variables).unwrap();
            assert_eq!(client.providers().collect::<Vec<_>>(), *expected, "{variables:?}");
            assert_eq!(client.default_provider(), expected.first().copied());
        }
    }

    #[test]
    fn missing_and_invalid_variables_are_errors() {
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
