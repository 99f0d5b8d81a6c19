//! Which model is asked, and how it is reached: flags and environment turned into one decision.

use std::fmt;
use std::path::PathBuf;

use pintle_llm::{Client, Error, Middleware};
use pintle_providers::{AdapterBuilder, Anthropic, Gemini, OpenAi, OpenAiCompatible};

use crate::args::{ModelArgs, ProviderName};
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::provider::Provider;

/// Where answers come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelSource {
    /// A provider.
    Provider(Route),
    /// A script, served in this process.
    Script {
        /// The script.
        file: PathBuf,
        /// The wire dialect, if the command line names one.
        dialect: Option<Provider>,
        /// The model, if the command line names one.
        model: Option<String>,
    },
}

/// The way to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Whose model.
    pub(crate) provider: Provider,
    /// Which one.
    pub(crate) model: String,
    /// The provider's own if `None`.
    pub(crate) base_url: Option<BaseUrl>,
    /// A server of one's own may want none.
    pub(crate) key: Option<Key>,
    /// OpenAI's, where a key belongs to several.
    pub(crate) organization: Option<String>,
    /// OpenAI's, likewise.
    pub(crate) project: Option<String>,
}

/// Where an API is, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseUrl {
    url: String,
    /// The flag or the variable.
    pub(crate) given_by: &'static str,
}

/// A key, and the variable that holds it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key {
    secret: String,
    /// The variable.
    pub(crate) variable: &'static str,
}

impl ModelSource {
    /// Decides from the flags and the environment, which `lookup` reads; an empty variable is an unset one there.
    ///
    /// # Errors
    ///
    /// A usage failure for flags that do not go together, an authentication failure without a key.
    pub(crate) fn choose(args: &ModelArgs, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        if args.provider == Some(ProviderName::Scripted) {
            return scripted(args);
        }
        for (flag, given) in [("--script", args.script.is_some()), ("--dialect", args.dialect.is_some())] {
            if given {
                return Err(Failure::usage(format!("{flag} goes with --provider scripted only")));
            }
        }
        let provider = provider(args, &lookup)?;
        Ok(Self::Provider(Route {
            provider,
            model: model(provider, args.model.as_deref())?,
            base_url: base_url(provider, args, &lookup)?,
            key: key(provider, &lookup)?,
            organization: lookup("OPENAI_ORG_ID").filter(|_| provider == Provider::OpenAi),
            project: lookup("OPENAI_PROJECT_ID").filter(|_| provider == Provider::OpenAi),
        }))
    }
}

impl Route {
    /// To a scripted server, which takes any key.
    pub(crate) fn to_script(provider: Provider, model: String, url: String) -> Self {
        Self {
            provider,
            model,
            base_url: Some(BaseUrl { url, given_by: "--script" }),
            key: Some(Key { secret: "scripted".to_owned(), variable: "--script" }),
            organization: None,
            project: None,
        }
    }

    /// A client with this one provider, and a layer around it. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// A usage failure for a base URL that is none.
    pub(crate) fn client(&self, layer: impl Middleware + 'static) -> Result<Client, Failure> {
        self.assemble(layer).map_err(|error| {
            let source = self.base_url.as_ref().map_or("the command line", |base_url| base_url.given_by);
            Failure::usage(format!("{source}: {}", chain(&error)))
        })
    }

    fn assemble(&self, layer: impl Middleware + 'static) -> Result<Client, Error> {
        let key = self.key.as_ref().map_or("", |key| key.secret.as_str());
        let url = self.base_url.as_ref().map(|base_url| base_url.url.as_str());
        let client = Client::builder().middleware(layer).default_provider(self.provider.dialect().name());
        match self.provider {
            Provider::OpenAi => {
                let mut adapter = at(OpenAi::builder(key), url);
                if let Some(id) = &self.organization {
                    adapter = adapter.organization(id);
                }
                if let Some(id) = &self.project {
                    adapter = adapter.project(id);
                }
                client.provider(adapter.build()?)
            }
            Provider::Anthropic => client.provider(at(Anthropic::builder(key), url).build()?),
            Provider::Gemini => client.provider(at(Gemini::builder(key), url).build()?),
            Provider::OpenAiCompatible => {
                client.provider(OpenAiCompatible::builder(url.unwrap_or_default()).api_key(key).build()?)
            }
        }
        .build()
    }
}

