//! One directory of `tests/scenarios` for each rule of the format and each choice of the policy.
//!
//! A directory is called `NNN-name` and holds:
//!
//! * `input/`: the files before; omitted for an empty tree, since git keeps no empty directory.
//! * `patch.txt`: the patch.
//! * `expected/`: the files after, or `error.txt`: the first lines of the message.
//! * `diagnostics.txt`, beside `expected/`: the expected diagnostics, one per line; none are expected without it.
//! * `reference`, an empty file: the patch is planned with the reference options.

#![expect(clippy::disallowed_methods, reason = "the scenarios are files of the repository")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use pintle_patch::{ApplyOptions, Operation, Patch, Plan, parse, plan};

use crate::support::{Files, ours, reference};

#[test]
fn every_scenario_has_its_expected_result() {
    let directories = directories();
    let failures: Vec<String> = directories
        .iter()
        .filter_map(|directory| {
            let ended = Scenario::read(directory).and_then(|scenario| scenario.check());
            Some(format!("{}: {}", name(directory), ended.err()?))
        })
        .collect();
    let (failed, all) = (failures.len(), directories.len());
    assert!(failures.is_empty(), "{failed} of {all} scenarios fail\n\n{}", failures.join("\n\n"));
}

#[test]
fn every_scenario_has_a_unique_number() {
    let mut numbers = BTreeSet::new();
    for directory in directories() {
        let name = name(&directory);
        let Some((number, words)) = name.split_once('-') else { panic!("{name} is not named NNN-name") };
        assert!(number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit()), "{name}");
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
        assert!(words.split('-').all(is_word), "{name}: words are lower-case letters");
        assert!(numbers.insert(number.to_owned()), "{name}: another scenario has this number");
    }
}

/// Returns the patch of every scenario.
pub(crate) fn patches() -> Vec<String> {
    let read = |directory: &PathBuf| text(&directory.join("patch.txt"));
    directories().iter().map(|directory| read(directory).unwrap_or_else(|error| panic!("{error}"))).collect()
}

struct Scenario {
    input: Files,
    patch: String,
    expected: Expected,
    options: ApplyOptions,
}

/// Expected result of a scenario.
enum Expected {
    Planned { tree: Files, diagnostics: String },
    Refused { message: String },
}

impl Scenario {
    /// Reads a directory, or returns an error in its layout.
    fn read(directory: &Path) -> Result<Self, String> {
        let mut entries: BTreeSet<String> = children(directory).iter().map(|path| name(path)).collect();
        let mut take = |entry: &str| entries.remove(entry).then(|| directory.join(entry));
        let patch = take("patch.txt").ok_or("there is no patch.txt")?;
        let input = take("input").map(|input| files_below(&input)).transpose()?.unwrap_or_default();
        let options = match take("reference") {
            Some(marker) if !text(&marker)?.is_empty() => return Err("`reference` is not empty".to_owned()),
            Some(_) => reference(),
            None => ours(),
        };
        let diagnostics = take("diagnostics.txt").map(|file| lines(&file)).transpose()?;
        let expected = match (take("expected"), take("error.txt"), diagnostics) {
            (Some(tree), None, diagnostics) => {
                Expected::Planned { tree: files_below(&tree)?, diagnostics: diagnostics.unwrap_or_default() }
            }
            (None, Some(message), None) => Expected::Refused { message: lines(&message)? },
            (None, Some(_), Some(_)) => return Err("an error has no diagnostics".to_owned()),
            _ => return Err("expected either expected/ or error.txt".to_owned()),
        };
        match entries.first() {
            Some(entry) => Err(format!("`{entry}` is not part of a scenario")),
            None => Ok(Self { input, patch: text(&patch)?, expected, options }),
        }
    }

