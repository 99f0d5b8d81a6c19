//! Changes of protected files that run nothing later: whole repositories that a command creates or removes.

use std::path::{Component, Path, PathBuf};

use super::locations::{GitEntry, named_in};
use super::{Content, Snapshot};

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
    match (before.files.get(path), after.files.get(path)) {
        (None, Some(content)) => is_harmless_creation(path, content, before, after),
        (Some(_), None) => is_harmless_removal(path, before, after),
        (_, _) => false,
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

/// Returns whether a configuration of git has only keys that name no program.
fn is_plain(config: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(config) else { return false };
    let mut section = String::new();
    text.split('\n').map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        // A value that goes on in the next line hides what that one means.
        if line.ends_with('\\') || line.contains('\r') {
            return false;
        }
        if line.starts_with('[') {
            return section_of(line).map(|name| section = name).is_some();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = format!("{section}.{}", key.trim().to_ascii_lowercase());
        PLAIN_KEYS.contains(&key.as_str()) && is_plain_value(&key, value.trim())
    })
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
