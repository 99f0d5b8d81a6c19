//! The error of a command.

use std::{error::Error, fmt};

/// Error message for the developer, with its cause.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// Sets the cause.
    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Renders the message and its causes, one per line.
    pub(crate) fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut next = self.source();
        while let Some(cause) = next {
            text.push_str(&format!("\n  caused by: {cause}"));
            next = cause.source();
        }
        text
    }
}

/// Turns any error into the cause of a [`Failure`].
pub(crate) trait Context<T> {
    /// Adds this message.
    fn context(self, message: impl Into<String>) -> Result<T, Failure>;

    /// Adds the message of this function, which is called on failure only.
    fn with_context(self, message: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Context<T> for Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|cause| Failure::new(message).with_source(cause))
    }

    fn with_context(self, message: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|cause| Failure::new(message()).with_source(cause))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}
