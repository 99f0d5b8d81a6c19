//! Simple commands of shell text. Expansions are not evaluated.

/// A simple command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// Words without quotes, including keywords and the files of redirections.
    pub(crate) words: Vec<String>,
    /// End of each word in the text.
    pub(crate) ends: Vec<usize>,
    /// Whether another command reads its output.
    pub(crate) is_piped: bool,
}

impl SimpleCommand {
    /// Returns the words for patterns.
    pub(crate) fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }
}

/// Splits a text into simple commands.
pub(crate) fn split_commands(text: &str) -> Vec<SimpleCommand> {
    scan(text).0
}

/// Splits a text into simple commands. Returns `None` for a text with substitutions, here-documents or an open quote.
pub(crate) fn split_plain_commands(text: &str) -> Option<Vec<SimpleCommand>> {
    let (commands, is_open) = scan(text);
    let is_plain = !is_open && !["$(", "`", "<<"].iter().any(|mark| text.contains(mark));
    is_plain.then_some(commands)
}

/// Returns the commands of a text, and whether its last quote is open.
fn scan(text: &str) -> (Vec<SimpleCommand>, bool) {
    let (mut splitter, mut quote) = (Splitter::default(), None);
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some('"'), '\\') if matches!(next, Some('"' | '\\' | '$' | '`')) => {
                splitter.word.extend(next);
                characters.next();
            }
            (Some(_), _) => splitter.push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                splitter.is_word = true;
            }
            (None, '\\') => match characters.next() {
                Some((_, '\n')) | None => {}
                Some((_, escaped)) => splitter.push(escaped),
            },
            (None, '#') if !splitter.is_word => {
                while characters.next_if(|(_, next)| *next != '\n').is_some() {}
            }
            // `&>log`
            (None, '&') if next == Some('>') => splitter.end_word(at),
            (None, '<' | '>') => {
                splitter.end_redirected(at);
                let sign = characters.next_if(|(_, next)| matches!(next, '&' | '|'));
                // `2>&1` names no file.
                if sign.is_some_and(|(_, sign)| sign == '&') {
                    while characters.next_if(|(_, next)| next.is_ascii_digit() || *next == '-').is_some() {}
                }
            }
            (None, '\n' | ';' | '&' | '|' | '(' | ')' | '`') => {
                splitter.end_command(at, character == '|' && next != Some('|'));
            }
            (None, _) if character.is_whitespace() => splitter.end_word(at),
            (None, _) => splitter.push(character),
        }
    }
    splitter.end_command(text.len(), false);
    (splitter.commands, quote.is_some())
}

#[derive(Debug, Default)]
struct Splitter {
    commands: Vec<SimpleCommand>,
    open: SimpleCommand,
    word: String,
    /// Whether a word is open, which may be empty: `''`.
    is_word: bool,
}

impl Splitter {
    fn push(&mut self, character: char) {
        self.word.push(character);
        self.is_word = true;
    }

    fn end_word(&mut self, end: usize) {
        let word = std::mem::take(&mut self.word);
        if std::mem::take(&mut self.is_word) {
            self.open.words.push(word);
            self.open.ends.push(end);
        }
    }

    /// Ends a word before a redirection, of which the number of a descriptor is a part.
    fn end_redirected(&mut self, end: usize) {
        if self.word.chars().all(|character| character.is_ascii_digit()) {
            self.word.clear();
            self.is_word = false;
        }
        self.end_word(end);
    }

    fn end_command(&mut self, end: usize, is_piped: bool) {
        self.end_word(end);
        let open = std::mem::take(&mut self.open);
        if !open.words.is_empty() {
            self.commands.push(SimpleCommand { is_piped, ..open });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_into_commands() {
        let describe = |command: &SimpleCommand| {
            format!("{}{}", command.words.join("·"), if command.is_piped { " |" } else { "" })
        };
        for (text, is_plain, expected) in [
            ("cargo test", true, "cargo·test"),
            ("cd 'a b' && X=1 pytest -k \"a \\\"or\\\" b\"", true, "cd·a b; X=1·pytest·-k·a \"or\" b"),
            ("a 2>&1 | tee log; b || c", true, "a |; tee·log; b; c"),
            ("(a) &\nb &>x >>2 <y 3>&-", true, "a; b·x·2·y"),
            ("sh 1 >|out", true, "sh·1·out"),
            ("a \\\n  b\\ c --x='d e' ''", true, "a·b c·--x=d e·"),
            ("if ! sh a.sh # no\nthen exit 1; fi", true, "if·!·sh·a.sh; then·exit·1; fi"),
            ("a 'b c", false, "a·b c"),
            ("a $(b)", false, "a·$; b"),
            ("a `b`", false, "a; b"),
            ("a <<END\nb", false, "a·END; b"),
            ("", true, ""),
        ] {
            let commands = split_commands(text);
            assert_eq!(commands.iter().map(describe).collect::<Vec<_>>().join("; "), expected, "{text}");
            assert_eq!(split_plain_commands(text), is_plain.then_some(commands), "{text}");
        }
    }

    #[test]
    fn words_have_their_ends() {
        let commands = split_commands("npx 'je'st 2>&1 >log");
        assert_eq!(commands[0].words(), ["npx", "jest", "log"]);
        assert_eq!(commands[0].ends, [3, 10, 20]);
    }
}
