//! Knowledge about programs: options before their subcommand, arguments with additional effects, wrappers of other
//! programs, and programs that run files which their arguments do not name.

mod operands;
mod options;
mod table;
mod texts;

use std::borrow::Cow;

use self::table::{Program, known};
pub(super) use self::texts::{has_text_arguments, may_rebind, program_index, program_name, runs_no_file};
use super::computed::{PART, UNKNOWN, is_computed, is_splittable};

/// The shells whose scripts are parsed.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ash", "ksh"];

/// Words before a command.
const RESERVED: [&str; 11] =
    ["!", "{", "coproc", "do", "elif", "else", "if", "then", "time", "until", "while"];

/// Wrappers that append arguments from their input to the program that they run.
const APPENDING: [&str; 2] = ["xargs", "parallel"];

/// Programs that replace `{}` in the arguments of the program that they run.
const REPLACING: [&str; 6] = ["xargs", "parallel", "find", "bfs", "fd", "fdfind"];

/// Options before a program that `find` and `fd` run.
const EXECUTING: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Wrappers whose first operand is not the program that they run.
const WITH_OPERAND: [&str; 2] = ["flock", "chroot"];

/// Options whose value is a setting, which may define a subcommand.
const SETTINGS: [&str; 3] = ["-c", "--config", "--config-env"];

/// Starts of settings and variables that define subcommands.
const ALIASES: [&str; 5] = ["alias.", "include.", "includeif.", "GIT_CONFIG", "CARGO_ALIAS"];

/// Common subcommands of git and cargo, which aliases cannot replace.
const BUILT_IN: &str = "add am apply bench bisect blame branch build check checkout cherry-pick clean clippy clone commit \
    config describe diff doc fetch fmt grep init log ls-files merge mv publish pull push rebase reflog \
    remote reset restore revert rev-parse rm run show stash status submodule switch tag test tree update \
    version worktree";

/// Maximum number of words after a wrapper that are searched for programs that run unnamed files.
const MAX_LAUNCHED_WORDS: usize = 1000;

/// Returns the last part of the path of a program.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns whether a program is a system program, by its path. A program in another directory may do anything.
pub(super) fn is_system_program(program: &str) -> bool {
    let name = base_name(program);
    matches!(program.strip_suffix(name), Some("" | "/bin/" | "/usr/bin/"))
}

/// Returns the programs that a word in a program position may denote, as rules name them.
pub(super) fn named_programs(word: &str) -> impl Iterator<Item = &str> {
    let name = base_name(word);
    // A computed directory, as in `$HOME/bin/tool`, is not part of the name.
    let own = if is_computed(word) && !is_computed(name) { name } else { word };
    let is_git = name.len() > 4 && name.starts_with("git-");
    std::iter::once(own).chain(is_git.then_some("git"))
}

/// Returns whether a program of this name runs scripts, which are then parsed.
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Returns whether a word of the shell's grammar precedes a command.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Returns whether a word sets a variable.
pub(super) fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '+') || c.is_control())
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Returns whether a word may define a subcommand of another program.
pub(super) fn sets_alias(word: &str) -> bool {
    let is_alias = |text: &str| {
        let starts = |start: &&str| {
            text.get(..start.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(start))
        };
        ALIASES.iter().any(starts)
    };
    is_alias(word) || word.split_once('=').is_some_and(|(_, value)| is_alias(value))
}

/// Returns whether the word after these words of a command is a program.
pub(super) fn is_program_position(before: &[String]) -> bool {
    let is_executed = before.last().is_some_and(|last| EXECUTING.contains(&last.as_str()));
    if is_executed && before.iter().any(|word| REPLACING.contains(&base_name(word))) {
        return true;
    }
    let (mut is_wrapped, mut has_operand, mut is_after_option) = (false, false, false);
    for word in before {
        let is_option_value = std::mem::take(&mut is_after_option);
        if is_reserved(word) || is_assignment(word) {
            continue;
        }
        if known(word).is_some_and(|program| program.is_wrapper) {
            is_wrapped = true;
            has_operand |= WITH_OPERAND.contains(&base_name(word));
        } else if is_wrapped && word.starts_with(['-', '+']) {
            is_after_option = true;
        } else if is_wrapped && (is_option_value || word.starts_with(|c: char| c.is_ascii_digit())) {
            // The value of an option, or a time as in `timeout 5s`.
        } else if !std::mem::take(&mut has_operand) {
            return false;
        }
    }
    true
}

