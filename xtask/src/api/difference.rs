//! Differences between the committed and the current listings.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// The lines of one listing that were added or removed. Both are empty if only the order of the lines differs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference<'a> {
    pub(super) name: &'a str,
    added: Vec<&'a str>,
    removed: Vec<&'a str>,
}

impl Difference<'_> {
    /// Returns the numbers of added and removed lines.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.added.len(), self.removed.len())
    }
}

/// Returns the listings that differ, sorted by name. A missing listing is an empty one that differs.
pub(super) fn compare<'a>(
    committed: &'a BTreeMap<String, String>,
    current: &'a BTreeMap<String, String>,
) -> Vec<Difference<'a>> {
    let names: BTreeSet<&'a String> = committed.keys().chain(current.keys()).collect();
    let differing = names.into_iter().filter(|name| committed.get(*name) != current.get(*name));
    differing
        .map(|name| {
            let before = committed.get(name).map_or("", String::as_str);
            let after = current.get(name).map_or("", String::as_str);
            Difference { name: name.as_str(), added: only_in(after, before), removed: only_in(before, after) }
        })
        .collect()
}

/// Returns the lines of `text` that `other` lacks.
fn only_in<'a>(text: &'a str, other: &str) -> Vec<&'a str> {
    let known: BTreeSet<&str> = other.lines().collect();
    text.lines().filter(|line| !known.contains(line)).collect()
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (added, removed) = self.counts();
        writeln!(formatter, "-- {}: {added} lines added, {removed} removed", self.name)?;
        for line in &self.removed {
            writeln!(formatter, "-{line}")?;
        }
        for line in &self.added {
            writeln!(formatter, "+{line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::compare;

    fn listings(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn added_and_removed_lines_are_shown_by_crate() {
        let committed = listings(&[("a", "pub fn a::x()\npub fn a::y()\n"), ("gone", "pub mod gone\n")]);
        let current =
            listings(&[("a", "pub fn a::x()\npub fn a::y(u8)\n"), ("new", "pub mod new\n"), ("order", "")]);
        let shown: String = compare(&committed, &current).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            "-- a: 1 lines added, 1 removed\n-pub fn a::y()\n+pub fn a::y(u8)\n\
             -- gone: 0 lines added, 1 removed\n-pub mod gone\n\
             -- new: 1 lines added, 0 removed\n+pub mod new\n\
             -- order: 0 lines added, 0 removed\n"
        );
    }

    #[test]
    fn equal_listings_have_no_difference_and_another_order_is_one() {
        let one = listings(&[("a", "pub fn a::x()\npub fn a::y()\n")]);
        assert!(compare(&one, &one).is_empty());
        let other = listings(&[("a", "pub fn a::y()\npub fn a::x()\n")]);
        assert_eq!(compare(&one, &other).iter().map(super::Difference::counts).collect::<Vec<_>>(), [(0, 0)]);
    }
}
