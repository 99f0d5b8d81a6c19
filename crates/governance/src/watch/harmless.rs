//! Changes of protected files that run nothing later: whole repositories that a command creates or removes.

use std::path::{Component, Path, PathBuf};

use super::REBASE;
use super::locations::{GitEntry, named_in};
use super::snapshot::{Content, FileState, Snapshot};

/// Keys of a new repository's configuration that name no program. `*` is the name of a section's instance.
const PLAIN_KEYS: [&str; 21] = [
    "core.bare",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.repositoryformatversion",
    "core.symlinks",
    "core.worktree",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.worktreeconfig",
    "init.defaultbranch",
    "remote.*.fetch",
    "remote.*.url",
    "branch.*.merge",
    "branch.*.rebase",
    "branch.*.remote",
    "submodule.active",
    "submodule.*.active",
    "submodule.*.url",
    "user.email",
];

/// Returns whether a change of a path runs nothing later: it belongs to a repository that is new, with plain settings, or
/// that is gone as a whole.
pub(super) fn is_harmless(path: &Path, before: &Snapshot, after: &Snapshot) -> bool {
    if path.ends_with(REBASE) {
        return !runs_more(before.files.get(path), after.files.get(path));
    }
    match (before.files.get(path), after.files.get(path)) {
        (None, Some(state)) => is_harmless_creation(path, &state.content, before, after),
        (Some(_), None) => is_harmless_removal(path, before, after),
        (Some(before), Some(after)) => changes_plain_settings(path, before, after),
        (None, None) => false,
    }
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
    if before.locations.git.contains(git) {
        return false;
    }
    let Content::Bytes(bytes) = content else { return false };
    let Ok(name) = path.strip_prefix(git) else { return false };
    match name.to_str() {
        Some("config" | "config.worktree") => is_plain(bytes),
        Some("info/exclude") => true,
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

/// Returns whether a path is in a directory of the application that is new, and not that of the working directory: it can
/// deny something, and allows nothing without the user's trust.
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

/// Returns whether a configuration of git differs in keys only that name no program, as after `git push -u`.
fn changes_plain_settings(path: &Path, before: &FileState, after: &FileState) -> bool {
    let is_config = path.file_name().is_some_and(|name| name == "config" || name == "config.worktree");
    let text = |state: &FileState| FileState::text(Some(state));
    let (Some(before_text), Some(after_text)) = (text(before), text(after)) else { return false };
    let (Some(old), Some(new)) = (settings(&before_text), settings(&after_text)) else { return false };
    // Of several values the last one counts, so their order does as well.
    let others =
        |settings: &[Setting]| settings.iter().filter(|setting| !setting.is_plain()).cloned().collect();
    let (old, new): (Vec<Setting>, Vec<Setting>) = (others(&old), others(&new));
    is_config && before.differing_modes(after).is_none() && old == new
}

/// Returns whether a configuration of git has only keys that name no program.
fn is_plain(config: &[u8]) -> bool {
    let settings = std::str::from_utf8(config).ok().and_then(settings);
    settings.is_some_and(|settings| settings.iter().all(Setting::is_plain))
}

/// Setting of a configuration of git.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    /// Key with `*` in place of the instance of its section.
    key: String,
    /// Line that begins the section.
    section: String,
    value: String,
}

impl Setting {
    fn is_plain(&self) -> bool {
        PLAIN_KEYS.contains(&self.key.as_str()) && is_plain_value(&self.key, &self.value)
    }
}

/// Returns the keys of a configuration of git with their values; `None` if it is not of the simple form that git writes.
fn settings(text: &str) -> Option<Vec<Setting>> {
    let (mut section, mut header) = (String::new(), String::new());
    let mut settings = Vec::new();
    for line in text.split('\n').map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A value that goes on in the next line hides what that one means.
        if line.ends_with('\\') || line.contains('\r') {
            return None;
        }
        if line.starts_with('[') {
            section = section_of(line)?;
            line.clone_into(&mut header);
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        settings.push(Setting {
            key: format!("{section}.{}", key.trim().to_ascii_lowercase()),
            section: header.clone(),
            value: value.trim().to_owned(),
        });
    }
    Some(settings)
}

/// Returns the section that a line begins, `*` in place of the name of its instance.
fn section_of(line: &str) -> Option<String> {
    let inside = line.strip_prefix('[')?.strip_suffix(']')?;
    let (name, instance) = match inside.split_once(' ') {
        None => (inside, None),
        Some((name, instance)) => {
            (name, Some(instance.trim().strip_prefix('"').and_then(|text| text.strip_suffix('"'))?))
        }
    };
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let is_plain = instance.is_none_or(|text| !text.contains(['"', '\\']));
    let suffix = if instance.is_some() { ".*" } else { "" };
    (is_name && is_plain).then(|| format!("{}{suffix}", name.to_ascii_lowercase()))
}

/// Returns whether a value leads to no program and to no directory elsewhere.
fn is_plain_value(key: &str, value: &str) -> bool {
    match key {
        "core.worktree" => !value.starts_with(['/', '~', '"']),
        // `ext::` and helpers of other names run a program.
        "remote.*.url" | "submodule.*.url" => !value.contains("::") && !value.starts_with('-'),
        _ => true,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_name_no_program_are_plain() {
        for (config, plain) in [
            ("", true),
            ("[core]\n\tbare = false\n\tfilemode = true\n[remote \"origin\"]\n\turl = /srv/a.git\n", true),
            ("[core]\n\tworktree = ../../../sub\n# comment\n; another\n", true),
            ("[CORE]\nBare\n", true),
            ("[core]\n\tfsmonitor = ./x\n", false),
            ("[core]\n\thooksPath = x\n", false),
            ("[core] fsmonitor = ./x\n", false),
            ("[core]fsmonitor=x]\n", false),
            ("[core]\n\tworktree = /elsewhere\n", false),
            ("[filter \"x\"]\n\tclean = ./x\n", false),
            ("[include]\n\tpath = ../x\n", false),
            ("[remote \"x\"]\n\turl = ext::sh -c x\n", false),
            ("[core]\n\tbare = \\\nfsmonitor = x\n", false),
            ("[remote \"a\\\"b\"]\n\turl = x\n", false),
            ("[core]\n\tbare = false\r[core]\n", false),
            ("bare = false\n", false),
        ] {
            assert_eq!(is_plain(config.as_bytes()), plain, "{config:?}");
        }
        assert!(!is_plain(b"[core]\n\tbare = \xff\n"));
    }
}
