//! Example project of the demo and the script of its model, both embedded in the binary.

use pintle_env::{EnvError, ExecutionEnvironment, ExecutionEnvironmentExt as _};
use pintle_patch::{Change, ChangeKind};

/// Files of `demo/roman`, by relative path.
///
/// The manifest has another name there, since `cargo package` leaves out directories with a `Cargo.toml`.
pub(super) const FILES: [(&str, &str); 9] = [
    (".gitignore", include_str!("../../../demo/roman/.gitignore")),
    ("Cargo.lock", include_str!("../../../demo/roman/Cargo.lock")),
    ("Cargo.toml", include_str!("../../../demo/roman/manifest.toml")),
    ("README.md", include_str!("../../../demo/roman/README.md")),
    ("src/lib.rs", include_str!("../../../demo/roman/src/lib.rs")),
    ("src/outline.rs", include_str!("../../../demo/roman/src/outline.rs")),
    ("src/parse.rs", include_str!("../../../demo/roman/src/parse.rs")),
    ("src/render.rs", include_str!("../../../demo/roman/src/render.rs")),
    ("src/symbol.rs", include_str!("../../../demo/roman/src/symbol.rs")),
];

/// Script of the model.
pub(super) const SCRIPT: &str = include_str!("../../../demo/script.toml");

/// Writes the project to the environment's working directory.
pub(super) async fn copy_to(env: &dyn ExecutionEnvironment) -> Result<(), EnvError> {
    for (path, content) in FILES {
        env.write_file(path.as_ref(), content).await?;
    }
    Ok(())
}

/// Returns a unified diff between the project and the working directory, ignoring files that match the project's
/// `.gitignore`.
pub(super) async fn diff(env: &dyn ExecutionEnvironment) -> Result<String, EnvError> {
    let mut paths: Vec<String> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
    for found in env.glob("**/*", "".as_ref()).await? {
        let path = found.strip_prefix(env.working_directory()).unwrap_or(&found);
        paths.push(path.to_string_lossy().into_owned());
    }
    paths.sort_unstable();
    paths.dedup();
    let mut diff = String::new();
    for path in paths {
        let old =
            FILES.iter().find(|(known, _)| **known == path).map(|(_, content)| content.as_bytes().to_vec());
        let new = match env.read(path.as_ref(), None).await {
            Ok(bytes) => Some(bytes),
            Err(EnvError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let kind = match (&old, &new) {
            (None, _) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Deleted,
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        diff.push_str(&Change::new(path, kind, old, new).unified_diff());
    }
    Ok(diff)
}

#[cfg(test)]
mod tests;
