//! A parser for shell lines, as far as rules need one.

use std::borrow::Cow;

use super::computed::{EACH, PART, UNKNOWN, is_computed};
use super::pattern::CommandPattern;
use super::programs::{self, base_name};
use super::scanner::{self, Content};
use super::scripts;

/// The deepest nesting of scripts within scripts that is searched.
const MAX_DEPTH: usize = 8;

/// The commands of a line, each as a list of words without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    commands: Vec<Vec<String>>,
    is_plain: bool,
    /// Words and inputs that are lines themselves, so that many rules can look into them.
    nested: Vec<CommandLine>,
    /// Whether it may define other names for subcommands.
    sets_alias: bool,
    /// Whether it has lines that are nested too deeply to be searched.
    is_cut: bool,
}

impl CommandLine {
    /// Parses a line. This never fails; [`CommandLine::is_plain`] tells whether the result is exact.
    #[must_use]
    pub fn parse(line: &str) -> Self {
        Self::parse_within(line, Content::Commands, MAX_DEPTH)
    }

    fn parse_within(line: &str, content: Content, depth: usize) -> Self {
        let scanned = scanner::scan(line, content);
        let mut texts = scanned.inputs;
        texts.extend(scanned.commands.iter().flat_map(|words| scripts::texts(words)));
        // A word that is the whole line has been searched.
        texts.retain(|(text, _)| text != line);
        Self::new(scanned.commands, scanned.is_plain, texts, depth)
    }

    fn parse_nested(text: &str, content: Content, depth: usize) -> Self {
        match content {
            // A shell splits again what was one word.
            Content::Commands => Self::parse_within(&text.replace([PART, EACH], UNKNOWN), content, depth),
            Content::Data | Content::Patterns | Content::Test => Self::parse_within(text, content, depth),
        }
    }

    fn new(commands: Vec<Vec<String>>, is_plain: bool, texts: Vec<(String, Content)>, depth: usize) -> Self {
        let sets_alias = commands.iter().flatten().any(|word| programs::sets_alias(word));
        let is_cut = depth == 0 && !texts.is_empty();
        let nested = match depth.checked_sub(1) {
            Some(depth) => {
                let lines = texts.into_iter();
                lines.map(|(text, content)| Self::parse_nested(&text, content, depth)).collect()
            }
            None => Vec::new(),
        };
        Self { commands, is_plain, nested, sets_alias, is_cut }
    }

    /// Takes a program and its arguments. For a shell with a script, the script is parsed.
    #[must_use]
    pub fn of_words(words: Vec<String>) -> Self {
        if let [shell, flag, script] = words.as_slice()
            && programs::is_shell(base_name(shell))
            && flag.starts_with('-')
            && !flag.starts_with("--")
            && flag.ends_with('c')
        {
            let line = Self::parse(script);
            return if is_system_program(shell) { line } else { line.unreliable() };
        }
        let texts = scripts::texts(&words);
        Self::new(vec![words], true, texts, MAX_DEPTH)
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
        let own = self.commands.iter().find_map(|words| match words.as_slice() {
            [data, words @ ..] if data == scanner::DATA => programs::launcher(words),
            words => programs::launcher(words),
        });
        own.or_else(|| self.nested.iter().find_map(Self::launcher))
    }

    /// Returns the commands. In a line that is not [plain](Self::is_plain), each part of a word that the shell computes is a
    /// control character.
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
    /// line. Words that the shell computes match if they may become matching words.
    #[must_use]
    pub fn mentions(&self, pattern: &CommandPattern) -> bool {
        self.mentions_with(pattern, false)
    }

    fn mentions_with(&self, pattern: &CommandPattern, is_aliased: bool) -> bool {
        let is_aliased = is_aliased || self.sets_alias;
        self.is_cut
            || self.commands.iter().any(|words| mentions_in(words, pattern, is_aliased))
            || self.nested.iter().any(|line| line.mentions_with(pattern, is_aliased))
    }
}

