//! A history as text, in pieces that fit a request for a summary.
//!
//! Tool outputs are shortened first, from the oldest. If the rest does not fit, the history is divided where no call is
//! open, and exchanges that are too long for the remaining requests are cut.

use std::fmt::Write as _;

use crate::protocol::{Turn, TurnKind};

/// Characters that a shortened output keeps.
const SHORT_OUTPUT: usize = 600;

/// Fewest characters to which an exchange is cut. If that is too much for the remaining requests, the oldest exchanges
/// are left out.
const LEAST_EXCHANGE: usize = 200;

/// Characters that a note about a cut takes.
const NOTE: usize = 60;

/// Part of a history, as text.
#[derive(Debug, PartialEq)]
pub(super) struct Piece {
    /// First entry after it.
    pub(super) through: usize,
    pub(super) text: String,
}

/// Entries up to the next border, where no call is open, as text.
struct Exchange {
    /// First entry after it.
    through: usize,
    text: String,
    chars: usize,
}

/// Returns the beginning of the entries `from..through` that takes at most about `room` characters. With one request
/// left, returns all of them.
pub(super) fn next_piece(
    history: &[Turn],
    from: usize,
    through: usize,
    room: usize,
    requests_left: usize,
) -> Piece {
    let turns = history.get(from..through).unwrap_or_default();
    let mut exchanges = exchanges(turns, from, room);
    cut_exchanges(&mut exchanges, room, requests_left);
    if requests_left <= 1 {
        return last_piece(&exchanges, through, room);
    }
    let mut piece = Piece { through, text: String::new() };
    let mut size = 0_usize;
    for exchange in exchanges {
        size = size.saturating_add(exchange.chars);
        if size > room && !piece.text.is_empty() {
            break;
        }
        piece.text.push_str(&exchange.text);
        piece.through = exchange.through;
    }
    piece
}

/// Returns the exchanges of these entries, with outputs that are shortened as far as their number of characters requires.
fn exchanges(turns: &[Turn], from: usize, room: usize) -> Vec<Exchange> {
    let mut texts: Vec<String> = turns.iter().map(|turn| render(turn, None)).collect();
    let mut size: usize = texts.iter().map(|text| text.chars().count()).sum();
    for (turn, text) in turns.iter().zip(&mut texts) {
        if size <= room {
            break;
        }
        if turn.kind == TurnKind::ToolResults {
            let short = render(turn, Some(SHORT_OUTPUT));
            size = size.saturating_sub(text.chars().count()).saturating_add(short.chars().count());
            *text = short;
        }
    }
    let mut exchanges: Vec<Exchange> = Vec::new();
    for (index, (turn, text)) in turns.iter().zip(texts).enumerate() {
        let (through, chars) = (from + index + 1, text.chars().count());
        match exchanges.last_mut() {
            Some(last) if !super::is_border(turn) => {
                last.through = through;
                last.text.push_str(&text);
                last.chars += chars;
            }
            Some(_) | None => exchanges.push(Exchange { through, text, chars }),
        }
    }
    exchanges
}

/// Cuts long exchanges, so that all of them fit the remaining requests.
fn cut_exchanges(exchanges: &mut [Exchange], room: usize, requests_left: usize) {
    // Two consecutive pieces together exceed the room for one.
    let available = room.saturating_mul((requests_left / 2).max(1));
    let mut most = room;
    let total = |most: usize| exchanges.iter().map(|exchange| exchange.chars.min(most)).sum::<usize>();
    while most > LEAST_EXCHANGE && total(most) > available {
        most = (most / 2).max(LEAST_EXCHANGE);
    }
    for exchange in exchanges.iter_mut().filter(|exchange| exchange.chars > most) {
        exchange.text = cut_middle(&exchange.text, most.saturating_sub(1));
        exchange.text.push('\n');
        exchange.chars = exchange.text.chars().count();
    }
}

/// Returns a piece with all remaining exchanges. The oldest are left out if there is no room for them.
fn last_piece(exchanges: &[Exchange], through: usize, room: usize) -> Piece {
    let mut size = 0_usize;
    let fits = exchanges.iter().rev().take_while(|exchange| {
        size = size.saturating_add(exchange.chars);
        size <= room
    });
    let kept = fits.count().max(1);
    let left_out = exchanges.len().saturating_sub(kept);
    let note = format!("[Exchanges that are left out here: {left_out}]\n\n");
    let texts = exchanges.iter().skip(left_out).map(|exchange| exchange.text.as_str());
    let text =
        if left_out > 0 { std::iter::once(note.as_str()).chain(texts).collect() } else { texts.collect() };
    Piece { through, text }
}

/// Returns an entry as text, with outputs of at most this many characters.
fn render(turn: &Turn, output_chars: Option<usize>) -> String {
    let author = match turn.kind {
        TurnKind::User | TurnKind::Steering => "User",
        TurnKind::Assistant => "Assistant",
        TurnKind::ToolResults => "Results",
        TurnKind::System => "Instructions",
    };
    let mut text = format!("## {author}\n");
    let content = turn.item.text();
    if !content.trim().is_empty() {
        let _ = writeln!(text, "{content}");
    }
    for call in turn.item.tool_calls() {
        let _ = writeln!(text, "Call {} of {}: {}", call.id, call.name, call.arguments_text());
    }
    for result in turn.item.results() {
        let outcome = if result.is_error { "failed" } else { "succeeded" };
        let output = result.text();
        let output = output_chars.map_or_else(|| output.clone(), |limit| cut_middle(&output, limit));
        let _ = writeln!(text, "Call {} {outcome}: {output}", result.tool_call_id);
    }
    text.push('\n');
    text
}

/// Cuts a text to `limit` characters, with a note in place of its middle. A limit below the size of the note leaves the
/// note alone.
pub(super) fn cut_middle(text: &str, limit: usize) -> String {
    let chars = text.chars().count();
    if chars <= limit {
        return text.to_owned();
    }
    let kept = limit.saturating_sub(NOTE);
    let tail = kept / 2;
    let head = text.get(..offset(text, kept - tail)).unwrap_or_default();
    let end = text.get(offset(text, chars - tail)..).unwrap_or_default();
    format!("{head}\n[{} characters are left out here]\n{end}", chars - kept)
}

/// Returns the position of a character in bytes.
fn offset(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(offset, _)| offset)
}
