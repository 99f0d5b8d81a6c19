//! Unified diffs as lines, with marks within lines that were changed a little.

use super::line::{Colour, Face, Line};
use super::sanitize::{diff_lines, escape_hidden};
use super::style::{Highlight, Style};
use super::wrap::expand_tabs;

/// Maximum length of a line that is shown, in characters.
const MAX_LINE_CHARS: usize = 500;

/// Largest share of a line that may differ for it to count as changed a little, in percent.
const MAX_CHANGED: usize = 60;

/// Returns the lines of a diff, without those of the files' names if there is a head that names them.
pub(crate) fn diff(diff: &str) -> Vec<Line> {
    let texts: Vec<String> = diff_lines(diff).map(shown).collect();
    let mut lines = Vec::with_capacity(texts.len());
    let mut rest = texts.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let removed = count(rest, '-');
        let added = rest.get(removed..).map_or(0, |rest| count(rest, '+'));
        if removed == 0 || removed != added {
            lines.push(line(first));
            rest = after;
            continue;
        }
        let (old, new) = (rest.get(..removed).unwrap_or_default(), rest.get(removed..2 * removed));
        let pairs: Vec<(Line, Line)> =
            old.iter().zip(new.unwrap_or_default()).map(|(old, new)| pair(old, new)).collect();
        let (old, new): (Vec<Line>, Vec<Line>) = pairs.into_iter().unzip();
        lines.extend(old);
        lines.extend(new);
        rest = rest.get(2 * removed..).unwrap_or_default();
    }
    lines
}

fn shown(line: &str) -> String {
    let line = match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    };
    let (sign, text) = line.split_at_checked(1).unwrap_or((&line, ""));
    format!("{sign}{}", expand_tabs(&escape_hidden(text)))
}

/// Returns how many lines with this sign come first. The names of files begin with three signs and a blank.
fn count(lines: &[String], sign: char) -> usize {
    let is_name = |line: &str| line.starts_with("--- ") || line.starts_with("+++ ");
    lines.iter().take_while(|line| line.starts_with(sign) && !is_name(line)).count()
}

fn line(text: &str) -> Line {
    Line::new(text, Style::diff_highlight(text).map_or(Face::PLAIN, Highlight::face))
}

/// Returns a removed and an added line, with what differs between them marked.
fn pair(old: &str, new: &str) -> (Line, Line) {
    let (old_text, new_text) = (old.get(1..).unwrap_or_default(), new.get(1..).unwrap_or_default());
    let same = |(a, b): &(char, char)| a == b;
    let before = old_text.chars().zip(new_text.chars()).take_while(same).count();
    let longest = old_text.chars().count().min(new_text.chars().count()) - before;
    let behind = old_text.chars().rev().zip(new_text.chars().rev()).take_while(same).count().min(longest);
    (marked('-', old_text, before, behind, Colour::Red), marked('+', new_text, before, behind, Colour::Green))
}

/// Returns a line with a mark on what is between the first and the last characters.
fn marked(sign: char, text: &str, before: usize, behind: usize, colour: Colour) -> Line {
    let face = Face::coloured(colour);
    let characters: Vec<char> = text.chars().collect();
    let end = characters.len().saturating_sub(behind).max(before);
    let part =
        |from: usize, to: usize| characters.get(from..to).unwrap_or_default().iter().collect::<String>();
    let changed = end - before;
    if changed == 0 || changed * 100 > characters.len() * MAX_CHANGED {
        return Line::new(format!("{sign}{text}"), face);
    }
    Line::new(sign, face)
        .and(part(0, before), face)
        .and(part(before, end), face.and(Face::REVERSED))
        .and(part(end, characters.len()), face)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_within_a_line_is_marked() {
        let text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-let total = 1;\n-\tgone\n+let total = 12;\n+\u{202e}new line\n";
        let shown: Vec<String> = diff(text)
            .iter()
            .map(|line| {
                let mark = |span: &crate::render::line::Span| {
                    if span.face.reversed { format!("<{}>", span.text) } else { span.text.clone() }
                };
                line.spans().iter().map(mark).collect()
            })
            .collect();
        let expected = [
            "--- a/x",
            "+++ b/x",
            "@@ -1,2 +1,2 @@",
            " same",
            "-let total = 1;",
            "-    gone",
            "+let total = 1<2>;",
            "+\\u{202e}new line",
        ];
        assert_eq!(shown, expected);
        assert_eq!(diff("-a\n+b\n").len(), 2);
        assert_eq!(diff(""), [Line::default()]);
    }
}
