//! The listing of one library, from rustdoc's JSON.

use std::{collections::BTreeSet, path::Path};

use public_api::Builder;

use crate::failure::{Context as _, Failure};

/// A marker that derived comparisons add.
const STRUCTURAL: &str = "core::marker::StructuralPartialEq for ";

/// Returns the public items in this file of rustdoc, one per line. Items of a type or a module follow it.
///
/// Automatic traits and implementations for all types are left out, as they follow from other items and from the standard
/// library. A derived implementation is one line, without its methods.
pub(super) fn of_json(json: &Path) -> Result<String, Failure> {
    let builder = Builder::from_rustdoc_json(json).omit_blanket_impls(true).omit_auto_trait_impls(true);
    let items = |builder: Builder| -> Result<Vec<String>, Failure> {
        let api = builder.build().with_context(|| {
            format!(
                "{} could not be read (each version of `public-api` in Cargo.toml reads one format of rustdoc's JSON)",
                json.display()
            )
        })?;
        Ok(api.items().map(ToString::to_string).collect())
    };
    let written: BTreeSet<String> =
        items(builder.clone().omit_auto_derived_impls(true))?.into_iter().collect();
    Ok(lines(&items(builder)?, &written))
}

/// Returns the items of `all` that are `written` in the code, and the first lines of derived implementations.
fn lines(all: &[String], written: &BTreeSet<String>) -> String {
    let is_listed =
        |item: &&String| written.contains(*item) || (item.starts_with("impl") && !item.contains(STRUCTURAL));
    all.iter().filter(is_listed).map(|item| format!("{item}\n")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::lines;

    #[test]
    fn a_derived_implementation_is_one_line() {
        let all = [
            "pub struct a::A",
            "impl core::clone::Clone for a::A",
            "pub fn a::A::clone(&self) -> a::A",
            "impl core::marker::StructuralPartialEq for a::A",
            "impl core::fmt::Display for a::A",
            "pub fn a::A::fmt(&self, &mut core::fmt::Formatter<'_>) -> core::fmt::Result",
        ]
        .map(str::to_owned);
        let written: BTreeSet<String> = [0, 4, 5].map(|index| all[index].clone()).into();
        assert_eq!(
            lines(&all, &written).lines().collect::<Vec<_>>(),
            [
                "pub struct a::A",
                "impl core::clone::Clone for a::A",
                "impl core::fmt::Display for a::A",
                "pub fn a::A::fmt(&self, &mut core::fmt::Formatter<'_>) -> core::fmt::Result",
            ]
        );
    }
}
