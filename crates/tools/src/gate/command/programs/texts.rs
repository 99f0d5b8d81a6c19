//! Programs whose arguments and input are texts.

use super::operands::Operands;
use super::table::{TextArguments, known};
use super::{
    base_name, has_side_effect, is_assignment, is_reserved, is_system_program, without_global_options,
};
use crate::gate::command::computed::{EACH, PART, SPLIT, is_computed};

/// Words that may change which program a name starts, or which commands the shell runs.
const REBINDING: [&str; 9] =
    ["alias", "coproc", "enable", "eval", "exec", "function", "hash", "source", "trap"];

/// Returns the index of the first word of a command after the shell's grammar.
pub(in super::super) fn program_index(words: &[String]) -> usize {
    words.iter().position(|word| !is_reserved(word)).unwrap_or(words.len())
}

/// Returns the name of the program of a command, for messages.
pub(in super::super) fn program_name(words: &[String]) -> String {
    let program = words.iter().find(|word| !is_reserved(word) && !is_assignment(word));
    program.map_or("", |program| base_name(program)).replace([SPLIT, PART, EACH], "*")
}

/// Returns whether a command runs neither its arguments nor its input, and starts no program that could run them.
pub(in super::super) fn has_text_arguments(words: &[String]) -> bool {
    let words = words.get(program_index(words)..).unwrap_or_default();
    let Some((first, arguments)) = words.split_first() else { return false };
    if !is_system_program(first) {
        return false;
    }
    // Another version may be another program.
    let Some(program) = known(first).filter(|program| program.name == base_name(first)) else { return false };
    let has_text_arguments = match program.text_arguments {
        TextArguments::None => false,
        TextArguments::All => true,
        TextArguments::WithoutOptions => {
            arguments.first().is_none_or(|word| !word.starts_with(['-', SPLIT, PART, EACH]))
        }
        TextArguments::Of(subcommands) => {
            let found = without_global_options(words, &[], false);
            let subcommand = match &found {
                Some(found) => found.get(1).map(|word| &**word),
                None => words.get(1).map(String::as_str),
            };
            subcommand.is_some_and(|subcommand| subcommands.contains(&subcommand))
        }
    };
    // The options of these subcommands do not run arguments.
    let has_subcommands = matches!(program.text_arguments, TextArguments::Of(_));
    let may_be_option = |word: &String| word.starts_with([SPLIT, PART, EACH]);
    let may_do_more = if matches!(program.operands, Operands::Plain) {
        !has_subcommands && !program.side_effect_options.is_empty() && arguments.iter().any(may_be_option)
    } else {
        arguments.iter().any(|word| is_computed(word))
    };
    has_text_arguments && !may_do_more && !has_side_effect(words, 1)
}

/// Returns whether a command with text arguments runs no file of the working directory, such as a git hook.
pub(in super::super) fn runs_no_file(words: &[String]) -> bool {
    let program = words.get(program_index(words)).and_then(|first| known(first));
    has_text_arguments(words)
        && !program.is_some_and(|program| matches!(program.text_arguments, TextArguments::Of(_)))
}

/// Returns whether a command may change which program a name starts.
pub(in super::super) fn may_rebind(words: &[String]) -> bool {
    let sets_path = |word: &String| word.starts_with("PATH=") || word.starts_with("PATH+=");
    words.get(program_index(words)).is_some_and(|first| first == ".")
        || words.iter().any(|word| REBINDING.contains(&word.as_str()) || sets_path(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_run_no_argument_have_text_arguments() {
        for (line, expected) in [
            ("echo git push", true),
            ("/bin/echo git push", true),
            ("./echo git push", false),
            ("then echo git push", true),
            ("A=b echo git push", false),
            ("sudo echo git push", false),
            ("cat2 x", false),
            ("printf x y", true),
            ("printf -v x y", false),
            ("grep -r x .", true),
            ("rg --pre x y", false),
            ("rg x y", true),
            ("rg \0 y", false),
            ("grep \0 y", true),
            ("find . -name x", true),
            ("find . -exec x", false),
            ("find . \0 x", false),
            ("sed -n /x/p y", true),
            ("sed e y", false),
            ("sed s/\u{1}/x/ y", false),
            ("awk /x/ y", true),
            ("git commit -m \u{1}", true),
            ("git -C x commit -m y", true),
            ("git -c a=b commit -m y", false),
            ("git \0 x", false),
            ("git -C \0 commit", false),
            ("git rebase --exec x", false),
            ("git push", false),
            ("sh x", false),
            ("tee x", false),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(has_text_arguments(&words), expected, "{line:?}");
        }
    }
}
