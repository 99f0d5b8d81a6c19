//! Arguments that write a file or run a program without being options.

use std::iter::Peekable;
use std::str::Chars;

use super::table::Program;

/// Meaning of the arguments of a program that are not options.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operands {
    /// They have no effects that the program without them does not have.
    Plain,
    /// The second one is a file that the program writes. `values` are the options whose value is the next word.
    Output { values: &'static [&'static str] },
    /// The first one may contain the letters of options without a dash.
    Letters,
    /// A script of `sed`.
    Sed,
    /// A program of `awk`.
    Awk,
    /// Variables of `make`, whose values are programs or run programs.
    Settings,
}

/// Returns whether an operand of a command writes a file or runs a program. Only the words from `from` on are judged.
pub(super) fn has_side_effect(program: &Program, command: &[String], from: usize) -> bool {
    let is_judged = |(index, _): &(usize, &str)| *index >= from;
    match program.operands {
        Operands::Plain => false,
        Operands::Output { values } => {
            let mut outputs = operands(command, values).skip(1);
            outputs.any(|output| is_judged(&output))
        }
        Operands::Letters => {
            let letters = operands(command, &[]).next().filter(|(index, _)| *index == 1 && from <= 1);
            let is_letter = |letters: &str, option: &&str| {
                option.len() == 2 && letters.contains(option.trim_start_matches('-'))
            };
            letters.is_some_and(|(_, letters)| {
                program.side_effect_options.iter().any(|option| is_letter(letters, option))
            })
        }
        Operands::Sed => {
            let mut scripts = option_scripts(command, &["-e", "--expression"]);
            if scripts.is_empty() {
                scripts.extend(operands(command, &["-l", "--line-length"]).take(1));
            }
            scripts.into_iter().filter(is_judged).any(|(_, script)| !is_harmless_sed(script))
        }
        Operands::Awk => {
            let values = ["-F", "-e", "-v", "--assign", "--field-separator", "--source"];
            let mut scripts = option_scripts(command, &["-e", "--source"]);
            scripts.extend(operands(command, &values).take(1));
            scripts.into_iter().filter(is_judged).any(|(_, script)| !is_harmless_awk(script))
        }
        Operands::Settings => {
            operands(command, &[]).filter(is_judged).any(|(_, operand)| !is_harmless_setting(operand))
        }
    }
}

/// Returns the operands of a command with their indexes. `values` are the options whose value is the next word.
fn operands<'a>(command: &'a [String], values: &[&str]) -> impl Iterator<Item = (usize, &'a str)> {
    let mut found = Vec::new();
    let mut words = command.iter().map(String::as_str).enumerate().skip(1);
    let mut has_options = true;
    while let Some((index, word)) = words.next() {
        if has_options && word.len() > 1 && word.starts_with('-') {
            has_options = word != "--";
            if values.contains(&word) {
                words.next();
            }
        } else {
            found.push((index, word));
        }
    }
    found.into_iter()
}

/// Returns the values of options of a command that are scripts, with their indexes.
fn option_scripts<'a>(command: &'a [String], options: &[&str]) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let mut is_script = false;
    for (index, word) in command.iter().map(String::as_str).enumerate().skip(1) {
        if std::mem::replace(&mut is_script, options.contains(&word)) {
            found.push((index, word));
        }
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        if options.contains(&name) && !value.is_empty() {
            found.push((index, value));
        }
        // As in `-ne SCRIPT` and `-eSCRIPT`.
        if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))
            && let Some((_, joined)) = letters.split_once('e')
        {
            is_script |= joined.is_empty();
            found.extend((!joined.is_empty()).then_some((index, joined)));
        }
    }
    found
}

/// Returns whether a script consists of commands that only edit and print.
fn is_harmless_sed(script: &str) -> bool {
    let mut rest = script.chars().peekable();
    while let Some(character) = rest.next() {
        let is_harmless = match character {
            '/' => skip_section(&mut rest, '/'),
            '\\' => rest.next().is_some_and(|end| skip_section(&mut rest, end)),
            's' | 'y' => {
                let is_complete = rest
                    .next()
                    .is_some_and(|end| skip_section(&mut rest, end) && skip_section(&mut rest, end));
                // Other flags write a file or run the result.
                while rest.next_if(|flag| flag.is_ascii_digit() || "gpiImM".contains(*flag)).is_some() {}
                is_complete && rest.peek().is_none_or(|next| ";}\n ".contains(*next))
            }
            'I' | 'M' => true,
            other => other.is_ascii_digit() || " \t\n;{}!,$~+pPdDnNqQ=lhHgGxzF".contains(other),
        };
        if !is_harmless {
            return false;
        }
    }
    true
}

/// Skips to the end of a pattern or replacement. Returns whether it has an end.
fn skip_section(rest: &mut Peekable<Chars<'_>>, end: char) -> bool {
    while let Some(character) = rest.next() {
        if character == end {
            return true;
        }
        if character == '\\' {
            rest.next();
        }
    }
    false
}

/// Returns whether a program of `awk` runs no commands and writes no files. Comparisons with `>` count as writing.
fn is_harmless_awk(program: &str) -> bool {
    let pipes = program.replace("||", "");
    !pipes.contains(['>', '|', '@']) && !["system", "getline"].iter().any(|name| program.contains(name))
}

/// Returns whether an operand of `make` is a target, or sets a variable to a number or a choice.
fn is_harmless_setting(operand: &str) -> bool {
    match operand.split_once('=') {
        None => !operand.contains('$'),
        Some((name, value)) => {
            let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
            !name.ends_with('!') && (is_number || ["y", "n", "yes", "no", "true", "false"].contains(&value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_do_more_than_edit_are_found() {
        for script in
            ["1,5p", "$d", "/a\\/b/,/c/p", "s/a/b/gI", "s|a;w x|b|2; y/a/b/", "/x/{s/a/b/;p}", "\\,x,!d"]
        {
            assert!(is_harmless_sed(script), "{script}");
        }
        for script in ["w x", "1e ls", "s/a/b/e", "s/a/b/gw x", "s/a/b/ w x", "e", "/x/W y", "s/a", "$!{e\n}"]
        {
            assert!(!is_harmless_sed(script), "{script}");
        }
    }
}
