//! The repository of a task.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_env::{EnvError, ExecutionEnvironment, ExecutionEnvironmentExt as _};
use pintle_evidence::command_run::BlobReference;
use pintle_evidence::diff::{ChangedFile, Diff};
use pintle_evidence::names::list_names;
use pintle_evidence::repository_index::{IndexPlan, RepositoryIndex, TreeFile};
use pintle_store::Blobs;

use super::{
    REPOSITORY, RepositoryError, UserRepository, apply_to_index, explain_failure, names,
    nested_repository_error, raw, remove_directory, repositories, shared_objects, template,
};
use crate::git::{GitError, RepositoryGit, output_text};

/// Maximum size of a candidate's new and changed files, in bytes.
const MAX_CHANGED_BYTES: u64 = 64 << 20;

/// Reference to the start commit of a task, in its repository.
const BASE: &str = "refs/pintle/base";

/// Number of digits in the id of a commit with SHA-256.
const SHA256_DIGITS: usize = 64;

/// Directories that tools and Pintle leave behind, links to such directories, and files in them. They are not part of a change.
const EXCLUDED: &str =
    "__pycache__\n*.pyc\n.pytest_cache\n.mypy_cache\n.ruff_cache\n/target\nnode_modules\n/.pintle-output\n";

/// Directory of build output, which may contain other files of a project as well.
const TARGET: &str = "target";

/// File that marks a directory whose contents can be rebuilt. Cargo marks its target directory.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// Entries that cargo creates in its target directory: directories, hidden files and the tag. Git does not read excluded
/// directories, which have many files.
const CACHE_ENTRIES: [&str; 3] = ["*/", ".*", CACHE_TAG];

/// Maximum number of reported paths that a change leaves out.
const MAX_DROPPED: usize = 50;

/// The repository of a task.
#[derive(Clone, Debug)]
pub struct TaskRepository {
    machine: Arc<dyn ExecutionEnvironment>,
    directory: PathBuf,
    /// Directory of the task in the repository. Empty for its root.
    subdirectory: String,
}

