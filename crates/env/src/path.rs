//! Path manipulation without file system access.

use std::path::{Component, Path, PathBuf};

/// Removes `.` and `..` from a path lexically; `..` at the root is dropped.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                normal.push(component);
            }
        }
    }
    normal
}

/// Makes a path absolute: `~` as its first name is the home directory, if that is known; a relative path is joined to
/// `directory`.
pub(crate) fn resolve(path: &Path, directory: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) => normalize(&home.join(below)),
        (Ok(_) | Err(_), _) => normalize(&directory.join(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_removed_lexically() {
        for (path, expected) in [
            ("/a/b", "/a/b"),
            ("/a/./b/", "/a/b"),
            ("/a/../b", "/b"),
            ("/../../a", "/a"),
            ("/a/b/../../..", "/"),
            ("/a//b", "/a/b"),
        ] {
            assert_eq!(normalize(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn a_tilde_is_the_home_directory() {
        let home = Some(Path::new("/users/me"));
        for (path, home, expected) in [
            ("~", home, "/users/me"),
            ("~/a", home, "/users/me/a"),
            ("~/../a", home, "/users/a"),
            ("./~/a", home, "/w/~/a"),
            ("~a", home, "/w/~a"),
            ("a/~", home, "/w/a/~"),
            ("/~", home, "/~"),
            ("", home, "/w"),
            ("~/a", None, "/w/~/a"),
        ] {
            assert_eq!(resolve(Path::new(path), Path::new("/w"), home), Path::new(expected), "{path}");
        }
    }
}
