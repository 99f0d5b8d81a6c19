//! Requests for the summary of the conversation, and of its pieces.

use pintle_llm::{HistoryItem, Message, Request, ToolChoice, ToolList};

use super::{CurrentCompaction, INTRODUCTION, LEAST_ROOM, MAX_REQUESTS, PIECE, pieces};
use crate::protocol::{Action, EventKind, ModelCallId, SessionState, TurnContext};
use crate::turn::request_size::CHARS_PER_TOKEN;
use crate::turn::{Machine, Phase};

/// Largest part of the room for a piece that the summary so far may take: one third.
const SUMMARY_SHARE: usize = 3;

const INSTRUCTION: &str = include_str!("../../../prompts/compaction/summary.md");

const INSTRUCTION_FOR_TEXT: &str = include_str!("../../../prompts/compaction/summary_of_text.md");

impl Machine {
    /// Requests the summary, or the summary of the next piece if there are pieces, unless the budget has too little
    /// left. Returns whether it did.
    pub(super) fn request_summary(
        &mut self,
        mut current: CurrentCompaction,
        context: &TurnContext,
        out: &mut Vec<Action>,
    ) -> bool {
        let (mut request, through) = match current.room {
            None => (self.request_for_summary(context), current.through),
            Some(room) => self.request_for_piece(&current, room, context),
        };
        if let Some(model) = &self.limits.compaction.model {
            request.model.clone_from(model);
        }
        // The provider has counted the conversation, and not the text of a piece.
        let counted = if current.room.is_some() { self.size.take_count() } else { None };
        let reserved = self.reserve(context, &mut request);
        if let Some(counted) = counted {
            self.size.restore_count(counted);
        }
        if reserved.is_err() {
            return false;
        }
        current.requests += 1;
        self.compactions.current = Some(current);
        self.model_calls += 1;
        let model_call = ModelCallId(self.model_calls);
        if let Some(progress) = &mut self.progress {
            progress.model_calls += 1;
        }
        self.state = SessionState::Processing;
        self.phase = Phase::Compacting { model_call, through };
        out.push(Action::emit(EventKind::CompactionStart { through: through as u64 }));
        // The request is not part of the conversation, so the next request is compared with the previous one.
        let chain = request.prefix_chain();
        if let Some(fingerprint) = chain.last() {
            let moved = self.prefix.first_moved(&chain);
            let messages = request.messages.len();
            out.push(Action::emit(EventKind::RequestPrepared { fingerprint, messages, moved }));
        }
        let reserved = self.reserved().map(Box::new);
        out.push(Action::CallModel { model_call, request: Box::new(request), reserved });
        true
    }

    /// Returns the request of the conversation with the instruction after it.
    fn request_for_summary(&mut self, context: &TurnContext) -> Request {
        let mut request = self.request(context);
        // Media of the replaced part are not needed, but the beginning of the request has to stay unchanged.
        request.messages.extend([HistoryItem::from(Message::user(INSTRUCTION.trim_end()))]);
        request.tool_choice = (!context.tools.is_empty()).then_some(ToolChoice::None);
        request.response_format = None;
        request
    }

    /// Returns the request for the summary of the next piece with at most `room` tokens, and the first entry after the
    /// piece.
    fn request_for_piece(
        &mut self,
        current: &CurrentCompaction,
        room: u64,
        context: &TurnContext,
    ) -> (Request, usize) {
        let size =
            |tokens: u64| usize::try_from(tokens.saturating_mul(CHARS_PER_TOKEN)).unwrap_or(usize::MAX);
        let room = size(room).saturating_sub(INSTRUCTION.len() + INSTRUCTION_FOR_TEXT.len());
        let room = room.max(size(LEAST_ROOM));
        let newest = self.compactions.newest();
        let from = newest.map_or(0, |compaction| compaction.through);
        let mut text = String::new();
        if let Some(compaction) = newest {
            text.push_str(INTRODUCTION);
            text.push_str(&pieces::cut_middle(&compaction.summary, room / SUMMARY_SHARE));
            text.push_str("\n\n");
        }
        let left = room.saturating_sub(text.chars().count());
        let requests_left = MAX_REQUESTS.saturating_sub(current.requests) as usize;
        let piece = pieces::next_piece(&self.history, from, current.through, left, requests_left);
        text.push_str(PIECE);
        text.push_str(&piece.text);
        let mut request = self.request(context);
        let messages = [
            Message::system(INSTRUCTION_FOR_TEXT.trim_end()),
            Message::user(text),
            Message::user(INSTRUCTION.trim_end()),
        ];
        request.messages = messages.into_iter().map(HistoryItem::from).collect();
        request.tools = ToolList::default();
        request.tool_choice = None;
        request.response_format = None;
        (request, piece.through)
    }

    /// Asks for the summary of the next piece, unless a limit forbids it. Returns whether it did.
    pub(super) fn request_next_piece(&mut self, current: CurrentCompaction, out: &mut Vec<Action>) -> bool {
        if current.requests >= MAX_REQUESTS || !self.may_call_model() {
            return false;
        }
        let Some(context) = self.context.take() else { return false };
        let started = self.request_summary(current, &context, out);
        self.context = Some(context);
        started
    }
}
