//! The result of decoding a response.

use futures_util::StreamExt as _;
use pintle_llm::{Error, ProviderAdapter, Request, Response, StreamEvent};

/// A response as an application sees it.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Events of a stream; empty for a complete response.
    pub(crate) events: Vec<StreamEvent>,
    pub(crate) answer: Result<Response, Error>,
}

/// Returns the outcome of a complete request.
pub(crate) async fn complete(adapter: &dyn ProviderAdapter, request: &Request) -> Outcome {
    Outcome { events: Vec::new(), answer: adapter.complete(request).await }
}

/// Returns the outcome of a stream.
///
/// # Errors
///
/// A stream that ends without a final event, or continues after its end.
pub(crate) async fn stream(adapter: &dyn ProviderAdapter, request: &Request) -> Result<Outcome, String> {
    let mut stream = match adapter.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return Ok(Outcome { events: Vec::new(), answer: Err(error) }),
    };
    let mut events = Vec::new();
    let mut answer = None;
    while let Some(event) = stream.next().await {
        if answer.is_some() {
            return Err(format!("after its end the stream goes on with {event:?}"));
        }
        match event {
            Ok(event) => {
                if let StreamEvent::Finish { response, .. } = &event {
                    answer = Some(Ok((**response).clone()));
                }
                events.push(event);
            }
            Err(error) => answer = Some(Err(error)),
        }
    }
    match answer {
        Some(answer) => Ok(Outcome { events, answer }),
        None => Err("the stream ends with neither a finish nor an error".to_owned()),
    }
}

impl Outcome {
    /// Returns the text received, complete or not.
    pub(crate) fn text(&self) -> String {
        match &self.answer {
            Ok(response) => response.text(),
            Err(_) => self.deltas(),
        }
    }

    /// Returns the concatenated text deltas.
    pub(crate) fn deltas(&self) -> String {
        let delta = |event: &StreamEvent| {
            if let StreamEvent::TextDelta { delta, .. } = event { Some(delta.clone()) } else { None }
        };
        self.events.iter().filter_map(delta).collect()
    }
}
