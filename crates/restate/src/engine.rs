//! An engine, as programs talk to it.

use std::time::Duration;

use pintle_store::SessionId;
use pintle_workflow::Ending;
use pintle_workflow::contract::Contract;
use pintle_workflow::task::Decision;
use reqwest::{Client, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::object::{Begin, NAME, Said, Status, Steer};

/// Time limit of a request, but for one that waits for the end of a task.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest part of an answer that is shown in an error, in characters.
const MAX_SHOWN: usize = 300;

/// Error of a request to an engine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The address is none.
    #[error("`{0}` is no address of an engine; expected one such as `http://127.0.0.1:8080`")]
    Address(String),
    /// The engine was not reached, or did not answer.
    #[error("the engine did not answer")]
    Request(#[from] reqwest::Error),
    /// The engine has refused.
    #[error("the engine refused with {status}: {said}")]
    Refused {
        /// Status code of HTTP.
        status: u16,
        /// Its answer, cut.
        said: String,
    },
}

/// An engine, at the address where it takes invocations (Restate's ingress, port 8080 by default).
///
/// Requests are not encrypted; an engine elsewhere is reached through a tunnel.
#[derive(Clone, Debug)]
pub struct Engine {
    ingress: Url,
    client: Client,
}

impl Engine {
    /// Creates a client.
    ///
    /// # Errors
    ///
    /// [`EngineError::Address`] unless it begins with `http://` and has a host.
    pub fn new(ingress: &str) -> Result<Self, EngineError> {
        let client = Client::builder().no_proxy().build()?;
        Ok(Self { ingress: address(ingress)?, client })
    }

    /// Lets the engine keep a task going: a new one with this contract, or one that is in the store already. Asking twice begins
    /// it once.
    ///
    /// # Errors
    ///
    /// [`EngineError`].
    pub async fn begin(&self, id: &SessionId, contract: Option<Contract>) -> Result<(), EngineError> {
        self.post(id, "run/send", &Begin { contract }, Some(PATIENCE))
            .await
            .map(|_: serde::de::IgnoredAny| ())
    }

    /// As [`begin`](Self::begin), and waits for the end. Returns `None` if the engine has gone on in a later invocation.
    ///
    /// # Errors
    ///
    /// [`EngineError`].
    pub async fn run(
        &self,
        id: &SessionId,
        contract: Option<Contract>,
    ) -> Result<Option<Ending>, EngineError> {
        self.post(id, "run", &Begin { contract }, None).await
    }

    /// Says something to a candidate, or to all of them.
    ///
    /// # Errors
    ///
    /// [`EngineError::Refused`] with 404 and 409, and the like.
    pub async fn steer(
        &self,
        id: &SessionId,
        candidate: Option<usize>,
        text: &str,
    ) -> Result<(), EngineError> {
        self.tell(id, "steer", &Steer { candidate, text: text.to_owned() }).await
    }

    /// Answers a task that waits for a person.
    ///
    /// # Errors
    ///
    /// As for [`steer`](Self::steer).
    pub async fn decide(&self, id: &SessionId, decision: &Decision) -> Result<(), EngineError> {
        self.tell(id, "decide", decision).await
    }

    /// Ends a task for good.
    ///
    /// # Errors
    ///
    /// As for [`steer`](Self::steer).
    pub async fn cancel(&self, id: &SessionId, reason: &str) -> Result<(), EngineError> {
        self.tell(id, "cancel", &Said { reason: reason.to_owned() }).await
    }

    /// Lets a run that waits for people look now, after something was posted to the store itself.
    ///
    /// # Errors
    ///
    /// As for [`steer`](Self::steer).
    pub async fn wake(&self, id: &SessionId) -> Result<(), EngineError> {
        self.answer(self.client.post(self.url(id, "wake")).timeout(PATIENCE)).await.map(|_| ())
    }

    /// Returns where a task is.
    ///
    /// # Errors
    ///
    /// As for [`steer`](Self::steer).
    pub async fn status(&self, id: &SessionId) -> Result<Status, EngineError> {
        let answer = self.answer(self.client.post(self.url(id, "status")).timeout(PATIENCE)).await?;
        Ok(answer.json().await?)
    }

    /// Tells an engine, at its admin address (port 9070 by default), where a worker is. A worker that is known already is looked
    /// at again.
    ///
    /// # Errors
    ///
    /// [`EngineError`]; the engine has to reach the worker.
    pub async fn register(admin: &str, worker: &str) -> Result<(), EngineError> {
        #[derive(Serialize)]
        struct Deployment<'a> {
            uri: &'a str,
            force: bool,
        }
        let mut url = address(admin)?;
        url.set_path("/deployments");
        let client = Client::builder().no_proxy().build()?;
        let request = client.post(url).json(&Deployment { uri: worker, force: true }).timeout(PATIENCE);
        answered(request.send().await?).await.map(|_| ())
    }

    async fn tell(&self, id: &SessionId, handler: &str, said: &impl Serialize) -> Result<(), EngineError> {
        let request = self.client.post(self.url(id, handler)).json(said).timeout(PATIENCE);
        self.answer(request).await.map(|_| ())
    }

    async fn post<T: DeserializeOwned>(
        &self,
        id: &SessionId,
        handler: &str,
        said: &impl Serialize,
        limit: Option<Duration>,
    ) -> Result<T, EngineError> {
        let mut request = self.client.post(self.url(id, handler)).json(said);
        if let Some(limit) = limit {
            request = request.timeout(limit);
        }
        Ok(self.answer(request).await?.json().await?)
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, EngineError> {
        answered(request.send().await?).await
    }

    fn url(&self, id: &SessionId, handler: &str) -> Url {
        let mut url = self.ingress.clone();
        url.set_path(&format!("/{NAME}/{id}/{handler}"));
        url
    }
}

async fn answered(response: reqwest::Response) -> Result<reqwest::Response, EngineError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let said = response.text().await.unwrap_or_default().chars().take(MAX_SHOWN).collect();
    Err(EngineError::Refused { status: status.as_u16(), said })
}

fn address(text: &str) -> Result<Url, EngineError> {
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "http" && url.has_host());
    url.ok_or_else(|| EngineError::Address(text.to_owned()))
}
