//! Files that a call touches by other names, and those below the directories that it reads.

use std::path::{Path, PathBuf};

use pintle_env::{
    EntryKind, EnvError, ExecutionEnvironment, ExecutionEnvironmentExt as _, WalkLimit, WalkOutput,
    WalkRequest,
};
use pintle_tools::ReadExtent;
use pintle_tools::gate::Permission;

use super::links::{Link, RuleLinks, joined};
use super::{CallFacts, Rule, Rules};

impl Rules {
    /// Returns the facts about a call with all paths that rules that deny or ask may name: its files by the names in
    /// these rules, and files below the directories that it reads. `None` if no rule can name any.
    ///
    /// Links in a rule are followed up to its first wildcard.
    pub(crate) async fn with_searched(
        &self,
        call: &CallFacts,
        links: &RuleLinks,
        env: &dyn ExecutionEnvironment,
    ) -> Option<CallFacts> {
        if call.reads.is_empty() && call.writes.is_empty() {
            return None;
        }
        let restricting = self.restricting().filter(|rule| rule.concerns(call));
        let paths: Vec<&Path> = restricting.filter_map(Rule::path).collect();
        if paths.is_empty() {
            return None;
        }
        let links = links.resolve(&paths, env).await;
        let search = Search { rules: self, call, links, env };
        let mut facts = call.clone();
        facts.others.reads = search.other_names(&call.reads);
        facts.others.writes = search.other_names(&call.writes);
        if !call.read_extent.is_listing() {
            for directory in &call.read_roots {
                search.add_below(&mut facts, directory).await;
            }
        }
        Some(facts)
    }

    fn restricting(&self) -> impl Iterator<Item = &Rule> {
        let restricts = |permission| matches!(permission, Permission::Deny | Permission::Ask);
        self.entries.iter().filter(move |entry| restricts(entry.permission)).map(|entry| &entry.rule)
    }
}

/// File or directory, as a call names it and with all links resolved.
#[derive(Clone, Debug)]
pub(super) struct ReadRoot {
    pub(super) named: PathBuf,
    pub(super) real: PathBuf,
}

/// Search for files that a call would read, and that rules name.
struct Search<'a> {
    rules: &'a Rules,
    call: &'a CallFacts,
    links: Vec<Link>,
    env: &'a dyn ExecutionEnvironment,
}

impl Search<'_> {
    /// Returns the names of these paths in rules.
    fn other_names(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        paths.iter().flat_map(|path| self.links.iter().filter_map(|link| link.other_name(path))).collect()
    }

    /// Returns all names of a path below a directory.
    fn names(&self, directory: &ReadRoot, relative: &Path) -> Vec<PathBuf> {
        let mut names = vec![joined(&directory.real, relative)];
        if directory.named != directory.real {
            names.push(joined(&directory.named, relative));
        }
        names.extend(self.other_names(&names));
        names
    }

    fn may_restrict_below(&self, names: &[PathBuf]) -> bool {
        let is_above = |link: &Link| names.iter().any(|name| link.real.starts_with(name));
        self.links.iter().any(is_above)
            || self
                .rules
                .restricting()
                .any(|rule| names.iter().any(|directory| rule.may_name_below(self.call, directory)))
    }

    /// Adds the files below a directory that rules name.
    async fn add_below(&self, facts: &mut CallFacts, directory: &ReadRoot) {
        if !self.may_restrict_below(&self.names(directory, Path::new(""))) {
            return;
        }
        let added = match self.call.read_extent {
            ReadExtent::Searched => self.add_walked(facts, directory).await,
            ReadExtent::Everything => self.add_listed(facts, directory, usize::MAX, true).await,
            ReadExtent::Names { levels } => self.add_listed(facts, directory, levels, false).await,
        };
        match added {
            // A file is judged by its own path.
            Ok(()) | Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => {}
            Err(error) => {
                facts.undecided = Some(format!("{} cannot be listed: {error}", directory.real.display()));
            }
        }
    }

    /// Adds files that a search visits. It starts at the call's own path, since ignore rules may differ below the target
    /// of a link.
    async fn add_walked(&self, facts: &mut CallFacts, directory: &ReadRoot) -> Result<(), EnvError> {
        let found = self.env.walk(&WalkRequest::new(&directory.named)).await?;
        if found.is_all_ignored() {
            return self.add_listed(facts, directory, usize::MAX, true).await;
        }
        if let Some(reason) = self.missing(&found, directory) {
            facts.undecided = Some(reason);
        }
        for entry in &found.entries {
            self.add(facts, directory, &entry.path, entry.kind == EntryKind::Symlink).await;
        }
        Ok(())
    }

    /// Adds files up to a depth, including ignored files.
    async fn add_listed(
        &self,
        facts: &mut CallFacts,
        directory: &ReadRoot,
        levels: usize,
        follows: bool,
    ) -> Result<(), EnvError> {
        for entry in self.env.list_directory(&directory.real, levels).await? {
            self.add(facts, directory, &entry.name, follows && entry.is_symlink).await;
        }
        Ok(())
    }

    /// Adds a file, if rules name it or its link target.
    async fn add(&self, facts: &mut CallFacts, directory: &ReadRoot, relative: &Path, is_link: bool) {
        let mut names = self.names(directory, relative);
        if is_link && let Ok(target) = self.env.canonicalize(&joined(&directory.real, relative)).await {
            names.push(target.clone());
            names.extend(self.other_names(&[target]));
        }
        let restricts =
            |name: &PathBuf| self.rules.restricting().any(|rule| rule.names_path(self.call, name));
        facts.others.reads.extend(names.into_iter().filter(restricts));
    }

    /// Returns why a walk may have missed files that rules name.
    fn missing(&self, found: &WalkOutput, directory: &ReadRoot) -> Option<String> {
        let shown = directory.real.display();
        match found.reached {
            Some(WalkLimit::Entries) => {
                return Some(format!("{shown} has too many files to look at all of them"));
            }
            Some(WalkLimit::Time | _) => {
                return Some(format!("looking at the files of {shown} takes too long"));
            }
            None => {}
        }
        let is_judged = |relative: &&PathBuf| self.may_restrict_below(&self.names(directory, relative));
        let unreadable = found.unreadable.iter().find(is_judged)?;
        Some(format!("{} cannot be listed", directory.real.join(unreadable).display()))
    }
}

#[cfg(test)]
mod tests;
