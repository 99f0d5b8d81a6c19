//! `cargo xtask callgrind`: the instructions of fixed work on hot paths, against a committed table.
//!
//! Instructions do not depend on how busy a machine is. They do depend on its processor, whose extensions libraries
//! choose by, so that the C library is told which to use, and a little on seeds and on the order in which threads come,
//! so that the table states how much may be left to that.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use crate::{failure::Failure, metadata::Metadata, process};

const TABLE: &str = "benches/callgrind.toml";

pub(crate) const ADVICE: &str = "valgrind is not installed (Debian: `apt-get install valgrind`)";

/// What the C library copies and compares with, whatever the processor has: else the same program takes up to a third
/// more or less elsewhere. Names that a release of it does not know are left alone by it.
const C_LIBRARY: &str = "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-ERMS,-FSRM,-AVX_Fast_Unaligned_Load\
                         :glibc.cpu.x86_non_temporal_threshold=0x4000000";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// How far a path may be from its figure, in percent.
    tolerance: f64,
    /// Millions of instructions by path.
    paths: BTreeMap<String, f64>,
}

/// What became of a path.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Kept,
    Grown,
    /// It takes less: the table has to say so, or the next growth goes unseen.
    Shrunk,
}

/// Counts every path and compares; `--write` puts what was counted into the table.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let write = match arguments {
        [] => false,
        [word] if word == "--write" => true,
        _ => return Err(Failure::new("`cargo xtask callgrind` takes nothing but `--write`")),
    };
    if !is_installed() {
        return Err(Failure::new(ADVICE));
    }
    let program = build(metadata)?;
    let path = metadata.workspace_root.join(TABLE);
    let text = std::fs::read_to_string(&path)
        .map_err(|cause| Failure::new(format!("{TABLE} could not be read")).because(cause))?;
    let table: Table = toml::from_str(&text)
        .map_err(|cause| Failure::new(format!("{TABLE} was not understood")).because(cause))?;
    let counted = count_all(&program)?;
    if write {
        return std::fs::write(&path, rewritten(&text, &counted))
            .map_err(|cause| Failure::new(format!("{TABLE} could not be written")).because(cause));
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

/// Millions of instructions.
fn count(program: &Path, name: &str) -> Result<f64, Failure> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .arg(name)
        .env("GLIBC_TUNABLES", C_LIBRARY)
        .stdin(Stdio::null())
        .output()
        .map_err(|cause| Failure::new("valgrind could not be started").because(cause))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let counted = collected(&errors).filter(|_| output.status.success());
    counted.ok_or_else(|| Failure::new(format!("the path `{name}` was not counted: {}", errors.trim())))
}

/// What callgrind says at its end, `==PID== Collected : N`, in millions.
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
                println!("  {name} takes less than the table says: `--write` keeps that");
            }
        }
    }
    let gone = table.paths.keys().filter(|name| !counted.contains_key(*name));
    wrong.extend(gone.map(|name| format!("{name} is in the table and not among the paths")));
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

/// In percent.
fn change(count: f64, known: f64) -> f64 {
    (count / known - 1.0) * 100.0
}

/// The table with what was counted, and with all that stands before its figures.
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
    fn the_last_words_of_callgrind_are_read() {
        let said = "==7== Events    : Ir\n==7== Collected : 1612705786\n==7==\n";
        assert_eq!(collected(said), Some(1_612.705_786));
        assert_eq!(collected("==7== Command: true\n"), None);
    }

    #[test]
    fn only_what_is_beyond_the_tolerance_has_changed() {
        let rows =
            [(103.0, Verdict::Kept), (97.0, Verdict::Kept), (104.0, Verdict::Grown), (90.0, Verdict::Shrunk)];
        for (count, expected) in rows {
            assert_eq!(verdict(count, 100.0, 3.5), expected, "{count}");
        }
    }

    #[test]
    fn growth_and_a_path_on_one_side_only_are_refused() {
        let figures = |rows: &[(&str, f64)]| -> BTreeMap<String, f64> {
            rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let table = Table { tolerance: 3.0, paths: figures(&[("a", 10.0), ("b", 10.0), ("gone", 1.0)]) };
        let failure = compare(&table, &figures(&[("a", 11.0), ("b", 10.1), ("new", 1.0)])).unwrap_err();
        let told = failure.to_string();
        assert!(
            told.starts_with(
                "a takes +10.0 %; new has no figure; gone is in the table and not among the paths"
            ),
            "{told}"
        );
    }

    #[test]
    fn writing_keeps_what_stands_before_the_figures() {
        let text = "# Why.\ntolerance = 3.0\n\n[paths]\nold = 1.0\n";
        let counted = BTreeMap::from([("new".to_owned(), 2.04)]);
        assert_eq!(rewritten(text, &counted), "# Why.\ntolerance = 3.0\n\n[paths]\nnew = 2.040\n");
    }
}
