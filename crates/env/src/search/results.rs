//! Keeps the first results of a search, in whatever order they arrive.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{GrepFile, GrepMode, GrepOutput, GrepRequest, query::FileOutcome};

/// Results sorted by path and limited by the request.
///
/// Files may be added in any order, so that they can be searched in parallel; the result equals the
/// result of a search in order.
#[derive(Debug)]
pub(crate) struct Results {
    mode: GrepMode,
    max: usize,
    after_context: usize,
    files: BTreeMap<PathBuf, GrepFile>,
    binary: BTreeSet<PathBuf>,
    unreadable: BTreeSet<PathBuf>,
    /// Number of lines or files kept, depending on the mode.
    total: usize,
}

impl Results {
    pub(crate) fn new(request: &GrepRequest) -> Self {
        Self {
            mode: request.output_mode,
            max: request.max_results,
            after_context: request.after_context,
            files: BTreeMap::new(),
            binary: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            total: 0,
        }
    }

    /// Returns true if a match in the file could still be among the first results.
    pub(crate) fn wants(&self, path: &Path) -> bool {
        let last = self.files.last_key_value();
        self.total <= self.max || last.is_some_and(|(last, _)| path < last.as_path())
    }

    /// Adds the outcome of searching a file.
    pub(crate) fn add(&mut self, path: PathBuf, outcome: FileOutcome) {
        match outcome {
            FileOutcome::NoMatch => {}
            FileOutcome::Binary => {
                self.binary.insert(path);
            }
            FileOutcome::Unreadable => {
                self.unreadable.insert(path);
            }
            FileOutcome::Matches(file) => {
                self.total += self.cost(&file);
                self.files.insert(path, file);
                self.evict();
            }
        }
    }

    /// Returns the first results of a search that left out `ignored` entries.
    pub(crate) fn finish(mut self, ignored: usize) -> GrepOutput {
        let truncated = self.total > self.max;
        if truncated {
            self.cut_last();
            let last = self.files.last_key_value().map(|(last, _)| last.as_path());
            let reported = |path: &PathBuf| last.is_some_and(|last| path.as_path() < last);
            self.binary.retain(reported);
            self.unreadable.retain(reported);
        }
        GrepOutput {
            files: self.files.into_values().collect(),
            truncated,
            binary_files: self.binary.len(),
            unreadable_files: self.unreadable.len(),
            ignored,
        }
    }

    fn cost(&self, file: &GrepFile) -> usize {
        match self.mode {
            GrepMode::Content => file.matches,
            GrepMode::FilesWithMatches | GrepMode::Count => 1,
        }
    }

    /// Drops the last files while the remaining ones exceed the limit on their own.
    fn evict(&mut self) {
        while let Some(last) = self.files.last_entry() {
            let cost = match self.mode {
                GrepMode::Content => last.get().matches,
                GrepMode::FilesWithMatches | GrepMode::Count => 1,
            };
            if self.total - cost <= self.max {
                return;
            }
            self.total -= cost;
            last.remove();
        }
    }

    /// Truncates the last file, in which the limit is exceeded.
    fn cut_last(&mut self) {
        let Some(mut last) = self.files.last_entry() else {
            return;
        };
        let excess = self.total - self.max;
        let file = last.get_mut();
        if self.mode != GrepMode::Content || file.matches <= excess {
            last.remove();
            return;
        }
        file.matches -= excess;
        cut_lines(file, self.after_context as u64);
    }
}

/// Keeps the first `file.matches` matching lines with their context.
fn cut_lines(file: &mut GrepFile, after_context: u64) {
    let mut matches = 0;
    let mut last_match = 0;
    let wanted = file.matches;
    let end = file.lines.iter().position(|line| {
        if line.is_match {
            matches += 1;
            if matches <= wanted {
                last_match = line.number;
            }
        }
        matches > wanted || (matches == wanted && line.number > last_match.saturating_add(after_context))
    });
    file.lines.truncate(end.unwrap_or(file.lines.len()));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::GrepLine, *};

    fn found(path: &str, matches: usize) -> (PathBuf, FileOutcome) {
        let lines = (1..=matches as u64).map(|number| GrepLine {
            number,
            text: String::new(),
            skipped: 0,
            match_start: 0,
            is_match: true,
        });
        let file = GrepFile { path: path.into(), matches, lines: lines.collect() };
        (path.into(), FileOutcome::Matches(file))
    }

    fn collect(max: usize, mode: GrepMode, files: &[(String, usize)]) -> GrepOutput {
        let request = GrepRequest::new("x").with_max_results(max).with_output_mode(mode);
        let mut results = Results::new(&request);
        for (path, matches) in files {
            if results.wants(Path::new(path)) {
                let (path, outcome) = match matches {
                    0 => (path.into(), FileOutcome::Binary),
                    matches => found(path, *matches),
                };
                results.add(path, outcome);
            }
        }
        results.finish(0)
    }

    #[test]
    fn a_context_may_be_unlimited() {
        let request = GrepRequest::new("x").with_max_results(1).with_context(0, usize::MAX);
        let mut results = Results::new(&request);
        let (path, outcome) = found("/a", 2);
        results.add(path, outcome);
        let output = results.finish(0);
        assert_eq!((output.files[0].matches, output.files[0].lines.len()), (1, 1));
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(
            counts in prop::collection::vec(0_usize..4, 0..8),
            shuffle in any::<prop::sample::Index>(),
            max in 0_usize..10,
            by_line in any::<bool>(),
        ) {
            let mode = if by_line { GrepMode::Content } else { GrepMode::Count };
            let sorted: Vec<_> = counts.iter().enumerate()
                .map(|(at, matches)| (format!("/{at}"), *matches)).collect();
            let mut turned = sorted.clone();
            if !turned.is_empty() {
                let at = shuffle.index(turned.len());
                turned.rotate_left(at);
                turned.reverse();
            }
            let output = collect(max, mode, &sorted);
            prop_assert_eq!(&collect(max, mode, &turned), &output);
            let costs = |files: &[usize]| -> usize {
                if by_line { files.iter().sum() } else { files.iter().filter(|count| **count > 0).count() }
            };
            let all = costs(&counts);
            let reported: Vec<_> = output.files.iter().map(|file| file.matches).collect();
            prop_assert_eq!(output.truncated, all > max);
            prop_assert_eq!(costs(&reported), all.min(max));
        }
    }
}
