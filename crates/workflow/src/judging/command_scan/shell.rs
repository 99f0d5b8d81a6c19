//! Words of shell commands. Expansions are not evaluated.

/// A command without operators.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    pub(super) words: Vec<String>,
}

/// Splits a text into simple commands.
pub(super) fn split_commands(text: &str) -> Vec<SimpleCommand> {
    let mut splitter = Splitter::default();
    let mut characters = text.chars().peekable();
    let mut quote = None;
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => splitter.push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                splitter.is_quoted = true;
            }
            (None, '\\') => match characters.next() {
                Some('\n') | None => splitter.end_word(),
                Some(escaped) => splitter.push(escaped),
            },
            (None, '#') if splitter.word.is_empty() => {
                while characters.peek().is_some_and(|next| *next != '\n') {
                    characters.next();
                }
            }
            (None, '\n' | ';' | '&' | '|' | '(' | ')' | '`') => splitter.end_command(),
            (None, '<' | '>') => splitter.end_word(),
            (None, _) if character.is_whitespace() => splitter.end_word(),
            (None, _) => splitter.push(character),
        }
    }
    splitter.end_command();
    splitter.commands
}

/// Words before which a command starts.
const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "while", "until", "do", "!", "{"];

#[derive(Debug, Default)]
struct Splitter {
    commands: Vec<SimpleCommand>,
    words: Vec<String>,
    word: String,
    is_quoted: bool,
}

impl Splitter {
    fn push(&mut self, character: char) {
        self.word.push(character);
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        let is_quoted = std::mem::take(&mut self.is_quoted);
        let is_word = is_quoted || !word.is_empty();
        let is_keyword = self.words.is_empty() && KEYWORDS.contains(&word.as_str());
        if is_word && !is_keyword {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.commands.push(SimpleCommand { words });
        }
    }
}

/// Returns the path of a file in a directory, from the root of the repository. `None` for a path that leaves it.
pub(super) fn join(directory: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split() {
        let shown = |text: &str| {
            let commands = split_commands(text).into_iter().map(|command| command.words.join(" "));
            commands.collect::<Vec<_>>().join("; ")
        };
        for (text, expected) in [
            ("sh a.sh && b | c", "sh a.sh; b; c"),
            ("A=1 sh 'a b.sh' \"c d\"", "A=1 sh a b.sh c d"),
            ("if ! sh a.sh # no\nthen exit 1; fi", "sh a.sh; exit 1; fi"),
            ("(cd x; ./run) >out", "cd x; ./run; out"),
            ("a \\\n  b\\ c", "a b c"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn paths_stay_in_the_repository() {
        for (directory, path, expected) in [
            ("", "./a.sh", Some("a.sh")),
            ("b", "../a.sh", Some("a.sh")),
            ("b", "c/./d", Some("b/c/d")),
            ("", "../a.sh", None),
            ("b", "/a.sh", None),
        ] {
            assert_eq!(join(directory, path).as_deref(), expected, "{path}");
        }
    }
}
