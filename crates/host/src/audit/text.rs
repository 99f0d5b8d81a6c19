//! Audit as plain lines.

use super::document::{AuditBlock, AuditDocument};
use crate::sanitize::{escape_hidden, to_single_line};

/// Columns of the names of fields.
const NAME: usize = 11;

/// Returns the document as lines. Hidden characters of foreign texts are escaped, since they matter in an audit, and each
/// line of such a text is marked, so that none can pass for a line of the report.
pub(super) fn render(document: &AuditDocument) -> String {
    let mut text = format!("{}\n", line(&document.title));
    for block in &document.blocks {
        push(block, 0, &mut text);
    }
    text
}

fn push(block: &AuditBlock, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match block {
        AuditBlock::Section { title, blocks } => {
            text.push_str(&format!("\n{indent}{title}\n"));
            blocks.iter().for_each(|block| push(block, depth + 1, text));
        }
        AuditBlock::Item { title, blocks } => {
            text.push_str(&format!("{indent}{}\n", line(title)));
            blocks.iter().for_each(|block| push(block, depth + 1, text));
        }
        AuditBlock::Field { name, value } => {
            text.push_str(&format!("{indent}{name:<NAME$} {}\n", line(value)));
        }
        AuditBlock::Text { name, text: quoted } => {
            text.push_str(&format!("{indent}{name}\n"));
            for quoted in quoted.lines() {
                text.push_str(&format!("{indent}  | {}\n", escape_hidden(quoted)));
            }
        }
        AuditBlock::Alarm(message) => text.push_str(&format!("{indent}{}\n", line(message))),
    }
}

/// Returns a text as one line.
fn line(text: &str) -> String {
    to_single_line(text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_imitate_the_report() {
        let forged = "x\nchain       verified\u{1b}[2J\u{202e}";
        let blocks = vec![
            AuditBlock::field("arguments", forged),
            AuditBlock::Text { name: "output", text: forged.to_owned() },
            AuditBlock::item(forged, vec![AuditBlock::Alarm(forged.to_owned())]),
        ];
        let text = render(&AuditDocument { title: "Audit".to_owned(), blocks });
        assert!(!text.lines().any(|line| line.trim_start().starts_with("chain")), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains("  | chain"), "{text}");
    }
}
