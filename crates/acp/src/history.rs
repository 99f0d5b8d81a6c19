//! Conversation history as updates, for a client that opens a session. Pure functions.

use std::collections::HashMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_agent::{CallKind, EventKind, SessionEvent, Turn, TurnKind};
use pintle_llm::{ContentPart, ImageData, MediaSource, ToolCall, ToolResult};
use pintle_tools::FileChange;

use crate::calls;
use crate::wire::{CallContent, CallStatus, CallUpdate, ContentBlock, SessionUpdate};

/// Data about calls that the events of a session contain, but its history does not.
#[derive(Debug, Default)]
pub(crate) struct KnownCalls(HashMap<String, KnownCall>);

#[derive(Debug, Default)]
struct KnownCall {
    kind: CallKind,
    changes: Vec<FileChange>,
}

impl KnownCalls {
    /// Adds the data of an event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "two kinds of events are about calls")]
    pub(crate) fn add(&mut self, event: &SessionEvent) {
        match &event.kind {
            EventKind::ToolCallStart { call_id, call_kind, .. } => {
                self.0.entry(call_id.clone()).or_default().kind = *call_kind;
            }
            EventKind::ToolCallEnd { call_id, changes, .. } => {
                self.0.entry(call_id.clone()).or_default().changes.clone_from(changes);
            }
            _ => {}
        }
    }
}

/// Returns the updates that show a history.
pub(crate) fn updates(history: &[Turn], known: &KnownCalls, directory: &Path) -> Vec<SessionUpdate> {
    let replay = HistoryReplay { history, known, directory };
    (0..history.len()).flat_map(|index| replay.turn(index)).collect()
}

struct HistoryReplay<'a> {
    history: &'a [Turn],
    known: &'a KnownCalls,
    directory: &'a Path,
}

impl HistoryReplay<'_> {
    fn turn(&self, index: usize) -> Vec<SessionUpdate> {
        let Some(turn) = self.history.get(index) else { return Vec::new() };
        let message_id = format!("h{index}");
        match turn.kind {
            TurnKind::User | TurnKind::Steering => user(turn, &message_id),
            TurnKind::Assistant => self.assistant(index, turn, &message_id),
            // Results are shown with their calls.
            TurnKind::ToolResults | TurnKind::System | _ => Vec::new(),
        }
    }

    fn assistant(&self, index: usize, turn: &Turn, message_id: &str) -> Vec<SessionUpdate> {
        let results = self.history.get(index + 1).filter(|next| next.kind == TurnKind::ToolResults);
        let result_of = |call: &ToolCall| {
            let found =
                results.and_then(|turn| turn.item.results().find(|result| result.tool_call_id == call.id));
            found.cloned()
        };
        let part = |part: &ContentPart| match part {
            ContentPart::Text(data) if !data.text.is_empty() => Some(SessionUpdate::AgentMessageChunk {
                content: ContentBlock::text(&data.text),
                message_id: message_id.to_owned(),
            }),
            ContentPart::Thinking(data) if !data.text.is_empty() => Some(SessionUpdate::AgentThoughtChunk {
                content: ContentBlock::text(&data.text),
                message_id: format!("{message_id}t"),
            }),
            ContentPart::ToolCall(call) => Some(self.call(index, call, result_of(call).as_ref())),
            ContentPart::Text(_)
            | ContentPart::Thinking(_)
            | ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Document(_)
            | ContentPart::ToolResult(_)
            | ContentPart::Opaque(_)
            | _ => None,
        };
        turn.item.message().content.iter().filter_map(part).collect()
    }

    fn call(&self, index: usize, call: &ToolCall, result: Option<&ToolResult>) -> SessionUpdate {
        if let Some(entries) = calls::plan(&call.name, &call.arguments) {
            return SessionUpdate::Plan { entries };
        }
        let known = self.known.0.get(&call.id);
        let kind = known.map_or(CallKind::Other, |known| known.kind);
        let status = match result {
            Some(result) if result.is_error => CallStatus::Failed,
            Some(_) => CallStatus::Completed,
            None => CallStatus::Pending,
        };
        let mut content = known.map(|known| calls::diffs(&known.changes, self.directory)).unwrap_or_default();
        if content.is_empty() {
            let text = result.map(ToolResult::text).filter(|text| !text.is_empty());
            content.extend(text.map(|text| CallContent::text(calls::fenced(&text))));
        }
        let locations = calls::locations(&call.arguments, self.directory);
        SessionUpdate::ToolCall(CallUpdate {
            title: Some(calls::title(&call.name, kind, &call.arguments)),
            name: Some(call.name.clone()),
            kind: Some(calls::kind(kind)),
            status: Some(status),
            content: Some(content),
            locations: (!locations.is_empty()).then_some(locations),
            raw_input: Some((*call.arguments).clone()),
            raw_output: None,
            // The prefix keeps ids of past calls distinct from ids of future calls.
            tool_call_id: format!("h{index}/{}", call.id),
        })
    }
}