impl TaskRepository {
    /// Opens the repository of a task below `directory`, and creates it unless it is there. It reads the objects of the
    /// user's repository in place. Must not run concurrently for the same directory.
    ///
    /// With a `name`, a reference in the user's repository protects the start commit from garbage collection until
    /// [`UserRepository::remove_snapshot`].
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`] if the user's repository no longer has the commit.
    pub async fn open(
        machine: Arc<dyn ExecutionEnvironment>,
        directory: &Path,
        source: &str,
        base: &str,
        name: Option<&str>,
    ) -> Result<Self, RepositoryError> {
        let (directory, subdirectory) = (directory.join("git"), String::new());
        let repository = Self { machine, directory, subdirectory };
        let machine = &repository.machine;
        let git = repository.git();
        if machine.file_exists(&repository.directory.join(shared_objects::ALTERNATES)).await? {
            match git.run(&["rev-parse", "--verify", "--quiet", BASE]).await {
                Ok(found) if found == base => return Ok(repository),
                Ok(_) | Err(GitError::Failed { .. }) => {}
                Err(error @ GitError::Run(_)) => return Err(error.into()),
            }
        }
        let source = Path::new(source);
        if !machine.file_exists(source).await? {
            return Err(RepositoryError::Unusable(format!("{} does not exist any more", source.display())));
        }
        if let Some(name) = name {
            UserRepository::keep(machine, source, base, name).await?;
        }
        // A killed process may have left an incomplete repository with stale locks.
        remove_directory(machine.as_ref(), &repository.directory).await?;
        machine.create_directory(&repository.directory).await?;
        let mut init = vec!["init", "--quiet", "--bare", "--template="];
        init.extend(object_format(base));
        git.run(&init).await?;
        machine.write(&repository.directory.join("info/exclude"), EXCLUDED.as_bytes()).await?;
        shared_objects::share(machine, source, &repository.directory).await?;
        let template = repository.template();
        template::create(machine.as_ref(), &git, (&repository.directory, &template), base).await?;
        // The reference is created last: it marks the repository as complete.
        git.run(&["update-ref", BASE, base]).await?;
        Ok(repository)
    }

    /// Returns the object directories of the user that the clones of the task below `directory` read.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Files`].
    pub(crate) async fn object_directories(
        machine: &dyn ExecutionEnvironment,
        directory: &Path,
    ) -> Result<Vec<PathBuf>, RepositoryError> {
        shared_objects::directories(machine, &directory.join("git")).await
    }

    /// Returns the directory of the template of working trees, which may not exist.
    fn template(&self) -> PathBuf {
        self.directory.with_file_name("template")
    }

    /// Sets the directory of the task in the repository. What tools leave behind there is not part of a change.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Files`].
    pub async fn in_directory(mut self, directory: &str) -> Result<Self, RepositoryError> {
        if !directory.is_empty() {
            directory.clone_into(&mut self.subdirectory);
            let exclude = self.directory.join("info/exclude");
            self.machine.write(&exclude, self.excluded().as_bytes()).await?;
        }
        Ok(self)
    }

    /// Returns the patterns of files that are not part of a change.
    fn excluded(&self) -> String {
        if self.subdirectory.is_empty() {
            return EXCLUDED.to_owned();
        }
        let below = escape_pattern(&self.subdirectory);
        format!("{EXCLUDED}/{below}/{TARGET}\n/{below}/.pintle-output\n")
    }

    fn git(&self) -> RepositoryGit {
        RepositoryGit::for_task(&self.machine, &self.directory)
    }

    /// Creates a temporary directory, which is removed with the repository if this process is killed.
    fn scratch(&self) -> Result<tempfile::TempDir, RepositoryError> {
        Ok(tempfile::tempdir_in(&self.directory)?)
    }

    /// Returns remarks about missing parts of the base, for the report.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub async fn remarks(&self) -> Result<Vec<String>, RepositoryError> {
        let listing = self.git().run(&["ls-tree", "-r", "-z", BASE]).await?;
        let entries = listing.split('\0').filter_map(|entry| entry.split_once('\t'));
        let submodules = submodules(&listing);
        let mut remarks = Vec::new();
        if !submodules.is_empty() {
            let named = list_names(&submodules);
            remarks.push(format!("submodules are empty in the clones of a task: {named}"));
        }
        let mut pointers = 0_usize;
        for (_, path) in entries.filter(|(_, path)| path.rsplit('/').next() == Some(".gitattributes")) {
            let text = self.git().run(&["cat-file", "blob", &format!("{BASE}:{path}")]).await?;
            pointers += text.lines().filter(|line| line.contains("filter=lfs")).count();
        }
        if pointers > 0 {
            remarks.push("files of LFS are pointers in the clones of a task".to_owned());
        }
        Ok(remarks)
    }

    /// Returns the commit from which the task starts.
    #[must_use]
    pub fn base(&self) -> &str {
        BASE
    }

    /// Returns the commit that results from a patch on another commit. The same patch gives the same commit.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unfit`] if it cannot be applied.
    pub async fn commit_patch(&self, from: &str, patch: &[u8]) -> Result<String, RepositoryError> {
        let scratch = self.scratch()?;
        let git = self.git().with_index(&scratch.path().join("index"));
        git.run(&["read-tree", from]).await?;
        let unfit = |error: &GitError| RepositoryError::Unfit(error.to_string());
        apply_to_index(&git, patch).await.map_err(|error| explain_failure(error, unfit))?;
        let tree = git.run(&["write-tree"]).await?;
        Ok(git.run(&["commit-tree", &tree, "-p", from, "-m", "Change of a task"]).await?)
    }

    /// Returns the paths of the files of a commit.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub(crate) async fn list_files(&self, commit: &str) -> Result<Vec<String>, RepositoryError> {
        let listing = self.git().bytes(&["ls-tree", "-r", "-z", "--name-only", commit], None).await?;
        Ok(names(&listing).map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Returns the id of the tree of a commit.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub(crate) async fn tree_id(&self, commit: &str) -> Result<String, RepositoryError> {
        Ok(self.git().run(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).await?)
    }

    /// Returns the files of a commit or a tree, without links and nested repositories.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub(crate) async fn list_tree(&self, tree: &str) -> Result<Vec<TreeFile>, RepositoryError> {
        let listing = self.git().bytes(&["ls-tree", "-r", "-l", "-z", tree], None).await?;
        Ok(names(&listing).filter_map(|entry| parse_file(&String::from_utf8_lossy(entry))).collect())
    }

    /// Returns the texts of files, in their order. `None` for a file that is no UTF-8. All texts are in memory at once.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub(crate) async fn read_files(
        &self,
        files: &[&TreeFile],
    ) -> Result<Vec<Option<String>>, RepositoryError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = files.iter().map(|file| format!("{}\n", file.blob)).collect();
        Ok(parse_batch(&self.git().bytes(&["cat-file", "--batch"], Some(input.as_bytes())).await?))
    }

    /// Returns the index of a tree.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub(crate) async fn index_tree(&self, tree: &str) -> Result<RepositoryIndex, RepositoryError> {
        let plan = IndexPlan::new(self.list_tree(tree).await?)
            .map_err(|error| RepositoryError::Unusable(format!("no index: {error}")))?;
        let needed: Vec<&TreeFile> = plan.needed().collect();
        let texts = needed.iter().zip(self.read_files(&needed).await?);
        let texts = texts.filter_map(|(file, text)| Some((file.path.clone(), text?))).collect();
        Ok(plan.build(&texts))
    }

    /// Returns the patch between two commits, for these files only.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub(crate) async fn patch_of_files(
        &self,
        from: &str,
        to: &str,
        files: &[String],
    ) -> Result<Vec<u8>, RepositoryError> {
        let paths: Vec<String> = files.iter().map(|file| format!(":(literal){file}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let arguments = [
            &pintle_env::Git::DIFF[..],
            &["--patch", "--binary", "--full-index", from, to, "--"],
            paths.as_slice(),
        ];
        Ok(self.git().bytes(&arguments.concat(), None).await?)
    }

    /// Returns the text of a file of a commit. `None` if there is no such file, or if it is no UTF-8.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`] if git cannot be run.
    pub(crate) async fn read_text(
        &self,
        commit: &str,
        path: &str,
    ) -> Result<Option<String>, RepositoryError> {
        match self.git().bytes(&["cat-file", "blob", &format!("{commit}:{path}")], None).await {
            Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error @ GitError::Run(_)) => Err(error.into()),
        }
    }

    /// Returns a commit without these files. `commit` is its full id. The same files give the same commit.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub(crate) async fn commit_without(
        &self,
        commit: &str,
        files: &[String],
    ) -> Result<String, RepositoryError> {
        // Mode 0 removes an entry.
        let none = "0".repeat(commit.len());
        let entries: String = files.iter().map(|path| format!("0 {none}\t{path}\0")).collect();
        self.commit_entries(commit, &entries).await
    }

    /// Returns a commit in which files have these texts. The same texts give the same commit.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Git`].
    pub(crate) async fn commit_texts(
        &self,
        commit: &str,
        texts: &[(String, String)],
    ) -> Result<String, RepositoryError> {
        let mut entries = String::new();
        for (path, text) in texts {
            let blob = self.git().bytes(&["hash-object", "-w", "--stdin"], Some(text.as_bytes())).await?;
            entries.push_str(&format!("100644 {}\t{path}\0", String::from_utf8_lossy(&blob).trim()));
        }
        self.commit_entries(commit, &entries).await
    }

    /// Returns a commit with these entries of its index.
    async fn commit_entries(&self, commit: &str, entries: &str) -> Result<String, RepositoryError> {
        if entries.is_empty() {
            return Ok(commit.to_owned());
        }
        let scratch = self.scratch()?;
        let git = self.git().with_index(&scratch.path().join("index"));
        let update = ["update-index", "-z", "--index-info"];
        let commands: [&[&str]; 3] = [&["read-tree", commit], &update, &["write-tree"]];
        let tree = output_text(&git.run_all(&commands, Some(entries.as_bytes())).await?);
        Ok(git.run(&["commit-tree", &tree, "-p", commit, "-m", "Change of a task"]).await?)
    }

    /// Creates a new clone of a commit at `root`, with fresh time stamps. It reads the objects of the user's repository in
    /// place, and has the objects of the task that belong to the commit. Removes the previous contents.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`].
    pub async fn clone_to(&self, root: &Path, commit: &str) -> Result<(), RepositoryError> {
        let machine = self.machine.as_ref();
        remove_directory(machine, root).await?;
        machine.create_directory(root).await?;
        let (base, commit) = self.resolve(commit).await?;
        // The clone is new, so its settings can be trusted.
        let directory = root.join(".git");
        let git = RepositoryGit::for_task(&self.machine, &directory).with_work_tree(root);
        let mut init = vec!["init", "--quiet", "--template="];
        init.extend(object_format(&base));
        git.run(&init).await?;
        shared_objects::share_same(machine, &self.directory, &directory).await?;
        if commit != base {
            let pack = directory.join("objects/pack/pack").display().to_string();
            let wanted = format!("{commit}\n^{base}\n");
            self.git().bytes(&["pack-objects", "--quiet", "--revs", &pack], Some(wanted.as_bytes())).await?;
        }
        template::fill(machine, &git, (&self.template(), root), (&base, &commit)).await?;
        machine.write(&root.join(".git/info/exclude"), self.excluded().as_bytes()).await?;
        Ok(())
    }

    /// Returns the ids of the start commit and of another commit.
    async fn resolve(&self, commit: &str) -> Result<(String, String), RepositoryError> {
        // The dashes make git fail for a name that is not a commit.
        let found = self.git().run(&["rev-parse", BASE, &format!("{commit}^{{commit}}"), "--"]).await?;
        match found.lines().collect::<Vec<_>>().as_slice() {
            [base, commit, ..] => Ok(((*base).to_owned(), (*commit).to_owned())),
            _ => Err(RepositoryError::Unusable(format!("git found no commit for `{commit}`"))),
        }
    }

    /// Applies a patch to the files of a clone that no session has used.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unfit`] if it cannot be applied.
    pub async fn apply_to(&self, root: &Path, from: &str, patch: &[u8]) -> Result<(), RepositoryError> {
        let commit = self.commit_patch(from, patch).await?;
        let scratch = self.scratch()?;
        let git = self.git().with_work_tree(root).with_index(&scratch.path().join("index"));
        git.run(&["read-tree", from]).await?;
        git.run(&["update-index", "-q", "--refresh"]).await?;
        git.run(&["read-tree", "-m", "-u", from, &commit]).await?;
        Ok(())
    }

    /// Reads the files below `root`, and returns their diff from a commit. Stores the patch in `blobs`.
    ///
    /// # Errors
    ///
    /// [`RepositoryError::Unfit`] for changes that cannot be judged: above 64 MiB, with files that cannot be read, or with a
    /// nested repository.
    pub async fn diff(&self, root: &Path, from: &str, blobs: &dyn Blobs) -> Result<Diff, RepositoryError> {
        let tree = self.tree(root, from).await?;
        let files = self.changed(from, &tree).await?;
        let arguments =
            [&pintle_env::Git::DIFF[..], &["--patch", "--binary", "--full-index", from, &tree]].concat();
        let patch = self.git().bytes(&arguments, None).await?;
        let (bytes, hash) = (patch.len() as u64, blobs.put(patch).await?);
        let dropped = self.dropped(root, from).await?;
        Ok(Diff { patch: BlobReference { hash: hash.to_string(), bytes }, files, dropped })
    }

    /// Returns the paths below `root` that a change leaves out although the project does not ignore them: new files below
    /// `target/`, and submodules with files. Build output of cargo is left out without a report.
    async fn dropped(&self, root: &Path, from: &str) -> Result<Vec<String>, RepositoryError> {
        let scratch = self.scratch()?;
        let git = self.git().with_work_tree(root).with_index(&scratch.path().join("index"));
        git.run(&["read-tree", from]).await?;
        // The excludes of this repository do not belong to the project.
        let mut arguments = vec!["ls-files", "-z", "--others", "--exclude-per-directory=.gitignore"];
        let target = Path::new(&self.subdirectory).join(TARGET).display().to_string();
        let entries = CACHE_ENTRIES.map(|entry| format!("--exclude=/{}/{entry}", escape_pattern(&target)));
        if self.machine.file_exists(&root.join(&target).join(CACHE_TAG)).await.unwrap_or(false) {
            arguments.extend(entries.iter().map(String::as_str));
        }
        let target = format!(":(literal){target}");
        arguments.extend(["--", &target]);
        let listing = git.bytes(&arguments, None).await?;
        let new = names(&listing).map(|name| String::from_utf8_lossy(name).into_owned());
        let mut dropped: Vec<String> = new.take(MAX_DROPPED).collect();
        for submodule in submodules(&git.run(&["ls-tree", "-r", "-z", from]).await?) {
            let has_files = match self.machine.list(&root.join(&submodule)).await {
                Ok(entries) => !entries.is_empty(),
                Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => false,
                Err(_) => true,
            };
            if has_files {
                dropped.push(format!("{submodule}/"));
            }
        }
        Ok(dropped)
    }

    /// Reads the files below `root`, and returns the files that differ from a commit.
    ///
    /// # Errors
    ///
    /// As for [`diff`](Self::diff).
    pub async fn changes(&self, root: &Path, from: &str) -> Result<Vec<ChangedFile>, RepositoryError> {
        let tree = self.tree(root, from).await?;
        self.changed(from, &tree).await
    }

    /// Reads the files below `root` into a tree.
    async fn tree(&self, root: &Path, from: &str) -> Result<String, RepositoryError> {
        let scratch = self.scratch()?;
        let git = self.git().with_work_tree(root).with_index(&scratch.path().join("index"));
        // The new index has no time stamps, so git reads each file.
        let list = ["ls-files", "-z", "--others", "--modified", "--exclude-standard"];
        let listing = git.run_all(&[&["read-tree", from], &list], None).await?;
        if let Some(path) = repositories(&listing).next() {
            // Git cannot add a repository without a commit.
            return Err(nested_repository_error(path.trim_end_matches('/')));
        }
        self.check_size(&listing, root).await?;
        let unfit = |error: &GitError| RepositoryError::Unfit(format!("its files cannot be read: {error}"));
        let tree = git.run_all(&[&["add", "--all"], &["write-tree"]], None).await;
        Ok(output_text(&tree.map_err(|error| explain_failure(error, unfit))?))
    }

    /// Returns the files that differ between two commits.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`].
    pub(crate) async fn compare(&self, from: &str, to: &str) -> Result<Vec<ChangedFile>, RepositoryError> {
        self.changed(from, to).await
    }

    async fn changed(&self, from: &str, tree: &str) -> Result<Vec<ChangedFile>, RepositoryError> {
        let arguments = [&pintle_env::Git::DIFF[..], &["--raw", "--numstat", "-z", from, tree]].concat();
        let (files, links) = raw::parse(&self.git().bytes(&arguments, None).await?)?;
        for (path, hash) in links {
            let target = self.git().run(&["cat-file", "blob", &hash]).await?;
            if raw::is_link_outside(&path, &target) {
                return Err(RepositoryError::Unfit(format!(
                    "`{path}` is a link that leads out of the repository; expected files, which can be compared"
                )));
            }
        }
        Ok(files)
    }

    /// Returns the size of a changed file, or 0 if it does not exist.
    async fn length(&self, root: &Path, name: &[u8]) -> u64 {
        use std::os::unix::ffi::OsStrExt as _;
        let path = root.join(std::ffi::OsStr::from_bytes(name));
        self.machine.metadata(&path).await.map_or(0, |found| found.len)
    }

    /// Refuses changes that would fill the repository. `listing` has the new and changed files.
    async fn check_size(&self, listing: &[u8], root: &Path) -> Result<(), RepositoryError> {
        let mut total = 0_u64;
        for name in names(listing) {
            total = total.saturating_add(self.length(root, name).await);
        }
        if total > MAX_CHANGED_BYTES {
            return Err(RepositoryError::Unfit(format!(
                "its new and changed files have {} MiB; expected at most {} MiB",
                total >> 20,
                MAX_CHANGED_BYTES >> 20
            )));
        }
        Ok(())
    }
}

