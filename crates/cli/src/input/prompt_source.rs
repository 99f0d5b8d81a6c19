//! Reads the prompt from the command line, a file or standard input.

use pintle_host::failure::Failure;
use pintle_host::process_env::{self, PipedStdin};
use pintle_tui::console;

use crate::arguments::PromptArgs;
use crate::input::piped::PipedInput;

const STDIN: &str = "standard input";

/// Reads the prompt. Input piped in addition to a prompt is appended as context.
///
/// Blocks until standard input ends if it is the source, or if data arrives within [`process_env::PIPE_TIMEOUT`].
pub(crate) fn read(args: &PromptArgs) -> Result<String, Failure> {
    let (text, source) = match (args.prompt.as_deref(), &args.prompt_file) {
        (Some("-"), _) => (process_env::read_stdin()?, STDIN),
        (Some(text), _) => (text.to_owned(), "the command line"),
        (None, Some(path)) => (process_env::read_text("prompt file", path)?, "the prompt file"),
        (None, None) if process_env::stdin_is_terminal() => {
            return Err(Failure::usage(
                "no prompt given: expected PROMPT, `-` for standard input, or --prompt-file FILE",
            ));
        }
        (None, None) => (process_env::read_stdin()?, STDIN),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage(format!(
            "the prompt from {source} is empty: expected a task or a question"
        )));
    }
    if source == STDIN {
        return Ok(text);
    }
    match process_env::piped_stdin() {
        PipedStdin::Ready(stdin) => Ok(PipedInput::read(stdin)?.append_to(&text)),
        PipedStdin::Silent => {
            let seconds = process_env::PIPE_TIMEOUT.as_secs();
            console::notice(&format!("ignoring standard input: no data within {seconds} s"));
            Ok(text)
        }
        PipedStdin::Terminal => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_come_from_flags_and_files() {
        let args =
            |prompt: Option<&str>, file| PromptArgs { prompt: prompt.map(str::to_owned), prompt_file: file };
        assert_eq!(read(&args(Some(" fix it "), None)).unwrap(), " fix it ");
        let failure = read(&args(Some(" \n"), None)).unwrap_err();
        assert_eq!(
            failure.message(),
            "the prompt from the command line is empty: expected a task or a question"
        );
        let missing = tempfile::tempdir().unwrap().path().join("none.md");
        let failure = read(&args(None, Some(missing))).unwrap_err();
        assert!(failure.message().starts_with("cannot read the prompt file "), "{failure:?}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file.as_file(), b"task").unwrap();
        assert_eq!(read(&args(None, Some(file.path().to_owned()))).unwrap(), "task");
    }
}
