//! What is done to answers and to the history so that the next request is one that a provider accepts (design,
//! section 10).

use pintle_llm::{ContentPart, ErrorInfo, ErrorKind, Message, MessageList, ToolResult};
use serde_json::Value;

use super::action::Action;
use super::{Machine, Turn};
use crate::event::EventKind;

impl Machine {
    /// A model may use an id twice, in one answer or over several, or none; each call must have its own.
    pub(super) fn make_call_ids_unique(&mut self, message: &mut Message, out: &mut Vec<Action>) {
        for part in &mut message.content {
            let ContentPart::ToolCall(call) = part else { continue };
            if !call.id.is_empty() && self.call_ids.insert(call.id.clone()) {
                continue;
            }
            // Some models use one id for every call, so that counting from the beginning would take ever longer.
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

    /// Takes out what the model has never accepted and may have refused the request for: images, sound and documents
    /// of entries that no answer has followed yet. Says whether there was any.
    ///
    /// What is taken out leaves a note, so that no request is tried again for the same reason.
    pub(super) fn repair_after(&mut self, error: &ErrorInfo, out: &mut Vec<Action>) -> bool {
        // A body that is too large has the same status as a prompt that is too long.
        if !matches!(error.kind, ErrorKind::InvalidRequest | ErrorKind::ContextLength) {
            return false;
        }
        let mut removed = 0;
        for turn in self.history.iter_mut().skip(self.accepted) {
            removed += without_media(turn);
        }
        if removed == 0 {
            return false;
        }
        self.repairs += 1;
        self.chain_goes_on = false;
        self.messages = MessageList::default();
        let message = format!(
            "the provider refused the request ({error}); what it may have refused it for, {removed} in number (images, sound, documents), is replaced by a note"
        );
        out.push(Action::emit(EventKind::HistoryRepaired { message }));
        true
    }
}

/// Replaces media by notes, and says how many.
fn without_media(turn: &mut Turn) -> usize {
    let mut message = turn.item.message().clone();
    let removed = message.content.iter_mut().map(without_media_in).sum();
    if removed > 0 {
        turn.item = message.into();
    }
    removed
}

fn without_media_in(part: &mut ContentPart) -> usize {
    let what = match part {
        ContentPart::Image(_) => "image",
        ContentPart::Audio(_) => "sound",
        ContentPart::Document(_) => "document",
        ContentPart::ToolResult(result) => return without_images(result),
        ContentPart::Text(_)
        | ContentPart::ToolCall(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_)
        | _ => return 0,
    };
    *part = ContentPart::text(note(what));
    1
}

fn without_images(result: &mut ToolResult) -> usize {
    let removed = result.images.len();
    if removed > 0 {
        result.images.clear();
        let text = result.text();
        let between = if text.is_empty() { "" } else { "\n" };
        result.content = Value::String(format!("{text}{between}{}", note("image")));
    }
    removed
}

fn note(what: &str) -> String {
    format!("[The {what} that was here is left out: the provider refused a request with it.]")
}
