//! Replays one recording in every way.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use pintle_llm::{Message, ProviderAdapter, Request, Response};

use crate::adapter::adapter;
use crate::events::disorder;
use crate::judge::{Difference, judge as judge_whole, judge_cut};
use crate::manifest::{Entry, Transport};
use crate::mutation::{Reads, Variant, variants};
use crate::next_turn;
use crate::outcome::{self, Outcome};
use crate::random::Random;
use crate::recording::Recording;
use crate::report::{Failure, Verdict};
use crate::server::{Answer, Call, Framing, Server};

/// Number of replays of a complete response.
const WHOLE_ANSWERS: usize = 8;

/// Number of pieces from which a response is sent in chunks.
const MANY_PIECES: usize = 500;

/// Time limit of a replay.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Replays a recording in every way and returns the failures.
pub(crate) async fn judge(
    entry: &Entry,
    recording: Result<Recording, String>,
    mut random: Random,
) -> Verdict {
    let mut verdict = Verdict::default();
    let prepared = match recording {
        Ok(recording) => Stage::set(entry).await.map(|stage| (recording, stage)),
        Err(message) => Err(message),
    };
    let (recording, stage) = match prepared {
        Ok(prepared) => prepared,
        Err(message) => {
            verdict.fail(Failure::new("the recording", vec![Difference::new("it", "playable", message)]));
            return verdict;
        }
    };
    for variant in ways(entry, &recording, &mut random) {
        verdict.plays += 1;
        let played = tokio::time::timeout(TIME_LIMIT, stage.play(&variant, &mut random));
        let differences = match played.await {
            Ok(Ok(outcome)) => stage.judge(&recording, &variant, &outcome),
            Ok(Err(message)) => vec![Difference::new("the stream", "an end", message)],
            Err(_) => vec![Difference::new("the time", TIME_LIMIT, "no end")],
        };
        verdict.fail(Failure::new(&variant.name, differences));
    }
    if let Some(response) = stage.last_answer(&recording, &mut random).await {
        verdict.plays += 1;
        verdict.fail(Failure::new("the next turn", stage.judge_next_turn(&response).await));
    }
    verdict
}

fn ways(entry: &Entry, recording: &Recording, random: &mut Random) -> Vec<Variant> {
    match entry.transport {
        Transport::Sse => variants(recording, entry.kind, random),
        Transport::Json => (0..WHOLE_ANSWERS).map(|_| whole(recording)).collect(),
    }
}

fn whole(recording: &Recording) -> Variant {
    let bytes = recording.bytes.clone();
    Variant { name: "random pieces".to_owned(), bytes, reads: Reads::Random, cut: None }
}

/// A server and an adapter for it.
struct Stage<'a> {
    entry: &'a Entry,
    server: Server,
    adapter: Arc<dyn ProviderAdapter>,
    request: Request,
}

impl<'a> Stage<'a> {
    async fn set(entry: &'a Entry) -> Result<Self, String> {
        let server = Server::start().await.map_err(|error| format!("no server on loopback: {error}"))?;
        let adapter =
            adapter(entry.kind, &server.address).map_err(|error| format!("no adapter: {error:?}"))?;
        let request = Request::new(entry.model(), [Message::user("Well?")]);
        Ok(Self { entry, server, adapter, request })
    }

    async fn play(&self, variant: &Variant, random: &mut Random) -> Result<Outcome, String> {
        let answer = self.answer(variant, random);
        let asked = async {
            match self.entry.transport {
                Transport::Sse => outcome::stream(self.adapter.as_ref(), &self.request).await,
                Transport::Json => Ok(outcome::complete(self.adapter.as_ref(), &self.request).await),
            }
        };
        let mut seen = None;
        tokio::select! {
            outcome = asked => outcome,
            failed = self.serve(&answer, &mut seen) => failed.map(|never| match never {}),
        }
    }

    /// Serves one request. Ends only on failure, since the client closes the connection.
    async fn serve(&self, answer: &Answer, seen: &mut Option<Call>) -> Result<Infallible, String> {
        match self.server.answer(answer, seen).await {
            Ok(()) => pending().await,
            Err(error) => Err(format!("the server cannot answer: {error}")),
        }
    }

    fn answer(&self, variant: &Variant, random: &mut Random) -> Answer {
        let entry = self.entry;
        let mut headers: Vec<(String, String)> =
            entry.response_headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        // Length and encoding of the body are set by this server.
        headers.retain(|(name, _)| {
            !["content-length", "content-encoding", "transfer-encoding", "connection"]
                .contains(&name.as_str())
        });
        if !headers.iter().any(|(name, _)| name == "content-type") {
            let media_type = match entry.transport {
                Transport::Sse => "text/event-stream",
                Transport::Json => "application/json",
            };
            headers.push(("content-type".to_owned(), media_type.to_owned()));
        }
        let pieces = variant.reads.pieces(&variant.bytes, random);
        // Many small pieces are faster as chunks, and certain to be read separately.
        let chunked = pieces.len() > MANY_PIECES || random.flip();
        Answer {
            status: entry.http_status,
            headers,
            pieces,
            framing: if chunked { Framing::Chunked } else { Framing::ToTheEnd },
        }
    }

    fn judge(&self, recording: &Recording, variant: &Variant, outcome: &Outcome) -> Vec<Difference> {
        let mut found = match variant.cut {
            Some(terminal_kept) => judge_cut(self.entry, terminal_kept, outcome),
            None => {
                let whole_framing = self.entry.transport == Transport::Json || recording.ends_with_an_event();
                judge_whole(self.entry, whole_framing, outcome)
            }
        };
        if self.entry.transport == Transport::Sse {
            found.extend(
                disorder(outcome)
                    .into_iter()
                    .map(|message| Difference::new("the order of the events", "pairs", message)),
            );
        }
        found
    }

    /// Returns the recorded response, if it is complete.
    async fn last_answer(&self, recording: &Recording, random: &mut Random) -> Option<Response> {
        let outcome = self.play(&whole(recording), random).await.ok()?;
        outcome.answer.ok()
    }

    /// Sends the response back as a part of the next request.
    async fn judge_next_turn(&self, response: &Response) -> Vec<Difference> {
        let request = next_turn::request(&self.request.model, response);
        let answer =
            Answer { status: 503, headers: Vec::new(), pieces: Vec::new(), framing: Framing::Chunked };
        let mut seen = None;
        let refused = tokio::select! {
            answer = self.adapter.complete(&request) => answer.err(),
            _ = self.serve(&answer, &mut seen) => None,
        };
        match seen {
            Some(call) => next_turn::judge(self.entry.kind, response, &call),
            None => vec![Difference::new("the next request", "to be sent", refused)],
        }
    }
}
