//! Permissions of sandboxed commands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::caches::{MAX_ENTRIES, Seeding, SwitchedCaches};
use super::{NetworkGateway, ProtectedPathSource, Protection, SandboxLevel, filter::Filters, mounts};
use crate::command::{Command, Stdin};
use crate::local::TemporaryView;
use crate::write_switch::WriteSwitch;

/// Reason to refuse a root.
pub(super) const REPLACED: &str = "the directory was replaced after the session started";

/// Permissions of sandboxed commands.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) level: SandboxLevel,
    pub(super) writable: Vec<PathBuf>,
    /// Roots that are writable only while a switch is on.
    pub(super) switched: Vec<(PathBuf, WriteSwitch)>,
    pub(super) caches: Option<SwitchedCaches>,
    /// Directories of the roots when they were added, by device and inode. A root that names another one later is refused:
    /// commands of another session may have replaced it with a link.
    pub(super) identities: BTreeMap<PathBuf, (u64, u64)>,
    pub(super) protected: Vec<PathBuf>,
    /// Finds more protected paths before the first change.
    pub(super) source: Option<Arc<dyn ProtectedPathSource>>,
    /// Roots of a command that writes nothing: it can read them wherever they are.
    pub(super) readable: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// What commands see as `/tmp`.
    pub(super) temporary: Option<PathBuf>,
    /// Paths of the rules below the directories for temporary files, also with links resolved. File operations on them act on
    /// the machine.
    pub(super) shared: Vec<PathBuf>,
    /// Directory of the environment; always visible.
    pub(super) working_directory: PathBuf,
    pub(super) network: bool,
    /// How commands without network reach some hosts.
    pub(super) gateway: Option<Arc<dyn NetworkGateway>>,
    pub(super) unix_sockets: bool,
    /// Restrictions that need not be enforced.
    pub(super) accepted: BTreeSet<Protection>,
    /// The filters of system calls for these rules, once a command has needed them. Copies of the rules share them.
    pub(super) filters: Arc<OnceLock<Filters>>,
}

impl Rules {
    /// Returns the rules for a command that starts now, without switches.
    pub(super) fn now(self: &Arc<Self>) -> Arc<Self> {
        if self.switched.is_empty() && self.caches.is_none() {
            return Arc::clone(self);
        }
        let mut rules = Self::clone(self);
        let switched = std::mem::take(&mut rules.switched).into_iter();
        rules.writable.extend(switched.filter(|(_, switch)| switch.is_on()).map(|(root, _)| root));
        let caches = rules.caches.take();
        rules.writable.extend(caches.iter().filter_map(|caches| caches.root()).map(Path::to_path_buf));
        Arc::new(rules)
    }

    /// Returns the rules of a command that writes only temporary files.
    pub(super) fn without_writes(&self) -> Self {
        let mut rules = self.clone();
        rules.readable.append(&mut rules.writable);
        // Nothing there is writable.
        rules.protected.clear();
        rules
    }

    /// Returns the rules with more protected paths.
    pub(super) fn with_protected(self: Arc<Self>, paths: &[PathBuf]) -> Arc<Self> {
        if paths.is_empty() {
            return self;
        }
        let mut rules = Self::clone(&self);
        rules.protected.extend_from_slice(paths);
        Arc::new(rules)
    }

    /// Returns how commands use the caches; blocks.
    pub(super) fn seeding(&self) -> Seeding {
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let switched = self.switched.iter().map(|(root, _)| root);
        let mut separate: Vec<PathBuf> = self.roots().chain(switched).map(|root| canonical(root)).collect();
        if self.level == SandboxLevel::Full {
            separate.extend(mounts::private_directories().map(canonical));
            separate.extend(self.hidden.iter().cloned());
        }
        let installs_archives = has_npm_package(&self.working_directory);
        let downloads = self.network || self.gateway.is_some();
        Seeding { downloads, installs_archives, separate, max_entries: MAX_ENTRIES }
    }

    /// Records the directory that a root names now, if there is one; blocks.
    #[expect(clippy::disallowed_methods, reason = "the directory is on this machine")]
    pub(super) fn identify(&mut self, root: &Path) {
        if let Ok(found) = fs::metadata(root) {
            self.identities.insert(root.to_path_buf(), (found.dev(), found.ino()));
        }
    }

    /// Returns whether a root names another directory than when it was added. `found` is its device and inode now.
    pub(super) fn is_replaced(&self, root: &Path, found: (u64, u64)) -> bool {
        self.identities.get(root).is_some_and(|added| *added != found)
    }

