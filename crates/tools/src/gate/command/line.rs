//! A parser for shell lines, as far as rules need one.

use std::iter::Peekable;
use std::str::Chars;

use super::pattern::CommandPattern;
use super::programs;

/// The deepest nesting of scripts within scripts that is searched.
const MAX_DEPTH: usize = 4;

/// Characters that the shell does not take literally, besides separators and quotes.
const EXPANDED: &[char] = &['$', '`', '(', ')', '{', '}', '<', '>', '*', '?', '[', ']'];

/// Redirections that change no file.
const HARMLESS: [&str; 3] = ["2>&1", "2>/dev/null", ">/dev/null"];

/// The shells whose scripts are parsed.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];

/// The commands of a line, each as a list of words without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    commands: Vec<Vec<String>>,
    is_plain: bool,
    /// Words that are lines themselves, so that many rules can look into them.
    nested: Vec<CommandLine>,
}

impl CommandLine {
    /// Parses a line. This never fails; [`CommandLine::is_plain`] tells whether the result is exact.
    #[must_use]
    pub fn parse(line: &str) -> Self {
        Self::parse_within(line, MAX_DEPTH)
    }

    fn parse_within(line: &str, depth: usize) -> Self {
        let mut scanner = Scanner::new(line);
        scanner.scan();
        let (commands, is_plain) = scanner.finish();
        Self::new(commands, is_plain, depth)
    }

    fn new(commands: Vec<Vec<String>>, is_plain: bool, depth: usize) -> Self {
        let is_line = |word: &&String| word.contains(|c: char| c.is_whitespace() || ";|&`$(){}".contains(c));
        let nested = match depth.checked_sub(1) {
            Some(depth) => {
                let lines = commands.iter().flatten().filter(is_line);
                // `env -S` takes its line also without a space.
                let text = |word: &'_ String| {
                    let joined = word.strip_prefix("--split-string=").or_else(|| word.strip_prefix("-S"));
                    joined.unwrap_or(word).to_owned()
                };
                lines.map(|word| Self::parse_within(&text(word), depth)).collect()
            }
            None => Vec::new(),
        };
        Self { commands, is_plain, nested }
    }

    /// Takes a program and its arguments. For a shell with a script, the script is parsed.
    #[must_use]
    pub fn of_words(words: Vec<String>) -> Self {
        if let [shell, flag, script] = words.as_slice()
            && SHELLS.contains(&base_name(shell))
            && flag.starts_with('-')
            && !flag.starts_with("--")
            && flag.ends_with('c')
        {
            let line = Self::parse(script);
            return if is_system_program(shell) { line } else { line.unreliable() };
        }
        Self::new(vec![words], true, MAX_DEPTH)
    }

    /// Marks the result as inexact, so that no rule allows it.
    pub(super) fn unreliable(mut self) -> Self {
        self.is_plain = false;
        self
    }

    /// Returns whether exactly these words will run.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.is_plain && !self.commands.is_empty()
    }

    /// Returns a program of the line, with the argument that counts, which runs files of its working directory that the line
    /// does not name, such as `make`, `npm run` or `python -m`. Approval of the line does not cover these files.
    #[must_use]
    pub fn launcher(&self) -> Option<String> {
        let own = self.commands.iter().find_map(|words| programs::launcher(words));
        own.or_else(|| self.nested.iter().find_map(Self::launcher))
    }

    /// Returns the commands.
    pub fn commands(&self) -> impl Iterator<Item = &[String]> {
        self.commands.iter().map(Vec::as_slice)
    }

    /// Returns whether the line consists of commands that each match one of these patterns, and of nothing that the shell
    /// would expand, substitute or redirect.
    #[must_use]
    pub fn is_only(&self, patterns: &[&CommandPattern]) -> bool {
        let fits = |words: &[String]| patterns.iter().any(|pattern| pattern.matches(words));
        self.is_plain() && self.commands().all(fits)
    }

    /// Returns whether the pattern matches anywhere: from any word of any command on, or within a word that is itself a
    /// line.
    #[must_use]
    pub fn mentions(&self, pattern: &CommandPattern) -> bool {
        let matches_from = |words: &Vec<String>| {
            (0..words.len()).any(|from| {
                let rest = words.get(from..).unwrap_or_default();
                let before = words.get(..from).unwrap_or_default();
                pattern.matches_anywhere(rest)
                    || programs::without_global_options(rest, before)
                        .is_some_and(|words| pattern.matches_anywhere(&words))
            })
        };
        self.commands.iter().any(matches_from) || self.nested.iter().any(|line| line.mentions(pattern))
    }
}

pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns whether a program is the system's, by its path. A program elsewhere may be anything.
fn is_system_program(program: &str) -> bool {
    let name = base_name(program);
    matches!(program.strip_suffix(name), Some("" | "/bin/" | "/usr/bin/"))
}

struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    /// The current word; `None` between words. An empty pair of quotes is a word.
    word: Option<String>,
    is_plain: bool,
    is_in_backticks: bool,
    /// Whether it is between the braces of words such as `{git,push}`.
    is_in_braces: bool,
}

impl<'a> Scanner<'a> {
    fn new(line: &'a str) -> Self {
        Self {
            rest: line.chars().peekable(),
            commands: Vec::new(),
            words: Vec::new(),
            word: None,
            is_plain: true,
            is_in_backticks: false,
            is_in_braces: false,
        }
    }

    fn scan(&mut self) {
        while self.skip_harmless() || self.step() {}
    }

    fn step(&mut self) -> bool {
        let Some(character) = self.rest.next() else { return false };
        match character {
            ' ' | '\t' => self.end_word(),
            '\n' | ';' | '|' => self.end_command(),
            '&' => {
                self.is_plain &= self.rest.next_if_eq(&'&').is_some();
                self.end_command();
            }
            '\'' => self.single_quoted(),
            '"' => self.double_quoted(),
            '\\' => self.escaped(),
            '$' if self.skip("IFS") || self.skip("{IFS}") => {
                self.is_plain = false;
                self.end_word();
            }
            // Escapes in it are not read.
            '$' if self.rest.next_if_eq(&'\'').is_some() => {
                self.is_plain = false;
                self.single_quoted();
            }
            '$' if self.rest.next_if_eq(&'"').is_some() => {
                self.is_plain = false;
                self.double_quoted();
            }
            '{' if self.rest.peek().is_some_and(|next| !next.is_whitespace()) => {
                self.is_plain = false;
                self.is_in_braces = true;
                self.end_word();
            }
            ',' | '}' if self.is_in_braces => {
                self.is_in_braces = character == ',';
                self.end_word();
            }
            '`' => {
                self.is_plain = false;
                self.is_in_backticks = !self.is_in_backticks;
                if self.is_in_backticks {
                    // As for `$(`.
                    self.push('$');
                }
                self.end_command();
            }
            '(' | ')' | '{' | '}' => {
                self.is_plain = false;
                self.end_command();
            }
            '<' | '>' => {
                self.is_plain = false;
                self.end_word();
            }
            '#' if self.word.is_none() => self.comment(),
            '~' if self.word.is_none() => {
                self.is_plain = false;
                self.push(character);
            }
            other => {
                self.is_plain &= !EXPANDED.contains(&other) && !other.is_control();
                self.push(other);
            }
        }
        true
    }

    /// Skips a text if it comes next.
    fn skip(&mut self, text: &str) -> bool {
        let mut ahead = self.rest.clone();
        let is_there = text.chars().all(|expected| ahead.next() == Some(expected));
        if is_there {
            self.rest = ahead;
        }
        is_there
    }

    /// Skips a redirection that changes no file, if it is a word by itself.
    fn skip_harmless(&mut self) -> bool {
        if self.word.is_some() {
            return false;
        }
        for harmless in HARMLESS {
            let before = self.rest.clone();
            if self.skip(harmless) {
                if self.rest.peek().is_none_or(|next| " \t\n;|&".contains(*next)) {
                    return true;
                }
                self.rest = before;
            }
        }
        false
    }

    /// Skips to the end of the line. Quotes have no meaning in a comment.
    fn comment(&mut self) {
        while self.rest.next_if(|character| *character != '\n').is_some() {}
    }

