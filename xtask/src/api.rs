//! `cargo xtask api`: the public API of each library against the committed listings. With `--write` it updates them.
//!
//! A listing has one line per public item, with its path and signature, but without documentation and bodies.

mod difference;
mod listing;
pub(crate) mod rustdoc;

use std::{collections::BTreeMap, fs, path::Path};

use self::difference::Difference;
use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
};

/// Directory of the listings.
const DIRECTORY: &str = "docs/reference/api";

/// Listings by the names of their crates.
type Listings = BTreeMap<String, String>;

/// Lists the API of each library and fails if a listing differs. `--write` updates the listings.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let write = match arguments {
        [] => false,
        [word] if word == "--write" => true,
        _ => return Err(Failure::new("`cargo xtask api` takes nothing except `--write`")),
    };
    let current = current(metadata)?;
    let directory = metadata.workspace_root.join(DIRECTORY);
    let committed = committed(&directory)?;
    let differences = difference::compare(&committed, &current);
    println!("{:<18} {:>6} {:>6} {:>8}", "public API", "items", "added", "removed");
    for (name, listing) in &current {
        let changed = differences.iter().find(|difference| difference.name == *name);
        let (added, removed) = changed.map_or((0, 0), Difference::counts);
        println!("{name:<18} {:>6} {added:>6} {removed:>8}", listing.lines().count());
    }
    if write {
        return save(&directory, &differences, &current);
    }
    if differences.is_empty() {
        return Ok(());
    }
    for difference in &differences {
        print!("{difference}");
    }
    let names: Vec<&str> = differences.iter().map(|difference| difference.name).collect();
    Err(Failure::new(format!(
        "the public API of {} is not that in {DIRECTORY} (if the change is intended, `cargo xtask api --write` updates the \
         listings)",
        names.join(", ")
    )))
}

/// Returns the listing of each library.
fn current(metadata: &Metadata) -> Result<Listings, Failure> {
    let directory = rustdoc::document(metadata)?;
    let mut listings = Listings::new();
    for library in metadata.libraries() {
        let json = directory.join(format!("{}.json", library.name.replace('-', "_")));
        listings.insert(library.name.clone(), listing::of_json(&json)?);
    }
    Ok(listings)
}

/// Reads the listings in `directory`, which may be missing.
fn committed(directory: &Path) -> Result<Listings, Failure> {
    let mut listings = Listings::new();
    if !directory.exists() {
        return Ok(listings);
    }
    let unreadable = || format!("{DIRECTORY} could not be read");
    for entry in fs::read_dir(directory).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let is_listing = path.extension().is_some_and(|extension| extension == "txt");
        if let (true, Some(name)) = (is_listing, path.file_stem().and_then(|stem| stem.to_str())) {
            listings.insert(name.to_owned(), fs::read_to_string(&path).with_context(unreadable)?);
        }
    }
    Ok(listings)
}

/// Writes the listings that differ, and removes listings without a library.
fn save(directory: &Path, differences: &[Difference<'_>], current: &Listings) -> Result<(), Failure> {
    fs::create_dir_all(directory).with_context(|| format!("{DIRECTORY} could not be created"))?;
    for Difference { name, .. } in differences {
        let path = directory.join(format!("{name}.txt"));
        let saved = match current.get(*name) {
            Some(listing) => fs::write(&path, listing),
            None => fs::remove_file(&path),
        };
        saved.with_context(|| format!("{} could not be written", path.display()))?;
    }
    println!("{} listings in {DIRECTORY} are updated", differences.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Listings, committed, difference::compare, save};

    #[test]
    fn written_listings_do_not_differ() {
        let directory = std::env::temp_dir().join(format!("pintle-xtask-api-{}", std::process::id()));
        let listings = |entries: &[(&str, &str)]| -> Listings {
            entries.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        assert_eq!(committed(&directory).unwrap(), Listings::new());
        for current in [
            listings(&[("a", "pub fn a::one()\n"), ("b", "pub mod b\n")]),
            listings(&[("a", "pub fn a::two()\n")]),
        ] {
            let before = committed(&directory).unwrap();
            save(&directory, &compare(&before, &current), &current).unwrap();
            assert_eq!(committed(&directory).unwrap(), current);
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
