//! Tells apart which changed files judge, and in which parts.

use std::collections::BTreeSet;

use super::command_scan::CommandScan;
use super::facts::{JudgingFacts, JudgingList, JudgingPart};
use super::inline_tests;
use super::roles::FileRole;
use crate::diff::{ChangeKind, ChangedFile};

/// Names that several directories of a project may have.
const COMMON_NAMES: [&str; 6] = ["__init__.py", "mod.rs", "main.rs", "index.js", "index.ts", "common.rs"];

/// Rules of a contract about files.
pub(crate) trait JudgingRules: Sync {
    /// Returns the role of a file. Files that the contract protects are settings, and unprotected ones are sources.
    fn role(&self, path: &str) -> FileRole;

    /// Returns whether the contract allows a file to change although it judges.
    fn is_unprotected(&self, path: &str) -> bool;

    /// Returns whether the scope lists its paths and contains this file.
    fn is_listed(&self, path: &str) -> bool;

    /// Returns whether a file judges because a command names it, if the contract has the list.
    fn is_judge(&self, path: &str) -> Option<bool>;

    /// Returns a path in the directory of the task without the directory, and any other path unchanged.
    fn without_directory<'p>(&self, path: &'p str) -> &'p str;
}

/// A changed file with its texts. Files that are no UTF-8 have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedText {
    pub(crate) path: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// Inputs of an assessment: the rules of a contract, its commands and its anchor.
pub(crate) struct ChangeAssessment<'a> {
    pub(crate) rules: &'a dyn JudgingRules,
    pub(crate) scan: &'a CommandScan,
    /// Files of the anchor, which must not change.
    pub(crate) anchor: &'a [String],
}

