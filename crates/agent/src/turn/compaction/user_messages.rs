//! The user's own messages beside a summary: verbatim, whatever the model writes.

use super::CHARS_PER_TOKEN;
use super::pieces::cut_middle;
use crate::protocol::{Turn, TurnKind, without_context};

/// Maximum number of tokens of all messages.
const MAX_TOKENS: u64 = 20_000;

/// Maximum number of tokens of all messages, in percent of the context window.
const WINDOW_SHARE: u64 = 15;

const START: &str = "<user_message>\n";
const END: &str = "\n</user_message>";

/// Size of the marks around a message and of the blank line before the next one, in characters.
const MARKS: usize = START.len() + END.len() + 2;

/// Fewest characters that are worth keeping of a message.
const LEAST: usize = 200;

/// Returns the user's messages in these entries, the oldest first, as many of the newest as there is room for.
///
/// Inputs, steering messages and follow-ups count; notices and additions of hooks do not. A message that is longer than
/// the limit is cut in its middle.
pub(super) fn user_messages(history: &[Turn], window: u64) -> String {
    let tokens = MAX_TOKENS.min(window.saturating_mul(WINDOW_SHARE) / 100);
    let limit = usize::try_from(tokens.saturating_mul(CHARS_PER_TOKEN)).unwrap_or(usize::MAX);
    let (mut left, mut is_full, mut left_out) = (limit, false, 0_usize);
    let mut kept = Vec::new();
    for text in history.iter().rev().filter_map(message_of_user) {
        let (chars, room) = (text.chars().count(), left.saturating_sub(MARKS));
        if is_full {
            left_out += 1;
        } else if chars <= room {
            left = room - chars;
            kept.push(format!("{START}{text}{END}"));
        } else if chars.saturating_add(MARKS) > limit && room >= LEAST {
            is_full = true;
            kept.push(format!("{START}{}{END}", cut_middle(&text, room)));
        } else {
            is_full = true;
            left_out += 1;
        }
    }
    if kept.is_empty() {
        return String::new();
    }
    if left_out > 0 {
        kept.push(format!("[Earlier messages of the user that are left out: {left_out}]"));
    }
    kept.reverse();
    kept.join("\n\n")
}

fn message_of_user(turn: &Turn) -> Option<String> {
    let is_users = match turn.kind {
        TurnKind::User | TurnKind::Steering => !turn.notice,
        TurnKind::Assistant | TurnKind::ToolResults | TurnKind::System => false,
    };
    if !is_users {
        return None;
    }
    let text = turn.item.text();
    let text = without_context(&text);
    (!text.trim().is_empty()).then(|| text.to_owned())
}
