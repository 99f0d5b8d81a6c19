//! Converts a plan to the steps of a transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment, TEMPORARY_PREFIX};
use pintle_patch::{Change, ChangeKind, Plan};

use super::directory_cache::DirectoryCache;
use super::error::{ApplyPlanCause, ApplyPlanError};
use super::stage::Stage;
use super::step::{BLOCK, Step};

/// The disk space that one temporary file reserves, in bytes. Larger content has its own file.
const RESERVATION: usize = 1 << 20;

/// Collects the steps of a plan.
pub(super) struct Steps<'a> {
    env: &'a dyn ExecutionEnvironment,
    cache: DirectoryCache<'a>,
    /// The common prefix of temporary names.
    prefix: String,
    /// The number of temporary names so far.
    names: usize,
    /// Whether disk space is reserved before the first change.
    reserve: bool,
    /// The directories with new contents, each with its files and their contents.
    reserved: BTreeMap<PathBuf, Vec<(&'a str, &'a [u8])>>,
    /// Files that are compared before any is set aside, since a link and its target may both be deleted.
    compares: Vec<Step<'a>>,
    /// Files that are set aside before the others change, since a deleted link may lead to a changed file.
    asides: Vec<Step<'a>>,
    /// The directories that writes and renames create.
    directories: BTreeMap<PathBuf, &'a str>,
    /// The resolved paths of the files that exist afterwards.
    files: BTreeSet<PathBuf>,
    renames: Vec<Step<'a>>,
    writes: Vec<Step<'a>>,
    /// Files that were set aside are removed last, when no other step can fail.
    discards: Vec<Step<'a>>,
}