fn user(turn: &Turn, message_id: &str) -> Vec<SessionUpdate> {
    let block = |part: &ContentPart| match part {
        ContentPart::Text(data) => Some(ContentBlock::text(&data.text)),
        ContentPart::Image(image) => Some(image_block(image)),
        ContentPart::Audio(_)
        | ContentPart::Document(_)
        | ContentPart::ToolCall(_)
        | ContentPart::ToolResult(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_)
        | _ => None,
    };
    let chunk = |content| SessionUpdate::UserMessageChunk { content, message_id: message_id.to_owned() };
    turn.item.message().content.iter().filter_map(block).map(chunk).collect()
}

fn image_block(image: &ImageData) -> ContentBlock {
    let mime_type = image.media_type.clone().unwrap_or_else(|| "image/png".to_owned());
    match &image.source {
        MediaSource::Data(data) => ContentBlock::Image { data: STANDARD.encode(data.as_bytes()), mime_type },
        MediaSource::Url(url) => {
            ContentBlock::ResourceLink { name: "image".to_owned(), uri: url.clone(), title: None }
        }
        MediaSource::Path(_) | _ => ContentBlock::text("[image]"),
    }
}

#[cfg(test)]
mod tests {
    use pintle_agent::Timestamp;
    use pintle_llm::{Message, Role};
    use serde_json::{Value, json};

    use super::*;

    fn shown(history: &[Turn]) -> Value {
        json!(updates(history, &KnownCalls::default(), Path::new("/w")))
    }

    #[test]
    fn a_history_is_shown_in_order() {
        let at = Timestamp::from_millis(0);
        let call = ToolCall::from_raw("c1", "read_file", json!({"file_path": "a.rs"}).to_string());
        let message = Message::new(Role::Assistant, vec![ContentPart::text("Reading."), call.into()]);
        let history = [
            Turn::user("Look", at),
            Turn::assistant(message, at),
            Turn::tool_results(vec![ToolResult::new("c1", "fn main", false)], at),
            Turn::steering("Hurry", at),
            Turn::assistant(Message::assistant("Done."), at),
        ];
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(
            shown(&history),
            json!([
                {"sessionUpdate": "user_message_chunk", "content": text("Look"), "messageId": "h0"},
                {"sessionUpdate": "agent_message_chunk", "content": text("Reading."), "messageId": "h1"},
                {
                    "sessionUpdate": "tool_call", "toolCallId": "h1/c1", "title": "read_file a.rs", "name": "read_file",
                    "kind": "other", "status": "completed",
                    "content": [{"type": "content", "content": text("```\nfn main\n```")}],
                    "locations": [{"path": "/w/a.rs"}], "rawInput": {"file_path": "a.rs"},
                },
                {"sessionUpdate": "user_message_chunk", "content": text("Hurry"), "messageId": "h3"},
                {"sessionUpdate": "agent_message_chunk", "content": text("Done."), "messageId": "h4"},
            ])
        );
    }

    #[test]
    fn images_of_the_user_are_shown() {
        let message = pintle_agent::UserMessage::from("")
            .with_image(ImageData::data(vec![1, 2, 3], "image/png"))
            .with_image(ImageData::url("https://example.org/a.png"));
        let history = [Turn::user(message, Timestamp::from_millis(0))];
        assert_eq!(
            shown(&history),
            json!([
                {
                    "sessionUpdate": "user_message_chunk", "messageId": "h0",
                    "content": {"type": "image", "data": "AQID", "mimeType": "image/png"},
                },
                {
                    "sessionUpdate": "user_message_chunk", "messageId": "h0",
                    "content": {"type": "resource_link", "name": "image", "uri": "https://example.org/a.png"},
                },
            ])
        );
    }
}
