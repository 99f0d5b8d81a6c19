//! What there is to do for a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_patch::{Change, ChangeKind, Plan};

use super::error::{ApplyPlanCause, ApplyPlanError};
use super::place::Places;
use super::stage::Stage;
use super::step::{BLOCK, Step};

/// How much room is taken by one file, in bytes; a larger content has a file alone.
const ROOM: usize = 1 << 20;

/// Collects the steps of a plan.
pub(super) struct Steps<'a> {
    env: &'a dyn ExecutionEnvironment,
    places: Places<'a>,
    /// Begins the names of the files that are needed for a while.
    prefix: String,
    /// How many names were made.
    names: usize,
    /// Whether room is taken for each content before the first change.
    reserve: bool,
    /// The directories that get new contents, with the files and these contents.
    rooms: BTreeMap<PathBuf, Vec<(&'a str, &'a [u8])>>,
    /// What is compared before anything is set aside: a link and what it leads to may both go.
    compares: Vec<Step<'a>>,
    /// What goes, before the rest changes: a link that goes may lead to a file that changes.
    asides: Vec<Step<'a>>,
    /// The directories that writes and renames make.
    directories: BTreeMap<PathBuf, &'a str>,
    /// The files that are there in the end, by their resolved paths.
    files: BTreeSet<PathBuf>,
    renames: Vec<Step<'a>>,
    writes: Vec<Step<'a>>,
    /// The end of what was set aside, when nothing else can fail any more.
    discards: Vec<Step<'a>>,
}

impl<'a> Steps<'a> {
    /// The stages in which a plan is written, in order. It looks at the files and changes none.
    ///
    /// # Errors
    ///
    /// What can be told to be wrong before anything is changed.
    pub(super) async fn of(
        env: &'a dyn ExecutionEnvironment,
        plan: &'a Plan,
    ) -> Result<Vec<Stage<'a>>, ApplyPlanError> {
        if let [Change { path, old: Some(content), new: None, .. }] = plan.changes.as_slice() {
            return Ok(vec![Stage::one_by_one(vec![Step::Remove { path, content }])]);
        }
        let mut steps = Self {
            env,
            places: Places::new(env),
            prefix: format!(".pintle-{:016x}", RandomState::new().build_hasher().finish()),
            names: 0,
            // One content is written at once or not at all.
            reserve: plan.changes.iter().filter(|change| change.new.is_some()).count() > 1,
            rooms: BTreeMap::new(),
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
        // The outermost is the first.
        for (directory, path) in &self.directories {
            let is_outermost = directory.parent().is_none_or(|above| !self.directories.contains_key(above));
            // A link to a directory that is made meanwhile is not made. Below what is missing there is none.
            if !(is_outermost && self.places.is_link(directory).await) {
                directories.push(Step::Directory { path, directory: directory.clone() });
            }
        }
        vec![
            Stage::side_by_side(reservations),
            Stage::side_by_side(releases),
            Stage::side_by_side(self.compares),
            Stage::side_by_side(self.asides),
            Stage::one_by_one(directories),
            // Two files that came to one place would not come back.
            Stage::one_by_one(self.renames),
            Stage::side_by_side(self.writes),
            Stage::side_by_side(self.discards),
        ]
    }

