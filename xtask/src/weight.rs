//! `cargo xtask weight`: the crates, and the CPU time of a cold check, that each layer alone and each set of features
//! costs its users.

mod build;
mod check;
mod cold;
mod page;
mod table;
mod tree;
pub(crate) mod wrapper;

use std::collections::BTreeMap;

use crate::{failure::Failure, metadata::Metadata};

pub(crate) use self::build::{ColdBuild, output_directory, size_of};
pub(crate) use self::cold::ColdChecks;

use self::{
    check::Checks,
    table::{Ratios, Subject, Table},
};

/// The library whose sets of features are counted.
const LIBRARY: &str = "pintle";

/// Number of crates by which a layer may exceed the table.
const SLACK: usize = 2;

/// Measures each layer and each set of features, and fails if one exceeds the table. `--write` updates the check times in
/// the table, and the table on the page.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let write = match arguments {
        [] => false,
        [word] if word == "--write" => true,
        _ => return Err(Failure::new("`cargo xtask weight` takes nothing except `--write`")),
    };
    let table = Table::load(metadata)?;
    table.require_every_library(metadata)?;
    if !write {
        crate::page::require(metadata, page::NAME, &page::rendered(&table), table::PATH)?;
    }
    let mut grown = count_crates(metadata, &table)?;
    grown.extend(count_sets(metadata, &table)?);
    if !write && !grown.is_empty() {
        return fail(&grown);
    }
    let subjects = table.subjects(LIBRARY);
    let checks = Checks::measure(metadata, &subjects)?;
    let ratios = checks.ratios(&table.reference)?;
    print_sets(&table, &ratios, checks.reference_seconds(&table.reference)?);
    if write {
        let table = table.with_checks(ratios);
        table.save_checks(metadata)?;
        crate::page::write(metadata, page::NAME, &page::rendered(&table))?;
    } else {
        let mut slower = compare(&table, &ratios);
        if !slower.is_empty() {
            println!("measured once more, since other work on the machine may be the reason");
            let is_needed = |name: &String| slower.contains_key(name) || *name == table.reference.layer;
            let again: Vec<Subject> =
                subjects.into_iter().filter(|subject| is_needed(&subject.name)).collect();
            let again = Checks::measure_again(metadata, &again)?.ratios(&table.reference)?;
            slower = compare(&table, &lower(of(&slower, ratios), &again));
        }
        let slower: Vec<String> = slower.into_values().collect();
        if !slower.is_empty() {
            return fail(&slower);
        }
    }
    // The figures of the checks alone were written.
    if grown.is_empty() { Ok(()) } else { fail(&grown) }
}

fn fail(grown: &[String]) -> Result<(), Failure> {
    Err(Failure::new(format!(
        "{} (drop a dependency or a feature, or record the growth in {})",
        grown.join("; "),
        table::PATH
    )))
}

/// Prints the crates of each layer and their main causes. Returns the layers that have grown.
fn count_crates(metadata: &Metadata, table: &Table) -> Result<Vec<String>, Failure> {
    let mut grown = Vec::new();
    println!(
        "{:<18} {:>6} {:>6} {:>8}  mainly from (crates in total, of which only through it)",
        "alone", "crates", "table", "+ build"
    );
    for (name, allowed) in &table.crates {
        let graph = tree::tree(metadata, name, &table.target, "normal")?;
        let built = tree::tree(metadata, name, &table.target, "normal,build")?;
        let count = graph.reached(None).len();
        println!(
            "{name:<18} {count:>6} {allowed:>6} {:>8}  {}",
            built.reached(None).len().saturating_sub(count),
            tree::drivers(&graph)
        );
        if count > allowed + SLACK {
            grown.push(format!("{name} compiles {count} crates, the table says {allowed}"));
        }
    }
    Ok(grown)
}

