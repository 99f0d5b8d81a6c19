//! The files of one attempt: a repository that the agent never sees, and clones of it.

use std::path::{Path, PathBuf};

use pintle_env::shell_word;
use pintle_host::failure::Failure;

use crate::machine::Machine;
use crate::suite::{GoldChange, Instance, InstanceSource};

/// Files that are never part of a change: caches of Python, and packages of Node.
const NEVER_CHANGED: &str = "':(exclude,glob)**/__pycache__/**' ':(exclude,glob)**/node_modules/**'";

/// Function of the shell that removes a path of the current directory.
const CLEAR_PATH: &str = include_str!("workspace/clear_path.sh");

/// Repository of an instance, below a directory that belongs to one attempt.
#[derive(Debug)]
pub(crate) struct Workspace<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) instance: &'a Instance,
    root: PathBuf,
}

impl<'a> Workspace<'a> {
    /// Creates the repository, with one commit. Replaces the directory, which an earlier process may have left.
    pub(crate) async fn create(
        machine: &'a Machine,
        instance: &'a Instance,
        root: &Path,
    ) -> Result<Self, Failure> {
        machine.remove(root)?;
        machine.process_env().create_directory(&root.join("source"))?;
        let workspace = Self { machine, instance, root: root.to_owned() };
        match &instance.source {
            InstanceSource::Files(files) => workspace.copy(files, &root.join("source")).await?,
            InstanceSource::Commit { repository, commit } => workspace.check_out(repository, commit).await?,
        }
        let script = format!(
            "git init --quiet --bare --initial-branch=main origin.git\nexport {}\n\
             git add --all --force .\ngit commit --quiet --allow-empty --message=base",
            workspace.variables("source")
        );
        machine.git(root, &script).await?;
        machine.remove(&root.join("source"))?;
        Ok(workspace)
    }

    /// Writes the files of a commit without its history, which could contain the gold change.
    async fn check_out(&self, repository: &Path, commit: &str) -> Result<(), Failure> {
        if commit.starts_with('-') {
            return Err(Failure::usage(format!("`{commit}` is not the id of a commit")));
        }
        let directory = self.machine.git(repository, "git rev-parse --absolute-git-dir").await?;
        let tree = shell_word(&format!("{commit}^{{commit}}"));
        let script = format!(
            "export GIT_DIR={} GIT_WORK_TREE={} GIT_INDEX_FILE={}\n\
             git read-tree {tree}\ncd source\ngit checkout-index --all",
            shell_word(&directory),
            self.word("source"),
            self.word("index")
        );
        self.machine.git(&self.root, &script).await.map(drop).map_err(|failure| {
            let (id, repository) = (&self.instance.id, repository.display());
            Failure::usage(format!("task `{id}`: cannot check out {commit} of {repository}: {failure}"))
        })
    }

