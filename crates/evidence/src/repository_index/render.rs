//! The index as text.

use super::outline::FileOutline;
use super::{FileSum, RepositoryIndex};
use crate::names::escape_name;

/// Space that the last line needs.
const REST: usize = 80;

/// Lines of text up to a limit in bytes.
struct BoundedText {
    text: String,
    limit: usize,
    /// Number of lines that do not fit.
    omitted: usize,
}

impl BoundedText {
    /// Adds a line if it fits, and if all earlier lines did.
    fn add(&mut self, line: &str) {
        if self.omitted == 0 && self.text.len() + line.len() + 1 + REST <= self.limit {
            self.text.push_str(line);
            self.text.push('\n');
        } else {
            self.omitted += 1;
        }
    }

    fn add_all(&mut self, heading: &str, lines: impl IntoIterator<Item = String>) {
        let mut lines = lines.into_iter().peekable();
        if lines.peek().is_some() {
            self.add(heading);
        }
        lines.for_each(|line| self.add(&line));
    }
}

impl RepositoryIndex {
    /// Returns the index as text of at most `limit` bytes. The last line has the number of lines that do not fit.
    #[must_use]
    pub fn render(&self, limit: usize) -> String {
        let mut text = BoundedText { text: String::new(), limit, omitted: 0 };
        text.add(&format!("Repository: {}, {} of tests.", self.sum.describe(), count(self.tests)));
        if self.omitted > 0 {
            let omitted = self.omitted;
            text.add(&format!(
                "(The index has the {} files nearest to the root, and leaves out {omitted}.)",
                self.sum.files
            ));
        }
        if self.classified < self.sum.files {
            let classified = self.classified;
            text.add(&format!(
                "(Tests, manifests and symbols are from the {classified} files nearest to the root.)"
            ));
        }
        text.add_all(
            "Test commands:",
            self.commands.iter().map(|test| {
                let format = test
                    .format
                    .map_or("by exit code".to_owned(), |format| format!("{format:?}").to_lowercase());
                format!("- `{}` ({format})", escape_name(&test.command))
            }),
        );
        text.add_all("Manifests:", self.manifests.iter().map(|path| format!("- `{}`", escape_name(path))));
        let sums = |sums: &[(String, FileSum)]| {
            sums.iter()
                .map(|(name, sum)| format!("- {}: {}", escape_name(name), sum.describe()))
                .collect::<Vec<_>>()
        };
        text.add_all("Languages:", sums(&self.languages));
        text.add_all("Directories:", sums(&self.directories));
        text.add_all("Symbols, with their lines:", self.outline.iter().map(FileOutline::describe));
        if self.without_outline > 0 {
            text.add(&format!("({} sources are not listed here.)", self.without_outline));
        }
        let BoundedText { mut text, omitted, .. } = text;
        if omitted > 0 && limit >= REST {
            text.push_str(&format!("({omitted} more lines are left out.)\n"));
        }
        text
    }
}

impl FileSum {
    fn describe(&self) -> String {
        format!("{}, {} KiB", count(self.files), self.bytes.div_ceil(1024))
    }
}

impl FileOutline {
    fn describe(&self) -> String {
        let symbols: Vec<String> =
            self.symbols.iter().map(|(line, symbol)| format!("{line} {}", escape_name(symbol))).collect();
        let more = if self.omitted > 0 { format!(", and {} more", self.omitted) } else { String::new() };
        format!("- `{}`: {}{more}", escape_name(&self.path), symbols.join(", "))
    }
}

fn count(files: usize) -> String {
    pintle_agent::Count(files as u64, "file").to_string()
}
