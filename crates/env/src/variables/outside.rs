//! Variables for programs that run outside of a sandbox.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use crate::{host_files, path::normalize};

/// Ends of the names of variables whose value is a list of directories.
const LISTS: [&[u8]; 4] = [b"PATH", b"_DIRS", b"PERL5LIB", b"RUBYLIB"];

/// Variables that are always kept. Without `HOME`, programs read the home directory from the user database.
const KEPT: [&str; 1] = ["HOME"];

/// Bytes that separate a path from what precedes and follows it in a value.
const SEPARATORS: &[u8] = b":;=,|'\" \t\n";

/// Returns variables that name nothing below `roots`, for programs that run outside of a sandbox in which these directories
/// can be written to.
///
/// Variables whose name ends with `PATH`, `_DIRS`, `PERL5LIB` or `RUBYLIB` are lists of directories: entries below a root and
/// relative entries are removed. Any other variable is left out if its value has an absolute path below a root, links followed.
/// `HOME` stays. Blocks for a few system calls.
#[must_use]
pub fn without_paths_below(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    roots: &[PathBuf],
) -> BTreeMap<OsString, OsString> {
    let roots: Vec<PathBuf> = roots.iter().flat_map(|root| [normalize(root), canonical(root)]).collect();
    let is_below = |path: &Path| {
        path.is_absolute()
            && [normalize(path), canonical(path)]
                .iter()
                .any(|path| roots.iter().any(|root| path.starts_with(root)))
    };
    // As in `-I/path`, a path may follow an option without a separator.
    let names_one_below = |text: &OsStr| {
        let parts = text.as_bytes().split(|byte| SEPARATORS.contains(byte));
        let mut paths = parts.filter_map(|part| part.get(part.iter().position(|byte| *byte == b'/')?..));
        paths.any(|path| is_below(Path::new(OsStr::from_bytes(path))))
    };
    let mut kept = BTreeMap::new();
    for (name, value) in variables {
        if KEPT.iter().any(|kept| name == *kept) {
            kept.insert(name, value);
        } else if LISTS.iter().any(|end| name.as_bytes().ends_with(end)) {
            let entries = std::env::split_paths(&value).filter(|entry| {
                entry.is_absolute() && !is_below(entry) && !names_one_below(entry.as_os_str())
            });
            // An entry of a list that was split has no separator.
            let entries = std::env::join_paths(entries).unwrap_or_default();
            if !entries.is_empty() {
                kept.insert(name, entries);
            }
        } else if !names_one_below(&value) {
            kept.insert(name, value);
        }
    }
    kept
}

/// Follows the links of a path, also those to files that do not exist, as far as it can be resolved.
fn canonical(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        // Fails for a cycle of links, and below a file or a closed directory.
        Some(host_files::canonicalize(above).ok()?.join(rest))
    });
    found.map_or_else(|| path.to_path_buf(), |found| normalize(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_below_a_root_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::os::unix::fs::symlink(&root, directory.path().join("link")).unwrap();
        std::os::unix::fs::symlink("root/missing", directory.path().join("dangling")).unwrap();
        let dangling = directory.path().join("dangling").display().to_string();
        let (root, link) = (root.display().to_string(), directory.path().join("link").display().to_string());
        let others = directory.path().join("root-of-others").display().to_string();
        for (name, value, expected) in [
            ("PATH", format!("{root}/bin:/usr/bin:{link}/bin:.::bin"), Some("/usr/bin".to_owned())),
            ("PATH", format!("{others}:/usr/../usr/bin"), Some(format!("{others}:/usr/../usr/bin"))),
            ("PATH", root.clone(), None),
            ("PATH", format!("{dangling}:{dangling}/bin:/usr/bin"), Some("/usr/bin".to_owned())),
            ("CARGO_HOME", format!("{dangling}/cargo"), None),
            ("LD_LIBRARY_PATH", format!("/lib:{root}"), Some("/lib".to_owned())),
            ("XDG_DATA_DIRS", format!("{root}/share:/usr/share"), Some("/usr/share".to_owned())),
            ("CARGO_HOME", format!("{root}/caches/cargo"), None),
            ("VIRTUAL_ENV", format!("{link}/not/there/yet"), None),
            ("GIT_CONFIG_GLOBAL", format!("/usr/..{root}/gitconfig"), None),
            ("NODE_OPTIONS", format!("--require {root}/hook.js --trace-warnings"), None),
            ("RUSTFLAGS", format!("-Clinker={root}/ld"), None),
            ("GOPROXY", format!("file://{root}/modules,direct"), None),
            ("PERL5OPT", format!("-I{root}/lib"), None),
            ("LESSOPEN", format!("|{root}/bin/open %s"), None),
            ("LUA_PATH", format!("/usr/?.lua;{root}/?.lua"), None),
            ("PERL5LIB", format!("lib:{root}/lib:/usr/lib"), Some("/usr/lib".to_owned())),
            ("EDITOR", "vi -u /etc/vimrc".to_owned(), Some("vi -u /etc/vimrc".to_owned())),
            ("HOME", root.clone(), Some(root.clone())),
        ] {
            let variables = [(name.into(), value.clone().into())];
            let kept = without_paths_below(variables, &[PathBuf::from(&root)]);
            let kept = kept.into_values().next().map(|value| value.into_string().unwrap());
            assert_eq!(kept, expected, "{name}={value}");
        }
    }
}
