//! Arguments with which a shell runs a line.

/// Maximum size of a piece of a line. Linux accepts 128 KiB for one argument, and about 2 MiB for all of them.
const MAX_PIECE: usize = 96 << 10;

/// Returns the arguments, after its own name, with which the POSIX shell `shell` runs a line of any length. The command sees
/// `shell` as `$0`, and no positional parameters.
///
/// A line that is too long for one argument is passed in pieces, which the shell joins. The standard input is left to the
/// command.
///
/// ```
/// use pintle_env::shell_arguments;
///
/// assert_eq!(shell_arguments("/bin/sh", "make"), ["-c", "--", "make"]);
/// let long = format!("cat <<'END'\n{}\nEND\n", "x".repeat(300_000));
/// assert!(shell_arguments("/bin/sh", &long).iter().all(|argument| argument.len() < 128 << 10));
/// ```
#[must_use]
pub fn shell_arguments(shell: &str, line: &str) -> Vec<String> {
    // The dashes keep a line that starts with one from being parsed as an option.
    let options = ["-c", "--"].map(str::to_owned);
    if line.len() <= MAX_PIECE {
        return options.into_iter().chain([line.to_owned()]).collect();
    }
    let pieces = pieces(line);
    let joined: String = (1..=pieces.len()).map(|number| format!("${{{number}}}")).collect();
    // The words are expanded before the shift.
    let script = format!("eval \"shift {}; {joined}\"", pieces.len());
    let pieces = pieces.into_iter().map(str::to_owned);
    options.into_iter().chain([script, shell.to_owned()]).chain(pieces).collect()
}

/// Splits a line between characters.
fn pieces(line: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), line);
    while rest.len() > MAX_PIECE {
        let end = (1..=MAX_PIECE).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a real shell runs the lines")]

    use std::process::Command;

    use super::*;

    #[test]
    fn lines_of_any_length_run_alike() {
        let text = "é€'\"$x \\".repeat(40_000);
        assert!(text.len() > 4 * MAX_PIECE);
        for (line, expected, code) in [
            ("echo $# $0; exit 3".to_owned(), "0 /bin/sh\n".to_owned(), 3),
            ("-no-option 2>/dev/null".to_owned(), String::new(), 127),
            (format!("cat <<'END'\n{text}\nEND\nexit 3"), format!("{text}\n"), 3),
            (format!("echo $# $0 # {text}\nexit 3"), "0 /bin/sh\n".to_owned(), 3),
            (format!("\n# {text}\ncat; exit 3"), String::new(), 3),
        ] {
            let arguments = shell_arguments("/bin/sh", &line);
            assert!(arguments.iter().all(|argument| argument.len() <= MAX_PIECE));
            let output = Command::new("/bin/sh").args(&arguments).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(printed == expected, "{} bytes of {}: {stderr}", printed.len(), expected.len());
            assert_eq!(output.status.code(), Some(code), "{stderr}");
        }
    }

    #[test]
    fn pieces_end_between_characters() {
        for prefix in ["", "a", "ab", "abc"] {
            let line = format!("{prefix}{}", "🦀".repeat(MAX_PIECE / 2 + 1));
            let pieces = pieces(&line);
            assert!(pieces.len() == 3 && pieces.concat() == line, "{prefix}: {}", pieces.len());
        }
    }
}
