//! Writing a plan: all of it, or nothing.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_patch::{Change, ChangeKind, Patch, Plan};

use super::error::{ApplyPlanError, LeftChanged};
use super::step::Step;

/// Reads what [`pintle_patch::plan()`] must be given: the content of every path of the patch that is a file.
///
/// # Errors
///
/// Those of [`ExecutionEnvironment::read`] for what is there and is no file, or cannot be read.
pub async fn read_files(
    env: &dyn ExecutionEnvironment,
    patch: &Patch,
) -> Result<BTreeMap<String, Vec<u8>>, EnvError> {
    let mut files = BTreeMap::new();
    for path in patch.paths() {
        match env.read(Path::new(path), None).await {
            Ok(content) => {
                files.insert(path.to_owned(), content);
            }
            // What is a file now may be a directory once the patch has deleted it.
            Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// Makes every change of a plan, or none.
///
/// Each file is compared with what the plan was made for just before it is changed. Before the first change of
/// several the room for all new contents is taken and given back, so that a full disk is noticed in time. If a step fails, those
/// before it are undone in reverse order; directories that were made for new files stay. Mode and owner of a file
/// stay; a symbolic link is followed when its file is updated, goes alone when it is deleted, and becomes a file
/// when it is moved.
///
/// Files that it needs for a while have names that begin with `.pintle-`. Dropping the future leaves them and what is
/// written by then, as a lost machine would.
///
/// # Errors
///
/// [`ApplyPlanError`] with the file at which it stopped, the cause, and what could not be put back, if anything.
pub async fn apply_plan(env: &dyn ExecutionEnvironment, plan: &Plan) -> Result<(), ApplyPlanError> {
    let steps = Steps::of(env, plan).await;
    for (done, step) in steps.iter().enumerate() {
        if let Err(cause) = step.run(env).await {
            let left_changed = undo(env, steps.get(..done).unwrap_or_default()).await;
            return Err(ApplyPlanError::new(step.path(), cause, left_changed));
        }
    }
    Ok(())
}

/// Undoes steps, the last one first; returns the files for which it failed.
async fn undo(env: &dyn ExecutionEnvironment, steps: &[Step<'_>]) -> Vec<LeftChanged> {
    let mut stuck = Vec::new();
    for step in steps.iter().rev() {
        if let Err(error) = step.undo(env).await {
            let path = step.path();
            tracing::warn!(path, %error, "a change of a failed patch cannot be taken back");
            if step.changes_its_file() && !stuck.iter().any(|other: &LeftChanged| other.path == path) {
                let kept_at = step.kept_at().map(Path::to_path_buf);
                stuck.push(LeftChanged { path: path.to_owned(), kept_at });
            }
        }
    }
    stuck
}

/// Collects the steps of a plan.
struct Steps<'a> {
    env: &'a dyn ExecutionEnvironment,
    /// Begins the names of the files that are needed for a while.
    prefix: String,
    /// How many names were made.
    names: usize,
    /// Whether room is taken for each content before the first change.
    reserve: bool,
    /// The directories that get new contents, with the files and these contents.
    rooms: BTreeMap<PathBuf, Vec<(&'a str, &'a [u8])>>,
    /// What goes, before the rest changes: a link that goes may lead to a file that changes.
    asides: Vec<Step<'a>>,
    changes: Vec<Step<'a>>,
    /// The end of what was set aside, when nothing else can fail any more.
    discards: Vec<Step<'a>>,
}

impl<'a> Steps<'a> {
    async fn of(env: &'a dyn ExecutionEnvironment, plan: &'a Plan) -> Vec<Step<'a>> {
        let mut steps = Self {
            env,
            prefix: format!(".pintle-{:016x}", RandomState::new().build_hasher().finish()),
            names: 0,
            // One content is written at once or not at all.
            reserve: plan.changes.iter().filter(|change| change.new.is_some()).count() > 1,
            rooms: BTreeMap::new(),
            asides: Vec::new(),
            changes: Vec::new(),
            discards: Vec::new(),
        };
        let alone = plan.changes.len() == 1;
        for change in &plan.changes {
            steps.change(change, alone).await;
        }
        let (reservations, releases) = steps.reservations();
        [reservations, releases, steps.asides, steps.changes, steps.discards].concat()
    }

    async fn change(&mut self, change: &'a Change, alone: bool) {
        let path = change.path.as_str();
        match (&change.kind, change.old.as_deref(), change.new.as_deref()) {
            (ChangeKind::Renamed { from }, Some(old), Some(new)) => {
                if is_link(self.env, from).await {
                    // Elsewhere a relative link would name another file.
                    self.write(path, None, new).await;
                    self.set_aside(from, old);
                } else {
                    self.changes.push(Step::Rename { from, to: path, content: old });
                    if old != new {
                        self.write(path, Some(old), new).await;
                    }
                }
            }
            (_, old, Some(new)) => self.write(path, old, new).await,
            (_, Some(old), None) if alone => self.changes.push(Step::Remove { path, content: old }),
            (_, Some(old), None) => self.set_aside(path, old),
            (_, None, None) => {}
        }
    }

    async fn write(&mut self, path: &'a str, old: Option<&'a [u8]>, new: &'a [u8]) {
        if self.reserve {
            let directory = self.nearest_directory(path).await;
            self.rooms.entry(directory).or_default().push((path, new));
        }
        self.changes.push(Step::Write { path, old, new });
    }

    /// Gives a file that goes another name until all is done: the file itself can come back, with its mode and even
    /// if it is a link, and on a full disk.
    fn set_aside(&mut self, path: &'a str, content: &'a [u8]) {
        let aside = Path::new(path).with_file_name(self.name());
        self.asides.push(Step::SetAside { path, aside: aside.clone(), content });
        self.discards.push(Step::Discard { path, aside, content });
    }

    /// Takes the room for all new contents, then gives it back.
    fn reservations(&mut self) -> (Vec<Step<'a>>, Vec<Step<'a>>) {
        let rooms = std::mem::take(&mut self.rooms);
        let steps = rooms.into_iter().filter_map(|(directory, files)| {
            let (path, _largest) = files.iter().max_by_key(|(_, content)| content.len()).copied()?;
            let room = directory.join(self.name());
            let contents = files.into_iter().map(|(_, content)| content).collect();
            Some((Step::Reserve { path, room: room.clone(), contents }, Step::Release { path, room }))
        });
        steps.unzip()
    }

    /// The nearest directory that is there, which is on the same file system as a rule.
    async fn nearest_directory(&self, path: &str) -> PathBuf {
        let path = self.env.resolve(Path::new(path));
        for directory in path.ancestors().skip(1) {
            if self.rooms.contains_key(directory)
                || self.env.metadata(directory).await.is_ok_and(|metadata| metadata.is_dir())
            {
                return directory.to_path_buf();
            }
        }
        self.env.working_directory().to_path_buf()
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("{}-{}", self.prefix, self.names)
    }
}

/// Whether a symbolic link stands at the path.
async fn is_link(env: &dyn ExecutionEnvironment, path: &str) -> bool {
    let path = env.resolve(Path::new(path));
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
    // Where nobody can tell, it is taken for a file, as almost all are.
    let Ok(entries) = env.list(parent).await else { return false };
    entries.iter().any(|entry| entry.is_symlink && entry.name == Path::new(name))
}
