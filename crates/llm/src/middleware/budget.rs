//! Limits on the total tokens and cost of calls.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::catalog::Catalog;
use crate::error::{Error, ErrorKind};
use crate::estimate;
use crate::middleware::{CallEnd, CallObserver, Middleware, Mode, Next, Reply, observe};
use crate::money::Money;
use crate::request::Request;
use crate::stream::StreamEvent;
use crate::usage::Usage;

/// Middleware that counts the tokens and the cost of a client and refuses calls once a limit is reached.
///
/// A refused call fails before anything is sent, with [`ErrorKind::QuotaExceeded`] and the code [`Budget::SPENT`].
/// The cost of a call is known only when it ends. Calls in flight when the limit is reached run to completion, so a
/// budget can be exceeded by the calls in flight, including those that wait in an inner layer. Without limits it only
/// counts.
///
/// Prices come from a [`Catalog`]. Under a cost limit a model without a price is refused with
/// [`ErrorKind::Configuration`] and the code [`Budget::UNPRICED`], since the limit could not be enforced. With
/// [`UnknownPrice::Uncounted`] the call is made, and [`BudgetTotals::unpriced_calls`] shows that the cost is a lower bound.
/// If only the price of cached tokens is unknown, they are charged like the rest of the prompt.
///
/// A call without a usage report (a broken or dropped stream, a time-out, a response without usage) is charged by
/// estimate: a quarter of a token per byte of the prompt and of the text received. An error response costs nothing,
/// and neither does a connection that failed before the response started.
///
/// Clones share their counters. Outer layers that respond without a call, such as a cache, cost nothing.
///
/// ```
/// # use pintle_llm::{Client, Error, ErrorKind, Message, Request};
#[doc = include_str!("example_adapter.txt")]
/// use pintle_llm::{Budget, Money};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let budget = Budget::builder().with_max_tokens(2_000).with_max_cost(Money::from_dollars(0.50)).build()?;
/// let client = Client::builder().provider(Echo).default_provider("openai").middleware(budget.clone()).build()?;
/// let request = Request::new("gpt-5.2", [Message::user("hello")]);
/// client.complete(request.clone()).await?; // 1,200 tokens
/// client.complete(request.clone()).await?; // 2,400 tokens
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
    max_cost: Option<Money>,
    unknown_price: UnknownPrice,
    /// The shipped one if `None`.
    catalog: Option<Catalog>,
    spent: Mutex<BudgetTotals>,
}

/// Builder for a [`Budget`].
#[derive(Clone, Debug)]
#[must_use]
pub struct BudgetBuilder {
    max_tokens: Option<u64>,
    max_cost: Option<Money>,
    unknown_price: UnknownPrice,
    catalog: Option<Catalog>,
}

/// Treatment of models without a price under a cost limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownPrice {
    /// Refuse the call.
    #[default]
    Refused,
    /// Make the call and count its tokens but not its cost.
    Uncounted,
}

/// Totals of a [`Budget`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BudgetTotals {
    /// Calls that were sent and not refused by the provider.
    pub calls: u64,
    /// Tokens of these calls.
    pub usage: Usage,
    /// Cost of these calls, where prices are known.
    pub cost: Money,
    /// Number of calls whose tokens are an estimate.
    pub estimated_calls: u64,
    /// Number of calls not included in `cost` because a price is unknown.
    pub unpriced_calls: u64,
}

impl Budget {
    /// [`error_code`](Error::error_code) of a call refused because a limit was reached.
    pub const SPENT: &str = "budget_spent";

    /// [`error_code`](Error::error_code) of a call refused because its price is unknown.
    pub const UNPRICED: &str = "price_unknown";

    /// Starts a budget without limits.
    pub fn builder() -> BudgetBuilder {
        BudgetBuilder {
            max_tokens: None,
            max_cost: None,
            unknown_price: UnknownPrice::default(),
            catalog: None,
        }
    }

    /// Returns the totals so far.
    #[must_use]
    pub fn spent(&self) -> BudgetTotals {
        self.lock().clone()
    }

    /// Resets the totals, for example once a month, and returns the previous ones.
    pub fn reset(&self) -> BudgetTotals {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BudgetTotals> {
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
            let message = format!("spent {} of {limit} tokens", spent.usage.total_tokens);
            return refuse(ErrorKind::QuotaExceeded, Self::SPENT, message);
        }
        let Some(limit) = self.inner.max_cost else { return Ok(()) };
        if spent.cost >= limit {
            let message = format!("spent {} of {limit}", spent.cost);
            return refuse(ErrorKind::QuotaExceeded, Self::SPENT, message);
        }
        let priced = || self.price(provider, model, &Usage::new(1, 1)).is_some();
        if self.inner.unknown_price == UnknownPrice::Refused && !priced() {
            let message = format!(
                "the catalog has no price for `{model}`, which a cost limit requires; add one or allow uncounted calls"
            );
            return refuse(ErrorKind::Configuration, Self::UNPRICED, message);
        }
        Ok(())
    }