    async fn change(&mut self, change: &'a Change) -> Result<(), ApplyPlanError> {
        let path = change.path.as_str();
        match (&change.kind, change.old.as_deref(), change.new.as_deref()) {
            (ChangeKind::Renamed { from }, Some(old), Some(new)) => {
                if self.places.is_link(Path::new(from)).await {
                    // Elsewhere a relative link would name another file.
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
        let directory = self.make_way(path).await;
        if self.reserve {
            self.rooms.entry(directory).or_default().push((path, new));
        }
        self.writes.push(Step::Write { path, old, new });
        Ok(())
    }

    async fn rename(&mut self, from: &'a str, to: &'a str, content: &'a [u8]) -> Result<(), ApplyPlanError> {
        self.expect_no_link(to).await?;
        self.make_way(to).await;
        self.renames.push(Step::Rename { from, to, content });
        Ok(())
    }

    /// Gives a file that goes another name until all is done: the file itself can come back, with its mode and even
    /// if it is a link, and on a full disk.
    fn set_aside(&mut self, path: &'a str, content: &'a [u8]) {
        let aside = Path::new(path).with_file_name(self.name());
        self.compares.push(Step::Compare { path, content });
        self.asides.push(Step::SetAside { path, aside: aside.clone(), content });
        self.discards.push(Step::Discard { path, aside, content });
    }

    /// A link to nowhere is nothing to a reader, and would come to an end that nobody could put back.
    async fn expect_no_link(&mut self, path: &str) -> Result<(), ApplyPlanError> {
        if !self.places.is_link(Path::new(path)).await {
            return Ok(());
        }
        Err(ApplyPlanError::new(path, ApplyPlanCause::LinkToNowhere, Vec::new()))
    }

    /// Notes a file that is there in the end, and the directories that will be made for it. Returns the nearest one
    /// that is there, which is on the same file system as a rule.
    async fn make_way(&mut self, path: &'a str) -> PathBuf {
        let (nearest, missing) = self.places.above(path).await;
        for directory in missing {
            self.directories.entry(directory).or_insert(path);
        }
        self.files.insert(self.env.resolve(Path::new(path)));
        nearest
    }

    /// Of a file and one below it, neither can be told to be the wrong one once they are written side by side.
    fn expect_no_file_below_a_file(&self) -> Result<(), ApplyPlanError> {
        let below = self.directories.iter().find(|(directory, _)| self.files.contains(*directory));
        let Some((directory, path)) = below else { return Ok(()) };
        let cause = EnvError::NotADirectory { path: directory.clone() };
        Err(ApplyPlanError::new(path, cause.into(), Vec::new()))
    }

    /// Takes the room for all new contents, then gives it back.
    fn reservations(&mut self) -> (Vec<Step<'a>>, Vec<Step<'a>>) {
        let rooms = std::mem::take(&mut self.rooms);
        let mut steps = Vec::new();
        for (directory, files) in &rooms {
            for files in in_rooms(files) {
                let Some((path, _largest)) = files.iter().max_by_key(|(_, content)| content.len()) else {
                    continue;
                };
                let room = directory.join(self.name());
                let contents = files.iter().map(|(_, content)| *content).collect();
                steps.push((
                    Step::Reserve { path, room: room.clone(), contents },
                    Step::Release { path, room },
                ));
            }
        }
        steps.into_iter().unzip()
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("{}-{}", self.prefix, self.names)
    }
}

/// Files whose contents take about [`ROOM`] bytes together, so that no more than that is held at a time.
fn in_rooms<'s, 'a>(files: &'s [(&'a str, &'a [u8])]) -> impl Iterator<Item = &'s [(&'a str, &'a [u8])]> {
    let mut taken = 0;
    files.chunk_by(move |(_, before), (_, next)| {
        taken += before.len().next_multiple_of(BLOCK);
        let fits = taken + next.len() <= ROOM;
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
    fn room_is_taken_in_parts() {
        let contents = [0, 10, 5000, ROOM, 1, ROOM / 2, ROOM / 2, ROOM - 1].map(|length| vec![b'x'; length]);
        let files: Vec<(&str, &[u8])> = contents.iter().map(|content| ("f", content.as_slice())).collect();
        let parts: Vec<Vec<usize>> =
            in_rooms(&files).map(|part| part.iter().map(|(_, content)| content.len()).collect()).collect();
        let expected: [&[usize]; 5] = [&[0, 10, 5000], &[ROOM], &[1, ROOM / 2], &[ROOM / 2], &[ROOM - 1]];
        assert_eq!(parts, expected);
        assert_eq!(in_rooms(&[]).count(), 0);
    }
}
