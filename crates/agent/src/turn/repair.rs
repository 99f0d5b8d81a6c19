//! Repairs of responses and of the history, so that the provider accepts the next request (design, section 10).

use pintle_llm::{ContentPart, ErrorInfo, ErrorKind, MediaSource, Message, TextData, ToolResult};
use serde_json::Value;

use super::Machine;
use crate::count::Count;
use crate::protocol::{Action, EventKind, Turn, TurnKind};

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

    /// Removes the cause of a refused request: the reasoning of earlier responses; or the image, audio or document that the
    /// provider names, else all of them in entries that no response has followed yet. Returns whether there were any.
    ///
    /// Media are replaced by a note, and reasoning is gone, so that no request is repeated for the same reason.
    pub(super) fn repair_after(&mut self, error: &ErrorInfo, out: &mut Vec<Action>) -> bool {
        let repair = if error.refused_reasoning {
            self.remove_reasoning()
        } else if matches!(error.kind, ErrorKind::InvalidRequest | ErrorKind::ContextLength) {
            // Providers report a body that is too large like a prompt that is too long.
            self.replace_refused_media(error)
        } else {
            None
        };
        let Some(repair) = repair else { return false };
        self.repairs += 1;
        self.prefix.reset();
        let message = format!("the provider refused the request ({error}); {repair}");
        out.push(Action::emit(EventKind::HistoryRepaired { message }));
        true
    }

    /// Removes the reasoning of all responses. Without any, the refused reasoning can only be in content of the provider's own
    /// format, and that is removed. Returns the change; `None` without either.
    fn remove_reasoning(&mut self) -> Option<String> {
        let (count, removed) = match self.edit_responses(without_reasoning) {
            0 => (self.edit_responses(without_opaque), "provider-specific content"),
            count => (count, "reasoning"),
        };
        // The provider's last count includes the removed content.
        if count > 0 {
            self.size.take_count();
        }
        (count > 0).then(|| {
            let responses = Count(count as u64, "earlier response");
            format!("the {removed} of {responses} is left out")
        })
    }

    /// Applies a change to each part of the model's responses; `None` removes the part. Returns the number of responses that
    /// changed. The others keep their cached encodings.
    fn edit_responses(&mut self, edit: fn(ContentPart) -> Option<ContentPart>) -> usize {
        // Entries that a summary replaces are not counted.
        let counted_from = self.compactions.entries();
        let mut edited = 0;
        let turns = self.history.iter_mut().enumerate();
        for (index, turn) in turns.filter(|(_, turn)| turn.kind == TurnKind::Assistant) {
            let mut message = turn.item.message().clone();
            message.content = message.content.into_iter().filter_map(edit).collect();
            if message == *turn.item.message() {
                continue;
            }
            let before = turn.chars();
            turn.item = message.into();
            edited += 1;
            if index >= counted_from {
                self.size.replace(before, turn.chars());
            }
        }
        edited
    }

    /// Replaces the media that a provider may have refused by notes. Returns the change; `None` without media.
    fn replace_refused_media(&mut self, error: &ErrorInfo) -> Option<String> {
        if self.replace_named(error) > 0 {
            return Some("the image, sound or document that it names is replaced by a note".to_owned());
        }
        let removed = self.replace_unaccepted(error);
        (removed > 0).then(|| {
            let parts = Count(removed as u64, "media part");
            format!("notes replace {parts} that the provider may have refused (images, sound, documents)")
        })
    }

    /// Replaces the media that a refusal names, wherever they are in the history. Returns their number.
    fn replace_named(&mut self, error: &ErrorInfo) -> usize {
        let Some(named) = error.refused_media.as_deref() else { return 0 };
        let is_named = |source: &MediaSource| source.fingerprint() == *named;
        let removed: usize = self.history.iter_mut().map(|turn| replace_media(turn, &is_named)).sum();
        if removed > 0
            && let Some(progress) = &mut self.progress
        {
            progress.repaired_for = Some(error.message.clone());
        }
        removed
    }

    /// Replaces the media that no response has followed yet. Returns their number.
    fn replace_unaccepted(&mut self, error: &ErrorInfo) -> usize {
        let last = self.progress.as_ref().and_then(|progress| progress.repaired_for.as_ref());
        // If the refusal repeats after the media that it named are gone, the newest media are not its cause.
        if last == Some(&error.message) {
            return 0;
        }
        let unaccepted = self.history.iter_mut().skip(self.accepted);
        unaccepted.map(|turn| replace_media(turn, &|_| true)).sum()
    }
}

/// Removes reasoning, and signatures of reasoning from other parts.
fn without_reasoning(part: ContentPart) -> Option<ContentPart> {
    match part {
        ContentPart::Thinking(_) => None,
        ContentPart::Text(data) => Some(ContentPart::Text(TextData { signature: None, ..data })),
        ContentPart::ToolCall(call) => Some(call.with_signature(None).into()),
        ContentPart::Image(_)
        | ContentPart::Audio(_)
        | ContentPart::Document(_)
        | ContentPart::ToolResult(_)
        | ContentPart::Opaque(_)
        | _ => Some(part),
    }
}

/// Removes content that only one provider understands.
fn without_opaque(part: ContentPart) -> Option<ContentPart> {
    Some(part).filter(|part| !matches!(part, ContentPart::Opaque(_)))
}

/// Replaces the media for which `is_refused` returns true by notes, and returns their number.
fn replace_media(turn: &mut Turn, is_refused: &dyn Fn(&MediaSource) -> bool) -> usize {
    // An entry without such media keeps its cached encodings.
    if !turn.item.content.iter().flat_map(ContentPart::media).any(is_refused) {
        return 0;
    }
    let mut message = turn.item.message().clone();
    let removed: usize = message.content.iter_mut().map(|part| replace_media_in(part, is_refused)).sum();
    turn.item = message.into();
    removed
}

fn replace_media_in(part: &mut ContentPart, is_refused: &dyn Fn(&MediaSource) -> bool) -> usize {
    let (media, source) = match part {
        ContentPart::Image(image) => ("image", &image.source),
        ContentPart::Audio(audio) => ("sound", &audio.source),
        ContentPart::Document(document) => ("document", &document.source),
        ContentPart::ToolResult(result) => return replace_images(result, is_refused),
        ContentPart::Text(_)
        | ContentPart::ToolCall(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_)
        | _ => return 0,
    };
    if !is_refused(source) {
        return 0;
    }
    *part = ContentPart::text(note(media));
    1
}

fn replace_images(result: &mut ToolResult, is_refused: &dyn Fn(&MediaSource) -> bool) -> usize {
    let before = result.images.len();
    result.images.retain(|image| !is_refused(&image.source));
    let removed = before - result.images.len();
    if removed > 0 {
        let text = result.text();
        let separator = if text.is_empty() { "" } else { "\n" };
        result.content = Value::String(format!("{text}{separator}{}", note("image")));
    }
    removed
}

fn note(media: &str) -> String {
    format!(include_str!("../../prompts/media_left_out.md"), media = media).trim_ascii_end().to_owned()
}
