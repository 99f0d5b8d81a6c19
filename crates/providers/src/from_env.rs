//! Clients from environment variables (client specification, section 2.2).

use pintle_llm::{Client, ClientBuilder, Error, ErrorKind, ProviderAdapter};

#[cfg(feature = "anthropic")]
use crate::Anthropic;
#[cfg(feature = "gemini")]
use crate::Gemini;
#[cfg(feature = "openai")]
use crate::OpenAi;

/// A provider with standard variables.
#[derive(Clone, Copy, Debug)]
struct StandardProvider {
    /// Name of the provider and of its feature.
    name: &'static str,
    /// Variables of its key; the first one is used in messages.
    keys: &'static [&'static str],
    /// Whether the adapter is compiled in.
    is_enabled: bool,
}

const PROVIDERS: [StandardProvider; 3] = [
    StandardProvider { name: "openai", keys: &["OPENAI_API_KEY"], is_enabled: cfg!(feature = "openai") },
    StandardProvider {
        name: "anthropic",
        keys: &["ANTHROPIC_API_KEY"],
        is_enabled: cfg!(feature = "anthropic"),
    },
    StandardProvider {
        name: "gemini",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        is_enabled: cfg!(feature = "gemini"),
    },
];

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
///
/// A key of a provider whose feature is disabled is ignored if another provider has a key; otherwise the error names the
/// feature.
pub trait FromEnv: Sized {
    /// Reads the variables through `lookup`, which returns the value of a variable or `None`: from a secret store, a
    /// configuration file or a test, without touching the environment of the process.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if no enabled provider has a key, or if the value of a variable is invalid.
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
        let builder = Client::builder();
        #[cfg(feature = "openai")]
        let builder = register(builder, openai(var).transpose()?);
        #[cfg(feature = "anthropic")]
        let builder = register(builder, anthropic(var).transpose()?);
        #[cfg(feature = "gemini")]
        let builder = register(builder, gemini(var).transpose()?);
        // Client specification, section 2.2: the first registered provider becomes the default.
        let first = builder.providers().next().map(str::to_owned);
        match first {
            Some(first) => Ok(builder.default_provider(first)),
            None => Err(Error::new(ErrorKind::Configuration, no_key(&PROVIDERS, |name| var(name).is_some()))),
        }
    }
}

fn register(builder: ClientBuilder, provider: Option<impl ProviderAdapter + 'static>) -> ClientBuilder {
    match provider {
        Some(provider) => builder.provider(provider),
        None => builder,
    }
}

/// Returns the message for an environment in which no enabled provider has a key.
fn no_key(providers: &[StandardProvider], is_set: impl Fn(&str) -> bool) -> String {
    let disabled = providers.iter().filter(|provider| !provider.is_enabled);
    let set = |provider: &StandardProvider| provider.keys.iter().copied().find(|key| is_set(key));
    if let Some((key, name)) = disabled.clone().find_map(|provider| Some((set(provider)?, provider.name))) {
        return format!(
            "{key} is set, but the provider `{name}` is not compiled in; enable the feature `{name}` of the crate \
             `pintle` or `pintle-providers`"
        );
    }
    let keys = providers.iter().filter(|provider| provider.is_enabled);
    let keys: Vec<&str> = keys.filter_map(|provider| provider.keys.first().copied()).collect();
    if keys.is_empty() {
        let names: Vec<String> = disabled.map(|provider| format!("`{}`", provider.name)).collect();
        return format!(
            "no provider that reads its key from the environment is compiled in; enable the feature {} of the crate \
             `pintle` or `pintle-providers`",
            alternatives(&names)
        );
    }
    format!("no API key in the environment; set {}", alternatives(&keys))
}

/// Joins words as in `a, b or c`.
fn alternatives(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(feature = "openai")]
fn openai(var: impl Fn(&str) -> Option<String>) -> Option<Result<OpenAi, Error>> {
    let mut builder = OpenAi::builder(var("OPENAI_API_KEY")?);
    if let Some(url) = var("OPENAI_BASE_URL") {
        builder = builder.with_base_url(url);
    }
    if let Some(id) = var("OPENAI_ORG_ID") {
        builder = builder.with_organization(id);
    }
    if let Some(id) = var("OPENAI_PROJECT_ID") {
        builder = builder.with_project(id);
    }
    Some(builder.build())
}

#[cfg(feature = "anthropic")]
fn anthropic(var: impl Fn(&str) -> Option<String>) -> Option<Result<Anthropic, Error>> {
    let mut builder = Anthropic::builder(var("ANTHROPIC_API_KEY")?);
    if let Some(url) = var("ANTHROPIC_BASE_URL") {
        builder = builder.with_base_url(url);
    }
    Some(builder.build())
}

#[cfg(feature = "gemini")]
fn gemini(var: impl Fn(&str) -> Option<String>) -> Option<Result<Gemini, Error>> {
    let mut builder = Gemini::builder(var("GEMINI_API_KEY").or_else(|| var("GOOGLE_API_KEY"))?);
    if let Some(url) = var("GEMINI_BASE_URL") {
        builder = builder.with_base_url(url);
    }
    Some(builder.build())
}

#[cfg(test)]
#[cfg(all(feature = "anthropic", feature = "gemini", feature = "openai"))]
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
        assert_eq!(
            error.message(),
            "no API key in the environment; set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY"
        );
        let error =
            client(&[("OPENAI_API_KEY", "secret-value"), ("OPENAI_BASE_URL", "nonsense")]).unwrap_err();
        assert_eq!((error.kind(), error.provider()), (ErrorKind::Configuration, Some("openai")));
        let error = client(&[("GEMINI_API_KEY", "secret value")]).unwrap_err();
        assert!(!format!("{error:?}").contains("secret value"), "{error:?}");
    }

    #[test]
    fn a_disabled_provider_is_an_error_that_names_its_feature() {
        let message = |enabled: &[&str], key: &str| {
            let providers = PROVIDERS.map(|provider| StandardProvider {
                is_enabled: enabled.contains(&provider.name),
                ..provider
            });
            no_key(&providers, |name| name == key)
        };
        assert_eq!(
            message(&["openai"], "GOOGLE_API_KEY"),
            "GOOGLE_API_KEY is set, but the provider `gemini` is not compiled in; enable the feature `gemini` of the \
             crate `pintle` or `pintle-providers`"
        );
        assert_eq!(message(&["anthropic"], ""), "no API key in the environment; set ANTHROPIC_API_KEY");
        assert_eq!(
            message(&["openai", "gemini"], ""),
            "no API key in the environment; set OPENAI_API_KEY or GEMINI_API_KEY"
        );
        assert_eq!(
            message(&[], ""),
            "no provider that reads its key from the environment is compiled in; enable the feature `openai`, \
             `anthropic` or `gemini` of the crate `pintle` or `pintle-providers`"
        );
    }
}
