//! Both streams of a command, apart and together.

use super::{Output, OutputChunk, OutputCollector, OutputLimits, OutputStream};

/// Collects standard output, standard error, and both in the order of arrival.
///
/// As long as only one stream has spoken nothing is kept twice, which is the common case.
#[derive(Debug)]
pub struct OutputCapture {
    limits: OutputLimits,
    combined: OutputCollector,
    split: Split,
}

/// What an [`OutputCapture`] collected.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Captured {
    /// The standard output.
    pub stdout: Output,
    /// The standard error.
    pub stderr: Output,
    /// Both, in the order of arrival.
    pub output: Output,
}

impl Default for OutputCapture {
    fn default() -> Self {
        Self::new(OutputLimits::default())
    }
}

#[derive(Debug)]
enum Split {
    Silent,
    /// Only this stream has spoken: it equals the combined output.
    One(OutputStream),
    Both {
        stdout: OutputCollector,
        stderr: OutputCollector,
    },
}

impl OutputCapture {
    /// Collects each of the three outputs within `limits`.
    #[must_use]
    pub fn new(limits: OutputLimits) -> Self {
        Self { combined: OutputCollector::new(limits.clone()), limits, split: Split::Silent }
    }

    /// Whether appending `more` bytes will touch the disk.
    #[must_use]
    pub fn spools(&self, more: usize) -> bool {
        // The combined output is the longest of the three.
        self.combined.spools(more)
    }

    /// Appends a piece; blocks on the disk if [`spools`](Self::spools) says so.
    pub fn push(&mut self, chunk: &OutputChunk) {
        self.part(chunk.stream);
        if let Split::Both { stdout, stderr } = &mut self.split {
            match chunk.stream {
                OutputStream::Stdout => stdout.push(&chunk.bytes),
                OutputStream::Stderr => stderr.push(&chunk.bytes),
            }
        }
        self.combined.push(&chunk.bytes);
    }

    /// The three outputs.
    #[must_use]
    pub fn finish(self) -> Captured {
        let output = self.combined.finish();
        let (stdout, stderr) = match self.split {
            Split::Silent => (Output::default(), Output::default()),
            Split::One(OutputStream::Stdout) => (output.clone(), Output::default()),
            Split::One(OutputStream::Stderr) => (Output::default(), output.clone()),
            Split::Both { stdout, stderr } => (stdout.finish(), stderr.finish()),
        };
        Captured { stdout, stderr, output }
    }

    /// Keeps the streams apart from the moment that the second one speaks.
    fn part(&mut self, speaker: OutputStream) {
        let silent = || OutputCollector::new(self.limits.clone());
        self.split = match &self.split {
            Split::Silent => Split::One(speaker),
            Split::One(first) if *first != speaker => match first {
                OutputStream::Stdout => Split::Both { stdout: self.combined.duplicate(), stderr: silent() },
                OutputStream::Stderr => Split::Both { stdout: silent(), stderr: self.combined.duplicate() },
            },
            Split::One(_) | Split::Both { .. } => return,
        };
    }
}
