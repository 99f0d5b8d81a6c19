//! Changed lines of a patch.

use std::collections::{BTreeMap, BTreeSet};

/// Returns the lines that a patch adds or changes, from 1, by the path of their file. Renamed and binary files have none.
#[must_use]
pub fn changed_lines(patch: &[u8]) -> BTreeMap<String, BTreeSet<u64>> {
    let text = String::from_utf8_lossy(patch);
    let mut lines: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    let (mut path, mut number, mut left) = (None::<String>, 0_u64, 0_u64);
    for line in text.split('\n') {
        if left == 0 {
            if let Some(named) = line.strip_prefix("+++ ") {
                path = named.trim_end().strip_prefix("b/").map(str::to_owned);
            } else if let Some(hunk) = line.strip_prefix("@@ ") {
                (number, left) = new_range(hunk).unwrap_or_default();
            }
            continue;
        }
        match line.as_bytes().first() {
            Some(b'+') => {
                if let Some(path) = &path {
                    lines.entry(path.clone()).or_default().insert(number);
                }
            }
            Some(b'-' | b'\\') => continue,
            _ => {}
        }
        number += 1;
        left -= 1;
    }
    lines
}

/// Returns first line and number of lines in the new file: `-1,2 +3,4 @@`.
fn new_range(hunk: &str) -> Option<(u64, u64)> {
    let range = hunk.split(' ').find_map(|part| part.strip_prefix('+'))?;
    let (first, count) = range.split_once(',').unwrap_or((range, "1"));
    Some((first.parse().ok()?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_those_of_the_new_file() {
        let patch = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,4 @@\n x\n-old\n+++ new\n+new\n y\n@@ -9 +10 @@ f\n-z\n+z\n\
                      \\ No newline at end of file\ndiff --git a/b.py b/b.py\n--- a/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        let lines = changed_lines(patch);
        assert_eq!(lines, BTreeMap::from([("a.py".to_owned(), BTreeSet::from([2, 3, 10]))]));
    }
}
