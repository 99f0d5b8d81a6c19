//! `cargo xtask lines`: the size of each crate's product code, and the density of idioms in its text.

use super::{
    product,
    tree::{Package, Tree},
    words::{self, Table},
};
use crate::{failure::Failure, metadata::Metadata};

/// Prints a line for each crate, or the idioms of one crate. A passage is a comment line or a string.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let tree = Tree::load(metadata)?;
    let table = Table::load(&tree).map_err(|violation| Failure::new(violation.to_string()))?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => print_table(&tree, &table),
        ["--idioms", name] => {
            let package = words::crates(&tree)
                .find(|package| package.name == *name)
                .ok_or_else(|| Failure::new(format!("`{name}` is no crate")))?;
            for used in table.measure(&tree, package).uses {
                println!("{}:{}: {}", used.path, used.line, used.idiom);
            }
        }
        _ => return Err(Failure::new("lines takes no arguments, or `--idioms CRATE`")),
    }
    Ok(())
}

fn print_table(tree: &Tree, table: &Table) {
    println!(
        "{:<20} {:>10} {:>8} {:>6} {:>7} {:>7}",
        "crate", "code lines", "passages", "idioms", "%", "ceiling"
    );
    let mut sum = 0;
    for package in words::crates(tree) {
        let lines = code_lines(tree, package);
        let density = table.measure(tree, package);
        println!(
            "{:<20} {lines:>10} {:>8} {:>6} {:>7.2} {:>7.1}",
            package.name,
            density.passages,
            density.uses.len(),
            density.percent(),
            table.ceiling(&package.name),
        );
        sum += lines;
    }
    println!("{:<20} {sum:>10}", "all");
}

/// Counts the product code lines of a package.
fn code_lines(tree: &Tree, package: &Package) -> usize {
    product::files(tree, package).map(product::count_code_lines).sum()
}