    fn price(&self, provider: &str, model: &str, usage: &Usage) -> Option<Money> {
        let catalog = self.inner.catalog.as_ref().unwrap_or_else(|| Catalog::built_in());
        let model = catalog.find(provider, model)?;
        model.cost(usage).or_else(|| model.cost(&without_cache(usage)))
    }

    fn charge(&self, call: &ChargedCall, usage: &Usage, estimated: bool) {
        let price = self.price(&call.provider, &call.model, usage);
        let mut spent = self.lock();
        spent.calls += 1;
        spent.usage += usage;
        spent.cost += price.unwrap_or_default();
        spent.unpriced_calls += u64::from(price.is_none());
        spent.estimated_calls += u64::from(estimated);
    }
}

impl BudgetBuilder {
    /// Limits the total tokens of prompts and responses, as counted by the providers; at least 1. Default: no limit.
    pub fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Limits the total cost; above 0. Default: no limit.
    pub fn with_max_cost(mut self, cost: Money) -> Self {
        self.max_cost = Some(cost);
        self
    }

    /// Sets the treatment of models without a price. Default [`UnknownPrice::Refused`].
    pub fn with_unknown_price(mut self, treatment: UnknownPrice) -> Self {
        self.unknown_price = treatment;
        self
    }

    /// Sets the source of prices. Default [`Catalog::built_in`].
    pub fn with_catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = Some(catalog);
        self
    }

    /// Builds the budget, with nothing spent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] for a limit outside its range.
    pub fn build(self) -> Result<Budget, Error> {
        let invalid =
            |why: String| Err(Error::new(ErrorKind::Configuration, format!("invalid budget: {why}")));
        if self.max_tokens == Some(0) {
            return invalid("a limit of 0 tokens; expected at least 1".to_owned());
        }
        if self.max_cost == Some(Money::ZERO) {
            return invalid("a limit of 0 dollars; expected a cost above 0".to_owned());
        }
        let Self { max_tokens, max_cost, unknown_price, catalog } = self;
        let spent = Mutex::default();
        Ok(Budget { inner: Arc::new(Inner { max_tokens, max_cost, unknown_price, catalog, spent }) })
    }
}

#[async_trait]
impl Middleware for Budget {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        self.admit(next.provider(), &request.model)?;
        let call = ChargedCall {
            budget: self.clone(),
            provider: next.provider().to_owned(),
            model: request.model.clone(),
            prompt_tokens: estimate::prompt_tokens(&request),
            received_bytes: 0,
        };
        observe(next.run(request, mode), call).await
    }
}

/// A call in flight, to be charged when it ends.
struct ChargedCall {
    budget: Budget,
    provider: String,
    model: String,
    /// Estimate.
    prompt_tokens: u64,
    received_bytes: usize,
}

impl ChargedCall {
    fn charge_estimate(&self) {
        let usage = Usage::new(self.prompt_tokens, estimate::tokens(self.received_bytes));
        self.budget.charge(self, &usage, true);
    }
}

impl CallObserver for ChargedCall {
    fn on_event(&mut self, event: &StreamEvent) {
        self.received_bytes = self.received_bytes.saturating_add(estimate::event_bytes(event));
    }

    fn on_end(&mut self, end: CallEnd<'_>) {
        match end {
            CallEnd::Completed(response) => {
                let mut usage = response.usage.clone();
                if usage.total_tokens == 0 {
                    usage.total_tokens = usage.input_tokens.saturating_add(usage.output_tokens);
                }
                if usage.total_tokens == 0 {
                    self.received_bytes = self.received_bytes.max(estimate::message_bytes(&response.message));
                    return self.charge_estimate();
                }
                self.budget.charge(self, &usage, false);
            }
            CallEnd::Failed(error) if !error.may_be_billed() && self.received_bytes == 0 => {}
            CallEnd::Failed(_) | CallEnd::Truncated | CallEnd::Dropped => self.charge_estimate(),
        }
    }
}

/// The same token counts, with cached input counted as ordinary input.
fn without_cache(usage: &Usage) -> Usage {
    Usage { cache_read_tokens: None, cache_write_tokens: None, ..usage.clone() }
}
