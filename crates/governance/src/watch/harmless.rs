//! Changes of protected files that run nothing later: plain settings, lists of git, and whole repositories that a command
//! creates or removes.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::locations::{GitEntry, named_in};
use super::snapshot::{Content, FileState, Snapshot};
use super::{ATTRIBUTES, REBASE};

/// Sections whose keys all name no program.
const PLAIN_SECTIONS: [&str; 4] = ["advice", "color", "color.*", "column"];

/// Other keys that name no program, neither directly nor by a file, an address or a driver. They are of git's own list of
/// variables; a key that is not here counts as one that names a program. `*` is the name of a section's instance.
const PLAIN_KEYS: [&str; 260] = [
    "author.email",
    "author.name",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "branch.sort",
    "branch.*.description",
    "branch.*.merge",
    "branch.*.pushremote",
    "branch.*.rebase",
    "branch.*.remote",
    "checkout.defaultremote",
    "checkout.guess",
    "checkout.thresholdforparallelism",
    "checkout.workers",
    "commit.cleanup",
    "commit.gpgsign",
    "commit.status",
    "commit.verbose",
    "commitgraph.changedpathsversion",
    "commitgraph.generationversion",
    "commitgraph.readchangedpaths",
    "committer.email",
    "committer.name",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.bigfilethreshold",
    "core.checkstat",
    "core.commentchar",
    "core.commentstring",
    "core.commitgraph",
    "core.compression",
    "core.deltabasecachelimit",
    "core.eol",
    "core.filemode",
    "core.fsync",
    "core.fsyncmethod",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.loosecompression",
    "core.multipackindex",
    "core.packedgitlimit",
    "core.packedgitwindowsize",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.splitindex",
    "core.symlinks",
    "core.trustctime",
    "core.untrackedcache",
    "core.warnambiguousrefs",
    "core.whitespace",
    "core.worktree",
    "diff.algorithm",
    "diff.colormoved",
    "diff.colormovedws",
    "diff.context",
    "diff.dirstat",
    "diff.ignoresubmodules",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.relative",
    "diff.renamelimit",
    "diff.renames",
    "diff.statgraphwidth",
    "diff.statnamewidth",
    "diff.submodule",
    "diff.suppressblankempty",
    "diff.wserrorhighlight",
    "extensions.compatobjectformat",
    "extensions.objectformat",
    "extensions.partialclone",
    "extensions.preciousobjects",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
    "feature.experimental",
    "feature.manyfiles",
    "fetch.all",
    "fetch.fsckobjects",
    "fetch.negotiationalgorithm",
    "fetch.output",
    "fetch.parallel",
    "fetch.prune",
    "fetch.prunetags",
    "fetch.recursesubmodules",
    "fetch.showforcedupdates",
    "fetch.unpacklimit",
    "fetch.writecommitgraph",
    "gc.aggressivedepth",
    "gc.aggressivewindow",
    "gc.auto",
    "gc.autodetach",
    "gc.autopacklimit",
    "gc.bigpackthreshold",
    "gc.cruftpacks",
    "gc.logexpiry",
    "gc.maxcruftsize",
    "gc.packrefs",
    "gc.pruneexpire",
    "gc.reflogexpire",
    "gc.reflogexpireunreachable",
    "gc.rerereresolved",
    "gc.rerereunresolved",
    "gc.worktreepruneexpire",
    "gc.writecommitgraph",
    "gc.*.reflogexpire",
    "gc.*.reflogexpireunreachable",
    "grep.column",
    "grep.extendedregexp",
    "grep.fallbacktonoindex",
    "grep.fullname",
    "grep.linenumber",
    "grep.patterntype",
    "grep.threads",
    "i18n.commitencoding",
    "i18n.logoutputencoding",
    "index.recordendofindexentries",
    "index.recordoffsettable",
    "index.skiphash",
    "index.sparse",
    "index.threads",
    "index.version",
    "init.defaultbranch",
    "init.defaultobjectformat",
    "init.defaultrefformat",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.diffmerges",
    "log.follow",
    "log.mailmap",
    "log.showroot",
    "maintenance.auto",
    "maintenance.autodetach",
    "maintenance.strategy",
    "maintenance.*.auto",
    "maintenance.*.enabled",
    "maintenance.*.schedule",
    "merge.autostash",
    "merge.branchdesc",
    "merge.conflictstyle",
    "merge.defaulttoupstream",
    "merge.directoryrenames",
    "merge.ff",
    "merge.log",
    "merge.renamelimit",
    "merge.renames",
    "merge.renormalize",
    "merge.stat",
    "merge.suppressdest",
    "merge.verbosity",
    "merge.*.name",
    "notes.displayref",
    "notes.mergestrategy",
    "notes.rewritemode",
    "notes.rewriteref",
    "pack.compression",
    "pack.deltacachelimit",
    "pack.deltacachesize",
    "pack.depth",
    "pack.indexversion",
    "pack.packsizelimit",
    "pack.threads",
    "pack.usebitmaps",
    "pack.usesparse",
    "pack.window",
    "pack.windowmemory",
    "pack.writereverseindex",
    "promisor.quiet",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "push.followtags",
    "push.negotiate",
    "push.recursesubmodules",
    "push.useforceifincludes",
    "rebase.abbreviatecommands",
    "rebase.autosquash",
    "rebase.autostash",
    "rebase.backend",
    "rebase.forkpoint",
    "rebase.missingcommitscheck",
    "rebase.rebasemerges",
    "rebase.reschedulefailedexec",
    "rebase.stat",
    "rebase.updaterefs",
    "receive.denycurrentbranch",
    "receive.denydeletecurrent",
    "receive.denydeletes",
    "receive.denynonfastforwards",
    "remote.pushdefault",
    "remote.*.fetch",
    "remote.*.followremotehead",
    "remote.*.mirror",
    "remote.*.partialclonefilter",
    "remote.*.promisor",
    "remote.*.prune",
    "remote.*.prunetags",
    "remote.*.push",
    "remote.*.pushurl",
    "remote.*.skipdefaultupdate",
    "remote.*.skipfetchall",
    "remote.*.tagopt",
    "remote.*.url",
    "repack.packkeptobjects",
    "repack.updateserverinfo",
    "repack.usedeltabaseoffset",
    "repack.writebitmaps",
    "rerere.autoupdate",
    "rerere.enabled",
    "sparse.expectfilesoutsideofpatterns",
    "stash.showincludeuntracked",
    "stash.showpatch",
    "stash.showstat",
    "status.aheadbehind",
    "status.branch",
    "status.displaycommentprefix",
    "status.relativepaths",
    "status.renamelimit",
    "status.renames",
    "status.short",
    "status.showstash",
    "status.showuntrackedfiles",
    "status.submodulesummary",
    "submodule.active",
    "submodule.alternateerrorstrategy",
    "submodule.alternatelocation",
    "submodule.fetchjobs",
    "submodule.propagatebranches",
    "submodule.recurse",
    "submodule.*.active",
    "submodule.*.branch",
    "submodule.*.fetchrecursesubmodules",
    "submodule.*.ignore",
    "submodule.*.update",
    "submodule.*.url",
    "tag.forcesignannotated",
    "tag.gpgsign",
    "tag.sort",
    "transfer.credentialsinurl",
    "transfer.fsckobjects",
    "transfer.unpacklimit",
    "uploadpack.allowanysha1inwant",
    "uploadpack.allowfilter",
    "uploadpack.allowreachablesha1inwant",
    "uploadpack.allowrefinwant",
    "uploadpack.allowtipsha1inwant",
    "user.email",
    "user.name",
    "user.useconfigonly",
    "worktree.guessremote",
    "worktree.userelativepaths",
];

