//! The whole conversation, with complete arguments and results, for the pager.

use pintle_agent::{Turn, TurnKind};
use pintle_host::sanitize::sanitize;
use pintle_llm::ContentPart;

use crate::render::{Colour, Face, Markdown, StyledLine, expand_tabs, image_data_label};

/// Indentation of arguments and results.
const INDENT: &str = "    ";

/// Returns the lines of a history. Markdown is laid out in this many columns.
pub(crate) fn render_history(history: &[Turn], columns: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for turn in history {
        if !lines.is_empty() {
            lines.push(StyledLine::default());
        }
        turn_lines(turn, columns, &mut lines);
    }
    lines
}

/// Returns the lines of the messages in a history, without calls and results.
pub(crate) fn render_messages(history: &[Turn], columns: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for turn in history {
        let before = lines.len();
        text_lines(turn, columns, &mut lines);
        if lines.len() > before {
            lines.push(StyledLine::default());
        }
    }
    lines
}

fn turn_lines(turn: &Turn, columns: usize, lines: &mut Vec<StyledLine>) {
    text_lines(turn, columns, lines);
    for call in turn.item.tool_calls() {
        lines.push(
            StyledLine::new("→ ", Face::coloured(Colour::Cyan))
                .and(sanitize(&call.name).replace('\n', " "), Face::BOLD),
        );
        let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        lines.extend(indented(&arguments));
    }
    for result in turn.item.results() {
        let face = if result.is_error { Face::FAILURE } else { Face::SUCCESS };
        lines.push(StyledLine::new(if result.is_error { "✗" } else { "✓" }, face));
        lines.extend(indented(&result.text()));
        lines.extend(result.images.iter().flat_map(|image| indented(&image_data_label(image))));
    }
}

fn text_lines(turn: &Turn, columns: usize, lines: &mut Vec<StyledLine>) {
    if matches!(turn.kind, TurnKind::User | TurnKind::Steering) {
        let text = turn.item.text();
        let said = sanitize(&text);
        for (index, line) in said.lines().enumerate() {
            let sign = if index == 0 { "› " } else { "  " };
            let sign = StyledLine::new(sign, Face::coloured(Colour::Cyan));
            lines.push(sign.and(expand_tabs(line), Face::BOLD));
        }
        for part in &turn.item.content {
            if let ContentPart::Image(image) = part {
                lines.extend(indented(&image_data_label(image)));
            }
        }
        return;
    }
    let text = turn.item.text();
    if turn.kind == TurnKind::Assistant && !text.trim().is_empty() {
        let mut markdown = Markdown::default();
        lines.extend(markdown.push(&text, columns));
        lines.extend(markdown.end(columns));
    }
}

fn indented(text: &str) -> Vec<StyledLine> {
    let line = |line: &str| StyledLine::plain(format!("{INDENT}{}", expand_tabs(line)));
    sanitize(text).lines().map(line).collect()
}
