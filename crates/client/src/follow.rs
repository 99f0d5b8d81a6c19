//! Follows a stream across lost connections.

use std::pin::Pin;
use std::time::Duration;

use eventsource_stream::Event;
use futures_util::{Stream, StreamExt as _};

use crate::error::ClientError;
use crate::messages::ServerMessages;
use crate::transport::{LONGEST_RETRY_AFTER, ServerRequest, Transport};

/// Lost connection that a stream is about to restore.
#[derive(Debug)]
#[non_exhaustive]
pub struct Disconnected {
    /// Reason why the connection was lost or could not be made.
    pub error: ClientError,
    /// Number of failures in a row, from 1.
    pub failures: u32,
    /// Time until the next attempt.
    pub delay: Duration,
}

/// Subject of a stream.
pub(crate) trait Subscription: Send + 'static {
    type Item: Send + 'static;

    /// Returns the request that continues the stream.
    fn request(&self, transport: &Transport) -> Result<ServerRequest, ClientError>;

    /// Returns the item of a message, if it has one. An error ends the connection.
    fn receive(&mut self, message: Event) -> Result<Option<Self::Item>, ClientError>;

    /// Returns whether no further item follows.
    fn has_ended(&self) -> bool {
        false
    }

    /// Returns the item that follows a reconnect.
    fn reconnect_item(&mut self) -> Option<Self::Item> {
        None
    }

    /// Returns the item of a lost connection.
    fn disconnect_item(disconnected: Disconnected) -> Self::Item;
}

pub(crate) type ItemStream<Item> = Pin<Box<dyn Stream<Item = Result<Item, ClientError>> + Send>>;

/// Returns the items of a subscription. The stream ends once its subject has ended or is deleted, and after an
/// error.
pub(crate) fn follow<S: Subscription>(transport: Transport, subscription: S) -> ItemStream<S::Item> {
    let state = FollowState::Waiting(Duration::ZERO);
    let follower = StreamFollower { transport, subscription, state, failures: 0, has_connected: false };
    let items = futures_util::stream::unfold(follower, |mut follower| async move {
        let item = follower.next().await?;
        Some((item, follower))
    });
    Box::pin(items.fuse())
}

struct StreamFollower<S> {
    transport: Transport,
    subscription: S,
    state: FollowState,
    /// Number of failures since the last message that `receive` accepted.
    failures: u32,
    has_connected: bool,
}

enum FollowState {
    Waiting(Duration),
    Connected(ServerMessages),
    Ended,
}

impl<S: Subscription> StreamFollower<S> {
    async fn next(&mut self) -> Option<Result<S::Item, ClientError>> {
        loop {
            if self.subscription.has_ended() {
                self.state = FollowState::Ended;
            }
            let received = match &mut self.state {
                FollowState::Ended => return None,
                FollowState::Waiting(delay) => {
                    tokio::time::sleep(*delay).await;
                    self.connect().await
                }
                FollowState::Connected(messages) => match messages.next().await {
                    Ok(Some(message)) => {
                        let received = self.subscription.receive(message);
                        // A connection that delivers only a problem has failed.
                        if received.is_ok() {
                            self.failures = 0;
                        }
                        received
                    }
                    Ok(None) => Err(ClientError::Ended),
                    Err(error) => Err(error),
                },
            };
            match received {
                Ok(Some(item)) => return Some(Ok(item)),
                Ok(None) => {}
                Err(error) => return self.fail(error),
            }
        }
    }

    async fn connect(&mut self) -> Result<Option<S::Item>, ClientError> {
        let request = self.subscription.request(&self.transport)?;
        let silence = self.transport.options.silence;
        let opened = tokio::time::timeout(silence, self.transport.open(&request)).await;
        let response = opened.unwrap_or(Err(ClientError::Silent(silence)))?;
        self.state = FollowState::Connected(ServerMessages::new(response, &self.transport)?);
        let is_again = std::mem::replace(&mut self.has_connected, true);
        Ok(if is_again { self.subscription.reconnect_item() } else { None })
    }

    fn fail(&mut self, error: ClientError) -> Option<Result<S::Item, ClientError>> {
        // The subject existed earlier, so it has been deleted.
        if error.code() == Some("not_found") && self.has_connected {
            self.state = FollowState::Ended;
            return None;
        }
        if !error.is_transient() {
            self.state = FollowState::Ended;
            return Some(Err(error));
        }
        self.failures = self.failures.saturating_add(1);
        let failures = self.failures;
        let retry_after = error.retry_after().unwrap_or_default().min(LONGEST_RETRY_AFTER);
        let delay = retry_after + self.transport.options.backoff.delay(failures);
        self.state = FollowState::Waiting(delay);
        Some(Ok(S::disconnect_item(Disconnected { error, failures, delay })))
    }
}