/// Values of `submodule.*.update` that are no command.
const PLAIN_UPDATES: [&str; 4] = ["checkout", "merge", "none", "rebase"];

/// Values of `extensions.refstorage` that name no directory.
const PLAIN_REF_STORAGES: [&str; 2] = ["files", "reftable"];

/// Schemes of addresses that git serves with its own programs.
const PLAIN_SCHEMES: [&str; 9] = ["file", "ftp", "ftps", "git", "git+ssh", "http", "https", "ssh", "ssh+git"];

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

/// Returns whether the configuration of git at `path` has only settings that name no program. `root` is the working directory.
fn is_plain(config: &[u8], path: &Path, root: &Path) -> bool {
    let settings = std::str::from_utf8(config).ok().and_then(settings);
    settings.is_some_and(|settings| settings.iter().all(|setting| setting.is_plain(path, root)))
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
    /// Returns whether the setting names no program. `config` is its file, and `root` the working directory.
    fn is_plain(&self, config: &Path, root: &Path) -> bool {
        let is_of_plain_section =
            self.key.rsplit_once('.').is_some_and(|(section, _)| PLAIN_SECTIONS.contains(&section));
        let is_plain_key = is_of_plain_section || PLAIN_KEYS.contains(&self.key.as_str());
        is_plain_key && self.has_plain_instance() && self.has_plain_value(config, root)
    }

    /// Returns whether the name of the section's instance is neither an option nor an address with a helper. Git passes the name
    /// of a remote to `git fetch`.
    fn has_plain_instance(&self) -> bool {
        let instance = self.section.split('"').nth(1).unwrap_or_default();
        !instance.contains("::")
            && !instance.chars().any(char::is_control)
            && !instance.trim_start().starts_with('-')
    }

    /// Returns whether the value leads to no program and to no directory elsewhere.
    fn has_plain_value(&self, config: &Path, root: &Path) -> bool {
        // Git removes the quotes, wherever they are.
        let value = self.value.replace('"', "");
        match self.key.as_str() {
            // Git itself sets and removes it in submodules.
            "core.worktree" => is_of_submodule(config) && is_directory_below(root, config, &value),
            "extensions.refstorage" => PLAIN_REF_STORAGES.contains(&value.as_str()),
            // The name of a remote can be an address as well, and it is an argument of `git fetch`.
            "branch.*.merge"
            | "branch.*.pushremote"
            | "branch.*.remote"
            | "checkout.defaultremote"
            | "extensions.partialclone"
            | "remote.pushdefault"
            | "remote.*.fetch"
            | "remote.*.push"
            | "remote.*.pushurl"
            | "remote.*.url"
            | "submodule.*.branch"
            | "submodule.*.url" => is_plain_address(&value),
            "submodule.*.update" => PLAIN_UPDATES.contains(&value.as_str()),
            _ => true,
        }
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

/// Returns whether an address, or the name of a remote or a ref, is no option and needs no helper program: `ext::`, and schemes
/// that git does not know.
fn is_plain_address(value: &str) -> bool {
    !value.contains("::")
        && !value.contains('\\')
        && !value.trim_start().starts_with('-')
        && value.split_once("://").is_none_or(|(scheme, _)| PLAIN_SCHEMES.contains(&scheme))
}

/// Returns whether a configuration is in the git directory of a submodule, of a repository or of one of its worktrees.
fn is_of_submodule(config: &Path) -> bool {
    let config = normalized(config);
    let mut below: Vec<&OsStr> = config.iter().rev().take_while(|part| *part != ".git").collect();
    below.reverse();
    match below.as_slice() {
        [modules, ..] if *modules == "modules" => true,
        [worktrees, _, modules, ..] => *worktrees == "worktrees" && *modules == "modules",
        _ => false,
    }
}

/// Returns whether a path in a configuration, which is relative to its directory, is in the directory `root`. A path with a
/// comment or an escape is not.
fn is_directory_below(root: &Path, config: &Path, value: &str) -> bool {
    let is_literal = !value.contains(['#', ';', '\\']) && !value.starts_with('~');
    is_literal && config.parent().is_some_and(|git| normalized(&git.join(value)).starts_with(root))
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

    /// Judges a configuration as that of the submodule `sub` of the working directory `/w`.
    fn is_plain_in_submodule(config: &[u8]) -> bool {
        is_plain(config, Path::new("/w/.git/modules/sub/config"), Path::new("/w"))
    }

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
            ("[core]\n\tworktree = ../../../../elsewhere\n", false),
            ("[core]\n\tworktree = ../../../../elsewhere #/../../w/sub\n", false),
            ("[filter \"x\"]\n\tclean = ./x\n", false),
            ("[include]\n\tpath = ../x\n", false),
            ("[remote \"x\"]\n\turl = ext::sh -c x\n", false),
            ("[remote \"x\"]\n\turl = \"ext:\":sh\n", false),
            ("[remote \"x\"]\n\turl = --upload-pack=x\n", false),
            ("[remote \"x\"]\n\turl = \" --upload-pack=x\"\n", false),
            ("[remote \"x\"]\n\turl = https://host.example/a.git\n", true),
            ("[remote \"x\"]\n\turl = git@host.example:a.git\n", true),
            ("[remote \"x\"]\n\turl = helper://x\n", false),
            ("[remote \"x\"]\n\tfetch = +refs/heads/*:refs/remotes/x/*\n", true),
            ("[remote \"x\"]\n\tfetch = --upload-pack=x\n", false),
            ("[remote \"x\"]\n\tpush = --receive-pack=x\n", false),
            ("[remote \"--upload-pack=/x/evil\"]\n\tpromisor = true\n", false),
            ("[remote \" --upload-pack=/x/evil\"]\n\tpromisor = true\n", false),
            ("[remote \"ext::sh -c x\"]\n\tpromisor = true\n", false),
            ("[remote \"a\u{1}\"]\n\tpromisor = true\n", false),
            ("[remote \"--upload-pack=x\"]\n\turl = /srv/a.git\n", false),
            ("[remote]\n\tpushDefault = origin\n", true),
            ("[remote]\n\tpushDefault = --receive-pack=x\n", false),
            ("[remotes]\n\tdefault = --upload-pack=x\n", false),
            ("[extensions]\n\tpartialClone = origin\n", true),
            ("[extensions]\n\tpartialClone = --upload-pack=/x/evil\n", false),
            ("[extensions]\n\tpartialClone = \"-\"-upload-pack=/x/evil\n", false),
            ("[extensions]\n\tpartialClone = ext::sh -c x\n", false),
            ("[extensions]\n\trefStorage = reftable\n", true),
            ("[extensions]\n\trefStorage = files:///elsewhere\n", false),
            ("[checkout]\n\tdefaultRemote = origin\n", true),
            ("[checkout]\n\tdefaultRemote = --upload-pack=x\n", false),
            ("[fetch]\n\tbundleURI = x\n", false),
            ("[remote \"x\"]\n\tpushurl = ext::sh -c x\n", false),
            ("[remote \"ext::sh -c x\"]\n\tprune = true\n", false),
            ("[branch \"-x\"]\n\trebase = true\n", false),
            (
                "[remote \"x\"]\n\tpromisor = true\n\tpartialclonefilter = blob:none\n\ttagOpt = --no-tags\n",
                true,
            ),
            ("[remote \"x\"]\n\tuploadpack = x\n", false),
            ("[remote \"x\"]\n\tvcs = x\n", false),
            ("[remote \"x\"]\n\tproxy = x\n", false),
            ("[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n\trebase = true\n", true),
            ("[branch \"x\"]\n\tremote = ext::sh -c x\n", false),
            ("[branch \"x\"]\n\tremote = --upload-pack=x\n", false),
            ("[branch \"x\"]\n\tpushRemote = --receive-pack=x\n", false),
            ("[branch \"x\"]\n\tmerge = --upload-pack=x\n", false),
            ("[branch \"x\"]\n\tmergeOptions = -s x\n", false),
            ("[submodule \"x\"]\n\tupdate = rebase\n", true),
            ("[submodule \"x\"]\n\tupdate = !x\n", false),
            ("[submodule \"x\"]\n\tbranch = --upload-pack=x\n", false),
            ("[submodule \"x\"]\n\turl = --upload-pack=x\n", false),
            ("[user]\n\tname = A User\n\temail = a@example.org\n", true),
            ("[core]\n\tautocrlf = input\n\tsparseCheckout = true\n", true),
            ("[pull]\n\trebase = true\n[commit]\n\tgpgSign = false\n", true),
            ("[color \"diff\"]\n\tnew = green\n[advice]\n\tanything = false\n", true),
            ("[uploadpack]\n\tallowFilter = true\n", true),
            ("[uploadpack]\n\tpackObjectsHook = x\n", false),
            ("[maintenance]\n\tauto = false\n\tstrategy = incremental\n", true),
            ("[unknown]\n\tkey = x\n", false),
            ("[core]\n\tbare = \\\nfsmonitor = x\n", false),
            ("[remote \"a\\\"b\"]\n\turl = x\n", false),
            ("[core]\n\tbare = false\r[core]\n", false),
            ("bare = false\n", false),
        ] {
            assert_eq!(is_plain_in_submodule(config.as_bytes()), plain, "{config:?}");
        }
        assert!(!is_plain_in_submodule(b"[core]\n\tbare = \xff\n"));
    }

    #[test]
    fn only_submodules_have_a_plain_working_tree() {
        for (path, worktree, plain) in [
            ("/w/.git/modules/sub/config", "../../../sub", true),
            ("/w/.git/modules/a/modules/b/config", "../../../../../a/b", true),
            ("/w/.git/modules/sub/config.worktree", "../../../sub", true),
            ("/w/.git/worktrees/tree/modules/sub/config", "../../../../../tree/sub", true),
            ("/w/.git/config", "../sub", false),
            ("/w/modules/nested/.git/config", "../../sub", false),
            ("/w/.git/modules/a/.git/config", "../sub", false),
            ("/w/.git/modules/../../evil/config", "../sub", false),
            ("/w/evil/modules/x/config", "../sub", false),
        ] {
            let config = format!("[core]\n\tworktree = {worktree}\n");
            assert_eq!(is_plain(config.as_bytes(), Path::new(path), Path::new("/w")), plain, "{path}");
        }
    }

    #[test]
    fn settings_that_start_programs_or_switch_them_are_never_plain() {
        for key in [
            "alias.x",
            "browser.x.cmd",
            "core.alternateRefsCommand",
            "core.askPass",
            "core.attributesFile",
            "core.editor",
            "core.fsmonitor",
            "core.gitProxy",
            "core.hooksPath",
            "core.pager",
            "core.sshCommand",
            "credential.helper",
            "credential.x.helper",
            "diff.external",
            "diff.x.command",
            "diff.x.textconv",
            "difftool.x.cmd",
            "filter.x.clean",
            "filter.x.process",
            "filter.x.smudge",
            "gc.recentObjectsHook",
            "gpg.program",
            "gpg.x.program",
            "gpg.ssh.defaultKeyCommand",
            "guitool.x.cmd",
            "help.browser",
            "http.proxy",
            "imap.tunnel",
            "include.path",
            "includeIf.x.path",
            "interactive.diffFilter",
            "man.x.cmd",
            "merge.x.driver",
            "mergetool.x.cmd",
            "pager.log",
            "protocol.allow",
            "protocol.ext.allow",
            "receive.procReceiveRefs",
            "remote.x.receivepack",
            "sendemail.smtpServer",
            "sendemail.toCmd",
            "sequence.editor",
            "ssh.variant",
            "trailer.x.command",
            "uploadpack.packObjectsHook",
            "url.x.insteadOf",
            "url.x.pushInsteadOf",
            "web.browser",
        ] {
            let (section, name) = key.rsplit_once('.').unwrap();
            let header = match section.split_once('.') {
                Some((section, instance)) => format!("[{section} \"{instance}\"]"),
                None => format!("[{section}]"),
            };
            assert!(!is_plain_in_submodule(format!("{header}\n\t{name} = x\n").as_bytes()), "{key}");
        }
    }
}
