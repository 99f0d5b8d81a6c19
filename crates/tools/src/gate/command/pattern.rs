//! Patterns of commands.

use std::fmt;

use super::computed::{EACH, PART, SPLIT, is_computed, may_match, may_vanish};
use super::programs::{self, base_name};

/// Characters that a pattern must not contain: command separators, and characters that the shell interprets.
const FOREIGN: &[char] = &[';', '&', '|', '<', '>', '(', ')', '`', '$', '"', '\'', '\\', '\n', '\r'];

/// A pattern that no command can match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the command pattern `{pattern}` {problem}, expected the words of one command such as `git log *`")]
pub struct PatternError {
    pattern: String,
    problem: String,
}

/// The words of one command. `*` within words matches any characters. As the last word it matches any number of words:
/// `git log *`, `npm run test:*`.
///
/// * A rule that **denies** or **asks** matches anywhere ([`CommandLine::mention`](super::CommandLine::mention)): in
///   every command of a line, after words such as `sudo` or `xargs`, in a quoted script, and with options before the
///   subcommand as in `git -C dir push`. A word that the shell computes, such as `$x`, `$(cmd)` or `pus?`, matches
///   every word that it may become, including the program. Braces with literal choices, such as
///   `pus{h,}`, match as the words that they expand to, and also as written: some shells expand no braces. A variable
///   before a path, as in `$HOME/bin/tool`, counts as a directory. Arguments and inputs of programs that only read or
///   print them do not match, such as a message of `git commit`, unless another command of the line may run the output.
///   Such rules catch mistakes but are not a security boundary. They do not detect a command in an encoded script, in a
///   script file, behind an alias in a configuration file, or in a program that runs others.
/// * A rule that **allows** is strict ([`CommandLine::is_only`](super::CommandLine::is_only)): every command of the
///   line must match a pattern, and the line must not contain anything that the shell would expand, substitute or
///   redirect. `2>&1`, `>/dev/null` and `2>/dev/null` are harmless. The `*` at the end of a pattern does not match
///   known options that write a file, run a program or connect, such as `--output` of `git log`. A pattern may name
///   them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<String>,
    /// Whether more words may follow.
    is_open: bool,
}