/// Marks the parts of words that `xargs` and similar programs replace with their input.
pub(super) fn with_inputs_marked(words: &[String]) -> Cow<'_, [String]> {
    let Some(from) = words.iter().position(|word| REPLACING.contains(&base_name(word))) else {
        return Cow::Borrowed(words);
    };
    let mut own = "{}";
    let mut is_named = false;
    let arguments = words.get(from + 1..).unwrap_or_default();
    if words.get(from).is_some_and(|program| APPENDING.contains(&base_name(program))) {
        for word in arguments {
            if std::mem::replace(&mut is_named, word == "-I") {
                own = word.as_str();
            }
            let joined = ["-I", "--replace="].iter().find_map(|option| word.strip_prefix(*option));
            own = joined.filter(|text| !text.is_empty()).unwrap_or(own);
        }
    }
    if own.is_empty() || !arguments.iter().any(|word| word.contains("{}") || word.contains(own)) {
        return Cow::Borrowed(words);
    }
    let marked = PART.to_string();
    let replace = |(index, word): (usize, &String)| {
        if index > from { word.replace("{}", &marked).replace(own, &marked) } else { word.clone() }
    };
    words.iter().enumerate().map(replace).collect()
}

/// Returns the words of a command without the options before its subcommand, as rules name it, if there are such
/// options or the subcommand is computed. `before` are the words before it, and `is_aliased` is whether the line may
/// define subcommands.
pub(super) fn without_global_options<'a>(
    words: &'a [String],
    before: &[String],
    is_aliased: bool,
) -> Option<Vec<Cow<'a, str>>> {
    let (first, mut rest) = words.split_first()?;
    let name = base_name(first);
    let mut found = Vec::with_capacity(words.len() + 2);
    // `git-push` is the same as `git push`.
    if let Some(own) = name.strip_prefix("git-").filter(|own| !own.is_empty()) {
        found.extend([Cow::Borrowed("git"), Cow::Borrowed(own)]);
        found.extend(rest.iter().map(|word| Cow::Borrowed(word.as_str())));
        return Some(found);
    }
    let program = known(first);
    let values = program.map_or(&[][..], |program| program.values);
    // The shell may split an option or its value so that it contains the subcommand.
    let mut is_unknown = false;
    let mut is_aliased = is_aliased;
    while let Some((option, after)) = rest.split_first()
        // `cargo +nightly` names a toolchain.
        && (option.starts_with('-') || option.starts_with('+')) && option.len() > 1
    {
        rest = after;
        is_unknown |= is_splittable(option);
        let (name, mut value) = option.split_once('=').unwrap_or((option.as_str(), ""));
        if values.contains(&option.as_str()) {
            value = rest.first().map_or("", String::as_str);
            is_unknown |= is_splittable(value);
            rest = rest.get(1..).unwrap_or_default();
        }
        is_aliased |= SETTINGS.contains(&name) && is_computed(value.split('=').next().unwrap_or(value));
    }
    found.push(Cow::Borrowed(first.as_str()));
    found.extend(is_unknown.then_some(Cow::Borrowed(UNKNOWN)));
    found.extend(rest.iter().map(|word| Cow::Borrowed(word.as_str())));
    if before.iter().any(|word| APPENDING.contains(&base_name(word))) {
        found.push(Cow::Borrowed(UNKNOWN));
    }
    if program.is_some_and(|program| program.has_subcommands)
        && let Some(subcommand) = found.get_mut(1)
        && (is_computed(subcommand) || (is_aliased && !is_built_in(name, subcommand)))
    {
        *subcommand = Cow::Borrowed(UNKNOWN);
    }
    let is_other = found.len() != words.len() || found.iter().zip(words).any(|(found, word)| found != word);
    is_other.then_some(found)
}

