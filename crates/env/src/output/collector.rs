//! Appends bytes to an output.

use std::{io, io::Write, sync::Arc};

use super::{COPY_BLOCK, Content, Output, OutputLimits, spool::SpooledOutput};

/// Collects bytes into an [`Output`] in bounded memory.
///
/// Beyond the inline limit everything goes to a spool file, and appending blocks on the disk. Bytes
/// that cannot be kept are counted as dropped; that never fails the command.
#[derive(Debug)]
pub struct OutputCollector {
    limits: OutputLimits,
    content: CollectedBytes,
    dropped: u64,
}

#[derive(Debug)]
enum CollectedBytes {
    Inline(Vec<u8>),
    Spooled { file: SpooledOutput, len: u64 },
}

impl OutputCollector {
    /// Creates a collector with `limits`.
    #[must_use]
    pub fn new(limits: OutputLimits) -> Self {
        Self { limits, content: CollectedBytes::Inline(Vec::new()), dropped: 0 }
    }

    /// Returns the number of bytes kept so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.content {
            CollectedBytes::Inline(bytes) => bytes.len() as u64,
            CollectedBytes::Spooled { len, .. } => *len,
        }
    }

    /// Returns true if no byte is kept so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if appending `more` bytes would touch the disk.
    #[must_use]
    pub fn spools(&self, more: usize) -> bool {
        match &self.content {
            CollectedBytes::Inline(bytes) => bytes.len().saturating_add(more) > self.limits.inline,
            CollectedBytes::Spooled { .. } => true,
        }
    }

    /// Appends bytes; blocks on the disk if [`spools`](Self::spools) returns true.
    pub fn push(&mut self, bytes: &[u8]) {
        let remaining = self.limits.total.saturating_sub(self.len());
        let keep = usize::try_from(remaining).unwrap_or(usize::MAX).min(bytes.len());
        let kept = match bytes.get(..keep) {
            // Nothing more is kept after the first loss, so that the kept output has no gap.
            Some(wanted) if self.dropped == 0 => self.append(wanted),
            Some(_) | None => 0,
        };
        self.dropped += (bytes.len() - kept) as u64;
    }

    /// Returns the collected output.
    #[must_use]
    pub fn finish(self) -> Output {
        let content = match self.content {
            CollectedBytes::Inline(bytes) => Content::Inline(Arc::new(bytes)),
            CollectedBytes::Spooled { file, len } => Content::Spooled { file: Arc::new(file), len },
        };
        Output { content, dropped: self.dropped }
    }

    /// Creates a second collector with the same content.
    pub(super) fn duplicate(&self) -> Self {
        let mut twin = Self::new(self.limits.clone());
        let copied = match &self.content {
            CollectedBytes::Inline(bytes) => {
                twin.push(bytes);
                Ok(())
            }
            CollectedBytes::Spooled { file, len } => twin.copy(file, *len),
        };
        if let Err(error) = copied {
            tracing::warn!(%error, "output is lost: cannot copy a spool file");
        }
        twin.dropped = self.dropped + self.len().saturating_sub(twin.len());
        twin
    }

    fn copy(&mut self, file: &SpooledOutput, len: u64) -> io::Result<()> {
        let mut block = vec![0; COPY_BLOCK];
        let mut offset = 0;
        while offset < len {
            let size = usize::try_from(len - offset).unwrap_or(usize::MAX).min(COPY_BLOCK);
            let (now, _) = block.split_at_mut(size);
            file.read_exact_at(now, offset)?;
            self.push(now);
            offset += size as u64;
        }
        Ok(())
    }

    /// Appends bytes and returns how many are kept.
    fn append(&mut self, bytes: &[u8]) -> usize {
        if self.spools(bytes.len())
            && let CollectedBytes::Inline(_) = &self.content
            && let Err(error) = self.start_spool()
        {
            tracing::warn!(%error, "output is lost: cannot create a spool file");
            return 0;
        }
        match &mut self.content {
            CollectedBytes::Inline(kept) => {
                kept.extend_from_slice(bytes);
                bytes.len()
            }
            CollectedBytes::Spooled { file, len } => match file.write_all(bytes) {
                Ok(()) => {
                    *len += bytes.len() as u64;
                    bytes.len()
                }
                Err(error) => {
                    tracing::warn!(%error, "output is lost: cannot write a spool file");
                    0
                }
            },
        }
    }

    fn start_spool(&mut self) -> io::Result<()> {
        if let CollectedBytes::Inline(bytes) = &self.content {
            let mut file = SpooledOutput::create_in(&self.limits.spool_dir)?;
            file.write_all(bytes)?;
            let len = bytes.len() as u64;
            self.content = CollectedBytes::Spooled { file, len };
        }
        Ok(())
    }
}
