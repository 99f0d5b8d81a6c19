//! Configurations of git whose settings name no program.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::path::Path;

use super::normalized;

/// Sections whose keys all name no program.
const PLAIN_SECTIONS: [&str; 4] = ["advice", "color", "color.*", "column"];

/// Other keys that name no program, neither directly nor by a file, an address or a driver. They are from git's own list
/// of variables; any other key counts as naming a program. `*` is the name of a section's instance.
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

/// Values of `submodule.*.update` that are not commands.
const PLAIN_UPDATES: [&str; 4] = ["checkout", "merge", "none", "rebase"];

/// Values of `extensions.refstorage` that name no directory.
const PLAIN_REF_STORAGES: [&str; 2] = ["files", "reftable"];

/// Schemes of addresses that git serves with its own programs.
const PLAIN_SCHEMES: [&str; 9] = ["file", "ftp", "ftps", "git", "git+ssh", "http", "https", "ssh", "ssh+git"];

/// Returns whether the configuration of git at `path` has only settings that name no program. `root` is the working directory.
pub(super) fn is_plain(config: &[u8], path: &Path, root: &Path) -> bool {
    let settings = std::str::from_utf8(config).ok().and_then(settings);
    settings.is_some_and(|settings| settings.iter().all(|setting| setting.is_plain(path, root)))
}

/// Setting of a configuration of git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Key with `*` in place of the instance of its section.
    pub(super) key: String,
    /// Line that begins the section.
    section: String,
    value: String,
}

impl Setting {
    /// Returns whether the setting names no program. `config` is its file, and `root` the working directory.
    pub(super) fn is_plain(&self, config: &Path, root: &Path) -> bool {
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
pub(super) fn settings(text: &str) -> Option<Vec<Setting>> {
    let (mut section, mut header) = (String::new(), String::new());
    let mut settings = Vec::new();
    for line in text.split('\n').map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // The next line would be part of this value, and not a setting.
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

/// Returns whether an address, or the name of a remote or a ref, is not an option and needs no helper program: `ext::`,
/// and schemes that git does not know.
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
