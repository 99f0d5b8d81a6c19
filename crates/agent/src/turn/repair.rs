//! Repairs of responses and of the history, so that the provider accepts the next request (design, section 10).

use pintle_llm::{ContentPart, ErrorInfo, ErrorKind, Message, MessageList, ToolResult};
use serde_json::Value;

use super::Machine;
use crate::protocol::{Action, EventKind, Turn};

impl Machine {
    /// Gives each call of a response an id that is unique in the session. Models may omit ids, or use one twice, in one
    /// response or over several.
    pub(super) fn make_call_ids_unique(&mut self, message: &mut Message, out: &mut Vec<Action>) {
        for part in &mut message.content {
            let ContentPart::ToolCall(call) = part else { continue };
            if !call.id.is_empty() && self.call_ids.insert(call.id.clone()) {
                continue;
            }
            // Some models use one id for all calls; counting from 1 would then take quadratic time.
            let first = self.call_ids.len() + 1;
            let base = if call.id.is_empty() { "call" } else { &call.id };
            let fresh = (first..).map(|n| format!("{base}_{n}")).find(|id| self.call_ids.insert(id.clone()));
            let Some(fresh) = fresh else { continue };
            let message = if call.id.is_empty() {
                format!("the model called {} without an id; the call is now {fresh}", call.name)
            } else {
                format!("the model used the call id {} twice; the later call is now {fresh}", call.id)
            };
            out.push(Action::emit(EventKind::HistoryRepaired { message }));
            call.id = fresh;
        }
    }

    /// Removes the likely cause of a refused request: images, audio and documents in entries that no response has
    /// followed yet. Returns whether there were any.
    ///
    /// Each is replaced by a note, so that no request is repeated for the same reason.
    pub(super) fn repair_after(&mut self, error: &ErrorInfo, out: &mut Vec<Action>) -> bool {
        // Providers report a body that is too large like a prompt that is too long.
        if !matches!(error.kind, ErrorKind::InvalidRequest | ErrorKind::ContextLength) {
            return false;
        }
        let mut removed = 0;
        for turn in self.history.iter_mut().skip(self.accepted) {
            removed += replace_media(turn);
        }
        if removed == 0 {
            return false;
        }
        self.repairs += 1;
        self.chain_is_current = false;
        self.messages = MessageList::default();
        let message = format!(
            "the provider refused the request ({error}); what it may have refused it for, {removed} in number (images, sound, documents), is replaced by a note"
        );
        out.push(Action::emit(EventKind::HistoryRepaired { message }));
        true
    }
}

/// Replaces media by notes and returns their number.
fn replace_media(turn: &mut Turn) -> usize {
    let mut message = turn.item.message().clone();
    let removed = message.content.iter_mut().map(replace_media_in).sum();
    if removed > 0 {
        turn.item = message.into();
    }
    removed
}

fn replace_media_in(part: &mut ContentPart) -> usize {
    let media = match part {
        ContentPart::Image(_) => "image",
        ContentPart::Audio(_) => "sound",
        ContentPart::Document(_) => "document",
        ContentPart::ToolResult(result) => return replace_images(result),
        ContentPart::Text(_)
        | ContentPart::ToolCall(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_)
        | _ => return 0,
    };
    *part = ContentPart::text(note(media));
    1
}

fn replace_images(result: &mut ToolResult) -> usize {
    let removed = result.images.len();
    if removed > 0 {
        result.images.clear();
        let text = result.text();
        let separator = if text.is_empty() { "" } else { "\n" };
        result.content = Value::String(format!("{text}{separator}{}", note("image")));
    }
    removed
}

fn note(media: &str) -> String {
    format!("[The {media} that was here is left out: the provider refused a request with it.]")
}
