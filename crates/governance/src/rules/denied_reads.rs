//! Files that rules forbid reading, for a sandbox that hides them from commands.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pintle_env::{EntryKind, EnvError, ExecutionEnvironment, ExecutionEnvironmentExt as _, WalkRequest};
use pintle_tools::gate::Permission;

use super::links::joined;
use super::{Rule, Rules};

/// Limits of the search for files that match patterns with wildcards.
const MAX_TIME: Duration = Duration::from_secs(2);
const MAX_IGNORED_ENTRIES: usize = 200_000;

/// Maximum number of paths. A sandbox needs a mount for each.
const MAX_PATHS: usize = 256;

/// Files and directories that rules forbid reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeniedReads {
    /// Absolute paths. They may be missing or be links. A rule for all files below a directory yields the directory.
    pub paths: BTreeSet<PathBuf>,
    /// Rules with files that are not among `paths`, each with the reason.
    pub incomplete: Vec<(String, String)>,
}

impl Rules {
    /// Finds the existing files that these rules forbid reading, by `@read` or by a tool that reads files. The search
    /// ends after 256 files or two seconds; [`incomplete`](DeniedReads::incomplete) then names the rules. A rule for the
    /// working directory as a whole, or for a directory above it, finds nothing.
    ///
    /// # Errors
    ///
    /// Only errors of the environment as a whole, such as [`EnvError::EnvironmentLost`].
    pub async fn denied_reads(&self, env: &dyn ExecutionEnvironment) -> Result<DeniedReads, EnvError> {
        let mut found = DeniedReads::default();
        let working_directory = env.canonicalize(env.working_directory()).await;
        let working_directory = working_directory.unwrap_or_else(|_| env.working_directory().to_path_buf());
        let deadline = Instant::now() + MAX_TIME;
        let mut searched: Vec<&Rule> = Vec::new();
        for rule in self
            .with_permission(Permission::Deny)
            .map(|entry| &entry.rule)
            .filter(|rule| rule.is_about_reads())
        {
            let Some(path) = rule.path() else { continue };
            if !rule.matches_path(path) {
                searched.push(rule);
            } else if working_directory.starts_with(path) {
                found.leave_out(rule, "it covers the whole working directory");
            } else if covers_below(rule, path)
                || !env.metadata(path).await.is_ok_and(|metadata| metadata.is_dir())
            {
                found.add(rule, path.to_path_buf());
            }
        }
        let bases: BTreeSet<&Path> = searched.iter().filter_map(|rule| rule.path()).collect();
        // A search below a directory includes those below its subdirectories.
        let is_outermost = |base: &&&Path| !base.ancestors().skip(1).any(|above| bases.contains(above));
        for base in bases.iter().filter(is_outermost) {
            let rules: Vec<&Rule> = searched
                .iter()
                .copied()
                .filter(|rule| rule.path().is_some_and(|path| path.starts_with(base)))
                .collect();
            Search { env, base, rules, deadline }.run(&mut found).await?;
        }
        Ok(found)
    }

    /// Returns whether a rule forbids reading a file at this absolute path, by `@read` or by a tool that reads files.
    /// Links are not followed.
    #[must_use]
    pub fn denies_reading(&self, path: &Path) -> bool {
        let mut rules = self.with_permission(Permission::Deny).map(|entry| &entry.rule);
        rules.any(|rule| rule.is_about_reads() && rule.matches_path(path))
    }
}

/// Search for the files below a directory that rules with wildcards name.
struct Search<'a> {
    env: &'a dyn ExecutionEnvironment,
    base: &'a Path,
    rules: Vec<&'a Rule>,
    deadline: Instant,
}

impl Search<'_> {
    async fn run(&self, found: &mut DeniedReads) -> Result<(), EnvError> {
        let request = WalkRequest::new(self.base)
            .with_time_limit(self.deadline.saturating_duration_since(Instant::now()));
        let walked = match self.env.walk(&request).await {
            Ok(walked) => walked,
            Err(lost) if lost.is_environment_failure() => return Err(lost),
            Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => return Ok(()),
            Err(error) => {
                self.leave_out(found, self.base, &error.to_string());
                return Ok(());
            }
        };
        if walked.reached.is_some() {
            self.leave_out(
                found,
                self.base,
                &format!("{} has too many files to search", self.base.display()),
            );
        }
        for entry in &walked.entries {
            self.add(found, joined(self.base, &entry.path), entry.kind == EntryKind::Directory);
        }
        let mut listed = 0_usize;
        for ignored in &walked.ignored {
            let directory = joined(self.base, ignored);
            let is_directory = self.env.metadata(&directory).await.is_ok_and(|metadata| metadata.is_dir());
            self.add(found, directory.clone(), is_directory);
            let is_covered = directory.ancestors().any(|path| found.paths.contains(path));
            let may_match = self.rules.iter().any(|rule| rule.may_match_below(&directory));
            if !is_directory || is_covered || !may_match {
                continue;
            }
            if Instant::now() >= self.deadline {
                let reason = format!("{} has too many files to search", self.base.display());
                self.leave_out(found, &directory, &reason);
                continue;
            }
            let entries = match self.env.list_directory(&directory, usize::MAX).await {
                Ok(entries) if listed.saturating_add(entries.len()) <= MAX_IGNORED_ENTRIES => entries,
                Ok(_) | Err(EnvError::TooManyEntries { .. }) => {
                    let reason = format!("{} has too many files to search", directory.display());
                    self.leave_out(found, &directory, &reason);
                    continue;
                }
                Err(lost) if lost.is_environment_failure() => return Err(lost),
                // A file, one that was removed, or a directory that commands cannot read either.
                Err(_) => continue,
            };
            listed = listed.saturating_add(entries.len());
            for entry in entries {
                self.add(found, joined(&directory, &entry.name), entry.is_dir);
            }
        }
        Ok(())
    }

    /// Adds a path that a rule matches. Hiding a directory hides all files below it, so the rule must match these as
    /// well.
    fn add(&self, found: &mut DeniedReads, path: PathBuf, is_directory: bool) {
        let matches =
            |rule: &&&Rule| rule.matches_path(&path) && (!is_directory || covers_below(rule, &path));
        if let Some(rule) = self.rules.iter().find(matches) {
            found.add(rule, path);
        }
    }

    fn leave_out(&self, found: &mut DeniedReads, directory: &Path, reason: &str) {
        for rule in self.rules.iter().filter(|rule| rule.may_match_below(directory)) {
            found.leave_out(rule, reason);
        }
    }
}

