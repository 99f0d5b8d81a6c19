//! Mistakes in files of hooks.

/// Mistake in a file of hooks. The file is rejected as a whole, since an invalid hook could be one that denies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: line {line}: {message}")]
#[non_exhaustive]
pub struct HooksError {
    /// Name of the file.
    pub source_name: String,
    /// Number of the line.
    pub line: usize,
    /// The problem, with the key that may be meant.
    pub message: String,
}

/// Text of a file, with its name for messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// Returns the number of the line of a byte.
    pub(super) fn line_of(self, offset: usize) -> usize {
        self.text.get(..offset).unwrap_or_default().matches('\n').count() + 1
    }

    pub(super) fn error(self, line: usize, message: impl Into<String>) -> HooksError {
        HooksError { source_name: self.name.to_owned(), line, message: message.into() }
    }

    /// Returns the error of a parser, with the key that may be meant.
    pub(super) fn parse_error(self, line: usize, message: &str, keys: &[&str]) -> HooksError {
        let message = message.trim();
        let wrong = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
        let meant = wrong.and_then(|wrong| nearest(wrong, keys));
        self.error(line, with_nearest(message, meant))
    }

    pub(super) fn warning(self, line: usize, message: &str) -> String {
        format!("{}: line {line}: {message}", self.name)
    }

    /// Returns the warning about an unknown event.
    pub(super) fn unknown_event(self, line: usize, name: &str) -> String {
        let message = format!("there is no event `{name}`, so its hooks never run");
        let names = super::HookEvent::ALL.map(super::HookEvent::as_str);
        self.warning(line, &with_nearest(&message, nearest(name, &names)))
    }
}

fn nearest<'a>(wrong: &str, names: &[&'a str]) -> Option<&'a str> {
    pintle_tools::most_similar(wrong, names.iter().copied()).first().copied()
}

fn with_nearest(message: &str, meant: Option<&str>) -> String {
    match meant {
        Some(meant) => format!("{message}; did you mean `{meant}`?"),
        None => message.to_owned(),
    }
}
