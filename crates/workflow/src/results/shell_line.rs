//! The simple commands of a line of the shell.

/// A simple command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SimpleCommand<'a> {
    /// Its words, without quotes. A word with a quote inside is kept as it is.
    pub(super) words: Vec<&'a str>,
    /// End of each word in the line.
    pub(super) ends: Vec<usize>,
    /// Whether another command reads its output.
    pub(super) is_piped: bool,
}

/// Returns the simple commands of a line, or `None` for a line with substitutions, here-documents or an open quote.
pub(super) fn parse(line: &str) -> Option<Vec<SimpleCommand<'_>>> {
    if line.contains("$(") || line.contains('`') || line.contains("<<") {
        return None;
    }
    let bytes = line.as_bytes();
    let (mut commands, mut open) = (Vec::new(), SimpleCommand::empty());
    let (mut start, mut quote, mut at) = (None, None::<u8>, 0);
    while let Some(byte) = bytes.get(at).copied() {
        let near = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied();
        let (previous, next) = (near(at.checked_sub(1)), near(Some(at + 1)));
        match (quote, byte) {
            (Some(mark), _) if mark == byte => quote = None,
            (Some(_), _) => {}
            (None, b'\\') => {
                start = start.or(Some(at));
                at += 1;
            }
            (None, b'\'' | b'"') => {
                start = start.or(Some(at));
                quote = Some(byte);
            }
            // A redirection.
            (None, b'&') if previous == Some(b'>') || next == Some(b'>') => start = start.or(Some(at)),
            (None, b' ' | b'\t') => open.add(line, start.take(), at),
            (None, b';' | b'\n' | b'&' | b'|' | b'(' | b')') => {
                open.add(line, start.take(), at);
                open.is_piped = byte == b'|' && next != Some(b'|');
                commands.push(std::mem::replace(&mut open, SimpleCommand::empty()));
                at += usize::from(matches!(byte, b'&' | b'|') && next == Some(byte));
            }
            (None, _) => start = start.or(Some(at)),
        }
        at += 1;
    }
    if quote.is_some() {
        return None;
    }
    open.add(line, start, line.len());
    commands.push(open);
    commands.retain(|command| !command.words.is_empty());
    Some(commands)
}

impl<'a> SimpleCommand<'a> {
    fn empty() -> Self {
        Self { words: Vec::new(), ends: Vec::new(), is_piped: false }
    }

    fn add(&mut self, line: &'a str, start: Option<usize>, end: usize) {
        let Some(word) = start.and_then(|start| line.get(start..end)) else { return };
        let quoted = ['\'', '"'].into_iter().find_map(|quote| {
            let inner = word.strip_prefix(quote)?.strip_suffix(quote)?;
            (!inner.contains(quote)).then_some(inner)
        });
        self.words.push(quoted.unwrap_or(word));
        self.ends.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_into_commands() {
        let words = |line: &str| -> Option<Vec<String>> {
            let commands = parse(line)?;
            let join = |command: &SimpleCommand<'_>| {
                let pipe = if command.is_piped { " |" } else { "" };
                format!("{}{pipe}", command.words.join("·"))
            };
            Some(commands.iter().map(join).collect())
        };
        for (line, expected) in [
            ("cargo test", Some(vec!["cargo·test"])),
            ("cd 'a b' && X=1 pytest -k \"a or b\"", Some(vec!["cd·a b", "X=1·pytest·-k·a or b"])),
            ("a 2>&1 | tee log; b || c", Some(vec!["a·2>&1 |", "tee·log", "b", "c"])),
            ("(a) &\nb &>x", Some(vec!["a", "b·&>x"])),
            ("a\\ b c", Some(vec!["a\\ b·c"])),
            ("a 'b", None),
            ("a $(b)", None),
            ("a <<END", None),
            ("", Some(vec![])),
        ] {
            let expected =
                expected.map(|words| words.into_iter().map(str::to_owned).collect::<Vec<String>>());
            assert_eq!(words(line), expected, "{line}");
        }
    }
}
