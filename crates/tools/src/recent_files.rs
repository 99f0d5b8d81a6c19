//! A map of files that evicts the least recently used one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Maximum number of files that are kept.
const MAX_FILES: usize = 10_000;

/// Values for the [`MAX_FILES`] most recently used files, by path.
#[derive(Debug, Default)]
pub(crate) struct RecentFiles<T> {
    by_path: HashMap<PathBuf, TrackedFile<T>>,
    /// Counts uses, to find the least recently used file.
    clock: u64,
}

#[derive(Debug, Default)]
struct TrackedFile<T> {
    value: T,
    last_use: u64,
}

impl<T: Default> RecentFiles<T> {
    /// Returns the value for a file, and marks the file as used. A new file has the default value.
    pub(crate) fn get(&mut self, path: &Path) -> &mut T {
        self.clock += 1;
        if self.by_path.len() >= MAX_FILES && !self.by_path.contains_key(path) {
            let oldest = self.by_path.iter().min_by_key(|(_, used)| used.last_use);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                self.by_path.remove(&oldest);
            }
        }
        let used = self.by_path.entry(path.to_owned()).or_default();
        used.last_use = self.clock;
        &mut used.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_file_is_evicted() {
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