impl<'a> Steps<'a> {
    /// Returns the stages of a plan, in order. Reads the files but does not change them.
    ///
    /// # Errors
    ///
    /// Conflicts that are detectable before any change.
    pub(super) async fn plan_stages(
        env: &'a dyn ExecutionEnvironment,
        plan: &'a Plan,
    ) -> Result<Vec<Stage<'a>>, ApplyPlanError> {
        if let [Change { path, old: Some(content), new: None, .. }] = plan.changes.as_slice() {
            return Ok(vec![Stage::sequential(vec![Step::Remove { path, content }])]);
        }
        let mut steps = Self {
            env,
            cache: DirectoryCache::new(env),
            prefix: format!("{TEMPORARY_PREFIX}{:016x}", RandomState::new().build_hasher().finish()),
            names: 0,
            // A single write is atomic.
            reserve: plan.changes.iter().filter(|change| change.new.is_some()).count() > 1,
            reserved: BTreeMap::new(),
            compares: Vec::new(),
            asides: Vec::new(),
            directories: BTreeMap::new(),
            files: BTreeSet::new(),
            renames: Vec::new(),
            writes: Vec::new(),
            discards: Vec::new(),
        };
        for change in &plan.changes {
            steps.change(change).await?;
        }
        steps.expect_no_file_below_a_file()?;
        Ok(steps.into_stages().await)
    }

    async fn into_stages(mut self) -> Vec<Stage<'a>> {
        let (reservations, releases) = self.reservations();
        let mut directories = Vec::new();
        // The outermost directories come first.
        for (directory, path) in &self.directories {
            let is_outermost = directory.parent().is_none_or(|above| !self.directories.contains_key(above));
            // A missing directory may be a link whose target is created meanwhile. The link itself is not created, so
            // undoing must not remove it. Below a missing directory, there is no link.
            if !(is_outermost && self.cache.is_link(directory).await) {
                directories.push(Step::Directory { path, directory: directory.clone() });
            }
        }
        vec![
            Stage::concurrent(reservations),
            Stage::concurrent(releases),
            Stage::concurrent(self.compares),
            Stage::concurrent(self.asides),
            Stage::sequential(directories),
            // Concurrent renames to the same target could not be undone.
            Stage::sequential(self.renames),
            Stage::concurrent(self.writes),
            Stage::concurrent(self.discards),
        ]
    }

    async fn change(&mut self, change: &'a Change) -> Result<(), ApplyPlanError> {
        let path = change.path.as_str();
        match (&change.kind, change.old.as_deref(), change.new.as_deref()) {
            (ChangeKind::Renamed { from }, Some(old), Some(new)) => {
                if self.cache.is_link(Path::new(from)).await {
                    // In another directory a relative link would lead to another file.
                    self.set_aside(from, old);
                    self.write(path, None, new).await
                } else {
                    self.rename(from, path, old).await?;
                    if old == new { Ok(()) } else { self.write(path, Some(old), new).await }
                }
            }
            (_, old, Some(new)) => self.write(path, old, new).await,
            (_, Some(old), None) => {
                self.set_aside(path, old);
                Ok(())
            }
            (_, None, None) => Ok(()),
        }
    }

    async fn write(
        &mut self,
        path: &'a str,
        old: Option<&'a [u8]>,
        new: &'a [u8],
    ) -> Result<(), ApplyPlanError> {
        if old.is_none() {
            self.expect_no_link(path).await?;
        }
        let directory = self.create_parents(path).await;
        if self.reserve {
            self.reserved.entry(directory).or_default().push((path, new));
        }
        self.writes.push(Step::Write { path, old, new });
        Ok(())
    }

    async fn rename(&mut self, from: &'a str, to: &'a str, content: &'a [u8]) -> Result<(), ApplyPlanError> {
        self.expect_no_link(to).await?;
        self.create_parents(to).await;
        self.renames.push(Step::Rename { from, to, content });
        Ok(())
    }

    /// Renames a deleted file until the end of the transaction. The file itself can then be restored with its mode,
    /// even if it is a link or the disk is full.
    fn set_aside(&mut self, path: &'a str, content: &'a [u8]) {
        let aside = Path::new(path).with_file_name(self.temporary_name());
        self.compares.push(Step::Compare { path, content });
        self.asides.push(Step::SetAside { path, aside: aside.clone(), content });
        self.discards.push(Step::Discard { path, aside, content });
    }

    /// Refuses a dangling link, whose target reads as missing and could not be restored.
    async fn expect_no_link(&mut self, path: &str) -> Result<(), ApplyPlanError> {
        if !self.cache.is_link(Path::new(path)).await {
            return Ok(());
        }
        Err(ApplyPlanError::new(path, ApplyPlanCause::LinkToNowhere, Vec::new()))
    }

    /// Records a file that exists afterwards and the directories that are created for it. Returns the nearest existing
    /// directory, which usually is on the same file system.
    async fn create_parents(&mut self, path: &'a str) -> PathBuf {
        let (nearest, missing) = self.cache.existing_ancestor(path).await;
        for directory in missing {
            self.directories.entry(directory).or_insert(path);
        }
        self.files.insert(self.env.resolve(Path::new(path)));
        nearest
    }

    /// Refuses a file below another file of the plan, since concurrent writes would not detect it.
    fn expect_no_file_below_a_file(&self) -> Result<(), ApplyPlanError> {
        let below = self.directories.iter().find(|(directory, _)| self.files.contains(*directory));
        let Some((directory, path)) = below else { return Ok(()) };
        let cause = EnvError::NotADirectory { path: directory.clone() };
        Err(ApplyPlanError::new(path, cause.into(), Vec::new()))
    }

    /// Returns the steps that reserve the space for all new contents, and the steps that release it.
    fn reservations(&mut self) -> (Vec<Step<'a>>, Vec<Step<'a>>) {
        let reserved = std::mem::take(&mut self.reserved);
        let mut steps = Vec::new();
        for (directory, files) in &reserved {
            for files in reservation_groups(files) {
                let Some((path, _largest)) = files.iter().max_by_key(|(_, content)| content.len()) else {
                    continue;
                };
                let temporary = directory.join(self.temporary_name());
                let contents = files.iter().map(|(_, content)| *content).collect();
                steps.push((
                    Step::Reserve { path, temporary: temporary.clone(), contents },
                    Step::Release { path, temporary },
                ));
            }
        }
        steps.into_iter().unzip()
    }

    fn temporary_name(&mut self) -> String {
        self.names += 1;
        format!("{}-{}", self.prefix, self.names)
    }
}

/// Groups files so that the contents of a group have about [`RESERVATION`] bytes, which bounds the memory for one
/// group.
fn reservation_groups<'s, 'a>(
    files: &'s [(&'a str, &'a [u8])],
) -> impl Iterator<Item = &'s [(&'a str, &'a [u8])]> {
    let mut taken = 0;
    files.chunk_by(move |(_, before), (_, next)| {
        taken += before.len().next_multiple_of(BLOCK);
        let fits = taken + next.len() <= RESERVATION;
        if !fits {
            taken = 0;
        }
        fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_reserved_in_parts() {
        const MAX: usize = RESERVATION;
        let contents = [0, 10, 5000, MAX, 1, MAX / 2, MAX / 2, MAX - 1].map(|length| vec![b'x'; length]);
        let files: Vec<(&str, &[u8])> = contents.iter().map(|content| ("f", content.as_slice())).collect();
        let parts: Vec<Vec<usize>> = reservation_groups(&files)
            .map(|part| part.iter().map(|(_, content)| content.len()).collect())
            .collect();
        let expected: [&[usize]; 5] = [&[0, 10, 5000], &[MAX], &[1, MAX / 2], &[MAX / 2], &[MAX - 1]];
        assert_eq!(parts, expected);
        assert_eq!(reservation_groups(&[]).count(), 0);
    }
}
