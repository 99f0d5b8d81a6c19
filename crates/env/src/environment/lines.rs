//! Reads lines of text on top of [`ExecutionEnvironment::read`].

use std::path::Path;

use crate::{environment::ExecutionEnvironment, error::EnvError, file::MAX_READ};

/// Size of one read, so that lines of a large file are found without loading all of it.
const BLOCK: u64 = 1 << 20;

/// Reads `limit` lines from the 1-based line `offset`.
pub(crate) async fn read_lines<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    path: &Path,
    offset: Option<usize>,
    limit: Option<usize>,
) -> Result<String, EnvError> {
    let mut lines = Lines {
        to_skip: offset.unwrap_or(1).saturating_sub(1),
        to_keep: limit.unwrap_or(usize::MAX),
        kept: Vec::new(),
    };
    let mut position = 0;
    loop {
        let block = env.read(path, Some(position..position + BLOCK)).await?;
        let used = block.get(..lines.feed(&block)).unwrap_or(&block);
        if let Some(zero) = used.iter().position(|byte| *byte == 0) {
            return Err(EnvError::NotText { path: env.resolve(path), offset: position + zero as u64 });
        }
        position += block.len() as u64;
        if lines.kept.len() as u64 > MAX_READ {
            return Err(EnvError::TooLarge { path: env.resolve(path), limit: MAX_READ });
        }
        if (block.len() as u64) < BLOCK || lines.to_keep == 0 {
            return Ok(String::from_utf8(lines.kept)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()));
        }
    }
}

/// Extracts a range of lines from a stream of blocks.
struct Lines {
    to_skip: usize,
    to_keep: usize,
    kept: Vec<u8>,
}

impl Lines {
    /// Appends the wanted lines of a block; returns the number of bytes examined.
    fn feed(&mut self, block: &[u8]) -> usize {
        if self.to_skip == 0 && self.to_keep == usize::MAX {
            self.kept.extend_from_slice(block);
            return block.len();
        }
        let mut used = 0;
        for piece in block.split_inclusive(|byte| *byte == b'\n') {
            let ends = piece.ends_with(b"\n");
            if self.to_keep == 0 {
                break;
            }
            used += piece.len();
            if self.to_skip > 0 {
                self.to_skip -= usize::from(ends);
            } else {
                self.kept.extend_from_slice(piece);
                self.to_keep -= usize::from(ends);
            }
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn block_boundaries_do_not_matter(
            text in "[ab\n\r]{0,40}",
            size in 1_usize..8,
            skip in 0_usize..6,
            keep in 0_usize..6,
        ) {
            let mut lines = Lines { to_skip: skip, to_keep: keep, kept: Vec::new() };
            for block in text.as_bytes().chunks(size) {
                lines.feed(block);
            }
            let expected: String = text.split_inclusive('\n').skip(skip).take(keep).collect();
            prop_assert_eq!(String::from_utf8(lines.kept).unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn only_the_lines_read_must_be_text() {
        let environment = crate::MemoryEnvironment::new("/").with_file("mixed", "one\ntwo\n\0\n");
        let path = Path::new("mixed");
        assert_eq!(environment.read_file(path, Some(2), Some(1)).await.unwrap(), "two\n");
        for (offset, limit) in [(1, None), (3, Some(1)), (4, None)] {
            let error = environment.read_file(path, Some(offset), limit).await.unwrap_err();
            assert!(matches!(error, EnvError::NotText { offset: 8, .. }), "{offset} {error:?}");
        }
    }
}
