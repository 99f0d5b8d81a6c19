//! A map of files that forgets the one that was used longest ago.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The most files that are remembered.
const MAX_FILES: usize = 10_000;

/// Facts about files, by path, for [`MAX_FILES`] of them.
#[derive(Debug, Default)]
pub(crate) struct RecentFiles<T> {
    by_path: HashMap<PathBuf, Used<T>>,
    /// Counts up with each use, so that the file that was used longest ago can be found.
    clock: u64,
}

#[derive(Debug, Default)]
struct Used<T> {
    facts: T,
    at: u64,
}

impl<T: Default> RecentFiles<T> {
    /// The facts about a file, which is used by that. About a new one there are none yet.
    pub(crate) fn get(&mut self, path: &Path) -> &mut T {
        self.clock += 1;
        if self.by_path.len() >= MAX_FILES && !self.by_path.contains_key(path) {
            let oldest = self.by_path.iter().min_by_key(|(_, used)| used.at);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                self.by_path.remove(&oldest);
            }
        }
        let used = self.by_path.entry(path.to_owned()).or_default();
        used.at = self.clock;
        &mut used.facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_was_used_longest_ago_is_forgotten() {
        let mut files = RecentFiles::default();
        for index in 0..MAX_FILES {
            *files.get(Path::new(&index.to_string())) = Some(index);
        }
        assert_eq!(*files.get(Path::new("0")), Some(0));
        assert_eq!(*files.get(Path::new("one more")), None);
        assert_eq!(files.by_path.len(), MAX_FILES);
        assert!(!files.by_path.contains_key(Path::new("1")));
        assert_eq!(*files.get(Path::new("0")), Some(0));
    }
}
