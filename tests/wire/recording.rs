//! The bytes of a recording, and independent parsing of its framing.

use std::path::Path;

use serde_json::Value;

use crate::manifest::{Entry, Kind, Transport};
use crate::sha256;

/// A recording as read from the file, checked against the manifest.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) bytes: Vec<u8>,
}

/// A line, without its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a [u8],
    /// LF, CRLF, CR, or nothing for an unterminated last line.
    pub(crate) end: &'a [u8],
}

/// An event of a stream.
#[derive(Debug)]
pub(crate) struct Event {
    /// The data lines, joined by line feeds.
    pub(crate) data: Vec<u8>,
    /// Offset of the end of the blank line after it.
    pub(crate) end: usize,
}

impl Recording {
    /// # Errors
    ///
    /// A file that cannot be read, or whose length or hash differs from the manifest.
    pub(crate) fn read(directory: &Path, entry: &Entry) -> Result<Self, String> {
        let path = directory.join(&entry.file);
        let bytes =
            std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let hash = sha256::hex(&bytes);
        if (bytes.len(), &hash) != (entry.bytes, &entry.sha256) {
            return Err(format!(
                "the file is not the one of the manifest: expected {} bytes with SHA-256 {}, found {} with {hash}",
                entry.bytes,
                entry.sha256,
                bytes.len()
            ));
        }
        let recording = Self { bytes };
        // The end marker of a Chat Completions stream does not count as an event in the manifest.
        let found = recording.events().iter().filter(|event| event.data != b"[DONE]").count();
        match entry.expected.events.filter(|_| entry.transport == Transport::Sse) {
            Some(expected) if expected != found && recording.ends_with_an_event() => {
                Err(format!("expected {expected} events, found {found}: the framing is read in another way"))
            }
            Some(_) | None => Ok(recording),
        }
    }

    pub(crate) fn lines(&self) -> Vec<Line<'_>> {
        let mut rest = self.bytes.strip_prefix(MARK).unwrap_or(&self.bytes);
        let mut lines = Vec::new();
        while !rest.is_empty() {
            let length = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
            let (text, tail) = rest.split_at(length);
            let ends: [&[u8]; 3] = [b"\r\n", b"\n", b"\r"];
            let end = ends.into_iter().find(|end| tail.starts_with(end)).unwrap_or_default();
            lines.push(Line { text, end });
            rest = tail.get(end.len()..).unwrap_or_default();
        }
        lines
    }

    /// Returns the events that end with a blank line.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut data: Option<Vec<u8>> = None;
        let mut end = self.bytes.len() - self.bytes.strip_prefix(MARK).map_or(self.bytes.len(), <[u8]>::len);
        for line in self.lines() {
            end += line.text.len() + line.end.len();
            if line.text.is_empty() {
                events.extend(data.take().map(|data| Event { data, end }));
            } else if let Some(piece) = line.text.strip_prefix(b"data:") {
                let piece = piece.strip_prefix(b" ").unwrap_or(piece);
                match &mut data {
                    Some(data) => {
                        data.push(b'\n');
                        data.extend_from_slice(piece);
                    }
                    None => data = Some(piece.to_vec()),
                }
            }
        }
        events
    }

    /// Returns whether nothing follows the last blank line; the standard would ignore it.
    pub(crate) fn ends_with_an_event(&self) -> bool {
        self.events().last().is_some_and(|event| {
            self.bytes.get(event.end..).is_none_or(|rest| rest.iter().all(u8::is_ascii_whitespace))
        })
    }

    /// Returns the offset of the end of the terminal event, if there is one.
    pub(crate) fn terminal_end(&self, kind: Kind) -> Option<usize> {
        let is_terminal =
            |event: &&Event| serde_json::from_slice(&event.data).is_ok_and(|data| is_terminal(kind, &data));
        self.events().iter().find(is_terminal).map(|event| event.end)
    }
}

/// A UTF-8 byte-order mark.
pub(crate) const MARK: &[u8] = b"\xEF\xBB\xBF";

/// See the manifest's note on terminal events.
fn is_terminal(kind: Kind, data: &Value) -> bool {
    let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
    let given = |pointer: &str| data.pointer(pointer).is_some_and(|value| !value.is_null());
    match kind {
        Kind::OpenaiResponses => {
            ["response.completed", "response.incomplete", "response.failed"].contains(&name)
        }
        Kind::Anthropic => name == "message_stop",
        Kind::OpenaiChat => given("/choices/0/finish_reason"),
        Kind::Gemini => given("/candidates/0/finishReason") || given("/promptFeedback/blockReason"),
    }
}