    fn single_quoted(&mut self) {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next() {
                Some('\'') => return,
                Some(character) => self.push(character),
                None => break,
            }
        }
        self.is_plain = false;
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next() {
                Some('"') => return,
                Some('\\') => match self.rest.next() {
                    Some('\n') => {}
                    Some(character @ ('"' | '\\' | '$' | '`')) => self.push(character),
                    Some(character) => {
                        self.push('\\');
                        self.push(character);
                    }
                    None => break,
                },
                Some(character) => {
                    self.is_plain &= character != '$' && character != '`';
                    self.push(character);
                }
                None => break,
            }
        }
        self.is_plain = false;
    }

    fn escaped(&mut self) {
        match self.rest.next() {
            // The line continues.
            Some('\n') => {}
            Some(character) => self.push(character),
            None => self.is_plain = false,
        }
    }

    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        // A variable set before a command may change which program runs.
        self.is_plain &= !(self.words.is_empty() && word.contains('='));
        self.words.push(word);
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }

    fn finish(mut self) -> (Vec<Vec<String>>, bool) {
        self.end_command();
        (self.commands, self.is_plain)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(line: &str) -> String {
        let line = CommandLine::parse(line);
        let commands: Vec<String> = line.commands().map(|words| words.join("_")).collect();
        format!("{}{}", if line.is_plain() { "" } else { "? " }, commands.join(" / "))
    }

    #[test]
    fn lines_are_split_as_a_shell_does() {
        let cases = [
            ("git status", "git_status"),
            ("  git   log -1\t", "git_log_-1"),
            ("a && b || c; d | e\nf", "a / b / c / d / e / f"),
            (r#"a 'b c' "d e" f\ g '' h"i"j"#, "a_b c_d e_f g__hij"),
            (r#"a "q\"\\\$\x""#, r#"a_q"\$\x"#),
            ("a '$HOME `x` *'", "a_$HOME `x` *"),
            ("a \\\n b", "a_b"),
            ("cargo test 2>&1 | tail -5", "cargo_test / tail_-5"),
            ("a >/dev/null 2>/dev/null; b", "a / b"),
            ("a # it's\nb # it's", "a / b"),
            ("a#b c\\ #d ''#e # f", "a#b_c #d_#e"),
            ("# a", "? "),
            ("a HEAD~2", "a_HEAD~2"),
            ("a ~/b", "? a_~/b"),
            ("", "? "),
            (" ; ", "? "),
            ("a & b", "? a / b"),
            ("a > b", "? a_b"),
            ("a 2>&1x", "? a_2 / 1x"),
            ("a $(b c)", "? a_$ / b_c"),
            ("a `b c`", "? a_$ / b_c"),
            ("a${IFS}b$IFS c", "? a_b_c"),
            ("$'a' b", "? a_b"),
            ("a \"$x\"", "? a_$x"),
            ("a $x", "? a_$x"),
            ("a *.rs", "? a_*.rs"),
            ("a {b,c} d", "? a_b_c_d"),
            ("{ a; }", "? a"),
            ("X=1 a", "? X=1_a"),
            ("a 'b", "? a_b"),
            ("a \"b", "? a_b"),
            ("a \\", "? a"),
            ("a\rb", "? a\rb"),
            ("a <(b)", "? a / b"),
        ];
        for (line, expected) in cases {
            assert_eq!(words(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_word_list_is_parsed_only_as_a_shell_script() {
        let of =
            |words: &[&str]| CommandLine::of_words(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(of(&["a", "b; c"]).commands, [["a", "b; c"]]);
        for (shell, is_plain) in [("bash", true), ("/bin/sh", true), ("/tmp/bash", false), ("./sh", false)] {
            let line = of(&[shell, "-lc", "a; b"]);
            assert_eq!(
                (&line.commands, line.is_plain()),
                (&vec![vec!["a".to_owned()], vec!["b".to_owned()]], is_plain)
            );
        }
        assert_eq!(of(&["bash", "--norc", "a; b"]).commands.len(), 1);
        assert!(!of(&[]).commands().any(|words| !words.is_empty()));
    }

    proptest! {
        #[test]
        fn quoted_words_stay_literal(words in prop::collection::vec("\\PC{1,8}", 1..5)) {
            prop_assume!(!words[0].contains('='));
            let quoted: Vec<String> =
                words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            let line = CommandLine::parse(&quoted.join(" "));
            prop_assert!(line.is_plain());
            prop_assert_eq!(&line.commands, &[words]);
        }

        #[test]
        fn no_line_causes_a_panic(line in "\\PC*") {
            let parsed = CommandLine::parse(&line);
            let pattern = CommandPattern::parse("rm *").unwrap();
            let _either = parsed.mentions(&pattern);
        }
    }
}
