//! Emphasis, code and links within a line of Markdown.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::render::line::{Colour, Face, StyledLine};
use crate::render::wrap::expand_tabs;

/// Prefix that makes every line a paragraph, whatever it starts with.
const MARK: char = '\u{fffc}';

/// Returns a line with its inline markup converted to faces.
pub(super) fn line(text: &str) -> StyledLine {
    let marked = format!("{MARK}{}", text.trim_end());
    let mut line = StyledLine::default();
    let mut faces = vec![Face::PLAIN];
    let mut targets = Vec::new();
    for event in Parser::new_ext(&marked, Options::ENABLE_STRIKETHROUGH) {
        let face = faces.last().copied().unwrap_or_default();
        match event {
            Event::Start(tag) => {
                let (added, target) = start(&tag);
                faces.push(face.and(added));
                if let Some(target) = target {
                    if matches!(tag, Tag::Image { .. }) {
                        line.push("[image: ", face.and(Face::DIM));
                    }
                    targets.push((target, line.text().len()));
                }
            }
            Event::End(tag) => {
                faces.pop();
                let outer = faces.last().copied().unwrap_or_default();
                if let TagEnd::Image = tag {
                    line.push("]", outer.and(Face::DIM));
                }
                if let TagEnd::Link | TagEnd::Image = tag
                    && let Some((target, start)) = targets.pop()
                    && line.text().get(start..) != Some(target.as_str())
                    && !target.is_empty()
                {
                    line.push(format!(" ({target})"), outer.and(Face::DIM));
                }
            }
            Event::Text(text) => push(&mut line, &text, face),
            Event::Code(code) => push(&mut line, &code, face.and(Face::coloured(Colour::Cyan))),
            Event::InlineHtml(text) | Event::Html(text) => push(&mut line, &text, face),
            Event::SoftBreak | Event::HardBreak => push(&mut line, " ", face),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                push(&mut line, &text, face);
            }
            Event::Rule => push(&mut line, "---", face),
            Event::TaskListMarker(done) => push(&mut line, if done { "[x]" } else { "[ ]" }, face),
        }
    }
    line
}

/// Returns the face of a tag, and its link target.
fn start(tag: &Tag<'_>) -> (Face, Option<String>) {
    if let Tag::Emphasis = tag {
        (Face { italic: true, ..Face::PLAIN }, None)
    } else if let Tag::Strong = tag {
        (Face::BOLD, None)
    } else if let Tag::Strikethrough = tag {
        (Face { struck: true, ..Face::PLAIN }, None)
    } else if let Tag::Link { dest_url, .. } = tag {
        (Face { underlined: true, ..Face::PLAIN }, Some(dest_url.to_string()))
    } else if let Tag::Image { dest_url, .. } = tag {
        (Face::DIM, Some(dest_url.to_string()))
    } else {
        // Block tags do not change the face.
        (Face::PLAIN, None)
    }
}

fn push(line: &mut StyledLine, text: &str, face: Face) {
    // Entities may encode control characters.
    let text: String = text.chars().filter(|character| *character != MARK).collect();
    let text = pintle_host::sanitize::sanitize(&text).replace('\n', " ");
    line.push(expand_tabs(&text), face);
}
