//! A parser for shell lines with the precision that rules need.

use std::collections::{HashMap, HashSet};

use super::computed::{EACH, PART, UNKNOWN};
use super::connections;
use super::mention::{CommandMention, SearchBudget, mention_in};
use super::pattern::CommandPattern;
use super::programs::{self, base_name};
use super::scanner::{self, Content, ScannedCommand, ScannedInput};
use super::scripts;

/// Maximum nesting of scripts within scripts that is searched.
const MAX_DEPTH: usize = 8;

/// The commands of a line, each as a list of words without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    commands: Vec<ParsedCommand>,
    is_plain: bool,
    /// Words and inputs that are lines themselves, parsed once for many rules.
    nested: Vec<NestedLine>,
    /// Whether the line may define other names for subcommands.
    sets_alias: bool,
    /// Whether the line contains lines that are nested too deeply to be searched.
    is_cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ParsedCommand {
    words: Vec<String>,
    /// The words of a shell that expands no braces, if they differ.
    unexpanded: Option<Vec<String>>,
    /// Whether no command of the line runs its arguments or its input.
    is_text: bool,
}

/// Line within a line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NestedLine {
    line: CommandLine,
    /// How the outer line contains the commands of this one; `None` if it runs this one.
    mention: Option<CommandMention>,
}

/// Text that may be a line.
#[derive(Debug)]
struct NestedText {
    text: String,
    content: Content,
    mention: Option<CommandMention>,
}

impl CommandLine {
    /// Parses a line. This never fails. [`CommandLine::is_plain`] returns whether the result is exact.
    #[must_use]
    pub fn parse(line: &str) -> Self {
        Self::parse_within(line, Content::Commands, MAX_DEPTH, true)
    }

    /// Parses a text that may run as a line in an unknown way, so that no rule allows it.
    pub(super) fn parse_unreliable(text: &str) -> Self {
        let line = Self::parse_within(text, Content::Commands, MAX_DEPTH, false);
        Self { is_plain: false, ..line }
    }

    /// `may_have_texts` is whether arguments may be treated as texts that are not run.
    fn parse_within(line: &str, content: Content, depth: usize, may_have_texts: bool) -> Self {
        let scanned = scanner::scan(line, content);
        let is_text = if may_have_texts {
            connections::text_commands(&scanned)
        } else {
            vec![false; scanned.commands.len()]
        };
        let ids = scanned.commands.iter().enumerate();
        let owners: HashMap<usize, usize> =
            ids.map(|(index, command)| (command.connections.id, index)).collect();
        let commands = scanned.commands.into_iter().zip(is_text);
        let parsed = |(command, is_text): (ScannedCommand, bool)| {
            let ScannedCommand { words, unexpanded, .. } = command;
            ParsedCommand { words, unexpanded, is_text }
        };
        let commands: Vec<ParsedCommand> = commands.map(parsed).collect();
        let owner = |input: &ScannedInput| owners.get(&input.owner).and_then(|index| commands.get(*index));
        let inputs = scanned.inputs.into_iter().filter_map(|input| {
            let owner = owner(&input);
            if !input.may_compute && owner.is_some_and(|owner| owner.is_text) {
                return None;
            }
            let is_data = input.content == Content::Data;
            let mention = owner.filter(|_| is_data).map(|owner| CommandMention::of_input(&owner.words));
            Some(NestedText { text: input.text, content: input.content, mention })
        });
        let mut texts: Vec<NestedText> = inputs.collect();
        texts.extend(commands.iter().flat_map(ParsedCommand::texts));
        // A word that is the whole line has been searched already.
        texts.retain(|nested| nested.text != line);
        let line = Self::new(commands, scanned.is_plain, texts, depth);
        Self { is_cut: line.is_cut || scanned.is_cut, ..line }
    }

    fn parse_nested(nested: NestedText, depth: usize) -> NestedLine {
        let NestedText { text, content, mention } = nested;
        let line = match content {
            // A shell splits the word again.
            Content::Commands => {
                Self::parse_within(&text.replace([PART, EACH], UNKNOWN), content, depth, false)
            }
            Content::Data | Content::Patterns | Content::Test => {
                Self::parse_within(&text, content, depth, false)
            }
        };
        NestedLine { line, mention }
    }

    fn new(commands: Vec<ParsedCommand>, is_plain: bool, texts: Vec<NestedText>, depth: usize) -> Self {
        let run = commands.iter().filter(|command| !command.is_text);
        let sets_alias =
            run.flat_map(ParsedCommand::readings).flatten().any(|word| programs::sets_alias(word));
        let is_cut = depth == 0 && !texts.is_empty();
        let nested = match depth.checked_sub(1) {
            Some(depth) => texts.into_iter().map(|nested| Self::parse_nested(nested, depth)).collect(),
            None => Vec::new(),
        };
        Self { commands, is_plain, nested, sets_alias, is_cut }
    }

    /// Creates a line from a program and its arguments. The script of a shell is parsed.
    #[must_use]
    pub fn of_words(words: Vec<String>) -> Self {
        if let [shell, flag, script] = words.as_slice()
            && programs::is_shell(base_name(shell))
            && flag.starts_with('-')
            && !flag.starts_with("--")
            && flag.ends_with('c')
        {
            let is_known = programs::is_system_program(shell);
            return if is_known { Self::parse(script) } else { Self::parse_unreliable(script) };
        }
        let is_text = programs::has_text_arguments(&words);
        let command = ParsedCommand { words, unexpanded: None, is_text };
        let texts = command.texts();
        Self::new(vec![command], true, texts, MAX_DEPTH)
    }