/// Returns whether the pattern matches from any word of a command on.
fn mentions_in(words: &[String], pattern: &CommandPattern, is_aliased: bool) -> bool {
    let words = programs::with_inputs_marked(words);
    (0..words.len()).any(|from| {
        let (before, rest) = words.split_at(from);
        let Some(rest) = as_command(before, rest) else { return false };
        pattern.matches_anywhere(&rest)
            || programs::without_global_options(&rest, before, is_aliased)
                .is_some_and(|words| pattern.matches_anywhere(&words))
    })
}

/// Returns words as those of a command, after the words `before`; `None` if their first one is computed and no program.
fn as_command<'a>(before: &[String], words: &'a [String]) -> Option<Cow<'a, [String]>> {
    let (first, rest) = words.split_first()?;
    let name = base_name(first);
    if !is_computed(first) {
        Some(Cow::Borrowed(words))
    } else if is_computed(name) {
        let is_program = !programs::is_assignment(first) && programs::is_program_position(before);
        is_program.then_some(Cow::Borrowed(words))
    } else {
        // As in `$HOME/bin/tool`.
        Some(std::iter::once(name.to_owned()).chain(rest.iter().cloned()).collect())
    }
}

/// Returns whether a program is the system's, by its path. A program elsewhere may be anything.
fn is_system_program(program: &str) -> bool {
    let name = base_name(program);
    matches!(program.strip_suffix(name), Some("" | "/bin/" | "/usr/bin/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gate::command::computed::SPLIT;

    fn words(line: &str) -> String {
        let line = CommandLine::parse(line);
        let shown =
            |words: &[String]| words.join("_").replace(SPLIT, "$").replace(PART, "%").replace(EACH, "*");
        let commands: Vec<String> = line.commands().map(shown).collect();
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
            ("a > b c", "? a_c"),
            ("a 2>&1x b", "? a_b"),
            ("a &>b c <d 2>>e", "? a_c"),
            ("a 12 >b", "? a_12"),
            ("a $(b c)d e", "? b_c / a_$d_e"),
            ("a `b c` d", "? b_c / a_$_d"),
            ("a \"b $(c \"d e\") f\" g", "? c_d e / a_b % f_g"),
            ("a${IFS}b$IFS c $IFSX", "? a_b_c_$"),
            ("$'a\\x62' b", "? ab_b"),
            ("a \"$x\"b", "? a_%b"),
            ("a \"$@\" \"${x[@]}\" \"${x}\"", "? :_x* / :_x / a_$_$_%"),
            ("a ${x:-$(b c)}", "? b_c / :_x:-$ / a_$"),
            ("a $x$1y", "? a_$$y"),
            ("a *.rs b? [ab]c", "? a_*.rs_b*_*c"),
            ("a pre{b,c}d {e} f", "? a_pre*d_*_f"),
            ("a {} {b d} [ x ] e}", "? a_%_{b_d}_[_x_]_e}"),
            ("{ a; }", "? a"),
            ("a() { b; }", "? a / b"),
            ("if [[ a && $b ]]; then c; fi", "? if_[[_a / :_$_]] / then_c / fi"),
            ("case $x in a|*) b;; (c) d;; esac; e", "? case_$_in / :_a / :_* / b / :_c / d / :_esac / e"),
            ("(( $x > 1 && y )); a", "? :_$ / :_y / a"),
            ("a=(b c) d", "? :_b_c / a=*_d"),
            ("X=1 a", "? X=1_a"),
            ("a 'b", "? a_b"),
            ("a \"b", "? a_b"),
            ("a \\", "? a"),
            ("a\rb", "? a\rb"),
            ("a <(b) c", "? b / a_%_c"),
            ("a <<E b\nit's\nE\nc", "? a_b / c"),
            ("a <<<b c", "? a_c"),
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
