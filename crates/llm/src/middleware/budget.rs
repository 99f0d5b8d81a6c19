//! A limit on what calls may cost in all.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::catalog::Catalog;
use crate::error::{Error, ErrorKind};
use crate::middleware::follow::{End, Follower, follow};
use crate::middleware::{Middleware, Mode, Next, Reply, estimate};
use crate::request::Request;
use crate::stream::StreamEvent;
use crate::usage::Usage;

/// Counts tokens and dollars, and refuses calls once a limit is reached.
///
/// A call is refused before anything is sent, with [`ErrorKind::QuotaExceeded`] and the code
/// [`Budget::SPENT`]. What a call will cost is known when it ends. Calls that are on their way when the limit is reached
/// run to their end, so that a budget can be exceeded by what is in flight: by one call, or by as many as run at once.
/// Layers inside this one that wait count as on their way. Without any limit it only counts.
///
/// Dollars follow from a [`Catalog`]. A model without a price there is refused under a cost limit, with
/// [`ErrorKind::Configuration`] and the code [`Budget::UNPRICED`], since the limit could not hold; with
/// [`UnknownPrice::Uncounted`] it is let through, and [`Spent::unpriced_calls`] says that the cost is a lower bound.
/// Where only the price of cached tokens is unknown, they cost what the rest of the prompt costs.
///
/// A call whose end nobody saw (a stream that broke or was dropped, a time-out) is charged by estimate: a quarter of a
/// token per byte of the prompt and of what had come. So is an answer without a usage. A refusal costs nothing, and
/// neither does a connection that was never made or that broke before an answer began.
///
/// Clones share what is spent. Layers outside this one that answer by themselves, such as a cache, cost nothing.
///
/// ```
/// # use pintle_llm::{Client, Error, ErrorKind, Message, Request};
#[doc = include_str!("echo.txt")]
/// use pintle_llm::Budget;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let budget = Budget::builder().max_tokens(2_000).max_dollars(0.50).build()?;
/// let client = Client::builder().provider(Echo).middleware(budget.clone()).build()?;
/// let request = Request::new("gpt-5.2", [Message::user("hello")]);
/// client.complete(request.clone()).await?; // 1,200 tokens
/// client.complete(request.clone()).await?; // and as many again
/// let refused = client.complete(request).await.unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::QuotaExceeded);
/// assert_eq!(budget.spent().usage.total_tokens, 2_400);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Budget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    max_tokens: Option<u64>,
    max_dollars: Option<f64>,
    unknown_price: UnknownPrice,
    /// The shipped one if `None`.
    catalog: Option<Catalog>,
    spent: Mutex<Spent>,
}

/// Collects the limits of a [`Budget`].
#[derive(Clone, Debug)]
#[must_use]
pub struct BudgetBuilder {
    max_tokens: Option<u64>,
    max_dollars: Option<f64>,
    unknown_price: UnknownPrice,
    catalog: Option<Catalog>,
}

/// What a cost limit does with a model that has no price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownPrice {
    /// The call is refused.
    #[default]
    Refused,
    /// The call is made, its tokens count, its cost does not.
    Uncounted,
}

/// What has been spent.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Spent {
    /// Calls that were sent and not refused by the provider.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their cost in US dollars, as far as prices are known.
    pub dollars: f64,
    /// Those of the calls whose tokens are an estimate.
    pub estimated_calls: u64,
    /// Those of the calls that are missing in `dollars`, because a price is not known.
    pub unpriced_calls: u64,
}

impl Budget {
    /// The [`error_code`](Error::error_code) of a call that is refused because a limit is reached.
    pub const SPENT: &str = "budget_spent";

    /// The [`error_code`](Error::error_code) of a call that is refused because its price is not known.
    pub const UNPRICED: &str = "price_unknown";

    /// Begins a budget without limits.
    pub fn builder() -> BudgetBuilder {
        BudgetBuilder {
            max_tokens: None,
            max_dollars: None,
            unknown_price: UnknownPrice::default(),
            catalog: None,
        }
    }

