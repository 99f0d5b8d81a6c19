//! Where a prompt comes from: the command line, a file, or standard input.

use crate::args::PromptArgs;
use crate::failure::Failure;
use crate::host;
use crate::piped_input::PipedInput;

const STDIN: &str = "standard input";

/// The prompt, read whole. Text that is piped in beside a prompt is context, and follows it.
///
/// It blocks until standard input ends, where that is the source, or where something has come within
/// [`host::PIPE_PATIENCE`].
///
/// # Errors
///
/// A usage failure if there is none, if it is blank, or if its source cannot be read.
pub(crate) fn read(args: &PromptArgs) -> Result<String, Failure> {
    let (text, source) = match (args.prompt.as_deref(), &args.prompt_file) {
        (Some("-"), _) => (host::read_stdin()?, STDIN),
        (Some(text), _) => (text.to_owned(), "the command line"),
        (None, Some(path)) => (host::read_text("prompt file", path)?, "the prompt file"),
        (None, None) if host::stdin_is_terminal() => {
            return Err(Failure::usage(
                "no prompt: expected PROMPT, `-` for standard input, or --prompt-file FILE",
            ));
        }
        (None, None) => (host::read_stdin()?, STDIN),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage(format!(
            "the prompt from {source} is empty: expected a task or a question"
        )));
    }
    match (source != STDIN).then(host::piped_stdin).flatten() {
        Some(stdin) => Ok(PipedInput::read(stdin)?.after(&text)),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_comes_from_its_source_and_is_not_empty() {
        let args =
            |prompt: Option<&str>, file| PromptArgs { prompt: prompt.map(str::to_owned), prompt_file: file };
        assert_eq!(read(&args(Some(" fix it "), None)).unwrap(), " fix it ");
        let failure = read(&args(Some(" \n"), None)).unwrap_err();
        assert_eq!(
            failure.sentence(),
            "the prompt from the command line is empty: expected a task or a question"
        );
        let missing = tempfile::tempdir().unwrap().path().join("none.md");
        let failure = read(&args(None, Some(missing))).unwrap_err();
        assert!(failure.sentence().starts_with("cannot read the prompt file "), "{failure:?}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file.as_file(), b"task").unwrap();
        assert_eq!(read(&args(None, Some(file.path().to_owned()))).unwrap(), "task");
    }
}
