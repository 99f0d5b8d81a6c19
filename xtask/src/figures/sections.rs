//! `cargo xtask figures --sizes`: the parts of the shipped program.

use std::{collections::BTreeMap, process::Command};

use crate::{bench, failure::Failure, metadata::Metadata, process, weight};

/// Rows of the table of crates.
const CRATES: usize = 40;

/// Name for symbols without a crate.
const OTHERS: &str = "(C code and others)";

/// Builds the shipped program with its symbols, and prints the bytes of each section and of each crate's functions and
/// constants. The symbols of a generic function count for the crate that defines the function.
pub(super) fn print(metadata: &Metadata) -> Result<(), Failure> {
    let directory = metadata.target_directory.join("figures-sizes");
    let mut build = bench::command_build(metadata, bench::SHIPPED_PROFILE, bench::SHIPPED_FEATURES);
    build.arg("--target-dir").arg(&directory).env("CARGO_PROFILE_DIST_STRIP", "none");
    process::run(&mut build)?;
    let program = directory.join(weight::output_directory(bench::SHIPPED_PROFILE)).join("pintle");
    let sections = process::capture(Command::new("size").args(["-A", "-d"]).arg(&program))?;
    println!("{:<40} {:>12}", "section", "bytes");
    for (name, bytes) in largest(parse_sections(&sections)) {
        println!("{name:<40} {bytes:>12}");
    }
    let symbols =
        process::capture(Command::new("nm").args(["-S", "--demangle", "--defined-only"]).arg(&program))?;
    println!("\n{:<40} {:>12}", "crate", "bytes");
    for (name, bytes) in largest(bytes_by_crate(&symbols)).into_iter().take(CRATES) {
        println!("{name:<40} {bytes:>12}");
    }
    Ok(())
}

/// Returns the largest first.
fn largest(sizes: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut sorted: Vec<(String, u64)> = sizes.into_iter().collect();
    sorted.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    sorted
}

/// Parses lines `NAME BYTES ADDRESS` of `size -A -d`. Debug information is not loaded and not counted.
fn parse_sections(output: &str) -> BTreeMap<String, u64> {
    let section = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, bytes, address) = (words.next()?, words.next()?, words.next()?);
        let is_loaded = address.parse::<u64>().ok()? > 0;
        is_loaded.then_some((name.to_owned(), bytes.parse::<u64>().ok()?))
    };
    output.lines().filter_map(section).collect()
}

/// Parses lines `ADDRESS SIZE KIND NAME` of `nm -S --demangle`, with hexadecimal numbers.
fn bytes_by_crate(output: &str) -> BTreeMap<String, u64> {
    let mut sizes = BTreeMap::new();
    for line in output.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some(_), Some(size), Some(_), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Ok(bytes) = u64::from_str_radix(size, 16) else { continue };
        *sizes.entry(crate_of(name).to_owned()).or_default() += bytes;
    }
    sizes
}

/// Returns the crate of a demangled name, such as `a::b` or `<a::B as c::D>::e`.
fn crate_of(name: &str) -> &str {
    let path = name.trim_start_matches(['<', '&', '*', '(', '[']);
    let path = ["mut ", "const ", "dyn "].iter().fold(path, |path, prefix| path.trim_start_matches(prefix));
    match path.split_once("::") {
        Some((first, _)) if is_identifier(first) => first,
        _ => OTHERS,
    }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{OTHERS, bytes_by_crate, crate_of, largest, parse_sections};

    #[test]
    fn symbols_are_counted_for_their_crate() {
        for (name, expected) in [
            ("pintle_env::local::run", "pintle_env"),
            ("<pintle_llm::Message as core::fmt::Debug>::fmt", "pintle_llm"),
            ("<&mut tokio::io::A as b::C>::d", "tokio"),
            ("ring_core_0_17_14__x25519", OTHERS),
            ("_start", OTHERS),
        ] {
            assert_eq!(crate_of(name), expected, "{name}");
        }
        let symbols = "0000000000001000 0000000000000010 t a::b\n\
                       0000000000002000 00000000000000f0 T <a::B as c::D>::e\n\
                       0000000000003000 T without_a_size\n";
        assert_eq!(bytes_by_crate(symbols), BTreeMap::from([("a".to_owned(), 0x100)]));
    }

    #[test]
    fn sections_that_are_loaded_are_listed_by_size() {
        let output = "pintle  :\nsection  size  addr\n.rodata  20  100\n.text  300  4096\n.debug_info  9000  0\nTotal  9320\n";
        assert_eq!(largest(parse_sections(output)), [(".text".to_owned(), 300), (".rodata".to_owned(), 20)]);
    }
}
