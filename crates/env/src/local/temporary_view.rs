//! Temporary files as sandboxed commands see them. Every lookup blocks for a look at one or two names.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Directories that commands see replaced by a private one. File operations on them act on the same files.
///
/// The first name below such a directory decides. The path leads into the private directory if that has the name, or if the
/// machine does not have it either. What only the machine has stays readable by its path.
#[derive(Clone, Debug)]
pub(crate) struct TemporaryView {
    /// Such as `/tmp`.
    replaced: Vec<PathBuf>,
    private: PathBuf,
    /// Paths that are the same for commands and on the machine.
    shared: Vec<PathBuf>,
    /// Decisions for names that were resolved once; `None` if each lookup decides.
    pinned: Option<Arc<Mutex<BTreeMap<PathBuf, Location>>>>,
}

/// Which directory has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Machine,
    Private,
}

impl TemporaryView {
    /// Creates a view in which `private` is in place of the directories `replaced`. Paths that lead to one of `shared` are not
    /// replaced.
    pub(crate) fn new(replaced: Vec<PathBuf>, private: PathBuf, mut shared: Vec<PathBuf>) -> Self {
        shared.push(private.clone());
        Self { replaced, private, shared, pinned: None }
    }

    /// Returns the path that an operation on an absolute path acts on.
    pub(crate) fn resolve(&self, path: PathBuf) -> PathBuf {
        for directory in &self.replaced {
            let Ok(below) = path.strip_prefix(directory) else { continue };
            let Some(first) = below.iter().next() else { return self.private.clone() };
            return match self.location(directory, Path::new(first)) {
                Location::Machine => path,
                Location::Private => self.private.join(below),
            };
        }
        path
    }

    /// Returns the view with decisions that do not change: those for `paths` are made now, others when they are needed.
    ///
    /// A checked path leads to the same directory afterwards, whatever a command or another process creates or removes.
    pub(crate) fn pinned(&self, paths: &[PathBuf]) -> Self {
        let mut decisions = BTreeMap::new();
        // These were resolved before.
        for path in paths {
            if let Ok(below) = path.strip_prefix(&self.private)
                && let Some(first) = below.iter().next()
            {
                let names = self.replaced.iter().map(|directory| (directory.join(first), Location::Private));
                decisions.extend(names);
            }
        }
        let view = Self { pinned: Some(Arc::new(Mutex::new(decisions))), ..self.clone() };
        for path in paths {
            view.resolve(path.clone());
        }
        view
    }

    fn location(&self, directory: &Path, name: &Path) -> Location {
        let named = directory.join(name);
        if self.shared.iter().any(|path| path.starts_with(&named)) {
            return Location::Machine;
        }
        let look = || match is_there(&self.private.join(name)) || !is_there(&named) {
            true => Location::Private,
            false => Location::Machine,
        };
        match &self.pinned {
            None => look(),
            Some(decisions) => {
                let mut decisions = decisions.lock().unwrap_or_else(PoisonError::into_inner);
                *decisions.entry(named.clone()).or_insert_with(look)
            }
        }
    }
}

/// Returns true if an entry of this name exists, or if that is unknown.
fn is_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the tests create the files of both directories")]

    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// Creates `tmp` and `var` of a machine, the private directory of commands, and a project below `tmp`.
    fn directories() -> (TempDir, TemporaryView) {
        let directory = tempfile::tempdir().unwrap();
        for name in ["tmp/both", "tmp/machine/a", "tmp/users/project", "var", "tmp/private/both/b"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        fs::create_dir_all(directory.path().join("tmp/private/users")).unwrap();
        fs::write(directory.path().join("tmp/private/own"), "").unwrap();
        let at = |name: &str| directory.path().join(name);
        let view = TemporaryView::new(
            vec![at("tmp"), at("var")],
            at("tmp/private"),
            vec![at("tmp/users/project"), at("elsewhere")],
        );
        (directory, view)
    }

    #[test]
    fn the_first_name_decides() {
        let (directory, view) = directories();
        for view in [view.clone(), view.pinned(&[])] {
            for (path, expected) in [
                ("tmp", "tmp/private"),
                ("var", "tmp/private"),
                ("tmp/own", "tmp/private/own"),
                ("var/own", "tmp/private/own"),
                ("tmp/new", "tmp/private/new"),
                ("tmp/new/deep", "tmp/private/new/deep"),
                ("tmp/both/a", "tmp/private/both/a"),
                // What only the machine has.
                ("tmp/machine", "tmp/machine"),
                ("tmp/machine/new", "tmp/machine/new"),
                ("var/machine/a", "tmp/private/machine/a"),
                // What commands see as it is, and everything beside it.
                ("tmp/users/project/a", "tmp/users/project/a"),
                ("tmp/users/other", "tmp/users/other"),
                ("tmp/private/own", "tmp/private/own"),
                ("tmp/private", "tmp/private"),
                ("elsewhere/own", "elsewhere/own"),
                ("tmpfile", "tmpfile"),
            ] {
                let resolved = view.resolve(directory.path().join(path));
                assert_eq!(resolved, directory.path().join(expected), "{path}");
                assert_eq!(view.resolve(resolved.clone()), resolved, "{path} a second time");
            }
        }
    }

    #[test]
    fn a_pinned_decision_does_not_change() {
        for (held, name, expected) in [
            // By the name that a call has, and by the resolved one.
            ("tmp/own", "own", "tmp/private/own"),
            ("tmp/private/own", "own", "tmp/private/own"),
            ("var/own", "own", "tmp/private/own"),
            ("tmp/new", "new", "tmp/private/new"),
            ("tmp/machine", "machine", "tmp/machine"),
        ] {
            let (directory, view) = directories();
            let at = |name: &str| directory.path().join(name);
            let pinned = view.pinned(&[at(held)]);
            let before = if held.starts_with("var") { "var" } else { "tmp" };
            // Another process turns it around.
            if expected.starts_with("tmp/private") {
                let _ = fs::remove_file(at("tmp/private").join(name));
                fs::write(at(before).join(name), "").unwrap();
                assert_eq!(view.resolve(at(before).join(name)), at(before).join(name), "{held}");
            } else {
                fs::create_dir(at("tmp/private").join(name)).unwrap();
                assert_eq!(view.resolve(at(before).join(name)), at("tmp/private").join(name), "{held}");
            }
            assert_eq!(pinned.resolve(at(before).join(name)), at(expected), "{held}");
        }
    }
}
