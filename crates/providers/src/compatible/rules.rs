//! Rules of a server for the messages of a conversation.

use pintle_llm::{CallIds, Origin, ReasoningContent, ServerQuirks};

use crate::openai_common::calls::{nine_alphanumeric, wire_id};

/// Maximum length of a call id, in characters.
const MAX_ID: usize = 40;

/// Rules of the server for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageRules {
    /// Whether reasoning received in `reasoning_content` makes the following messages have the field.
    pub(super) adopts_reasoning_content: bool,
    /// Whether assistant messages have `reasoning_content`.
    pub(super) has_reasoning_content: bool,
    nine_alphanumeric_ids: bool,
    pub(super) answer_after_results: bool,
    pub(super) call_signatures: bool,
}

impl MessageRules {
    pub(super) fn new(quirks: &ServerQuirks) -> Self {
        let policy = quirks.reasoning_content.unwrap_or(ReasoningContent::Received);
        Self {
            adopts_reasoning_content: policy == ReasoningContent::Received,
            has_reasoning_content: policy == ReasoningContent::Always,
            nine_alphanumeric_ids: quirks.call_ids == Some(CallIds::NineAlphanumeric),
            answer_after_results: quirks.answer_after_results == Some(true),
            call_signatures: quirks.call_signatures == Some(true),
        }
    }

    /// Returns a name of the target of an encoding: the origin, and the rules that differ from the defaults.
    pub(super) fn target(self, origin: &Origin) -> String {
        let rules = [
            (!self.adopts_reasoning_content, " without-received-reasoning"),
            (self.has_reasoning_content, " reasoning"),
            (self.nine_alphanumeric_ids, " ids"),
            (self.answer_after_results, " answers"),
            (self.call_signatures, " signatures"),
        ];
        let mut target = origin.to_string();
        rules.iter().filter(|(differs, _)| *differs).for_each(|(_, name)| target.push_str(name));
        target
    }

    /// Returns a call id in the form that the server accepts.
    pub(super) fn wire_id(self, id: &str) -> String {
        if self.nine_alphanumeric_ids { nine_alphanumeric(id) } else { wire_id(id, MAX_ID) }
    }
}
