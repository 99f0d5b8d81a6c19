//! Check of model names against a catalog.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use pintle_llm::{Catalog, Error, ErrorKind, Middleware, Mode, ModelInfo, Next, Reply, Request};

/// Middleware that checks the model of each request against a [`Catalog`] before the request is sent.
///
/// The model must be listed for the provider that the request is routed to, by id or by alias. A provider without any
/// model in the catalog is not checked: a local server, for instance, has other names. The message suggests the
/// most similar model of the provider if there is one with a similarity above 0.8, and lists the provider's models
/// otherwise.
///
/// ```
/// # use pintle_llm::{Client, Error, ErrorKind, Message, Request};
#[doc = include_str!("example_adapter.txt")]
/// use pintle_middleware::KnownModels;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let client =
///     Client::builder().provider(Echo).default_provider("openai").middleware(KnownModels::new()).build()?;
/// let error = client.complete(Request::new("gtp-5.2", [Message::user("hello")])).await.unwrap_err();
/// assert_eq!((error.kind(), error.error_code()), (ErrorKind::NotFound, Some(KnownModels::UNKNOWN)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct KnownModels {
    /// The built-in catalog if `None`.
    catalog: Option<Arc<Catalog>>,
    unknown: UnknownModel,
}

/// Treatment of a model that the catalog does not list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownModel {
    /// Refuse the call.
    #[default]
    Refused,
    /// Log a warning and make the call.
    Warned,
}

/// Suggestions need a similarity above this.
const MIN_SIMILARITY: f64 = 0.8;

/// Number of models that a message lists.
const MAX_LISTED: usize = 12;

impl KnownModels {
    /// [`error_code`](Error::error_code) of a refused call.
    pub const UNKNOWN: &str = "unknown_model";

    /// Creates a layer that refuses models that [`Catalog::built_in`] does not list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this catalog.
    #[must_use]
    pub fn with_catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = Some(Arc::new(catalog));
        self
    }

    /// Sets the treatment of unknown models. Default [`UnknownModel::Refused`].
    #[must_use]
    pub fn with_unknown(mut self, treatment: UnknownModel) -> Self {
        self.unknown = treatment;
        self
    }

    /// Returns the reason to refuse this model, if any.
    fn problem(&self, provider: &str, model: &str) -> Option<String> {
        let catalog = self.catalog.as_deref().unwrap_or_else(|| Catalog::built_in());
        if catalog.find(provider, model).is_some() {
            return None;
        }
        let known: Vec<&ModelInfo> = catalog.list(Some(provider)).collect();
        if known.is_empty() {
            return None;
        }
        let hint = match most_similar(model, &known) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known models: {}", model_list(&known)),
        };
        Some(format!("unknown model `{model}`; {hint}"))
    }
}

#[async_trait]
impl Middleware for KnownModels {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        match (self.problem(next.provider(), &request.model), self.unknown) {
            (Some(problem), UnknownModel::Refused) => {
                let error = Error::new(ErrorKind::NotFound, problem).with_provider(next.provider());
                return Err(error.with_error_code(Self::UNKNOWN));
            }
            (Some(problem), UnknownModel::Warned) => {
                tracing::warn!(provider = next.provider(), model = request.model, "{problem}");
            }
            (None, _) => {}
        }
        next.run(request, mode).await
    }
}

/// The id or alias closest to `wanted`, if any is similar enough.
fn most_similar<'m>(wanted: &str, known: &[&'m ModelInfo]) -> Option<&'m str> {
    let wanted = wanted.to_ascii_lowercase();
    known
        .iter()
        .flat_map(|model| std::iter::once(&model.id).chain(&model.aliases))
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_ascii_lowercase()), name.as_str()))
        .filter(|(similarity, _)| *similarity > MIN_SIMILARITY)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

fn model_list(known: &[&ModelInfo]) -> String {
    let names: Vec<&str> = known.iter().take(MAX_LISTED).map(|model| model.id.as_str()).collect();
    let more = if known.len() > MAX_LISTED { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}
