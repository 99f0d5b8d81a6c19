//! `cargo xtask callgrind`: instruction counts of fixed work on hot paths, compared with a committed table.
//!
//! Instruction counts do not depend on the load of a machine. They depend on its processor, by whose extensions the C
//! library selects its routines, so that selection is fixed. They also depend slightly on hash seeds and on the order
//! of threads, for which the table has a tolerance.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
};

const TABLE: &str = "benches/callgrind.toml";

pub(crate) const ADVICE: &str = "valgrind is not installed (Debian: `apt-get install valgrind`)";

/// Makes the C library select the same copy and compare routines on every processor. Without it the same program takes
/// up to a third more or less on another one. Unknown names are ignored.
const C_LIBRARY: &str = "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-ERMS,-FSRM,-AVX_Fast_Unaligned_Load\
                         :glibc.cpu.x86_non_temporal_threshold=0x4000000";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Allowed deviation from the figure of a path, in percent.
    tolerance: f64,
    /// Millions of instructions per path.
    paths: BTreeMap<String, f64>,
}

/// Result of comparing a path with its figure.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Kept,
    Grown,
    /// It takes fewer: the table should be updated, or later growth goes unnoticed.
    Shrunk,
}

/// Counts every path and compares it with the table; `--write` updates the table instead.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let write = match arguments {
        [] => false,
        [word] if word == "--write" => true,
        _ => return Err(Failure::new("`cargo xtask callgrind` takes no arguments except `--write`")),
    };
    if !is_installed() {
        return Err(Failure::new(ADVICE));
    }
    let program = build(metadata)?;
    let path = metadata.workspace_root.join(TABLE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("{TABLE} could not be read"))?;
    let table: Table = toml::from_str(&text).with_context(|| format!("{TABLE} could not be parsed"))?;
    let counted = count_all(&program)?;
    if write {
        return std::fs::write(&path, rewritten(&text, &counted))
            .with_context(|| format!("{TABLE} could not be written"));
    }
    compare(&table, &counted)
}

pub(crate) fn is_installed() -> bool {
    let mut valgrind = Command::new("valgrind");
    let status = valgrind.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn build(metadata: &Metadata) -> Result<PathBuf, Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    let words =
        ["build", "--locked", "--profile", "measure", "--package", "pintle-benches", "--bin", "hot-paths"];
    process::run(command.args(words))?;
    Ok(metadata.target_directory.join("measure/hot-paths"))
}

fn count_all(program: &Path) -> Result<BTreeMap<String, f64>, Failure> {
    let names = process::capture(&mut Command::new(program))?;
    names.lines().map(|name| Ok((name.to_owned(), count(program, name)?))).collect()
}

/// Returns the instructions of a path, in millions.
fn count(program: &Path, name: &str) -> Result<f64, Failure> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .arg(name)
        .env("GLIBC_TUNABLES", C_LIBRARY)
        .stdin(Stdio::null())
        .output()
        .context("valgrind could not be started")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let counted = collected(&errors).filter(|_| output.status.success());
    counted.ok_or_else(|| Failure::new(format!("the path `{name}` was not counted: {}", errors.trim())))
}

/// Parses the last line of callgrind, `==PID== Collected : N`. Returns millions.
fn collected(errors: &str) -> Option<f64> {
    let line = errors.lines().find_map(|line| line.split_once("Collected :"))?;
    let number: f64 = line.1.trim().parse().ok()?;
    Some(number / 1e6)
}

fn compare(table: &Table, counted: &BTreeMap<String, f64>) -> Result<(), Failure> {
    println!("{:<20} {:>10} {:>10} {:>8}", "path", "counted", "table", "change");
    let mut wrong = Vec::new();
    for (name, count) in counted {
        let Some(known) = table.paths.get(name) else {
            wrong.push(format!("{name} has no figure"));
            continue;
        };
        println!("{name:<20} {count:>9.1}M {known:>9.1}M {:>+7.1}%", change(*count, *known));
        match verdict(*count, *known, table.tolerance) {
            Verdict::Kept => {}
            Verdict::Grown => wrong.push(format!("{name} takes {:+.1} %", change(*count, *known))),
            Verdict::Shrunk => {
                println!("  {name} takes fewer than the table says: `--write` updates it");
            }
        }
    }
    let gone = table.paths.keys().filter(|name| !counted.contains_key(*name));
    wrong.extend(gone.map(|name| format!("{name} is in the table, but is not a path")));
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} (tolerance {} %; make it cheaper, or state the growth in {TABLE})",
        wrong.join("; "),
        table.tolerance
    )))
}

fn verdict(count: f64, known: f64, tolerance: f64) -> Verdict {
    match change(count, known) {
        change if change > tolerance => Verdict::Grown,
        change if change < -tolerance => Verdict::Shrunk,
        _ => Verdict::Kept,
    }
}

/// Returns the change in percent.
fn change(count: f64, known: f64) -> f64 {
    (count / known - 1.0) * 100.0
}

/// Replaces the figures of the table and keeps everything before them.
fn rewritten(text: &str, counted: &BTreeMap<String, f64>) -> String {
    let head = text.split_once("[paths]").map_or(text, |(head, _)| head);
    let figures: String = counted.iter().map(|(name, count)| format!("{name} = {count:.3}\n")).collect();
    format!("{}\n\n[paths]\n{figures}", head.trim_end())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Table, Verdict, collected, compare, rewritten, verdict};

    #[test]
    fn the_count_is_parsed() {
        let output = "==7== Events    : Ir\n==7== Collected : 1612705786\n==7==\n";
        assert_eq!(collected(output), Some(1_612.705_786));
        assert_eq!(collected("==7== Command: true\n"), None);
    }

    #[test]
    fn changes_within_the_tolerance_are_ignored() {
        let cases =
            [(103.0, Verdict::Kept), (97.0, Verdict::Kept), (104.0, Verdict::Grown), (90.0, Verdict::Shrunk)];
        for (count, expected) in cases {
            assert_eq!(verdict(count, 100.0, 3.5), expected, "{count}");
        }
    }

    #[test]
    fn growth_and_unmatched_paths_are_refused() {
        let figures = |rows: &[(&str, f64)]| -> BTreeMap<String, f64> {
            rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let table = Table { tolerance: 3.0, paths: figures(&[("a", 10.0), ("b", 10.0), ("gone", 1.0)]) };
        let failure = compare(&table, &figures(&[("a", 11.0), ("b", 10.1), ("new", 1.0)])).unwrap_err();
        let message = failure.to_string();
        assert!(
            message
                .starts_with("a takes +10.0 %; new has no figure; gone is in the table, but is not a path"),
            "{message}"
        );
    }

    #[test]
    fn writing_keeps_the_text_before_the_figures() {
        let text = "# Why.\ntolerance = 3.0\n\n[paths]\nold = 1.0\n";
        let counted = BTreeMap::from([("new".to_owned(), 2.04)]);
        assert_eq!(rewritten(text, &counted), "# Why.\ntolerance = 3.0\n\n[paths]\nnew = 2.040\n");
    }
}
