//! Directory for the homes of users that the suites of other languages create.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
};

/// Variable with the directory, for the suites.
pub(crate) const VARIABLE: &str = "TEST_HOMES";

/// Creates the directory and returns its resolved path: below the target directory, or else the user's home.
pub(crate) fn create(metadata: &Metadata) -> Result<PathBuf, Failure> {
    let target = metadata.target_directory.join("tmp");
    fs::create_dir_all(&target).with_context(|| format!("cannot create `{}`", target.display()))?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let bases: Vec<PathBuf> =
        [target].into_iter().chain(home).filter_map(|base| base.canonicalize().ok()).collect();
    let found = bases.iter().find(|base| is_kept(base)).cloned();
    found.ok_or_else(|| Failure::new(format!("expected a directory that is not temporary: {bases:?}")))
}

/// Returns whether the sandbox keeps the directory: it replaces `/tmp` and `/var/tmp`.
fn is_kept(directory: &Path) -> bool {
    !["/tmp", "/var/tmp"].iter().any(|temporary| directory.starts_with(temporary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_directories_are_not_kept() {
        for (directory, expected) in [
            ("/tmp", false),
            ("/tmp/target/tmp", false),
            ("/var/tmp/x", false),
            ("/tmpfiles/x", true),
            ("/srv/project/target/tmp", true),
        ] {
            assert_eq!(is_kept(Path::new(directory)), expected, "{directory}");
        }
    }
}
