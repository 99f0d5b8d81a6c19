//! The parsed input of one call.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;

use super::ReadExtent;
use crate::error::ToolError;

/// The arguments of one call in the tool's own type, with the files that the call names.
pub struct ToolInput {
    value: Box<dyn Any + Send>,
    pub(crate) reads: Vec<PathBuf>,
    pub(crate) read_extent: ReadExtent,
    pub(crate) writes: Vec<PathBuf>,
    pub(crate) hosts: Option<Vec<String>>,
    /// Whether the call runs outside of the sandbox of its environment.
    pub(crate) leaves_sandbox: bool,
}

impl ToolInput {
    /// Creates an input that names no files.
    #[must_use]
    pub fn new(value: impl Any + Send) -> Self {
        Self {
            value: Box::new(value),
            reads: Vec::new(),
            read_extent: ReadExtent::default(),
            writes: Vec::new(),
            hosts: None,
            leaves_sandbox: false,
        }
    }

    /// Sets the files and directories that the call reads.
    #[must_use]
    pub fn with_reads(mut self, reads: Vec<PathBuf>) -> Self {
        self.reads = reads;
        self
    }

    /// Sets how much of the directories among them the call reads.
    #[must_use]
    pub fn with_read_extent(mut self, extent: ReadExtent) -> Self {
        self.read_extent = extent;
        self
    }

    /// Sets the files that the call may change.
    #[must_use]
    pub fn with_writes(mut self, writes: Vec<PathBuf>) -> Self {
        self.writes = writes;
        self
    }

    /// Sets the hosts that the call reaches, as parsed by the client that reaches them. Otherwise they are unknown.
    #[must_use]
    pub fn with_hosts(mut self, hosts: Option<Vec<String>>) -> Self {
        self.hosts = hosts;
        self
    }

    /// Returns the value that was passed to [`ToolInput::new`].
    ///
    /// # Errors
    ///
    /// [`Failed`](crate::ToolErrorKind::Failed) if the value has another type, as when the input belongs to another
    /// tool.
    pub fn into_value<T: Any>(self) -> Result<T, ToolError> {
        let value = self.value.downcast::<T>().map_err(|_other_type| {
            ToolError::failed("the tool itself is broken: its input has another type")
        })?;
        Ok(*value)
    }
}

impl fmt::Debug for ToolInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolInput")
            .field("reads", &self.reads)
            .field("read_extent", &self.read_extent)
            .field("writes", &self.writes)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_of_another_type_is_an_error() {
        assert_eq!(ToolInput::new(7_u8).into_value::<u8>().unwrap(), 7);
        let error = ToolInput::new(7_u8).into_value::<String>().unwrap_err();
        assert_eq!(error.for_model(), "the tool itself is broken: its input has another type");
    }
}
