//! Captures both streams of a command, separately and combined.

use super::{Output, OutputChunk, OutputCollector, OutputLimits, OutputStream};

/// Collects standard output, standard error, and both in the order of arrival.
///
/// As long as only one stream has written, which is the common case, nothing is stored twice.
#[derive(Debug)]
pub struct OutputCapture {
    limits: OutputLimits,
    combined: OutputCollector,
    split: Split,
}

/// The outputs collected by an [`OutputCapture`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CapturedOutput {
    /// The standard output.
    pub stdout: Output,
    /// The standard error.
    pub stderr: Output,
    /// Both streams in the order of arrival.
    pub output: Output,
}

impl Default for OutputCapture {
    fn default() -> Self {
        Self::new(OutputLimits::default())
    }
}

#[derive(Debug)]
enum Split {
    Empty,
    /// Only this stream has written; it equals the combined output.
    One(OutputStream),
    Both {
        stdout: OutputCollector,
        stderr: OutputCollector,
    },
}

impl OutputCapture {
    /// Creates a capture that applies `limits` to each of the three outputs.
    #[must_use]
    pub fn new(limits: OutputLimits) -> Self {
        Self { combined: OutputCollector::new(limits.clone()), limits, split: Split::Empty }
    }

    /// Returns true if appending `more` bytes would touch the disk.
    #[must_use]
    pub fn spools(&self, more: usize) -> bool {
        // The combined output is the longest of the three.
        self.combined.spools(more)
    }

    /// Appends a chunk; blocks on the disk if [`spools`](Self::spools) returns true.
    pub fn push(&mut self, chunk: &OutputChunk) {
        self.split_streams(chunk.stream);
        if let Split::Both { stdout, stderr } = &mut self.split {
            match chunk.stream {
                OutputStream::Stdout => stdout.push(&chunk.bytes),
                OutputStream::Stderr => stderr.push(&chunk.bytes),
            }
        }
        self.combined.push(&chunk.bytes);
    }

    /// Returns the three outputs.
    #[must_use]
    pub fn finish(self) -> CapturedOutput {
        let output = self.combined.finish();
        let (stdout, stderr) = match self.split {
            Split::Empty => (Output::default(), Output::default()),
            Split::One(OutputStream::Stdout) => (output.clone(), Output::default()),
            Split::One(OutputStream::Stderr) => (Output::default(), output.clone()),
            Split::Both { stdout, stderr } => (stdout.finish(), stderr.finish()),
        };
        CapturedOutput { stdout, stderr, output }
    }

    /// Starts to keep the streams separately once the second one writes.
    fn split_streams(&mut self, stream: OutputStream) {
        let empty = || OutputCollector::new(self.limits.clone());
        self.split = match &self.split {
            Split::Empty => Split::One(stream),
            Split::One(first) if *first != stream => match first {
                OutputStream::Stdout => Split::Both { stdout: self.combined.duplicate(), stderr: empty() },
                OutputStream::Stderr => Split::Both { stdout: empty(), stderr: self.combined.duplicate() },
            },
            Split::One(_) | Split::Both { .. } => return,
        };
    }
}
