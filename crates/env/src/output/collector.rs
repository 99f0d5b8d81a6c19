//! Appending to an output.

use std::{
    io::{self, IoSlice, Write},
    sync::Arc,
};

use super::{COPY_BLOCK, Content, Output, OutputLimits, spool::Spooled};

/// Collects bytes into an [`Output`] in bounded memory.
///
/// Once the inline limit is passed everything goes to a spool file, and appending blocks on the
/// disk. What cannot be kept is counted as dropped and never fails the command.
#[derive(Debug)]
pub struct OutputCollector {
    limits: OutputLimits,
    content: Collected,
    dropped: u64,
}

#[derive(Debug)]
enum Collected {
    Inline(Vec<u8>),
    Spooled { file: Spooled, len: u64 },
}

impl OutputCollector {
    /// Collects within `limits`.
    #[must_use]
    pub fn new(limits: OutputLimits) -> Self {
        Self { limits, content: Collected::Inline(Vec::new()), dropped: 0 }
    }

    /// How many bytes are kept so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.content {
            Collected::Inline(bytes) => bytes.len() as u64,
            Collected::Spooled { len, .. } => *len,
        }
    }

    /// Whether no byte is kept so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether appending `more` bytes will touch the disk.
    #[must_use]
    pub fn spools(&self, more: usize) -> bool {
        match &self.content {
            Collected::Inline(bytes) => bytes.len().saturating_add(more) > self.limits.inline,
            Collected::Spooled { .. } => true,
        }
    }

    /// Appends bytes; blocks on the disk if [`spools`](Self::spools) says so.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.limits.total.saturating_sub(self.len());
        let keep = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        let kept = match bytes.get(..keep) {
            // After one loss nothing more is kept: what is kept has no hole.
            Some(wanted) if self.dropped == 0 => self.append(wanted),
            Some(_) | None => 0,
        };
        self.dropped += (bytes.len() - kept) as u64;
    }

    /// Appends pieces one after the other, on the disk in one go: the system takes one large write in less time than
    /// many small ones.
    pub(super) fn push_all<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]> + Clone) {
        let len: usize = pieces.clone().map(<[u8]>::len).sum();
        let has_room = self.len().saturating_add(len as u64) <= self.limits.total;
        match &mut self.content {
            Collected::Spooled { file, len: kept } if self.dropped == 0 && has_room => {
                let mut slices: Vec<IoSlice<'_>> = pieces.map(IoSlice::new).collect();
                let written = write_all_vectored(file, &mut slices);
                *kept += written as u64;
                self.dropped += (len - written) as u64;
            }
            Collected::Inline(_) | Collected::Spooled { .. } => pieces.for_each(|piece| self.push(piece)),
        }
    }

    /// The output collected.
    #[must_use]
    pub fn finish(self) -> Output {
        let content = match self.content {
            Collected::Inline(bytes) => Content::Inline(Arc::new(bytes)),
            Collected::Spooled { file, len } => Content::Spooled { file: Arc::new(file), len },
        };
        Output { content, dropped: self.dropped }
    }

    /// A second collector with the same content.
    pub(super) fn duplicate(&self) -> Self {
        let mut twin = Self::new(self.limits.clone());
        let copied = match &self.content {
            Collected::Inline(bytes) => {
                twin.push(bytes);
                Ok(())
            }
            Collected::Spooled { file, len } => twin.copy(file, *len),
        };
        if let Err(error) = copied {
            tracing::warn!(%error, "output is lost: cannot copy a spool file");
        }
        twin.dropped = self.dropped + self.len().saturating_sub(twin.len());
        twin
    }

    fn copy(&mut self, file: &Spooled, len: u64) -> io::Result<()> {
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

    /// Returns how many of the bytes are kept.
    fn append(&mut self, bytes: &[u8]) -> usize {
        if self.spools(bytes.len())
            && let Collected::Inline(_) = &self.content
            && let Err(error) = self.start_spool()
        {
            tracing::warn!(%error, "output is lost: cannot create a spool file");
            return 0;
        }
        match &mut self.content {
            Collected::Inline(kept) => {
                kept.extend_from_slice(bytes);
                bytes.len()
            }
            Collected::Spooled { file, len } => match file.write_all(bytes) {
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
        if let Collected::Inline(bytes) = &self.content {
            let mut file = Spooled::within(&self.limits.spool_dir)?;
            file.write_all(bytes)?;
            let len = bytes.len() as u64;
            self.content = Collected::Spooled { file, len };
        }
        Ok(())
    }
}

/// Returns how many bytes were written, which are fewer only if the disk refused the others.
fn write_all_vectored(file: &mut impl Write, mut slices: &mut [IoSlice<'_>]) -> usize {
    let mut written = 0;
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let error = match file.write_vectored(slices) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(more) => {
                written += more;
                IoSlice::advance_slices(&mut slices, more);
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        tracing::warn!(%error, "output is lost: cannot write a spool file");
        break;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that takes so many bytes at a time, so many in all, and is interrupted now and then.
    struct Disk {
        kept: Vec<u8>,
        step: usize,
        room: usize,
        calls: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls.is_multiple_of(3) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let len = bytes.len().min(self.step).min(self.room - self.kept.len());
            if len == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.kept.extend_from_slice(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn pieces_are_written_whole_however_the_disk_cuts_them() {
        let pieces: [&[u8]; 5] = [b"", b"one", b"", b"twentytwo", b"x"];
        let whole = pieces.concat();
        for step in 1..=whole.len() + 1 {
            for room in 0..=whole.len() + 1 {
                let mut disk = Disk { kept: Vec::new(), step, room, calls: 0 };
                let mut slices = pieces.map(IoSlice::new);
                let written = write_all_vectored(&mut disk, &mut slices);
                assert_eq!(disk.kept, whole[..room.min(whole.len())], "{step} {room}");
                assert_eq!(written, disk.kept.len());
            }
        }
        assert_eq!(write_all_vectored(&mut io::empty(), &mut []), 0);
    }

    #[test]
    fn many_pieces_at_once_are_kept_and_counted_as_one_by_one() {
        let directory = tempfile::tempdir().unwrap();
        let pieces: Vec<Vec<u8>> = (0..30_u8).map(|number| vec![number; usize::from(number)]).collect();
        let slices = || pieces.iter().map(Vec::as_slice);
        for (inline, total) in
            [(0, 1 << 20), (100, 1 << 20), (0, 900), (0, 435), (0, 434), (50, 300), (500, 100)]
        {
            let limits = OutputLimits::default()
                .with_inline(inline)
                .with_total(total)
                .with_spool_dir(directory.path());
            let (mut together, mut apart) =
                (OutputCollector::new(limits.clone()), OutputCollector::new(limits));
            for _ in 0..2 {
                together.push_all(slices());
                slices().for_each(|piece| apart.push(piece));
            }
            let (together, apart) = (together.finish(), apart.finish());
            let content = |output: &Output| output.read_at(0, usize::MAX).unwrap();
            assert_eq!(content(&together), content(&apart));
            assert_eq!(together.len() + together.dropped(), apart.len() + apart.dropped());
        }
    }
}
