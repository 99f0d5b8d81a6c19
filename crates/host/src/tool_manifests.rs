//! Tools that TOML files declare: the directories of `tool_dirs`, of the user and of trusted projects.

mod directory;
mod manifest;
mod template;
mod tool;

use std::path::{Path, PathBuf};

pub use self::directory::{LoadedManifest, ProgramHashes, ToolDirectory};
pub use self::manifest::ToolManifest;
pub(crate) use self::tool::ManifestTool;
use crate::config_file;
use crate::config_file::problem::Problem;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;
use crate::toolset;

/// Returns the directories of the user's file.
pub(crate) fn user_directories(process_env: &ProcessEnv) -> Vec<PathBuf> {
    config_file::user_file(process_env).tool_dirs.into_iter().map(|directory| directory.path).collect()
}

/// Reads the manifests of the user for a session in `workspace`, a path without links.
///
/// # Errors
///
/// The environment of this machine cannot be used. Mistakes in manifests are part of the result.
pub(crate) async fn read_user_directories(
    workspace: &Path,
    process_env: &ProcessEnv,
) -> Result<Vec<ToolDirectory>, Failure> {
    let mut read = Vec::new();
    for path in user_directories(process_env) {
        let environment = process_env.local_environment(Path::new("/"))?;
        let directory = ToolDirectory::read(&path, None, &environment).await;
        read.push(match misplaced(&directory.path, workspace, process_env) {
            None => directory,
            Some(message) => ToolDirectory::wrong(path, message),
        });
    }
    Ok(read)
}

/// Returns why a directory of the user cannot have tools in a session: commands cannot read it, or can change it.
fn misplaced(directory: &Path, workspace: &Path, process_env: &ProcessEnv) -> Option<&'static str> {
    let hidden = process_env.configuration_directory().map(|own| process_env.real_path(&own));
    if hidden.is_some_and(|hidden| directory.starts_with(hidden)) {
        return Some(
            "`tool_dirs`: expected a directory outside of the configuration, which commands in the sandbox cannot read",
        );
    }
    let overlaps = directory.starts_with(workspace) || workspace.starts_with(directory);
    overlaps.then_some(
        "`tool_dirs`: expected a directory outside of the working directory, where commands can change it; the \
         configuration of a project can name it",
    )
}

/// Returns the directories of the user that commands in a sandbox for `workspace` have to be able to read. A directory that
/// contains the workspace would make it read-only.
pub(crate) fn readable_directories(workspace: Option<&Path>, process_env: &ProcessEnv) -> Vec<PathBuf> {
    let workspace = workspace.map(|workspace| process_env.real_path(workspace));
    let directories = user_directories(process_env).into_iter();
    let is_usable = |directory: &PathBuf| {
        let real = process_env.real_path(directory);
        process_env.is_directory(directory)
            && !workspace.as_ref().is_some_and(|workspace| workspace.starts_with(&real))
    };
    directories.filter(is_usable).collect()
}

/// Checks that no built-in tool has the name of a tool. `file` is the manifest for messages.
fn check_name(loaded: &LoadedManifest, file: &str) -> Result<(), Problem> {
    let LoadedManifest { manifest, .. } = loaded;
    let origin = format!("{file}: line {}", manifest.name_line);
    let problem = |message: String| Problem { origin: origin.clone(), message };
    let known = toolset::all_names().map_err(|failure| problem(failure.message()))?;
    let name = &manifest.definition.name;
    if known.contains(name) {
        return Err(problem(format!("`name`: found `{name}`, expected a name that no built-in tool has")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn directories_of_the_user_are_outside_of_configuration_and_workspace() {
        let process_env = ProcessEnv::from_variables([("PINTLE_CONFIG_DIR", OsStr::new("/no/config"))]);
        for (directory, expected) in [
            ("/no/tools", None),
            ("/no/config/tools", Some("outside of the configuration")),
            ("/no/project", Some("outside of the working directory")),
            ("/no/project/tools", Some("outside of the working directory")),
            ("/no", Some("outside of the working directory")),
            ("/no/project2", None),
        ] {
            let found = misplaced(Path::new(directory), Path::new("/no/project"), &process_env);
            match expected {
                None => assert_eq!(found, None, "{directory}"),
                Some(expected) => assert!(found.unwrap().contains(expected), "{directory}: {found:?}"),
            }
        }
    }
}