    /// Returns whether exactly these words will run.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.is_plain && !self.commands.is_empty()
    }

    /// Returns a program of the line that runs files of its working directory which the line does not name, such as
    /// `make`, `npm run` or `python -m`, with the argument that selects this. Approval of the line does not cover these
    /// files.
    #[must_use]
    pub fn launcher(&self) -> Option<String> {
        let own = self.commands().find_map(|words| match words {
            [data, words @ ..] if data == scanner::DATA => programs::launcher(words),
            words => programs::launcher(words),
        });
        own.or_else(|| self.nested.iter().find_map(|nested| nested.line.launcher()))
    }

    /// Returns the commands. In a line that is not [plain](Self::is_plain), a control character represents each part of
    /// a word that the shell computes.
    pub fn commands(&self) -> impl Iterator<Item = &[String]> {
        self.commands.iter().map(|command| command.words.as_slice())
    }

    /// Returns whether every command of the line matches one of these patterns, and the line contains no text that the
    /// shell would expand, substitute or redirect.
    #[must_use]
    pub fn is_only(&self, patterns: &[&CommandPattern]) -> bool {
        let fits = |words: &[String]| patterns.iter().any(|pattern| pattern.matches(words));
        self.is_plain() && self.commands().all(fits)
    }

    /// Returns whether the pattern matches anywhere: see [`CommandLine::mention`].
    #[must_use]
    pub fn mentions(&self, pattern: &CommandPattern) -> bool {
        self.mention(pattern).is_some()
    }

    /// Returns how the line contains the command of a pattern: starting at any word of any command, or within a word or
    /// an input that is itself a line. Words that the shell computes match if they may become matching words. Arguments
    /// and inputs of programs that only read and print them do not match, unless another command of the line may run
    /// the output. A line that is too complex to be searched matches.
    #[must_use]
    pub fn mention(&self, pattern: &CommandPattern) -> Option<CommandMention> {
        self.mention_within(pattern, false, &SearchBudget::new())
    }

    fn mention_within(
        &self,
        pattern: &CommandPattern,
        is_aliased: bool,
        budget: &SearchBudget,
    ) -> Option<CommandMention> {
        let is_aliased = is_aliased || self.sets_alias;
        let own = self.commands.iter().flat_map(|command| {
            let is_text = command.is_text;
            let mention = move |words| mention_in(words, is_text, pattern, is_aliased, budget);
            command.readings().filter_map(mention)
        });
        let nested = self.nested.iter().filter_map(|nested| {
            let inner = nested.line.mention_within(pattern, is_aliased, budget)?;
            let outer = nested.mention.clone().filter(|_| inner != CommandMention::TooComplex);
            Some(outer.unwrap_or(inner))
        });
        let mut found = self.is_cut.then_some(CommandMention::TooComplex);
        for mention in own.chain(nested) {
            if mention == CommandMention::Command {
                return Some(mention);
            }
            found = found.or(Some(mention));
        }
        found
    }
}

impl ParsedCommand {
    /// Returns the words as each kind of shell reads them.
    fn readings(&self) -> impl Iterator<Item = &[String]> {
        std::iter::once(self.words.as_slice()).chain(self.unexpanded.as_deref())
    }

    /// Returns the arguments that may be lines.
    fn texts(&self) -> Vec<NestedText> {
        if self.is_text {
            return Vec::new();
        }
        let mut known = HashSet::new();
        let texts = self.readings().flat_map(scripts::texts).filter_map(|(text, content)| {
            let is_data = content == Content::Data;
            // Most texts are the same in each reading.
            let is_new = self.unexpanded.is_none() || known.insert((text.clone(), is_data));
            let mention = is_data.then(|| CommandMention::of_argument(&self.words));
            is_new.then_some(NestedText { text, content, mention })
        });
        texts.collect()
    }
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
            ("a pre{b,c}d {e} f", "? a_prebd_precd_*_f"),
            ("a {b,}{c,d} {,} x{1,2}'{y,z}'", "? a_bc_bd_c_d_x1{y,z}_x2{y,z}"),
            ("a ''{b,} {,}\"\"", "? a_b___"),
            ("a {b,$c} {b,'c'} {b,{c,d}} {b..c} {b,c", "? a_*_*_*_*_{b,c"),
            ("X={a,b} c d={e,f} >{g,h} $i{j,k}", "? X=*_c_d=e_d=f_$j_$k"),
            ("[[ {a,b} ]]; case {a,b} in {c,d}) e;; esac", "? [[_*_]] / case_*_in / :_* / e / :_esac"),
            ("{if,case} a in b", "? if_case_a_in_b"),
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
        let commands = |line: &CommandLine| line.commands().map(<[String]>::to_vec).collect::<Vec<_>>();
        assert_eq!(commands(&of(&["a", "b; c"])), [["a", "b; c"]]);
        for (shell, is_plain) in [("bash", true), ("/bin/sh", true), ("/tmp/bash", false), ("./sh", false)] {
            let line = of(&[shell, "-lc", "a; b"]);
            assert_eq!(
                (commands(&line), line.is_plain()),
                (vec![vec!["a".to_owned()], vec!["b".to_owned()]], is_plain)
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
            prop_assert_eq!(line.commands().collect::<Vec<_>>(), [words.as_slice()]);
        }

        #[test]
        fn no_line_causes_a_panic(line in "\\PC*") {
            let parsed = CommandLine::parse(&line);
            let pattern = CommandPattern::parse("rm *").unwrap();
            let _either = parsed.mentions(&pattern);
        }
    }
}