impl ChangeAssessment<'_> {
    /// Returns the files of the repository that judge.
    pub(crate) fn list(&self) -> JudgingList {
        let by_command = self.by_command();
        let is_by_name =
            |path: &&String| self.rules.role(path).is_frozen() && !by_command.contains(path.as_str());
        let by_name = self.scan.tracked().iter().filter(is_by_name).cloned().collect();
        JudgingList::new(by_command.iter().cloned().collect(), by_name)
    }

    /// Returns whether the text of a changed file is needed.
    pub(crate) fn needs_text(&self, path: &str) -> bool {
        let role = self.rules.role(path);
        matches!(role, FileRole::Manifest(_))
            || !role.is_frozen() && [".rs", ".py", ".pyi"].iter().any(|end| path.ends_with(end))
    }

    /// Assesses the files of a change. `texts` has those whose text is needed.
    pub(crate) fn assess(&self, files: &[ChangedFile], texts: &[ChangedText]) -> JudgingFacts {
        let by_command = self.by_command();
        let mut facts =
            JudgingFacts { by_command: by_command.iter().cloned().collect(), ..JudgingFacts::default() };
        let mut inline = Vec::new();
        for file in files.iter().filter(|file| !self.anchor.contains(&file.path)) {
            let (path, role) = (&file.path, self.rules.role(&file.path));
            let text = texts.iter().find(|text| text.path == *path);
            if matches!(role, FileRole::Source | FileRole::Uncertain) && !self.rules.is_unprotected(path) {
                inline.extend(text.cloned());
            }
            let is_named = by_command.contains(path);
            if is_named && self.rules.is_listed(path) && !role.is_frozen() {
                facts.in_scope.push(path.clone());
                continue;
            }
            // A manifest that a command names judges by its keys as well: `pip install -r requirements.txt`.
            let is_compared = matches!(role, FileRole::Manifest(_)) && file.kind == ChangeKind::Modified;
            if is_named && !is_compared {
                continue;
            }
            match role {
                FileRole::Test | FileRole::Fixture | FileRole::Snapshot => {
                    if file.kind == ChangeKind::Added && !self.collides(path) {
                        facts.apart.push(path.clone());
                    } else if file.kind == ChangeKind::Modified {
                        facts.restorable.push(path.clone());
                    }
                }
                FileRole::Lock if file.kind == ChangeKind::Added => facts.apart.push(path.clone()),
                FileRole::Lock => {
                    if file.kind == ChangeKind::Modified && self.has_manifest(files) {
                        facts.unaffected.push(path.clone());
                    }
                }
                FileRole::Settings | FileRole::ContinuousIntegration => {}
                FileRole::Manifest(_)
                | FileRole::ToolSettings(_)
                | FileRole::Uncertain
                | FileRole::Source => {
                    let parts = self.changed_parts(file, role, text);
                    if !parts.is_empty() {
                        if is_compared && !is_named {
                            facts.restorable.push(path.clone());
                        }
                        facts.parts.push(JudgingPart { path: path.clone(), parts });
                    } else if role != FileRole::Source {
                        facts.unaffected.push(path.clone());
                    }
                }
            }
        }
        facts.parts.extend(inline_tests::changed_tests(&inline));
        facts
    }

    fn by_command(&self) -> BTreeSet<String> {
        let found = self.scan.judges();
        let is_judge = |path: &&String| {
            let is_found = || found.contains(path.as_str());
            !self.rules.is_unprotected(path)
                && (self.scan.is_included(path) || self.rules.is_judge(path).unwrap_or_else(is_found))
        };
        self.scan.tracked().iter().filter(is_judge).cloned().collect()
    }

    /// Returns the parts of a file that judge and have changed.
    fn changed_parts(&self, file: &ChangedFile, role: FileRole, text: Option<&ChangedText>) -> Vec<String> {
        let part = |is_part: bool, name: &str| if is_part { vec![name.to_owned()] } else { Vec::new() };
        let is_free = self.rules.is_listed(&file.path) || self.rules.is_unprotected(&file.path);
        if file.kind == ChangeKind::Added && !is_free && self.scan.is_awaited(&file.path) {
            return part(true, "its name, which a command uses if the file exists");
        }
        match role {
            FileRole::Manifest(format) => match (&file.kind, text) {
                (ChangeKind::Added, _) => {
                    let directory = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
                    part(!self.is_new_directory(directory), "a new file, which applies to existing ones")
                }
                (
                    ChangeKind::Modified,
                    Some(ChangedText { before: Some(before), after: Some(after), .. }),
                ) => format.changed_parts(before, after, &|path: &str| self.rules.role(path).is_test()),
                _ => part(true, "the whole file"),
            },
            FileRole::ToolSettings(programs) => {
                part(self.scan.has_word(programs), "the settings of a tool that a command runs")
            }
            FileRole::Uncertain => {
                part(self.scan.names_directory_of(&file.path), "a directory that a command names")
            }
            FileRole::Source => {
                let is_shadow = file.kind == ChangeKind::Added && self.scan.is_shadow(&file.path);
                part(is_shadow, "its name, which replaces a program of a command")
            }
            FileRole::Test
            | FileRole::Fixture
            | FileRole::Snapshot
            | FileRole::Settings
            | FileRole::ContinuousIntegration
            | FileRole::Lock => Vec::new(),
        }
    }

    /// Returns whether a change has a manifest with dependencies, which a lock file follows.
    fn has_manifest(&self, files: &[ChangedFile]) -> bool {
        files.iter().any(|file| matches!(self.rules.role(&file.path), FileRole::Manifest(_)))
    }

    fn is_new_directory(&self, directory: &str) -> bool {
        !directory.is_empty() && !self.scan.has_directory(directory)
    }

    /// Returns whether a new test could take the place of an existing file: another test has its name, or a file beside it has
    /// its name with another extension or case.
    fn collides(&self, path: &str) -> bool {
        let (directory, name) = split_path(path);
        let stem = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_lowercase();
        self.scan.tracked().iter().any(|existing| {
            let (other_directory, other) = split_path(existing);
            let is_beside = other_directory.eq_ignore_ascii_case(directory) && stem(other) == stem(name);
            let is_same_name = other.eq_ignore_ascii_case(name)
                && !COMMON_NAMES.contains(&name)
                && self.rules.role(existing).is_frozen();
            is_beside || is_same_name
        })
    }
}

fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