/// Returns whether aliases cannot replace a subcommand.
fn is_built_in(program: &str, subcommand: &str) -> bool {
    matches!(program, "git" | "cargo") && BUILT_IN.split_whitespace().any(|known| known == subcommand)
}

/// Returns whether a word of a command, starting at `from`, writes a file, runs a program or connects, although the
/// program without it does not. The arguments of a wrapper or launcher are judged as arguments of the program that it
/// starts, if that program is named before `from`.
pub(super) fn has_side_effect(command: &[String], from: usize) -> bool {
    let Some(outer) = command.first().and_then(|name| known(name)) else { return false };
    let starts_others = outer.is_wrapper || !outer.launches.is_empty();
    let named = if starts_others { from.max(1) } else { 1 };
    command.iter().enumerate().take(named).any(|(index, word)| {
        // As in `python -mpytest`.
        let name = if index > 0 && outer.launches.contains(&"-m") {
            word.strip_prefix("-m").filter(|name| !name.is_empty()).unwrap_or(word)
        } else {
            word.as_str()
        };
        let command = command.get(index..).unwrap_or_default();
        let from = from.saturating_sub(index);
        known(name).is_some_and(|program| {
            operands::has_side_effect(program, command, from)
                || first_side_effect_option(program, command, from).is_some()
        })
    })
}

/// Returns the first option of a command, starting at the word `from`, that writes a file, runs a program or connects,
/// although the program without it does not.
fn first_side_effect_option<'a>(program: &Program, command: &'a [String], from: usize) -> Option<&'a str> {
    let options: Vec<&str> = program
        .side_effect_options
        .iter()
        .filter_map(|option| match option.split_once(' ') {
            None => Some(*option),
            Some((subcommand, option)) => command.iter().any(|word| word == subcommand).then_some(option),
        })
        .collect();
    let is_option = |argument: &&String| {
        let name = argument.split('=').next().unwrap_or(argument);
        options.iter().any(|option| match (option.strip_suffix('*'), option.strip_prefix("--")) {
            (Some(start), _) => argument.starts_with(start),
            // Long options may be abbreviated if they are unambiguous.
            (None, Some(_)) => name == *option || (name.len() > 2 && option.starts_with(name)),
            // Go programs accept such options with two dashes as well.
            (None, None) if option.len() > 2 || program.has_long_options_only => {
                name == *option || name.strip_prefix('-') == Some(*option)
            }
            (None, None) => has_letter(argument, option),
        })
    };
    command.get(from..).unwrap_or_default().iter().find(is_option).map(String::as_str)
}

/// Returns whether a word contains a one-letter option, which may follow others in the word and precede its value.
fn has_letter(word: &str, option: &str) -> bool {
    let letter = option.trim_start_matches('-');
    word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
}