    /// Plans the patch and compares the result.
    fn check(&self) -> Result<(), String> {
        let planned = self.plan();
        let mut tree = self.input.clone();
        if let Ok(plan) = &planned {
            plan.apply_to(&mut tree);
        }
        match (&self.expected, planned) {
            (Expected::Planned { tree: expected, diagnostics }, Ok(plan)) => {
                check_same("the tree differs", &render_tree(expected), &render_tree(&tree))?;
                check_same("the diagnostics differ", diagnostics, &render_diagnostics(&plan))?;
                plan.inverse().apply_to(&mut tree);
                check_same(
                    "the inverse does not restore the tree",
                    &render_tree(&self.input),
                    &render_tree(&tree),
                )
            }
            (Expected::Refused { message }, Err(found)) => {
                let first: String = found.split_inclusive('\n').take(message.lines().count()).collect();
                check_same("the message differs", message, &format!("{}\n", first.trim_end_matches('\n')))?;
                check_same("the tree changed", &render_tree(&self.input), &render_tree(&tree))
            }
            (Expected::Planned { .. }, Err(found)) => Err(format!("refused, but should apply:\n{found}")),
            (Expected::Refused { message }, Ok(_)) => {
                Err(format!("applied, but should be refused:\n{message}found:\n{}", render_tree(&tree)))
            }
        }
    }

    /// Plans the patch with only the files that it names. Returns the plan or the error message.
    fn plan(&self) -> Result<Plan, String> {
        let patch = parse(&self.patch).map_err(|error| error.to_string())?;
        check_rendering(&patch)?;
        let mut files = self.input.clone();
        let paths: BTreeSet<&str> = patch.paths().into_iter().collect();
        files.retain(|path, _| paths.contains(path.as_str()));
        plan(&patch, &files, &self.options).map_err(|error| error.to_string())
    }
}

/// Checks that the canonical text of a patch parses to the same operations, without diagnostics.
fn check_rendering(patch: &Patch) -> Result<(), String> {
    let text = patch.to_string();
    let again = parse(&text).map_err(|error| format!("its rendering is refused: {error}\n{text}"))?;
    if !again.diagnostics.is_empty() || without_line_numbers(&again) != without_line_numbers(patch) {
        return Err(format!("its rendering is another patch:\n{text}"));
    }
    Ok(())
}

/// Returns the operations with their line numbers cleared.
fn without_line_numbers(patch: &Patch) -> Vec<Operation> {
    let mut operations = patch.operations.clone();
    for operation in &mut operations {
        match operation {
            Operation::Add(add) => add.line = 0,
            Operation::Delete(delete) => delete.line = 0,
            Operation::Update(update) => {
                update.line = 0;
                update.hunks.iter_mut().for_each(|hunk| hunk.line = 0);
            }
        }
    }
    operations
}

fn render_diagnostics(plan: &Plan) -> String {
    plan.diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
}

/// Renders a tree as escaped text: one line for each file and each of its lines.
fn render_tree(tree: &Files) -> String {
    let mut text = String::new();
    for (path, content) in tree {
        text += &format!("== {path}\n");
        for line in content.split_inclusive(|&byte| byte == b'\n') {
            text += &format!("{}\n", line.escape_ascii());
        }
    }
    text
}

fn check_same(what: &str, expected: &str, found: &str) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let diff = TextDiff::from_lines(expected, found);
    Err(format!("{what}\n{}", diff.unified_diff().header("expected", "found")))
}

fn directories() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut directories = children(&root);
    directories.retain(|path| name(path) != ".gitattributes");
    assert!(!directories.is_empty(), "there are no scenarios");
    directories
}

/// Returns the entries of a directory, sorted by name.
fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()).expect("scenario names are UTF-8").to_owned()
}

/// Returns the content of every file in a directory tree, by relative path.
fn files_below(root: &Path) -> Result<Files, String> {
    let mut files = Files::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for path in children(&directory) {
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let relative = path.strip_prefix(root).expect("the file is below the root");
            let names: Vec<&str> = relative.iter().filter_map(|name| name.to_str()).collect();
            files.insert(names.join("/"), fs::read(&path).expect("the file can be read"));
        }
    }
    match files.is_empty() {
        true => Err(format!("{} is empty, and git keeps no empty directory", root.display())),
        false => Ok(files),
    }
}

fn text(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", name(file)))
}

/// Reads a file that must end with a newline.
fn lines(file: &Path) -> Result<String, String> {
    let text = text(file)?;
    match text.ends_with('\n') {
        true => Ok(text),
        false => Err(format!("{} does not end in a newline", name(file))),
    }
}