/// Prints the crates of each set of features. Returns the sets that have grown.
fn count_sets(metadata: &Metadata, table: &Table) -> Result<Vec<String>, Failure> {
    let mut grown = Vec::new();
    for set in &table.sets {
        let graph = tree::tree_of_features(metadata, LIBRARY, &table.target, &set.arguments())?;
        let (count, features) = (graph.reached(None).len(), set.title());
        println!("{LIBRARY} with {features}: {count} crates, the table says {}", set.crates);
        if count > set.crates + SLACK {
            grown.push(format!(
                "{LIBRARY} with {features} compiles {count} crates, the table says {}",
                set.crates
            ));
        }
    }
    Ok(grown)
}

/// Prints the crates of each named set of features, and the CPU time of its cold check on this machine.
fn print_sets(table: &Table, ratios: &Ratios, unit_seconds: f64) {
    println!("{:<18} {:>6} {:>7}  features of {LIBRARY}", "set", "crates", "CPU (s)");
    for set in &table.sets {
        let ratio = set.name.as_ref().and_then(|name| Some((name, ratios.get(name)?)));
        if let Some((name, ratio)) = ratio {
            println!("{name:<18} {:>6} {:>7.0}  {}", set.crates, ratio * unit_seconds, set.title());
        }
    }
}

/// Prints the check of each layer and of each named set beside its figure. Returns those that have grown beyond the
/// tolerance, with what is wrong.
fn compare(table: &Table, ratios: &Ratios) -> BTreeMap<String, String> {
    let mut grown = BTreeMap::new();
    println!("{:<18} {:>7} {:>7} {:>8}", "cold check", "ratio", "table", "change");
    for (name, ratio) in ratios {
        let Some(known) = table.check.get(name) else {
            grown.insert(name.clone(), format!("the check of {name} has no figure"));
            continue;
        };
        let change = (ratio / known - 1.0) * 100.0;
        println!("{name:<18} {ratio:>7.2} {known:>7.2} {change:>+7.1}%");
        if change > table.reference.tolerance {
            let what = format!("a cold check of {name} takes {ratio:.2}, the table says {known:.2}");
            grown.insert(name.clone(), what);
        } else if change < -table.reference.tolerance {
            println!("  {name} takes less than the table says: `--write` updates it");
        }
    }
    grown
}

/// Returns the measurements of these layers.
fn of(layers: &BTreeMap<String, String>, mut ratios: Ratios) -> Ratios {
    ratios.retain(|name, _| layers.contains_key(name));
    ratios
}

/// Returns the lower of two measurements of each layer.
fn lower(mut ratios: Ratios, again: &Ratios) -> Ratios {
    for (name, ratio) in &mut ratios {
        *ratio = again.get(name).map_or(*ratio, |again| ratio.min(*again));
    }
    ratios
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{compare, lower, of, table::Table};

    #[test]
    fn the_lower_of_two_measurements_counts() {
        let ratios = |a: f64, b: f64| BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
        assert_eq!(lower(ratios(2.0, 1.0), &ratios(1.5, 1.5)), ratios(1.5, 1.0));
    }

    #[test]
    fn growth_beyond_the_tolerance_is_reported() {
        let table = Table::parse(
            "target = \"t\"\n[crates]\na = 1\n\
             [reference]\nlayer = \"a\"\ncrates = [\"c\"]\ntolerance = 10.0\n\
             [check]\na = 2.0\nb = 2.0\nc = 2.0\n",
        )
        .unwrap();
        let measured = [("a", 2.19), ("b", 2.21), ("c", 1.0), ("new", 1.0)];
        let ratios = BTreeMap::from(measured.map(|(name, ratio)| (name.to_owned(), ratio)));
        let grown = compare(&table, &ratios);
        assert_eq!(
            grown.values().collect::<Vec<_>>(),
            ["a cold check of b takes 2.21, the table says 2.00", "the check of new has no figure"]
        );
        assert_eq!(of(&grown, ratios).into_keys().collect::<Vec<_>>(), ["b", "new"]);
    }
}