/// Returns the program of a command that runs files of its working directory which the command does not name, such as
/// `make` and `npm run`, with the argument that selects this. A wrapper with very many arguments counts as such a
/// program.
pub(super) fn launcher(words: &[String]) -> Option<String> {
    let is_wrapped = words.first().and_then(|first| known(first)).is_some_and(|program| program.is_wrapper);
    if is_wrapped && words.len() > MAX_LAUNCHED_WORDS {
        return words.first().map(|first| base_name(first).to_owned());
    }
    let ends = if is_wrapped { words.len() } else { words.len().min(1) };
    (0..ends).find_map(|from| {
        let (first, rest) = words.get(from..)?.split_first()?;
        let program = known(first)?;
        match program.launches {
            [] => None,
            ["*"] => Some(program.name.to_owned()),
            launches => {
                let is_named = |word: &&&str| {
                    let is_letter = word.len() == 2 && word.starts_with('-');
                    rest.iter().any(|argument| argument == **word || is_letter && has_letter(argument, word))
                };
                let launch = launches.iter().find(is_named)?;
                Some(format!("{} {launch}", program.name))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_that_do_more_are_found_in_every_form() {
        for (line, expected) in [
            ("git log --output=x", Some("--output=x")),
            ("git log --outp x", Some("--outp")),
            ("git log --oneline --stat -5", None),
            ("git diff --ext-diff", Some("--ext-diff")),
            ("find . -name x -delete", Some("-delete")),
            ("find . -name x -print", None),
            ("sort -uo x y", Some("-uo")),
            ("sort -ox y", Some("-ox")),
            ("sort --output x", Some("--output")),
            ("sort -u y", None),
            ("rg --pre ./x y", Some("--pre")),
            ("rg --pretty x", None),
            ("sed -n 1p x", None),
            ("sed -ni 1p x", Some("-ni")),
            ("cat -o x", None),
            ("git rebase -x make main", Some("-x")),
            ("git archive -ox HEAD", Some("-ox")),
            ("git status -uno", None),
            ("git ls-files -o", None),
            ("go test -count=1 -cover", None),
            ("go test -o=x", Some("-o=x")),
            ("go test --o x", Some("--o")),
            ("curl -sw %output{x} y", Some("-sw")),
            ("curl --expand-output x y", Some("--expand-output")),
            ("curl --alt-svc x y", Some("--alt-svc")),
            ("curl --form-string a=b y", Some("--form-string")),
            ("curl -sS y", None),
            ("shuf -n1 x", None),
            ("shuf -ox y", Some("-ox")),
            ("man -P./x ls", Some("-P./x")),
            ("man --html=x ls", Some("--html=x")),
            ("man -k ls", None),
            ("go env -w A=b", Some("-w")),
            ("go env GOPATH", None),
            ("go test -coverprofile=x ./...", Some("-coverprofile=x")),
            ("go test --memprofile x", Some("--memprofile")),
            ("go test -ldflags=-extld=x", Some("-ldflags=-extld=x")),
            ("go build -c", None),
            ("go test -c", Some("-c")),
            ("cargo clippy --fix", Some("--fix")),
            ("cargo test --config x", Some("--config")),
            ("gofmt -l .", None),
            ("gofmt -w .", Some("-w")),
            ("sdiff -o x y z", Some("-o")),
            ("diff --outp x y z", Some("--outp")),
            ("sort -T x y", Some("-T")),
            ("tar -tf x --checkpoint-action=exec=y", Some("--checkpoint-action=exec=y")),
            ("tar -I x -tf y", Some("-I")),
            ("tree -ox", Some("-ox")),
            ("less +!ls x", Some("+!ls")),
            ("time -o x ls", Some("-o")),
            ("env -S ls", Some("-S")),
            ("script -c ls", Some("-c")),
            ("rsync -e x y z", Some("-e")),
            ("ssh -oProxyCommand=x y", Some("-oProxyCommand=x")),
            ("zip -TT x y", Some("-TT")),
            ("gh api -X DELETE x", Some("-X")),
            ("gh pr list -X x", None),
            ("go test -test.coverprofile x", Some("-test.coverprofile")),
            ("go test --test.trace=x", Some("--test.trace=x")),
            ("man --pag=sh x", Some("--pag=sh")),
            ("man -lPsh x", Some("-lPsh")),
            ("batcat --pager=sh x", Some("--pager=sh")),
            ("bat --paging=never x", None),
            ("less -N+!sh x", Some("-N+!sh")),
            ("less -NS x", None),
            ("gcc -wrapper sh x.c", Some("-wrapper")),
            ("gcc-14 -ox x.c", Some("-ox")),
            ("clang++ --outp x x.cc", Some("--outp")),
            ("gcc -Wall -O2 -std=c17 -c x.c", None),
            ("rustc -Clinker=sh x.rs", Some("-Clinker=sh")),
            ("rustc --emit asm x.rs", Some("--emit")),
            ("rustc --edition 2024 x.rs", None),
            ("eslint -ox .", Some("-ox")),
            ("eslint --form ./x.js .", Some("--form")),
            ("eslint --ext .js .", None),
            ("pytest --junitxml=x", Some("--junitxml=x")),
            ("pytest --junit-x x", Some("--junit-x")),
            ("pytest -vp x", Some("-vp")),
            ("pytest -x -k name tests", None),
            ("git ls-remote ext::sh", Some("ext::sh")),
            ("git ls-remote origin", None),
            ("make --makef x", Some("--makef")),
            ("make -fx", Some("-fx")),
            ("make -j4 test", None),
        ] {
            let words = words(line);
            let program = known(&words[0]).unwrap();
            assert_eq!(first_side_effect_option(program, &words, 1), expected, "{line}");
        }
    }

    /// The words from the third on are covered by a `*`.
    #[test]
    fn operands_that_do_more_are_found_below_a_star() {
        for (command, expected) in [
            (&["uniq", "-c", "x"][..], false),
            (&["uniq", "-c", "x", "y"], true),
            (&["uniq", "x", "y"], true),
            (&["uniq", "-c", "-f", "1", "x"], false),
            (&["uniq", "-c", "--", "-x", "-y"], true),
            (&["xxd", "-l", "16", "x"], false),
            (&["xxd", "-r", "x", "y"], true),
            (&["sed", "-n", "1,5p", "x"], false),
            (&["sed", "-n", "1e ls", "x"], true),
            (&["sed", "-E", "-e", "s/a/b/", "-e", "w x", "y"], true),
            (&["sed", "-E", "-ne", "s/a/b/w x", "y"], true),
            (&["sed", "-E", "--expression=e", "y"], true),
            (&["sed", "e ls", "x"], false),
            (&["awk", "-F:", "{print $1}", "x"], false),
            (&["awk", "-F:", "{print > \"x\"}"], true),
            (&["gawk", "-F:", "BEGIN {system(\"ls\")}"], true),
            (&["awk", "-F:", "$1 == 1 || $2 == 2"], false),
            (&["awk", "-F:", "{print | \"sh\"}"], true),
            (&["tar", "tfI", "x", "y"], false),
        ] {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(has_side_effect(&command, 2), expected, "{command:?}");
        }
        let words = words("tar tfI x y");
        assert!(has_side_effect(&words, 1));
        let words = self::words("git archive -o x");
        assert!(has_side_effect(&words, 2), "the rule names the subcommand");
    }

    #[test]
    fn options_of_a_started_program_are_found_if_the_rule_names_it() {
        for (line, from, expected) in [
            ("python -m pytest -p x", 3, true),
            ("python3 -mpytest --junitxml=x", 2, true),
            ("python -m pytest -q", 3, false),
            ("npx eslint -o x", 2, true),
            ("time git log --output=x", 3, true),
            ("sudo tar -C x", 1, false),
            ("cat sort -o x", 2, false),
            ("make SHELL=x", 1, true),
            ("make X!=sh", 1, true),
            ("make CC=x test", 1, true),
            ("make $(shell;x)", 1, true),
            ("make V=1 DEBUG=y test", 1, false),
            ("make SHELL=x test", 2, false),
        ] {
            assert_eq!(has_side_effect(&words(line), from), expected, "{line}");
        }
    }

    #[test]
    fn programs_that_run_unnamed_files_are_named() {
        for (line, expected) in [
            ("make serve", Some("make")),
            ("env -u X make", Some("make")),
            ("/usr/bin/npm --silent run server", Some("npm run")),
            ("npm install", None),
            ("python3.12 -m server", Some("python -m")),
            ("python3 server.py", None),
            ("python3 -mserver", Some("python -m")),
            ("python3 -Im server", Some("python -m")),
            ("node .", Some("node .")),
            ("node server.js --task make", None),
            ("uv run server.py", Some("uv run")),
            ("cat make", None),
        ] {
            assert_eq!(launcher(&words(line)).as_deref(), expected, "{line}");
        }
    }
}