impl BaseUrl {
    /// The URL without what may be secret: user and password, and the query.
    pub(crate) fn shown(&self) -> String {
        let url = self.url.split(['?', '#']).next().unwrap_or_default();
        let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
        let (authority, path) =
            rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or((rest, ""));
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{host}{path}")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("variable", &self.variable).finish_non_exhaustive()
    }
}

/// The builder with this base URL, or with its own.
fn at<A>(builder: AdapterBuilder<A>, url: Option<&str>) -> AdapterBuilder<A> {
    match url {
        Some(url) => builder.base_url(url),
        None => builder,
    }
}

fn scripted(args: &ModelArgs) -> Result<ModelSource, Failure> {
    if args.base_url.is_some() {
        return Err(Failure::usage("--base-url does not go with --provider scripted, which serves itself"));
    }
    let file =
        args.script.clone().ok_or_else(|| Failure::usage("--provider scripted needs --script FILE"))?;
    Ok(ModelSource::Script { file, dialect: args.dialect, model: args.model.clone() })
}

fn provider(args: &ModelArgs, lookup: impl Fn(&str) -> Option<String>) -> Result<Provider, Failure> {
    if let Some(ProviderName::Of(provider)) = args.provider {
        return Ok(provider);
    }
    if let Some(provider) = Provider::by_key(&lookup) {
        return Ok(provider);
    }
    let compatible = Provider::OpenAiCompatible;
    if args.base_url.is_some() || lookup(compatible.variables().base_url).is_some() {
        return Ok(compatible);
    }
    let advice = "set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, \
                  or use a local server with --provider openai-compatible \
                  --base-url http://127.0.0.1:8080/v1 --model NAME, \
                  or try `pintle demo`, which needs neither";
    Err(Failure::new(Exit::Authentication, "there is no key for a model").advise(advice))
}

fn model(provider: Provider, named: Option<&str>) -> Result<String, Failure> {
    let model = named.or_else(|| provider.default_model());
    model.map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("{} has no default model", provider.name())).advise("name one with --model")
    })
}

fn base_url(
    provider: Provider,
    args: &ModelArgs,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Option<BaseUrl>, Failure> {
    if let Some(url) = &args.base_url {
        return Ok(Some(BaseUrl { url: url.clone(), given_by: "--base-url" }));
    }
    let variable = provider.variables().base_url;
    match lookup(variable) {
        Some(url) => Ok(Some(BaseUrl { url, given_by: variable })),
        None if provider == Provider::OpenAiCompatible => Err(Failure::usage(format!(
            "{} needs --base-url or {variable}, such as http://127.0.0.1:8080/v1",
            provider.name()
        ))),
        None => Ok(None),
    }
}

fn key(provider: Provider, lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Key>, Failure> {
    let names = provider.variables().keys;
    let key = names.iter().find_map(|variable| Some(Key { secret: lookup(variable)?, variable }));
    match key {
        Some(key) if !key.secret.bytes().all(|byte| byte.is_ascii_graphic()) => Err(Failure::new(
            Exit::Authentication,
            format!(
                "the key in {} holds a space, a line break or another character that no key has",
                key.variable
            ),
        )
        .advise("set it again")),
        Some(key) => Ok(Some(key)),
        None if provider == Provider::OpenAiCompatible => Ok(None),
        None => Err(Failure::new(Exit::Authentication, format!("there is no key for {}", provider.name()))
            .advise(&format!("set {}", names.join(" or ")))
            .advise("`pintle demo` needs none")),
    }
}

#[cfg(test)]
mod tests;