    /// Returns a path below the root.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn word(&self, name: &str) -> String {
        shell_word(&self.path(name).display().to_string())
    }

    /// Returns the variables with which git uses our repository for a directory, whatever its `.git` contains.
    fn variables(&self, work_tree: &str) -> String {
        format!("GIT_DIR={} GIT_WORK_TREE={}", self.word("origin.git"), self.word(work_tree))
    }

    /// Creates a clone, in place of an earlier one of this name.
    pub(crate) async fn clone_to(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path(name);
        self.machine.remove(&path)?;
        let word = shell_word(name);
        let script =
            format!("git clone --quiet --no-hardlinks origin.git {word}\ngit -C {word} remote remove origin");
        self.machine.git(&self.root, &script).await?;
        Ok(path)
    }

    /// Returns the tree with the current files of a clone.
    pub(crate) async fn record_tree(&self, name: &str) -> Result<String, Failure> {
        let script = format!(
            "export {} GIT_INDEX_FILE={}\ngit read-tree HEAD\ncd {}\n\
             git add --all -- . {NEVER_CHANGED}\ngit write-tree",
            self.variables(name),
            self.word("index"),
            shell_word(name)
        );
        self.machine.git(&self.root, &script).await
    }

    /// Writes the difference of two trees to a file.
    pub(crate) async fn write_patch(&self, before: &str, after: &str, file: &Path) -> Result<(), Failure> {
        let script = format!(
            "git --git-dir=origin.git diff-tree -r --patch --binary --full-index --no-renames --no-ext-diff \
             --no-textconv {before} {after} >{}",
            shell_word(&file.display().to_string())
        );
        // git does not report why, for example that the disk is full.
        let unwritten =
            |failure: Failure| Failure::failed(format!("cannot write {}: {failure}", file.display()));
        self.machine.git(&self.root, &script).await.map(drop).map_err(unwritten)
    }

    /// Applies a patch to a clone. An empty one changes nothing.
    pub(crate) async fn apply_patch(&self, name: &str, file: &Path) -> Result<(), Failure> {
        let file = shell_word(&file.display().to_string());
        let script = format!("cd {}\n[ ! -s {file} ] || git apply {file}", shell_word(name));
        self.machine.git(&self.root, &script).await.map(drop)
    }

    /// Applies a patch that is a text.
    pub(crate) async fn apply_text(&self, name: &str, patch: &str) -> Result<(), Failure> {
        let file = self.path("text.patch");
        self.machine.process_env().write_private(&file, patch)?;
        self.apply_patch(name, &file).await
    }

    /// Restores files of a clone from the base.
    pub(crate) async fn restore(&self, name: &str, paths: &[String]) -> Result<(), Failure> {
        if paths.is_empty() {
            return Ok(());
        }
        let words: Vec<String> = paths.iter().map(|path| shell_word(path)).collect();
        let cleared: String = words.iter().map(|word| format!("clear_path {word}\n")).collect();
        let (variables, name, words) = (self.variables(name), shell_word(name), words.join(" "));
        let script = format!(
            "{CLEAR_PATH}export {variables}\ncd {name}\n{cleared}git --literal-pathspecs checkout --quiet main -- {words}"
        );
        self.machine.git(&self.root, &script).await.map(drop)
    }

    /// Writes hidden files over a clone, whatever the agent left at their paths.
    pub(crate) async fn copy_hidden(&self, name: &str, from: &Path) -> Result<(), Failure> {
        let (files, clone) = (shell_word(&from.display().to_string()), self.word(name));
        let script = format!(
            "{CLEAR_PATH}cd {files}\nfind . ! -type d -print | while IFS= read -r path; do\n\
             (cd {clone} && clear_path \"$path\")\ndone"
        );
        self.machine.git(&self.root, &script).await?;
        self.copy(from, &self.path(name)).await
    }

    /// Applies a hidden patch to a clone. Its files are restored from the base before, because the agent may have changed them.
    pub(crate) async fn apply_hidden(&self, name: &str, patch: &str) -> Result<(), Failure> {
        let file = self.path("hidden.patch");
        self.machine.process_env().write_private(&file, patch)?;
        let script = format!(
            "{CLEAR_PATH}export {}\ncd {}\n\
             git apply --numstat -z {} | tr '\\0' '\\n' | cut -f3- | while IFS= read -r path; do\n\
             clear_path \"$path\"\n\
             if git cat-file -e \"main:$path\" 2>/dev/null; then\n\
             git --literal-pathspecs checkout --quiet main -- \"$path\"\nfi\ndone",
            self.variables(name),
            shell_word(name),
            shell_word(&file.display().to_string())
        );
        self.machine.git(&self.root, &script).await?;
        self.apply_patch(name, &file).await
    }

    /// Writes the files of a directory over a clone or a directory.
    pub(crate) async fn copy(&self, from: &Path, to: &Path) -> Result<(), Failure> {
        let script = "cp -Rp \"$FROM/.\" \"$TO/\"";
        self.machine.run_trusted(&self.root, script, &[("FROM", from), ("TO", to)]).await
    }

    /// Applies a change of the suite to a clone.
    pub(crate) async fn apply_change(&self, name: &str, change: &GoldChange) -> Result<(), Failure> {
        let clone = self.path(name);
        for path in &change.delete {
            self.machine.run_trusted(&clone, "rm -rf -- \"$FILE\"", &[("FILE", Path::new(path))]).await?;
        }
        if let Some(files) = &change.files {
            self.copy(files, &clone).await?;
        }
        if let Some(patch) = &change.patch {
            self.apply_text(name, patch).await?;
        }
        if let Some(script) = &change.script {
            self.machine.run_trusted(&clone, "sh \"$SCRIPT\"", &[("SCRIPT", script)]).await?;
        }
        Ok(())
    }
}
