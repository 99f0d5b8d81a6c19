//! The directory that a patch must not leave.
#![expect(
    clippy::disallowed_methods,
    reason = "the command is a host: it looks where paths lead before an environment follows them"
)]

use std::fs::canonicalize;
use std::io;
use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;

use crate::failure::Failure;

/// The longest path that is looked at, in bytes: no system takes a longer one.
const MAX_PATH: usize = 4096;

/// How much of a path that is too long is shown, in characters.
const SHOWN: usize = 60;

/// A directory, and the names of what is inside.
#[derive(Clone, Debug)]
pub(super) struct Root {
    /// As the command line names it, from the root of the file system.
    spelled: PathBuf,
    /// Without links.
    path: PathBuf,
}

impl Root {
    /// The directory at this absolute path.
    ///
    /// # Errors
    ///
    /// A usage failure if the system does not say where it is.
    pub(super) fn at(directory: &Path) -> Result<Self, Failure> {
        let path = canonicalize(directory).map_err(|error| {
            Failure::usage(format!("{} cannot be used", directory.display())).because(&error)
        })?;
        Ok(Self { spelled: directory.to_path_buf(), path })
    }

    /// Where it is, without links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The one name of a file inside, however a patch spells it: relative, with the links on the way followed and
    /// one at the end left alone. `env` must work in this directory.
    ///
    /// # Errors
    ///
    /// A failure if it is outside, if a link at its end leads outside or to nothing, if the system does not say where
    /// it is, or if it is longer than any system takes.
    pub(super) fn name(&self, path: &str, env: &dyn ExecutionEnvironment) -> Result<String, Failure> {
        if path.len() > MAX_PATH {
            let (start, bytes): (String, _) = (path.chars().take(SHOWN).collect(), path.len());
            let reason = format!("the patch names {start}…, {bytes} bytes long: expected at most {MAX_PATH}");
            return Err(Failure::failed(reason));
        }
        let place = env.resolve(Path::new(path));
        let place = place.strip_prefix(&self.spelled).map(|inside| self.path.join(inside)).unwrap_or(place);
        let (Some(parent), Some(file)) = (place.parent(), place.file_name()) else {
            return Err(self.left_by(path, &place));
        };
        let place = real(parent).map_err(|error| unknown(path, &error))?.join(file);
        let inside = place.strip_prefix(&self.path).map_err(|_outside| self.left_by(path, &place))?;
        if inside.as_os_str().is_empty() {
            return Err(Failure::failed(format!("{path} is the directory itself, expected a file in it")));
        }
        if place.is_symlink() {
            let target = canonicalize(&place).map_err(|error| unknown(path, &error))?;
            if !target.starts_with(&self.path) {
                return Err(self.left_by(path, &target));
            }
        }
        let name = inside.to_str().map(str::to_owned);
        name.ok_or_else(|| Failure::failed(format!("{path} leads to a name that is not UTF-8")))
    }

    fn left_by(&self, path: &str, place: &Path) -> Failure {
        let (root, place) = (self.path.display(), place.display());
        Failure::failed(format!("the patch names {path}, which is {place}: expected a path inside {root}"))
    }
}

/// A directory without links, as far as it is there; what is missing has none.
fn real(directory: &Path) -> io::Result<PathBuf> {
    match canonicalize(directory) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
                && !directory.is_symlink() =>
        {
            let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
                return Err(error);
            };
            Ok(real(parent)?.join(name))
        }
        found => found,
    }
}

fn unknown(path: &str, error: &io::Error) -> Failure {
    Failure::failed(format!("nobody can say where {path} leads")).because(error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use pintle_env::MemoryEnvironment;

    use super::*;

    #[test]
    fn a_file_inside_has_one_name_and_one_outside_none() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
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
        let root = Root::at(&at("link")).unwrap();
        assert_eq!(root.path(), at("tree"));
        let env = MemoryEnvironment::new(root.path());
        let absolute = |name: &str| at(name).to_str().unwrap().to_owned();

        let rows = [
            ("real/file".to_owned(), "real/file"),
            ("inner/file".to_owned(), "real/file"),
            ("new/../inner/deep/er".to_owned(), "real/deep/er"),
            ("real/file/below".to_owned(), "real/file/below"),
            ("short".to_owned(), "short"),
            ("../tree/real/file".to_owned(), "real/file"),
            (absolute("tree/new"), "new"),
            (absolute("link/inner/new"), "real/new"),
        ];
        for (path, name) in rows {
            assert_eq!(root.name(&path, &env).as_deref(), Ok(name), "{path}");
        }
        let rows = [
            ("../outside/file".to_owned(), "expected a path inside"),
            ("real/../../new".to_owned(), "expected a path inside"),
            ("/".to_owned(), "expected a path inside"),
            (absolute("outside/file"), "expected a path inside"),
            ("out/file".to_owned(), "outside/file: expected a path inside"),
            ("out/new/file".to_owned(), "outside/new/file: expected a path inside"),
            ("file-out".to_owned(), "outside/file: expected a path inside"),
            ("nothing".to_owned(), "nobody can say where nothing leads"),
            ("nothing/below".to_owned(), "nobody can say where nothing/below leads"),
            ("loop".to_owned(), "nobody can say where loop leads"),
            ("real/..".to_owned(), "is the directory itself"),
            ("ä/".repeat(1_366), "ä/…, 4098 bytes long: expected at most 4096"),
        ];
        for (path, reason) in rows {
            let failure = root.name(&path, &env).unwrap_err();
            assert!(failure.sentence().contains(reason), "{path}: {failure:?}");
        }
    }
}
