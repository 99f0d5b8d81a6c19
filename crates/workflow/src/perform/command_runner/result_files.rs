//! Files with the results of a command, in its clone.

use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironmentExt as _, FileKind};
use pintle_evidence::results::{ResultsFormat, TestRun};

use super::{CommandRunner, MAX_RESULTS, results_with_problem};

/// Start of a report that is a directory of each module.
const EVERY_MODULE: &str = "**/";

/// Maximum depth of the directory of a module.
const MAX_DEPTH: usize = 6;

/// Maximum number of directories that are searched for reports.
const MAX_DIRECTORIES: usize = 10_000;

/// Maximum number of files of a report.
const MAX_FILES: usize = 5_000;

/// Directories without modules.
const SKIPPED: [&str; 2] = [".git", "node_modules"];

/// A file with results.
#[derive(Debug)]
struct ResultFile {
    path: PathBuf,
    /// Prefix for the names of its tests, which tests of other modules do not have.
    module: String,
}

impl CommandRunner<'_> {
    /// Removes older files of a report, which do not belong to this run.
    pub(super) async fn remove_report(&self, report: &str) -> Result<(), String> {
        if !report.starts_with(EVERY_MODULE) {
            let path = self.workspace.working_directory().join(report);
            let Some(directory) = self.resolve_inside(path.parent().unwrap_or(&path), report).await? else {
                return Ok(());
            };
            // Removes a link itself, not its target.
            let path = directory.join(path.file_name().unwrap_or_default());
            match self.open.environment().remove(&path).await {
                Ok(()) | Err(EnvError::NotFound { .. }) => return Ok(()),
                Err(EnvError::IsADirectory { .. }) => {}
                Err(error) => return Err(format!("an older `{report}` cannot be removed: {error}")),
            }
        }
        for file in self.find_result_files(report).await? {
            let removed = self.open.environment().remove(&file.path).await;
            removed.map_err(|error| format!("an older `{report}` cannot be removed: {error}"))?;
        }
        Ok(())
    }

    /// Parses the files of a report.
    pub(super) async fn read_report(&self, format: ResultsFormat, report: &str) -> TestRun {
        match self.read_result_files(format, report).await {
            Ok(run) => run,
            Err(problem) => results_with_problem(&problem),
        }
    }

    async fn read_result_files(&self, format: ResultsFormat, report: &str) -> Result<TestRun, String> {
        let files = self.find_result_files(report).await?;
        if files.is_empty() {
            return Err(format!("`{report}` was not written"));
        }
        let environment = self.open.environment();
        let (mut results, mut bytes_left) = (TestRun::default(), MAX_RESULTS);
        for file in files {
            // The file may be a link.
            let Some(path) = self.resolve_inside(&file.path, report).await? else { continue };
            let found = environment.metadata(&path).await.map_err(|error| error.to_string())?;
            if found.kind != FileKind::File || found.len > bytes_left {
                return Err(format!("`{report}` is no file of up to {} MiB", MAX_RESULTS >> 20));
            }
            bytes_left -= found.len;
            let bytes = environment.read(&path, None).await.map_err(|error| error.to_string())?;
            let text = self.without_root(String::from_utf8_lossy(&bytes).into_owned());
            results.merge(format.parse(&text), &file.module);
        }
        Ok(results)
    }

    /// Finds the files of a report: a file, the XML files of a directory, or the XML files of a directory of each module.
    async fn find_result_files(&self, report: &str) -> Result<Vec<ResultFile>, String> {
        if let Some(directory) = report.strip_prefix(EVERY_MODULE) {
            return self.find_in_modules(Path::new(directory)).await;
        }
        let Some(path) =
            self.resolve_inside(&self.workspace.working_directory().join(report), report).await?
        else {
            return Ok(Vec::new());
        };
        let found = self.open.environment().metadata(&path).await.map_err(|error| error.to_string())?;
        match found.kind {
            FileKind::Directory => self.list_xml_files(&path, "").await,
            FileKind::File | FileKind::Other => Ok(vec![ResultFile { path, module: String::new() }]),
        }
    }

    async fn find_in_modules(&self, directory: &Path) -> Result<Vec<ResultFile>, String> {
        let environment = self.open.environment();
        let root = self.workspace.working_directory();
        let root = environment.canonicalize(&root).await.map_err(|error| error.to_string())?;
        let (mut files, mut open, mut visited) = (Vec::new(), vec![PathBuf::new()], 0);
        while let Some(module) = open.pop() {
            visited += 1;
            if visited > MAX_DIRECTORIES {
                return Err(format!("the clone has more than {MAX_DIRECTORIES} directories"));
            }
            let entries = environment.list(&root.join(&module)).await.map_err(|error| error.to_string())?;
            let directories = entries.into_iter().filter(|entry| entry.is_dir && !entry.is_symlink);
            for entry in directories {
                let path = module.join(&entry.name);
                if path.ends_with(directory) {
                    let above = path.ancestors().nth(directory.components().count()).unwrap_or(Path::new(""));
                    let prefix = above.display().to_string();
                    let prefix = if prefix.is_empty() { prefix } else { format!("{prefix}: ") };
                    files.extend(self.list_xml_files(&root.join(&path), &prefix).await?);
                } else if path.components().count() <= MAX_DEPTH + directory.components().count()
                    && !SKIPPED.iter().any(|skipped| entry.name == Path::new(skipped))
                {
                    open.push(path);
                }
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }

    async fn list_xml_files(&self, directory: &Path, module: &str) -> Result<Vec<ResultFile>, String> {
        let entries = self.open.environment().list(directory).await.map_err(|error| error.to_string())?;
        let is_xml = |path: &Path| path.extension().is_some_and(|extension| extension == "xml");
        let files = entries.into_iter().filter(|entry| !entry.is_dir && is_xml(&entry.name));
        let files: Vec<ResultFile> = files
            .map(|entry| ResultFile { path: directory.join(&entry.name), module: module.to_owned() })
            .collect();
        if files.len() > MAX_FILES {
            return Err(format!("the report has more than {MAX_FILES} files"));
        }
        Ok(files)
    }

    /// Returns the canonical form of a path in the workspace, or `None` if it does not exist.
    async fn resolve_inside(&self, path: &Path, name: &str) -> Result<Option<PathBuf>, String> {
        let environment = self.open.environment();
        if !environment.file_exists(path).await.map_err(|error| error.to_string())? {
            return Ok(None);
        }
        let real =
            async |path: &Path| environment.canonicalize(path).await.map_err(|error| error.to_string());
        let (root, path) = (real(&self.workspace.root).await?, real(path).await?);
        if path.starts_with(&root) {
            Ok(Some(path))
        } else {
            Err(format!("`{name}` leads out of the worktree"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use pintle_env::{ExecutionEnvironment as _, LocalEnvironment};
    use pintle_store::{MemoryStore, SessionId, SessionStore as _};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::session_runner::{OpenWorkspace, Workspace};

    #[tokio::test]
    async fn reports_of_all_modules_are_read_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let environment = LocalEnvironment::with_host_env(&root, std::env::vars_os()).unwrap();
        let suite = format!(
            "<testsuite name=\"s\" tests=\"1\"><testcase classname=\"{}/Sums\" name=\"adds\"/></testsuite>",
            root.display()
        );
        for path in [
            "target/surefire-reports/TEST-a.xml",
            "core/target/surefire-reports/TEST-a.xml",
            "core/target/surefire-reports/a.txt",
            "core/other/target/classes/b.xml",
            "node_modules/x/target/surefire-reports/TEST-c.xml",
            "reports/a.xml",
        ] {
            environment.write(&root.join(path), suite.as_bytes()).await.unwrap();
        }
        environment.create_symlink(&root.join("link"), Path::new("core")).await.unwrap();
        let (store, cancel) = (MemoryStore::new(), CancellationToken::new());
        let blobs = store.blobs(&SessionId::new("t"));
        let workspace = Workspace::new(&root, BTreeMap::new());
        let open = OpenWorkspace::new(Arc::new(environment), ());
        let runner = CommandRunner::new(&workspace, open, blobs.as_ref(), &cancel);
        let names = async |report: &str| {
            let run = runner.read_report(ResultsFormat::Junit, report).await;
            (run.tests.into_keys().collect::<Vec<_>>(), run.problems)
        };
        for (report, tests) in [
            ("**/target/surefire-reports", &["Sums::adds", "core: Sums::adds"][..]),
            ("reports", &["Sums::adds"][..]),
            ("reports/a.xml", &["Sums::adds"][..]),
        ] {
            let tests: Vec<String> = tests.iter().map(|test| (*test).to_owned()).collect();
            assert_eq!(names(report).await, (tests, vec![]), "{report}");
            runner.remove_report(report).await.unwrap();
            if report == "reports" {
                runner.open.environment().write(&root.join("reports/a.xml"), suite.as_bytes()).await.unwrap();
            }
            let missing = format!("`{report}` was not written");
            if report != "reports" {
                assert_eq!(names(report).await, (vec![], vec![missing]), "{report}");
            }
        }
    }
}
