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
}
