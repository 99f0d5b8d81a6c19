//! What `read_file` shows, taken apart again, for agents that show lines in another form.

use pintle_env::Output;

use crate::error::{ToolError, ToolErrorKind};

/// Lines of a file as `read_file` numbers them.
pub(super) struct Numbered<'a> {
    /// The lines, without their numbers.
    pub(super) lines: Vec<&'a str>,
    /// What follows them: a note that there is more, or all of a text that has no numbers.
    pub(super) rest: &'a str,
}

impl<'a> Numbered<'a> {
    /// Takes apart a text whose first line has the number `first`.
    pub(super) fn of(text: &'a str, first: usize) -> Self {
        let mut lines = Vec::new();
        let mut rest = Some(text);
        while let Some(text) = rest {
            let (line, after) = match text.split_once('\n') {
                Some((line, after)) => (line, Some(after)),
                None => (text, None),
            };
            let number = format!("{} | ", first + lines.len());
            let Some(line) = line.trim_start_matches(' ').strip_prefix(&number) else { break };
            lines.push(line);
            rest = after;
        }
        Self { lines, rest: rest.unwrap_or_default() }
    }
}

/// The text of an output.
pub(super) fn text_of(output: &Output) -> Result<String, ToolError> {
    output.to_text_lossy().map_err(|error| {
        ToolError::new(ToolErrorKind::Failed, "the file was read and then lost").with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lose_their_numbers_and_nothing_else() {
        let rows: [(&str, usize, &[&str], &str); 5] = [
            (" 9 | a\n10 | \n11 |   12 | b", 9, &["a", "", "  12 | b"], ""),
            ("1 | a\n\n[More lines follow.]", 1, &["a"], "\n[More lines follow.]"),
            ("[empty.txt is empty]", 1, &[], "[empty.txt is empty]"),
            ("1 | a\n1 | b", 1, &["a"], "1 | b"),
            ("", 1, &[], ""),
        ];
        for (text, first, lines, rest) in rows {
            let numbered = Numbered::of(text, first);
            assert_eq!((numbered.lines.as_slice(), numbered.rest), (lines, rest), "{text}");
        }
    }
}
