//! One folder of `tests/scenarios` for each rule of the format and each choice of the policy.
//!
//! A folder is called `NNN-name` and holds:
//!
//! * `input/`: the files before; without it the tree is empty, for git keeps no empty folder.
//! * `patch.txt`: the patch.
//! * `expected/`: the files after, or `error.txt`: the first lines of the message.
//! * `diagnostics.txt`, beside `expected/`: what is tolerated, one a line; without it, nothing is.
//! * `reference`, an empty file, where the patch is planned as the reference would.

#![expect(clippy::disallowed_methods, reason = "the scenarios are files of the repository")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use pintle_patch::{ApplyOptions, Operation, Patch, Plan, parse, plan};

use crate::support::{Files, ours, reference};

#[test]
fn every_scenario_ends_as_its_folder_says() {
    let folders = folders();
    let failures: Vec<String> = folders
        .iter()
        .filter_map(|folder| {
            let ended = Scenario::read(folder).and_then(|scenario| scenario.check());
            Some(format!("{}: {}", name(folder), ended.err()?))
        })
        .collect();
    let (failed, all) = (failures.len(), folders.len());
    assert!(failures.is_empty(), "{failed} of {all} scenarios fail\n\n{}", failures.join("\n\n"));
}

#[test]
fn every_scenario_has_a_number_of_its_own() {
    let mut numbers = BTreeSet::new();
    for folder in folders() {
        let name = name(&folder);
        let Some((number, words)) = name.split_once('-') else { panic!("{name} is not called NNN-name") };
        assert!(number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit()), "{name}");
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
        assert!(words.split('-').all(is_word), "{name}: words are lower-case letters");
        assert!(numbers.insert(number.to_owned()), "{name}: another scenario has this number");
    }
}

/// The patch of every scenario.
pub(crate) fn patches() -> Vec<String> {
    let read = |folder: &PathBuf| text(&folder.join("patch.txt"));
    folders().iter().map(|folder| read(folder).unwrap_or_else(|error| panic!("{error}"))).collect()
}

struct Scenario {
    input: Files,
    patch: String,
    end: End,
    options: ApplyOptions,
}

/// How a scenario ends.
enum End {
    Planned { tree: Files, diagnostics: String },
    Refused { message: String },
}

impl Scenario {
    /// Reads a folder, or says what is wrong with its form.
    fn read(folder: &Path) -> Result<Self, String> {
        let mut entries: BTreeSet<String> = children(folder).iter().map(|path| name(path)).collect();
        let mut take = |entry: &str| entries.remove(entry).then(|| folder.join(entry));
        let patch = take("patch.txt").ok_or("there is no patch.txt")?;
        let input = take("input").map(|input| files_below(&input)).transpose()?.unwrap_or_default();
        let options = match take("reference") {
            Some(marker) if !text(&marker)?.is_empty() => return Err("`reference` is not empty".to_owned()),
            Some(_) => reference(),
            None => ours(),
        };
        let diagnostics = take("diagnostics.txt").map(|file| lines(&file)).transpose()?;
        let end = match (take("expected"), take("error.txt"), diagnostics) {
            (Some(tree), None, diagnostics) => {
                End::Planned { tree: files_below(&tree)?, diagnostics: diagnostics.unwrap_or_default() }
            }
            (None, Some(message), None) => End::Refused { message: lines(&message)? },
            (None, Some(_), Some(_)) => return Err("an error has no diagnostics".to_owned()),
            _ => return Err("expected either expected/ or error.txt".to_owned()),
        };
        match entries.first() {
            Some(entry) => Err(format!("`{entry}` says nothing here")),
            None => Ok(Self { input, patch: text(&patch)?, end, options }),
        }
    }

    /// Plans the patch, and says where the end differs.
    fn check(&self) -> Result<(), String> {
        let planned = self.plan();
        let mut tree = self.input.clone();
        if let Ok(plan) = &planned {
            plan.apply_to(&mut tree);
        }
        match (&self.end, planned) {
            (End::Planned { tree: expected, diagnostics }, Ok(plan)) => {
                same("the tree differs", &shown(expected), &shown(&tree))?;
                same("the diagnostics differ", diagnostics, &rendered(&plan))?;
                plan.inverse().apply_to(&mut tree);
                same("the inverse does not restore the tree", &shown(&self.input), &shown(&tree))
            }
            (End::Refused { message }, Err(found)) => {
                let first: String = found.split_inclusive('\n').take(message.lines().count()).collect();
                same("the message differs", message, &format!("{}\n", first.trim_end_matches('\n')))?;
                same("the tree is not left alone", &shown(&self.input), &shown(&tree))
            }
            (End::Planned { .. }, Err(found)) => Err(format!("refused, and should apply:\n{found}")),
            (End::Refused { message }, Ok(_)) => {
                Err(format!("applies, and should be refused:\n{message}found:\n{}", shown(&tree)))
            }
        }
    }

    /// The plan from no more files than the patch asks for, or the message.
    fn plan(&self) -> Result<Plan, String> {
        let patch = parse(&self.patch).map_err(|error| error.to_string())?;
        check_rendering(&patch)?;
        let mut files = self.input.clone();
        let paths: BTreeSet<&str> = patch.paths().into_iter().collect();
        files.retain(|path, _| paths.contains(path.as_str()));
        plan(&patch, &files, &self.options).map_err(|error| error.to_string())
    }
}

/// A patch reads back from its canonical text as the same operations, and nothing is tolerated.
fn check_rendering(patch: &Patch) -> Result<(), String> {
    let text = patch.to_string();
    let again = parse(&text).map_err(|error| format!("its rendering is refused: {error}\n{text}"))?;
    if !again.diagnostics.is_empty() || without_places(&again) != without_places(patch) {
        return Err(format!("its rendering is another patch:\n{text}"));
    }
    Ok(())
}

/// The operations without their lines in the text of the patch.
fn without_places(patch: &Patch) -> Vec<Operation> {
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

fn rendered(plan: &Plan) -> String {
    plan.diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
}

/// A tree as text in which every byte can be told: a line for each file and each of its lines.
fn shown(tree: &Files) -> String {
    let mut text = String::new();
    for (path, content) in tree {
        text += &format!("== {path}\n");
        for line in content.split_inclusive(|&byte| byte == b'\n') {
            text += &format!("{}\n", line.escape_ascii());
        }
    }
    text
}

fn same(what: &str, expected: &str, found: &str) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let diff = TextDiff::from_lines(expected, found);
    Err(format!("{what}\n{}", diff.unified_diff().header("expected", "found")))
}

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut folders = children(&root);
    folders.retain(|path| name(path) != ".gitattributes");
    assert!(!folders.is_empty(), "there are no scenarios");
    folders
}

/// What is in a folder, by name.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()).expect("scenario names are UTF-8").to_owned()
}

/// The content of every file below a folder, by its path from there.
fn files_below(root: &Path) -> Result<Files, String> {
    let mut files = Files::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in children(&folder) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let relative = path.strip_prefix(root).expect("the file is below the root");
            let names: Vec<&str> = relative.iter().filter_map(|name| name.to_str()).collect();
            files.insert(names.join("/"), fs::read(&path).expect("the file can be read"));
        }
    }
    match files.is_empty() {
        true => Err(format!("{} is empty, which git would not keep", root.display())),
        false => Ok(files),
    }
}

fn text(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", name(file)))
}

/// A text of at least one line, each of them ended.
fn lines(file: &Path) -> Result<String, String> {
    let text = text(file)?;
    match text.ends_with('\n') {
        true => Ok(text),
        false => Err(format!("{} does not end in a newline", name(file))),
    }
}
