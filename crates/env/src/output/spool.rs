//! Spool file for large outputs: one unnamed file per directory, shared by all outputs.
//!
//! An output allocates blocks of the file as it grows and releases them with its last clone. Kept
//! outputs thus cost one descriptor per directory, and the disk space of dropped ones is reclaimed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Block size in bytes. The unused part of an output's last block occupies no disk space.
const BLOCK: u64 = 1 << 20;

/// Open spool files by directory. Global because descriptors are a resource of the whole process.
static OPEN: Mutex<BTreeMap<PathBuf, Weak<Spool>>> = Mutex::new(BTreeMap::new());

/// A file shared by outputs.
#[derive(Debug)]
struct Spool {
    file: File,
    blocks: Mutex<Blocks>,
}

/// Allocation state of the blocks of a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Blocks {
    /// Number of blocks allocated so far, released ones included.
    end: u64,
    /// Released blocks below `end`.
    free: BTreeSet<u64>,
}

/// The part of a spool that belongs to one output.
#[derive(Debug)]
pub(super) struct SpooledOutput {
    spool: Arc<Spool>,
    blocks: Vec<u64>,
    len: u64,
}

impl Blocks {
    fn allocate(&mut self) -> u64 {
        self.free.pop_first().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        })
    }

    /// Releases blocks. The file may be truncated to the new `end`.
    fn release(&mut self, blocks: &[u64]) {
        self.free.extend(blocks);
        while self.end > 0 && self.free.remove(&(self.end - 1)) {
            self.end -= 1;
        }
    }
}

impl Spool {
    /// Returns the spool file of a directory, creating it if none is open.
    fn open(directory: &Path) -> io::Result<Arc<Self>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spool) = open.get(directory).and_then(Weak::upgrade) {
            return Ok(spool);
        }
        open.retain(|_, spool| spool.strong_count() > 0);
        let spool = Arc::new(Self { file: tempfile::tempfile_in(directory)?, blocks: Mutex::default() });
        open.insert(directory.to_owned(), Arc::downgrade(&spool));
        Ok(spool)
    }

    fn release(&self, blocks: &[u64]) {
        let mut owned = self.lock();
        let end = owned.end;
        owned.release(blocks);
        // The lock is held so that no block is allocated again before its content is discarded.
        let truncated = if owned.end < end { self.file.set_len(owned.end * BLOCK) } else { Ok(()) };
        let punched = ranges(blocks.iter().copied().filter(|block| *block < owned.end))
            .try_for_each(|(first, count)| punch_hole(&self.file, first * BLOCK, count * BLOCK));
        if let Err(error) = truncated.and(punched) {
            // The blocks are still reused.
            tracing::debug!(%error, "cannot return the blocks of an output to the file system");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpooledOutput {
    /// Creates an empty output in the spool file of `directory`.
    ///
    /// # Errors
    ///
    /// Those of creating the file.
    pub(super) fn create_in(directory: &Path) -> io::Result<Self> {
        Ok(Self { spool: Spool::open(directory)?, blocks: Vec::new(), len: 0 })
    }

    /// Fills `bytes` from `offset`.
    ///
    /// # Errors
    ///
    /// Those of reading, and [`io::ErrorKind::UnexpectedEof`] if the output is shorter.
    pub(super) fn read_exact_at(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let (at, room) = self.locate(offset).ok_or(io::ErrorKind::UnexpectedEof)?;
            let size = bytes.len().min(room);
            let (now, later) = bytes.split_at_mut(size);
            self.spool.file.read_exact_at(now, at)?;
            bytes = later;
            offset += size as u64;
        }
        Ok(())
    }

    /// Returns the file position of an offset, and how many bytes of its block follow.
    fn locate(&self, offset: u64) -> Option<(u64, usize)> {
        let block = self.blocks.get(usize::try_from(offset / BLOCK).ok()?)?;
        let within = offset % BLOCK;
        Some((block * BLOCK + within, usize::try_from(BLOCK - within).ok()?))
    }
}

impl Write for SpooledOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.len == self.blocks.len() as u64 * BLOCK {
            let block = self.spool.lock().allocate();
            self.blocks.push(block);
        }
        let (at, room) = self.locate(self.len).ok_or(io::ErrorKind::UnexpectedEof)?;
        let (now, _) = bytes.split_at(bytes.len().min(room));
        let written = self.spool.file.write_at(now, at)?;
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SpooledOutput {
    fn drop(&mut self) {
        self.spool.release(&self.blocks);
    }
}

/// Merges adjacent blocks into ranges: first block and count.
fn ranges(blocks: impl Iterator<Item = u64>) -> impl Iterator<Item = (u64, u64)> {
    let mut blocks = blocks.peekable();
    std::iter::from_fn(move || {
        let first = blocks.next()?;
        let mut count = 1;
        while blocks.next_if_eq(&(first + count)).is_some() {
            count += 1;
        }
        Some((first, count))
    })
}

/// Returns part of the file to the file system.
#[cfg(target_os = "linux")]
fn punch_hole(file: &File, at: u64, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, len)?)
}