/// Returns the option of `git init` for a repository with a commit like this one. Older versions of git do not have it.
fn object_format(commit: &str) -> Option<&'static str> {
    (commit.len() == SHA256_DIGITS).then_some("--object-format=sha256")
}

/// Escapes a path for a pattern of ignored files.
fn escape_pattern(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for character in path.chars() {
        if matches!(character, '\\' | '*' | '?' | '[') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Returns the submodules in output of `git ls-tree -r -z`.
fn submodules(listing: &str) -> Vec<String> {
    let entries = listing.split('\0').filter_map(|entry| entry.split_once('\t'));
    let submodules = entries.filter(|(kind, _)| kind.split(' ').next() == Some(REPOSITORY));
    submodules.map(|(_, path)| path.to_owned()).collect()
}

/// Parses an entry of `git ls-tree -r -l -z`. Returns `None` for links and nested repositories.
fn parse_file(entry: &str) -> Option<TreeFile> {
    let (properties, path) = entry.split_once('\t')?;
    let mut properties = properties.split_whitespace();
    let (mode, kind, blob) = (properties.next()?, properties.next()?, properties.next()?);
    let is_file = kind == "blob" && mode.starts_with("100");
    let bytes = properties.next()?.parse().ok()?;
    is_file.then(|| TreeFile { path: path.to_owned(), bytes, blob: blob.to_owned() })
}

/// Parses the output of `git cat-file --batch`: the content of each object, in order. Content that is no UTF-8 is `None`.
fn parse_batch(mut output: &[u8]) -> Vec<Option<String>> {
    let mut texts = Vec::new();
    while let Some(end) = output.iter().position(|byte| *byte == b'\n') {
        let head = String::from_utf8_lossy(output.get(..end).unwrap_or_default()).into_owned();
        let rest = output.get(end + 1..).unwrap_or_default();
        // `<id> missing` has no content.
        let Some(size) = head.rsplit(' ').next().and_then(|size| size.parse::<usize>().ok()) else {
            texts.push(None);
            output = rest;
            continue;
        };
        let content = rest.get(..size).unwrap_or_default();
        texts.push(String::from_utf8(content.to_vec()).ok());
        output = rest.get(size.saturating_add(1)..).unwrap_or_default();
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_and_objects_of_git_are_parsed() {
        let file = parse_file("100644 blob 1a2b     120\tsrc/a b.rs").unwrap();
        assert_eq!((file.path.as_str(), file.bytes, file.blob.as_str()), ("src/a b.rs", 120, "1a2b"));
        assert_eq!(parse_file("120000 blob 1a2b       3\tlink"), None);
        assert_eq!(parse_file("160000 commit 1a2b       -\tmodule"), None);
        let output = b"1a blob 4\na\nb\n\n2b missing\n3c blob 1\n\xff\n4d blob 0\n\n";
        let texts = parse_batch(output);
        assert_eq!(texts, [Some("a\nb\n".to_owned()), None, None, Some(String::new())]);
        assert!(parse_batch(b"").is_empty());
    }
}