    /// Returns the directories that commands may write below at any time.
    pub(super) fn all_roots(&self) -> Vec<PathBuf> {
        let switched = self.switched.iter().map(|(root, _)| root.clone());
        let caches = self.caches.iter().flat_map(|caches| caches.directories().map(Path::to_path_buf));
        self.roots().cloned().chain(switched).chain(caches).collect()
    }

    /// Records a path that is the same for commands and file operations, or that commands do not have; blocks.
    pub(super) fn note_shared(&mut self, path: &Path) {
        let canonical = mounts::resolve_existing(path).ok().flatten();
        let paths = std::iter::once(path.to_path_buf()).chain(canonical);
        let is_temporary = |path: &PathBuf| mounts::TEMPORARY.iter().any(|name| path.starts_with(name));
        self.shared.extend(paths.filter(is_temporary));
    }

    /// Returns where file operations find the temporary files of commands; `None` if commands use the temporary files
    /// of the machine, or if each command has separate ones. Blocks.
    pub(super) fn temporary_view(&self) -> Option<TemporaryView> {
        let private = self.temporary.clone().filter(|_| self.level == SandboxLevel::Full)?;
        let is_replaced = |directory: &PathBuf| {
            let canonical = directory.canonicalize().unwrap_or_default();
            // A link elsewhere leads to files of the machine.
            mounts::TEMPORARY.iter().any(|name| canonical == Path::new(name))
                && !self.shared.contains(&canonical)
        };
        let replaced = mounts::TEMPORARY.map(PathBuf::from).into_iter().filter(is_replaced).collect();
        Some(TemporaryView::new(replaced, private, self.shared.clone()))
    }

    /// Returns the directories that commands may write below.
    pub(super) fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        self.writable.iter().chain(&self.temporary)
    }

    /// Returns the gateway of a command; `None` if it needs none, or may have none.
    ///
    /// A command with an input cannot wait in its sandbox until the listener is open, and has no network.
    pub(super) fn gateway_of(&self, command: &Command) -> Option<&Arc<dyn NetworkGateway>> {
        let can_wait = !command.is_read_only && command.stdin == Stdin::Null;
        self.gateway.as_ref().filter(|_| can_wait && !self.network && self.level == SandboxLevel::Full)
    }

    /// Returns the permissions in a sentence, for a model.
    pub(super) fn described(&self) -> String {
        let roots: Vec<String> = self.writable.iter().map(|root| root.display().to_string()).collect();
        let writes = match (roots.as_slice(), &self.temporary) {
            ([], None) => "they cannot write files".to_owned(),
            ([], Some(_)) => "they can write files only in TMPDIR".to_owned(),
            (roots, None) => format!("they can write only below {}", roots.join(", ")),
            (roots, Some(_)) => format!("they can write only below {}, and in TMPDIR", roots.join(", ")),
        };
        let network = match (self.network, &self.gateway) {
            (true, _) => "",
            (false, None) => ", and have no network",
            (false, Some(_)) => {
                ", and reach only some hosts, through the proxy that HTTPS_PROXY and similar variables name"
            }
        };
        let hidden =
            if self.hidden.is_empty() { "" } else { ". Some files are hidden from them, such as keys" };
        // The text is part of prompts, so that it does not depend on the paths that the source finds.
        let has_source = self.source.is_some() && self.level == SandboxLevel::Full;
        let protected = match self.protected.as_slice() {
            [] if !has_source => "",
            [..] => {
                ". They cannot change protected files there, such as settings of git, nor remove a repository that \
                 existed before; `git branch -m` and `git branch -d` do their work, and report an error"
            }
        };
        format!("they run in a sandbox: {writes}{network}{hidden}{protected}.")
    }

    /// Returns true if a protected path is below a directory that commands may write to, or leads
    /// there; blocks.
    pub(super) fn protects_within_roots(&self) -> bool {
        let canonical = |root: &PathBuf| root.canonicalize().ok();
        let roots: Vec<_> = self.roots().filter_map(canonical).collect();
        let is_lexically_within = |path: &PathBuf| self.roots().any(|root| path.starts_with(root));
        let is_within = |path: &PathBuf| is_lexically_within(path) || mounts::locate(path, &roots).is_some();
        self.protected.iter().any(is_within)
    }
}

/// Returns whether a directory, or a directory in it, has a package of npm; blocks.
#[expect(clippy::disallowed_methods, reason = "the directory is on this machine")]
fn has_npm_package(directory: &Path) -> bool {
    const PACKAGE: &str = "package.json";
    let has_package = |entry: fs::DirEntry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.path().join(PACKAGE).exists()
    };
    directory.join(PACKAGE).exists()
        || fs::read_dir(directory).into_iter().flatten().flatten().any(has_package)
}