impl CommandPattern {
    /// Parses a pattern, such as `git log *`.
    ///
    /// # Errors
    ///
    /// A pattern that cannot match any command, because it has no words or contains a command separator.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let refused = |problem: String| PatternError { pattern: text.to_owned(), problem };
        if let Some(foreign) = text.chars().find(|character| FOREIGN.contains(character)) {
            return Err(refused(format!("contains {foreign:?}")));
        }
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let is_open = words.last().is_some_and(|last| last == "*");
        if is_open {
            words.pop();
        }
        if words.is_empty() && !is_open {
            return Err(refused("has no words".to_owned()));
        }
        Ok(Self { words, is_open })
    }

    /// Returns whether this command matches.
    pub(super) fn matches(&self, command: &[String]) -> bool {
        self.fits(command, matches_wildcard) && !self.covers_side_effects(command)
    }

    /// Returns whether the last `*` would cover an argument that writes, runs a program or connects.
    fn covers_side_effects(&self, command: &[String]) -> bool {
        // A pattern without words matches every command.
        self.is_open && !self.words.is_empty() && programs::has_side_effect(command, self.words.len())
    }

    /// As [`CommandPattern::matches`], but also matches a program by the last part of its path, and ignores the effects
    /// of its options. Words that the shell computes match if they may become matching words.
    pub(super) fn matches_anywhere(&self, command: &[impl AsRef<str>]) -> bool {
        let Some(program) = command.first() else { return self.words.is_empty() };
        // Most patterns are about other programs.
        if !self.may_be_about(program.as_ref()) {
            return false;
        }
        if self.words.is_empty() {
            return true;
        }
        if command.iter().any(|word| is_computed(word.as_ref())) {
            return self.may_fit(command);
        }
        self.matches_literally(command)
    }

    /// As [`CommandPattern::matches_anywhere`], but does not match words that the shell computes.
    pub(super) fn matches_literally(&self, command: &[impl AsRef<str>]) -> bool {
        self.fits(command, matches_program)
    }

    /// Returns whether commands of this program may match.
    pub(super) fn may_be_about(&self, program: &str) -> bool {
        let Some(first) = self.words.first() else { return true };
        match program.split_once(SPLIT) {
            Some((start, _)) => may_start(first, &format!("{start}{PART}")),
            None => may_start(first, program),
        }
    }

    fn fits(&self, command: &[impl AsRef<str>], first: impl Fn(&str, &str) -> bool) -> bool {
        if command.len() < self.words.len() || (command.len() > self.words.len() && !self.is_open) {
            return false;
        }
        let words = command.iter().map(AsRef::as_ref);
        self.words.iter().zip(words).enumerate().all(|(index, (pattern, word))| match index {
            0 => first(pattern, word),
            _ => matches_wildcard(pattern, word),
        })
    }

    /// Returns whether the command matches for some values of its computed words.
    fn may_fit(&self, command: &[impl AsRef<str>]) -> bool {
        // Whether the command so far may match this number of words.
        let mut reached = vec![false; self.words.len() + 1];
        if let Some(start) = reached.first_mut() {
            *start = true;
        }
        for word in command.iter().map(AsRef::as_ref) {
            let mut next = vec![false; reached.len()];
            for (index, _) in reached.iter().enumerate().filter(|(_, is_reached)| **is_reached) {
                for after in self.matched_by(word, index) {
                    if let Some(is_reached) = next.get_mut(after) {
                        *is_reached = true;
                    }
                }
            }
            if !next.contains(&true) {
                return false;
            }
            reached = next;
            // Further words do not change that.
            if self.is_open && reached.last() == Some(&true) {
                return true;
            }
        }
        reached.last() == Some(&true)
    }

    /// Returns the possible numbers of matched words after a further word of the command, if `index` words match before
    /// it.
    fn matched_by(&self, word: &str, index: usize) -> Vec<usize> {
        let all = self.words.len();
        let may_be = |index: usize, word: &str| {
            let fits = if index == 0 { may_start } else { may_match };
            self.words.get(index).is_some_and(|pattern| fits(pattern, word))
        };
        let mut after = Vec::new();
        if may_vanish(word) || (index == all && self.is_open) {
            after.push(index);
        }
        if may_be(index, word) {
            after.push(index + 1);
        }
        if let (Some((start, _)), Some((_, end))) = (word.split_once(SPLIT), word.rsplit_once(SPLIT)) {
            // The word becomes several words: these are the first and the last, with any words in between.
            if may_be(index, &format!("{start}{PART}")) {
                let last = format!("{PART}{end}");
                after.extend((index + 1..all).filter(|index| may_be(*index, &last)).map(|index| index + 1));
                after.extend(self.is_open.then_some(all));
            }
        } else if word.contains(EACH) {
            let repeated = (index..all).take_while(|index| may_be(*index, word));
            after.extend(repeated.map(|index| index + 1));
        }
        after
    }
}

/// Returns whether a program matches, by its name or the last part of its path.
fn matches_program(pattern: &str, word: &str) -> bool {
    matches_wildcard(pattern, word) || matches_wildcard(pattern, base_name(word))
}

/// Returns whether a program that the shell may compute matches.
fn may_start(pattern: &str, word: &str) -> bool {
    may_match(pattern, word) || may_match(pattern, base_name(word))
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words.iter().map(String::as_str).chain(self.is_open.then_some("*"));
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

/// Returns whether `text` as a whole matches `pattern`, where `*` matches zero or more characters. Case-sensitive.
/// Takes at most time proportional to the product of both lengths, and does not allocate.
#[must_use]
pub fn matches_wildcard(pattern: &str, text: &str) -> bool {
    // Most patterns are about other texts, as their first byte shows.
    if let Some(first) = pattern.bytes().next()
        && first != b'*'
        && text.bytes().next() != Some(first)
    {
        return false;
    }
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        // The earliest match leaves the most text for the remaining pieces.
        let Some((_, after)) = rest.split_once(piece) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_characters() {
        let cases = [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "ac", true),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("test:*", "test:unit", true),
            ("*", "", true),
            ("é*", "éa", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches_wildcard(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_match_is_refused() {
        let cases = [
            (
                "",
                "the command pattern `` has no words, expected the words of one command such as `git log *`",
            ),
            (
                "  ",
                "the command pattern `  ` has no words, expected the words of one command such as `git log *`",
            ),
            (
                "a && b",
                "the command pattern `a && b` contains '&', expected the words of one command such as `git log *`",
            ),
        ];
        for (pattern, expected) in cases {
            assert_eq!(CommandPattern::parse(pattern).unwrap_err().to_string(), expected);
        }
        assert_eq!(CommandPattern::parse(" git  log * ").unwrap().to_string(), "git log *");
        assert!(CommandPattern::parse("*").unwrap().matches(&["anything".to_owned()]));
    }
}