    /// What has been spent so far.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.lock().clone()
    }

    /// Begins anew, as at the turn of a month, and returns what had been spent.
    pub fn reset(&self) -> Spent {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.inner.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, provider: &str, model: &str) -> Result<(), Error> {
        let refuse = |kind, code: &str, message| {
            Err(Error::new(kind, message).with_provider(provider).with_error_code(code))
        };
        let spent = self.lock();
        if let Some(limit) = self.inner.max_tokens
            && spent.usage.total_tokens >= limit
        {
            let message = format!("{} tokens are spent of a budget of {limit}", spent.usage.total_tokens);
            return refuse(ErrorKind::QuotaExceeded, Self::SPENT, message);
        }
        let Some(limit) = self.inner.max_dollars else { return Ok(()) };
        if spent.dollars >= limit {
            let message = format!("{:.4} dollars are spent of a budget of {limit}", spent.dollars);
            return refuse(ErrorKind::QuotaExceeded, Self::SPENT, message);
        }
        let priced = || self.price(provider, model, &Usage::new(1, 1)).is_some();
        if self.inner.unknown_price == UnknownPrice::Refused && !priced() {
            let message = format!(
                "the catalog has no price for `{model}`, which a cost budget needs; add one or count such calls as free"
            );
            return refuse(ErrorKind::Configuration, Self::UNPRICED, message);
        }
        Ok(())
    }

    fn price(&self, provider: &str, model: &str, usage: &Usage) -> Option<f64> {
        let catalog = self.inner.catalog.as_ref().unwrap_or_else(|| Catalog::built_in());
        let model = catalog.find(provider, model)?;
        model.cost(usage).or_else(|| model.cost(&without_cache(usage)))
    }

    fn charge(&self, call: &Call, usage: &Usage, estimated: bool) {
        let price = self.price(&call.provider, &call.model, usage);
        let mut spent = self.lock();
        spent.calls += 1;
        spent.usage += usage;
        spent.dollars += price.unwrap_or(0.0);
        spent.unpriced_calls += u64::from(price.is_none());
        spent.estimated_calls += u64::from(estimated);
    }
}

impl BudgetBuilder {
    /// The most tokens, of prompts and answers together as the providers count them; 1 at least. Default: no limit.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// The most US dollars; more than 0 and finite. Default: no limit.
    pub fn max_dollars(mut self, dollars: f64) -> Self {
        self.max_dollars = Some(dollars);
        self
    }

    /// What a cost limit does with a model that has no price. Default [`UnknownPrice::Refused`].
    pub fn unknown_price(mut self, treatment: UnknownPrice) -> Self {
        self.unknown_price = treatment;
        self
    }

    /// Where prices stand. Default [`Catalog::built_in`].
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = Some(catalog);
        self
    }

    /// The budget, with nothing spent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] for a limit outside its range.
    pub fn build(self) -> Result<Budget, Error> {
        let wrong = |found: String| Err(Error::new(ErrorKind::Configuration, format!("a budget of {found}")));
        if self.max_tokens == Some(0) {
            return wrong("0 tokens allows no call; expected 1 at least".to_owned());
        }
        if let Some(dollars) = self.max_dollars.filter(|dollars| !(dollars.is_finite() && *dollars > 0.0)) {
            return wrong(format!("{dollars} dollars is none; expected a finite number above 0"));
        }
        let Self { max_tokens, max_dollars, unknown_price, catalog } = self;
        let spent = Mutex::default();
        Ok(Budget { inner: Arc::new(Inner { max_tokens, max_dollars, unknown_price, catalog, spent }) })
    }
}

#[async_trait]
impl Middleware for Budget {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        self.admit(next.provider(), &request.model)?;
        let call = Call {
            budget: self.clone(),
            provider: next.provider().to_owned(),
            model: request.model.clone(),
            prompt: estimate::prompt(&request),
            answered: 0,
        };
        follow(next.run(request, mode), call).await
    }
}

/// A call that has been sent and not been charged yet.
struct Call {
    budget: Budget,
    provider: String,
    model: String,
    /// The tokens of the prompt, by estimate.
    prompt: u64,
    /// The bytes of text that have come.
    answered: usize,
}

impl Call {
    fn charge_estimate(&self) {
        let usage = Usage::new(self.prompt, estimate::tokens(self.answered));
        self.budget.charge(self, &usage, true);
    }
}

impl Follower for Call {
    fn event(&mut self, event: &StreamEvent) {
        self.answered = self.answered.saturating_add(estimate::text_of(event));
    }

    fn end(&mut self, end: End<'_>) {
        match end {
            End::Answered(response) => {
                let mut usage = response.usage.clone();
                if usage.total_tokens == 0 {
                    usage.total_tokens = usage.input_tokens.saturating_add(usage.output_tokens);
                }
                if usage.total_tokens == 0 {
                    self.answered = self.answered.max(estimate::text_in(&response.message));
                    return self.charge_estimate();
                }
                self.budget.charge(self, &usage, false);
            }
            End::Failed(error) if costs_nothing(error) && self.answered == 0 => {}
            End::Failed(_) | End::Cut | End::Dropped => self.charge_estimate(),
        }
    }
}

/// The same tokens without telling which of the input were cached.
fn without_cache(usage: &Usage) -> Usage {
    Usage { cache_read_tokens: None, cache_write_tokens: None, ..usage.clone() }
}

/// Whether the provider has not worked for this call: it refused, or was never reached.
pub(super) fn costs_nothing(error: &Error) -> bool {
    let unfinished = matches!(error.kind(), ErrorKind::RequestTimeout | ErrorKind::Stream | ErrorKind::Abort);
    error.status().is_some_and(|status| status >= 400) || !unfinished
}
