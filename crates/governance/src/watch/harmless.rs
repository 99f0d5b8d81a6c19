//! Changes of protected files that run nothing later: plain settings, lists of git, and whole repositories that a command
//! creates or removes.

mod git_config;

use std::path::{Component, Path, PathBuf};

use self::git_config::{Setting, is_plain, settings};
use super::locations::{GitEntry, named_in};
use super::snapshot::{Content, FileState, Snapshot};
use super::{ATTRIBUTES, REBASE};

/// Returns whether a change of a path runs nothing later: it changes plain settings only, belongs to a repository that is gone
/// as a whole, or is a file that no program is started from.
pub(super) fn is_harmless(path: &Path, before: &Snapshot, after: &Snapshot) -> bool {
    // Earlier versions recorded all files of this directory.
    if is_list_of_git(path, after) {
        return true;
    }
    if path.ends_with(REBASE) {
        return !runs_more(before.files.get(path), after.files.get(path));
    }
    match (before.files.get(path), after.files.get(path)) {
        (None, Some(state)) => is_harmless_creation(path, &state.content, before, after),
        (Some(_), None) => is_harmless_removal(path, before, after),
        (Some(old), Some(new)) => changes_plain_settings(path, Some(old), new, after),
        (None, None) => false,
    }
}

/// Returns whether a path is a file in the directory `info` of a git directory that only lists branches or patterns.
fn is_list_of_git(path: &Path, after: &Snapshot) -> bool {
    let Some(name) = after.locations.git_directory_of(path).and_then(|git| path.strip_prefix(git).ok())
    else {
        return false;
    };
    name.starts_with("info") && name != Path::new(ATTRIBUTES)
}

fn is_harmless_creation(path: &Path, content: &Content, before: &Snapshot, after: &Snapshot) -> bool {
    if let Some(entry) = after.locations.entries.get(path) {
        return match entry {
            GitEntry::Directory => true,
            GitEntry::File(content) => named_in(path, "gitdir:", content)
                .map(|git| normalized(&git))
                .is_some_and(|git| after.locations.git_directory_of(&git).is_some()),
            GitEntry::Missing | GitEntry::Link | GitEntry::Unreadable => false,
        };
    }
    let Some(git) = after.locations.git_directory_of(path) else {
        return is_new_project(path, before, after);
    };
    let Content::Bytes(bytes) = content else { return false };
    let Ok(name) = path.strip_prefix(git) else { return false };
    match name.to_str() {
        Some("config" | "config.worktree") if before.locations.git.contains(git) => {
            after.files.get(path).is_some_and(|state| changes_plain_settings(path, None, state, after))
        }
        Some("config" | "config.worktree") => is_plain(bytes, path, &after.locations.root),
        Some(_) if before.locations.git.contains(git) => false,
        // A worktree is below the repository that it belongs to.
        Some("commondir") => named_in(path, "", bytes)
            .map(|common| normalized(&common))
            .is_some_and(|common| git.starts_with(&common) && after.locations.git.contains(&common)),
        Some(_) | None => false,
    }
}

/// Steps of a rebase that run no program (git, `rebase -i`).
const PLAIN_STEPS: [&str; 24] = [
    "pick",
    "p",
    "reword",
    "r",
    "edit",
    "e",
    "squash",
    "s",
    "fixup",
    "f",
    "drop",
    "d",
    "break",
    "b",
    "label",
    "l",
    "reset",
    "t",
    "merge",
    "m",
    "update-ref",
    "u",
    "noop",
    "revert",
];

/// Returns whether the steps of a rebase run a program that they did not run before.
fn runs_more(before: Option<&FileState>, after: Option<&FileState>) -> bool {
    let (Some(before), Some(after)) =
        (FileState::text(before).or_else(|| Some(String::new())), FileState::text(after))
    else {
        return true;
    };
    let known: Vec<&str> = before.lines().collect();
    let is_plain = |line: &str| {
        let step = line.split_whitespace().next();
        step.is_none_or(|step| step.starts_with('#') || PLAIN_STEPS.contains(&step))
    };
    after.lines().any(|line| !is_plain(line) && !known.contains(&line))
}

/// Returns whether a path is in a new directory of the application that is not directly in the working directory. Such a
/// directory can deny calls, and allows none without the user's trust.
fn is_new_project(path: &Path, before: &Snapshot, after: &Snapshot) -> bool {
    let named = path.ancestors().find(|above| after.locations.named.contains(*above));
    named.is_some_and(|named| {
        named.parent() != Some(after.locations.root.as_path())
            && !before.files.keys().any(|known| known.starts_with(named))
    })
}

fn is_harmless_removal(path: &Path, before: &Snapshot, after: &Snapshot) -> bool {
    let is_own = |git: &Path| before.locations.own_git_directory().is_some_and(|own| normalized(&own) == git);
    if before.locations.entries.contains_key(path) {
        return path.parent() != Some(before.locations.root.as_path());
    }
    before
        .locations
        .git_directory_of(path)
        .is_some_and(|git| !after.locations.git.contains(git) && !is_own(git))
}

/// Returns whether a configuration of git differs in keys only that name no program, as after `git push -u`. There was no file
/// if `before` is `None`.
fn changes_plain_settings(
    path: &Path,
    before: Option<&FileState>,
    after: &FileState,
    snapshot: &Snapshot,
) -> bool {
    let is_config = path.file_name().is_some_and(|name| name == "config" || name == "config.worktree");
    let (Some(before_text), Some(after_text)) = (FileState::text(before), FileState::text(Some(after)))
    else {
        return false;
    };
    let (Some(old), Some(new)) = (settings(&before_text), settings(&after_text)) else { return false };
    let is_plain = |setting: &Setting| {
        setting.is_plain(path, &snapshot.locations.root)
            && (setting.key != "extensions.worktreeconfig" || has_plain_worktree_settings(path, snapshot))
    };
    // Of several values the last one counts, so their order does as well.
    let others =
        |settings: &[Setting]| settings.iter().filter(|setting| !is_plain(setting)).cloned().collect();
    let (old, new): (Vec<Setting>, Vec<Setting>) = (others(&old), others(&new));
    let has_same_mode = before.is_none_or(|before| before.differing_modes(after).is_none());
    is_config && has_same_mode && old == new
}

/// Returns whether the settings of the worktrees of a repository, which a setting in `config` switches on, name no program.
fn has_plain_worktree_settings(config: &Path, snapshot: &Snapshot) -> bool {
    let Some(git) = config.parent() else { return false };
    let is_of_worktree = |path: &Path| path.starts_with(git) && path.ends_with("config.worktree");
    let root = &snapshot.locations.root;
    let mut files = snapshot.files.iter().filter(|(path, _)| is_of_worktree(path));
    files.all(|(path, state)| {
        FileState::text(Some(state)).is_some_and(|text| is_plain(text.as_bytes(), path, root))
    })
}

/// Removes `.` and `..` from an absolute path.
fn normalized(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(component),
        }
    }
    normal
}
