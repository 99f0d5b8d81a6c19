//! Lines of a journal.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::StreamExt as _;
use pintle_agent::SessionId;
use serde::Deserialize;

use crate::error::ClientError;
use crate::follow::ItemStream;
use crate::lines::ResponseLines;
use crate::operation::READ_JOURNAL;
use crate::session_events::json;
use crate::transport::Transport;

/// Line of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalLine {
    /// Number of the line, from 1.
    pub seq: u64,
    /// The line: a JSON object.
    pub text: String,
}

/// Lines of a journal. Returned by [`Client::journal`](crate::Client::journal).
pub struct Journal {
    lines: ItemStream<JournalLine>,
}

impl Journal {
    pub(crate) fn new(transport: Transport, session: SessionId, from: u64, to: Option<u64>) -> Self {
        let reader =
            JournalReader { transport, session, next: from, to, lines: None, failures: 0, has_ended: false };
        let lines = futures_util::stream::unfold(reader, |mut reader| async move {
            let line = reader.next().await?;
            reader.has_ended = line.is_err();
            Some((line, reader))
        });
        Self { lines: Box::pin(lines.fuse()) }
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl Stream for Journal {
    type Item = Result<JournalLine, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.lines.as_mut().poll_next(context)
    }
}

struct JournalReader {
    transport: Transport,
    session: SessionId,
    /// Number of the next line.
    next: u64,
    to: Option<u64>,
    lines: Option<ResponseLines>,
    failures: u32,
    has_ended: bool,
}

impl JournalReader {
    async fn next(&mut self) -> Option<Result<JournalLine, ClientError>> {
        if self.has_ended || self.to.is_some_and(|to| self.next > to) {
            return None;
        }
        loop {
            match self.line().await {
                Ok(Some(line)) => return Some(Ok(line)),
                Ok(None) => return None,
                Err(error) => {
                    self.lines = None;
                    self.failures += 1;
                    let Some(delay) = self.transport.retry_delay(&error, self.failures) else {
                        return Some(Err(error));
                    };
                    tokio::time::sleep(delay).await;
                }
            }
        }
    }

    async fn line(&mut self) -> Result<Option<JournalLine>, ClientError> {
        #[derive(Deserialize)]
        struct Numbered {
            seq: u64,
        }
        let lines = match &mut self.lines {
            Some(lines) => lines,
            None => {
                let lines = self.open().await?;
                self.lines.insert(lines)
            }
        };
        let Some(line) = lines.next().await? else { return Ok(None) };
        let text = String::from_utf8(line).map_err(|error| ClientError::unexpected("text", error))?;
        let Numbered { seq } = json(&text)?;
        (self.next, self.failures) = (seq.saturating_add(1), 0);
        Ok(Some(JournalLine { seq, text }))
    }

    async fn open(&self) -> Result<ResponseLines, ClientError> {
        let request = self.transport.request(&READ_JOURNAL, &[self.session.as_str()])?;
        let request = request.query("from", Some(&self.next.to_string()));
        let request = request.query("to", self.to.map(|to| to.to_string()).as_deref());
        let silence = self.transport.options.silence;
        let opened = tokio::time::timeout(silence, self.transport.open(&request)).await;
        let response = opened.unwrap_or(Err(ClientError::Silent(silence)))?;
        Ok(ResponseLines::new(response, self.transport.clone()))
    }
}