/// Returns whether a rule matches everything below a directory.
fn covers_below(rule: &Rule, directory: &Path) -> bool {
    rule.matches_path(&directory.join("any/file"))
}

impl DeniedReads {
    fn add(&mut self, rule: &Rule, path: PathBuf) {
        // One mount hides everything below a directory.
        if path.ancestors().any(|above| self.paths.contains(above)) {
            return;
        }
        if self.paths.len() >= MAX_PATHS {
            return self.leave_out(rule, &format!("more than {MAX_PATHS} files match"));
        }
        self.paths.insert(path);
    }

    fn leave_out(&mut self, rule: &Rule, reason: &str) {
        let rule = rule.to_string();
        if !self.incomplete.iter().any(|(named, _)| *named == rule) {
            self.incomplete.push((rule, reason.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the tests write the files that rules name")]

    use pintle_env::LocalEnvironment;

    use super::*;

    async fn denied(root: &Path, denials: &[&str]) -> DeniedReads {
        let mut rules = Rules::new();
        for denial in denials {
            rules.add(Permission::Deny, Rule::parse(denial, root).unwrap(), "test");
        }
        rules.add(Permission::Ask, Rule::parse("@read(asked)", root).unwrap(), "test");
        let env = LocalEnvironment::builder(root).build().unwrap();
        rules.denied_reads(&env).await.unwrap()
    }

    #[tokio::test]
    async fn rules_for_reads_give_the_files_that_they_match() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for file in [
            "asked",
            "kept",
            ".env",
            "a/.env",
            "a/b.pem",
            "ignored/deep/.env",
            "ignored/x",
            "keys/one",
            "keys/two",
        ] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        std::fs::write(root.join(".gitignore"), "/ignored\n/.env\n").unwrap();
        std::fs::create_dir(root.join(".git")).unwrap();
        for (denials, expected) in [
            (&["@read(**/.env)"][..], &[".env", "a/.env", "ignored/deep/.env"][..]),
            (&["@read(.env)", "@read(**/*.pem)"], &[".env", "a/b.pem"]),
            (&["@read(keys/**)", "@read(**/one)"], &["keys"]),
            (&["@read(keys/*)"], &["keys/one", "keys/two"]),
            (&["@read(a*)", "@read(*/deep)"], &["asked"]),
            (&["@read(k*/**)", "@read(ignored/*)"], &["ignored/x", "kept", "keys"]),
            (&["@read(keys)", "@read(.env)"], &[".env"]),
            (&["@read(keys/)"], &["keys"]),
            (&["read_file(missing)"], &["missing"]),
            (&["grep(.env)", "*(path:kept)"], &[".env", "kept"]),
            (
                &[
                    "@write(.env)",
                    "edit_file(.env)",
                    "list_dir(keys)",
                    "glob(**)",
                    "read_file",
                    "shell(cat *)",
                ],
                &[],
            ),
        ] {
            let found = denied(&root, denials).await;
            let expected: BTreeSet<PathBuf> = expected.iter().map(|path| root.join(path)).collect();
            assert_eq!(found.paths, expected, "{denials:?}");
            assert_eq!(found.incomplete, [], "{denials:?}");
        }
    }

    #[test]
    fn a_rule_for_reads_denies_files_that_it_matches_whether_they_exist_or_not() {
        let mut rules = Rules::new();
        for denial in ["@read(**/.env)", "@read(keys/**)", "@write(written)", "shell(cat *)"] {
            rules.add(Permission::Deny, Rule::parse(denial, Path::new("/p")).unwrap(), "test");
        }
        rules.add(Permission::Ask, Rule::parse("@read(asked)", Path::new("/p")).unwrap(), "test");
        for (path, is_denied) in [
            ("/p/.env", true),
            ("/p/a/.env", true),
            ("/p/keys/a/b", true),
            ("/p/written", false),
            ("/p/asked", false),
            ("/p/a", false),
            ("/.env", false),
        ] {
            assert_eq!(rules.denies_reading(Path::new(path)), is_denied, "{path}");
        }
    }

    #[tokio::test]
    async fn rules_that_match_too_much_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for number in 0..=MAX_PATHS {
            std::fs::write(root.join(format!("{number}.key")), "").unwrap();
        }
        for rule in ["@read(**)", "@read(/**)", "@read(*.key)"] {
            let found = denied(&root, &[rule]).await;
            let named: Vec<&str> = found.incomplete.iter().map(|(rule, _)| rule.as_str()).collect();
            assert_eq!(named, [rule]);
        }
    }
}