/// On other systems the space is reclaimed when the file is truncated or closed.
#[cfg(not(target_os = "linux"))]
fn punch_hole(_file: &File, _at: u64, _len: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use proptest::prelude::*;

    use super::*;

    fn spooled(directory: &Path, bytes: &[u8]) -> SpooledOutput {
        let mut spooled = SpooledOutput::create_in(directory).unwrap();
        spooled.write_all(bytes).unwrap();
        spooled
    }

    fn read(spooled: &SpooledOutput) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(spooled.len).unwrap()];
        spooled.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// Counts descriptors of this process that refer to files in the directory.
    #[cfg(target_os = "linux")]
    fn descriptors(directory: &Path) -> usize {
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        let files = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        files.filter(|file| file.starts_with(directory)).count()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn thousands_of_outputs_share_one_descriptor() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let outputs: Vec<SpooledOutput> =
            (0..3_000_u32).map(|number| spooled(&directory, &number.to_be_bytes())).collect();
        assert_eq!(descriptors(&directory), 1);
        for (number, output) in (0_u32..).zip(&outputs) {
            assert_eq!(read(output), number.to_be_bytes());
        }
        drop(outputs);
        assert_eq!(descriptors(&directory), 0, "the last output closes the file");
    }

    #[test]
    fn interleaved_outputs_keep_their_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let mut outputs = [spooled(directory.path(), b""), spooled(directory.path(), b"")];
        let piece = vec![b'a'; 700_000];
        for _ in 0..5 {
            for (output, letter) in outputs.iter_mut().zip(b'a'..) {
                let piece: Vec<u8> = piece.iter().map(|_| letter).collect();
                output.write_all(&piece).unwrap();
            }
        }
        for (output, letter) in outputs.iter().zip(b'a'..) {
            assert_eq!(output.len, 3_500_000);
            assert!(read(output).iter().all(|byte| *byte == letter));
        }
    }

    #[test]
    fn released_blocks_are_reused() {
        let directory = tempfile::tempdir().unwrap();
        let block = vec![b'x'; usize::try_from(BLOCK).unwrap()];
        let first = spooled(directory.path(), &[block.clone(), block.clone()].concat());
        let last = spooled(directory.path(), &block);
        let spool = Arc::clone(&last.spool);
        let size = || spool.file.metadata().unwrap();
        assert_eq!(size().len(), 3 * BLOCK);
        let full = size().blocks();
        drop(first);
        if cfg!(target_os = "linux") {
            assert!(size().blocks() < full, "the blocks are returned to the file system");
        }
        let second = spooled(directory.path(), &block);
        assert_eq!(size().len(), 3 * BLOCK, "the new output reuses the blocks");
        assert_eq!((read(&second), read(&last)), (block.clone(), block));
        drop((second, last));
        assert_eq!(size().len(), 0);
    }

    #[test]
    fn reading_past_the_end_fails() {
        let directory = tempfile::tempdir().unwrap();
        let output = spooled(directory.path(), b"abc");
        let error = output.read_exact_at(&mut [0; 4], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    proptest! {
        #[test]
        fn no_block_has_two_owners(steps in prop::collection::vec((any::<bool>(), 0_usize..8), 0..200)) {
            let mut blocks = Blocks::default();
            let mut owned: Vec<u64> = Vec::new();
            for (allocates, which) in steps {
                if allocates || owned.is_empty() {
                    let allocated = blocks.allocate();
                    prop_assert!(!owned.contains(&allocated), "{} is allocated already", allocated);
                    owned.push(allocated);
                } else {
                    let given = owned.remove(which % owned.len());
                    blocks.release(&[given]);
                }
                prop_assert!(owned.iter().all(|block| *block < blocks.end), "the file is truncated before {:?}", owned);
            }
            blocks.release(&owned);
            prop_assert_eq!(blocks, Blocks::default());
        }
    }
}
