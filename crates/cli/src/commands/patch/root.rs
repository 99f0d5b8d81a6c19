//! Root directory that the paths of a patch must not leave.
#![expect(
    clippy::disallowed_methods,
    reason = "the command resolves paths before an environment follows them"
)]

use std::fs::canonicalize;
use std::io;
use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;
use pintle_host::failure::Failure;

/// Maximum length of a path in bytes, as on common systems.
const MAX_PATH: usize = 4096;

/// Characters of an overlong path shown in an error.
const SHOWN_CHARS: usize = 60;

/// Root directory.
#[derive(Clone, Debug)]
pub(super) struct PatchRoot {
    /// Absolute path with symbolic links.
    given: PathBuf,
    /// Canonical path.
    path: PathBuf,
}

impl PatchRoot {
    /// Resolves the directory at an absolute path.
    pub(super) fn new(directory: &Path) -> Result<Self, Failure> {
        let path = canonicalize(directory).map_err(|error| {
            Failure::usage(format!("cannot use {}", directory.display())).caused_by(&error)
        })?;
        Ok(Self { given: directory.to_path_buf(), path })
    }

    /// Returns the canonical path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the canonical relative name of a file in the directory. Symbolic links are resolved, except for the last
    /// component. `env` must have this directory as its working directory.
    ///
    /// Fails if the path is outside of the directory, if its last component is a link that is dangling or leads
    /// outside, if it cannot be resolved, or if it is too long.
    pub(super) fn canonical_name(
        &self,
        path: &str,
        env: &dyn ExecutionEnvironment,
    ) -> Result<String, Failure> {
        if path.len() > MAX_PATH {
            let (start, bytes): (String, _) = (path.chars().take(SHOWN_CHARS).collect(), path.len());
            let reason = format!("the path {start}… is {bytes} bytes long: expected at most {MAX_PATH}");
            return Err(Failure::failed(reason));
        }
        let resolved = env.resolve(Path::new(path));
        let resolved =
            resolved.strip_prefix(&self.given).map(|inside| self.path.join(inside)).unwrap_or(resolved);
        let (Some(parent), Some(file)) = (resolved.parent(), resolved.file_name()) else {
            return Err(self.outside(path, &resolved));
        };
        let resolved =
            canonicalize_existing(parent).map_err(|error| resolve_failure(path, &error))?.join(file);
        let inside = resolved.strip_prefix(&self.path).map_err(|_outside| self.outside(path, &resolved))?;
        if inside.as_os_str().is_empty() {
            return Err(Failure::failed(format!("{path} is the directory itself, expected a file in it")));
        }
        if resolved.is_symlink() {
            let target = canonicalize(&resolved).map_err(|error| resolve_failure(path, &error))?;
            if !target.starts_with(&self.path) {
                return Err(self.outside(path, &target));
            }
        }
        let name = inside.to_str().map(str::to_owned);
        name.ok_or_else(|| Failure::failed(format!("{path} resolves to a name that is not UTF-8")))
    }

    fn outside(&self, path: &str, resolved: &Path) -> Failure {
        let (root, resolved) = (self.path.display(), resolved.display());
        Failure::failed(format!("{path} resolves to {resolved}: expected a path inside {root}"))
    }
}

/// Canonicalizes the existing part of a path and appends the rest unchanged.
fn canonicalize_existing(directory: &Path) -> io::Result<PathBuf> {
    match canonicalize(directory) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
                && !directory.is_symlink() =>
        {
            let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
                return Err(error);
            };
            Ok(canonicalize_existing(parent)?.join(name))
        }
        found => found,
    }
}

fn resolve_failure(path: &str, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot resolve {path}")).caused_by(error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use pintle_env::MemoryEnvironment;

    use super::*;

    #[test]
    fn names_are_canonical_and_inside_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let at = |name: &str| base.join(name);
        std::fs::create_dir_all(at("tree/real")).unwrap();
        std::fs::create_dir_all(at("outside")).unwrap();
        std::fs::write(at("tree/real/file"), "").unwrap();
        std::fs::write(at("outside/file"), "").unwrap();
        symlink(at("tree"), at("link")).unwrap();
        symlink("real", at("tree/inner")).unwrap();
        symlink("real/file", at("tree/short")).unwrap();
        symlink("../outside", at("tree/out")).unwrap();
        symlink("../outside/file", at("tree/file-out")).unwrap();
        symlink("../outside/new", at("tree/nothing")).unwrap();
        symlink("loop", at("tree/loop")).unwrap();
        let root = PatchRoot::new(&at("link")).unwrap();
        assert_eq!(root.path(), at("tree"));
        let env = MemoryEnvironment::new(root.path());
        let absolute = |name: &str| at(name).to_str().unwrap().to_owned();

        let cases = [
            ("real/file".to_owned(), "real/file"),
            ("inner/file".to_owned(), "real/file"),
            ("new/../inner/deep/er".to_owned(), "real/deep/er"),
            ("real/file/below".to_owned(), "real/file/below"),
            ("short".to_owned(), "short"),
            ("../tree/real/file".to_owned(), "real/file"),
            (absolute("tree/new"), "new"),
            (absolute("link/inner/new"), "real/new"),
        ];
        for (path, name) in cases {
            assert_eq!(root.canonical_name(&path, &env).as_deref(), Ok(name), "{path}");
        }
        let cases = [
            ("../outside/file".to_owned(), "expected a path inside"),
            ("real/../../new".to_owned(), "expected a path inside"),
            ("/".to_owned(), "expected a path inside"),
            (absolute("outside/file"), "expected a path inside"),
            ("out/file".to_owned(), "outside/file: expected a path inside"),
            ("out/new/file".to_owned(), "outside/new/file: expected a path inside"),
            ("file-out".to_owned(), "outside/file: expected a path inside"),
            ("nothing".to_owned(), "cannot resolve nothing:"),
            ("nothing/below".to_owned(), "cannot resolve nothing/below:"),
            ("loop".to_owned(), "cannot resolve loop:"),
            ("real/..".to_owned(), "is the directory itself"),
            ("ä/".repeat(1_366), "ä/… is 4098 bytes long: expected at most 4096"),
        ];
        for (path, reason) in cases {
            let failure = root.canonical_name(&path, &env).unwrap_err();
            assert!(failure.message().contains(reason), "{path}: {failure:?}");
        }
    }
}
