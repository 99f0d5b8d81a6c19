//! Instructions that outlive a session: files at the start of the prompt of each session.

use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment, leads_outside};
use pintle_host::failure::Failure;
use pintle_host::instructions::FILE;
use pintle_host::policy::PROJECT_DIRECTORY;
use pintle_host::process_env::{self, ProcessEnv};
use pintle_tools::gate::protected_target;

/// Instruction file for a line of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryFile {
    /// In the working directory of the tools.
    Project,
    /// In the user's configuration, for all projects.
    User,
}

impl MemoryFile {
    /// Returns the file that a word or its first letter names.
    pub(crate) fn by_name(word: &str) -> Option<Self> {
        match word {
            "p" | "project" => Some(Self::Project),
            "u" | "user" => Some(Self::User),
            _ => None,
        }
    }
}

/// Returns the user's file, or `None` if no variable names the configuration directory.
pub(crate) fn user_file(process_env: &ProcessEnv) -> Option<PathBuf> {
    Some(process_env.configuration_directory()?.join(FILE))
}

/// Mode of a new file of the user.
const NEW_MODE: u32 = 0o600;

/// Adds a line to a file, and returns the name of the file. The user's file may be a link. If the future is dropped, the
/// line may not be written.
///
/// Rejects a project file that is a link out of the working directory or to a protected file.
pub(crate) async fn add(
    file: MemoryFile,
    line: &str,
    environment: &dyn ExecutionEnvironment,
    process_env: &ProcessEnv,
) -> Result<String, String> {
    match file {
        MemoryFile::User => {
            let path = user_file(process_env).ok_or("no variable names a directory of configuration")?;
            let before = match process_env::read_text_if_exists("instructions", &path) {
                Ok(text) => text.unwrap_or_default(),
                Err(failure) => return Err(failure.message()),
            };
            let text = appended(&before, line);
            process_env
                .write_keeping_mode(&path, &text, NEW_MODE)
                .map_err(|failure: Failure| failure.message())?;
            Ok(path.display().to_string())
        }
        MemoryFile::Project => {
            let path = environment.resolve(Path::new(FILE));
            // Check and write the same file.
            let held =
                environment.hold(std::slice::from_ref(&path)).await.map_err(|error| error.to_string())?;
            let environment = held.as_deref().unwrap_or(environment);
            let root = environment.working_directory().to_path_buf();
            if leads_outside(environment, &path, &[root]).await {
                return Err(format!("{FILE} is a link that leads out of the working directory"));
            }
            if let Some(name) = protected_target(environment, &path, &[PROJECT_DIRECTORY]).await {
                return Err(format!("{FILE} is a link that leads to a protected file of {name}"));
            }
            let before = match environment.read(&path, None).await {
                Ok(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| format!("{FILE} is not UTF-8"))?,
                Err(EnvError::NotFound { .. }) => String::new(),
                Err(error) => return Err(error.to_string()),
            };
            let text = appended(&before, line);
            environment.write(&path, text.as_bytes()).await.map_err(|error| error.to_string())?;
            Ok(FILE.to_owned())
        }
    }
}

/// Returns the text with a list item appended.
fn appended(before: &str, line: &str) -> String {
    let is_list = before.trim_end().lines().next_back().is_some_and(|last| last.starts_with("- "));
    let between = match (before.trim_end().is_empty(), is_list) {
        (true, _) => "",
        (false, true) => "\n",
        (false, false) => "\n\n",
    };
    format!("{}{between}- {line}\n", before.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_items_of_a_list() {
        for (before, after) in [
            ("", "- use tabs\n"),
            ("# Rules\n", "# Rules\n\n- use tabs\n"),
            ("- one\n", "- one\n- use tabs\n"),
            ("- one\n\n\n", "- one\n- use tabs\n"),
            ("text", "text\n\n- use tabs\n"),
        ] {
            assert_eq!(appended(before, "use tabs"), after, "{before:?}");
        }
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the tests write the files that are read")]
    async fn a_link_of_the_user_stays_and_one_out_of_the_project_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["project", ".config/pintle"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["outside.md", "dotfiles.md", "project/CLAUDE.md"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::set_permissions(at("dotfiles.md"), std::fs::Permissions::from_mode(0o644)).unwrap();
        symlink(at("dotfiles.md"), at(".config/pintle/AGENTS.md")).unwrap();
        let process_env = ProcessEnv::from_variables([("HOME", directory.path().as_os_str())]);
        let environment = process_env.local_environment(&at("project")).unwrap();
        let add = async |file| add(file, "x", &environment, &process_env).await;
        let text = |name: &str| std::fs::read_to_string(at(name)).unwrap();

        add(MemoryFile::User).await.unwrap();
        let mode = std::fs::metadata(at("dotfiles.md")).unwrap().permissions().mode();
        assert_eq!((text("dotfiles.md").as_str(), mode & 0o777), ("- x\n", 0o644));
        assert!(at(".config/pintle/AGENTS.md").symlink_metadata().unwrap().is_symlink());

        symlink("CLAUDE.md", at("project/AGENTS.md")).unwrap();
        add(MemoryFile::Project).await.unwrap();
        assert_eq!(text("project/CLAUDE.md"), "- x\n");
        std::fs::remove_file(at("project/AGENTS.md")).unwrap();
        for target in ["../outside.md", "../new.md"] {
            symlink(target, at("project/AGENTS.md")).unwrap();
            let refused = add(MemoryFile::Project).await.unwrap_err();
            assert_eq!(refused, "AGENTS.md is a link that leads out of the working directory");
            std::fs::remove_file(at("project/AGENTS.md")).unwrap();
        }
        assert!(text("outside.md").is_empty() && !at("new.md").exists());
        for (target, name) in [
            (".git/config", ".git/config"),
            (".git/hooks/new", ".git/hooks"),
            (".pintle/rules.toml", ".pintle"),
        ] {
            let target = at("project").join(target);
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            symlink(&target, at("project/AGENTS.md")).unwrap();
            let refused = add(MemoryFile::Project).await.unwrap_err();
            assert_eq!(refused, format!("AGENTS.md is a link that leads to a protected file of {name}"));
            assert!(!target.exists(), "{name}");
            std::fs::remove_file(at("project/AGENTS.md")).unwrap();
        }
        add(MemoryFile::Project).await.unwrap();
        assert_eq!(text("project/AGENTS.md"), "- x\n");
    }
}
