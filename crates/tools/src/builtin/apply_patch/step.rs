//! One step of writing a plan, and how it is undone.

use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment};

use super::error::{ApplyPlanCause, LeftChanged};

/// What a file's length is rounded up to on most file systems, in bytes.
pub(super) const BLOCK: usize = 4096;

/// One thing done to the files, with what is needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Takes room that later writes need; `path` is the largest of the files.
    Reserve { path: &'a str, room: PathBuf, contents: Vec<&'a [u8]> },
    /// Gives that room back.
    Release { path: &'a str, room: PathBuf },
    /// Sees that a file is as the plan found it.
    Compare { path: &'a str, content: &'a [u8] },
    /// Gives a file that goes a name that nobody looks at.
    SetAside { path: &'a str, aside: PathBuf, content: &'a [u8] },
    /// Does nothing: it stands for a directory that the writes after it make on their way.
    Directory { path: &'a str, directory: PathBuf },
    /// Gives a file another path. It keeps the file itself, with its mode.
    Rename { from: &'a str, to: &'a str, content: &'a [u8] },
    /// Writes a file.
    Write { path: &'a str, old: Option<&'a [u8]>, new: &'a [u8] },
    /// Removes what was set aside.
    Discard { path: &'a str, aside: PathBuf, content: &'a [u8] },
    /// Removes a file at once, where nothing comes after it that could fail.
    Remove { path: &'a str, content: &'a [u8] },
}

impl Step<'_> {
    /// Does it, if the files are as the plan found them.
    pub(super) async fn run(&self, env: &dyn ExecutionEnvironment) -> Result<(), ApplyPlanCause> {
        match self {
            Self::Reserve { room, contents, .. } => env.write(room, &in_blocks(contents)).await?,
            Self::Release { room, .. } => env.remove(room).await?,
            Self::Compare { path, content } => expect(env, path, Some(content)).await?,
            Self::SetAside { path, aside, .. } => env.rename(Path::new(path), aside).await?,
            Self::Directory { .. } => {}
            Self::Rename { from, to, content } => {
                expect(env, from, Some(content)).await?;
                expect(env, to, None).await?;
                env.rename(Path::new(from), Path::new(to)).await?;
            }
            Self::Write { path, old, new } => {
                expect(env, path, *old).await?;
                env.write(Path::new(path), new).await?;
            }
            Self::Discard { aside, .. } => env.remove(aside).await?,
            Self::Remove { path, content } => {
                expect(env, path, Some(content)).await?;
                env.remove(Path::new(path)).await?;
            }
        }
        Ok(())
    }

    /// Takes it back.
    pub(super) async fn undo(&self, env: &dyn ExecutionEnvironment) -> Result<(), EnvError> {
        match self {
            Self::Release { .. } | Self::Compare { .. } => Ok(()),
            // It was given back, as a rule.
            Self::Reserve { room, .. } => unless_missing(env.remove(room).await),
            Self::SetAside { path, aside, .. } => env.rename(aside, Path::new(path)).await,
            Self::Directory { directory, .. } => remove_if_empty(env, directory).await,
            Self::Rename { from, to, .. } => env.rename(Path::new(to), Path::new(from)).await,
            Self::Write { path, old: Some(old), .. } => env.write(Path::new(path), old).await,
            // Whoever removed it did what is to be done.
            Self::Write { path, old: None, .. } => unless_missing(env.remove(Path::new(path)).await),
            Self::Discard { aside, content, .. } => env.write(aside, content).await,
            Self::Remove { path, content } => env.write(Path::new(path), content).await,
        }
    }

    /// Takes it back after it failed, if it was done all the same: as when the connection is lost before the answer.
    pub(super) async fn retract(&self, env: &dyn ExecutionEnvironment) -> Result<(), EnvError> {
        let was_done = match self {
            // These names are nobody else's.
            Self::Reserve { .. } | Self::SetAside { .. } => true,
            Self::Release { .. } | Self::Compare { .. } | Self::Directory { .. } => false,
            Self::Rename { from, to, content } => {
                stands(env, from, None).await? && stands(env, to, Some(content)).await?
            }
            Self::Write { path, old, new } => *old != Some(*new) && stands(env, path, Some(new)).await?,
            Self::Discard { aside, .. } => stands(env, aside, None).await?,
            Self::Remove { path, .. } => stands(env, path, None).await?,
        };
        if was_done { unless_missing(self.undo(env).await) } else { Ok(()) }
    }

    /// The file of the plan that it is about.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Reserve { path, .. }
            | Self::Release { path, .. }
            | Self::Compare { path, .. }
            | Self::SetAside { path, .. }
            | Self::Directory { path, .. }
            | Self::Rename { to: path, .. }
            | Self::Write { path, .. }
            | Self::Discard { path, .. }
            | Self::Remove { path, .. } => path,
        }
    }

    /// What is not as it was if it cannot be taken back: a file of the plan, and where its old content is if it has
    /// another name only.
    pub(super) fn left_changed(&self) -> Option<LeftChanged> {
        let (path, kept_at) = match self {
            Self::Reserve { .. } | Self::Release { .. } | Self::Compare { .. } | Self::Directory { .. } => {
                return None;
            }
            Self::SetAside { path, aside, .. } | Self::Discard { path, aside, .. } => {
                (path, Some(aside.clone()))
            }
            Self::Rename { from, to, .. } => (from, Some(PathBuf::from(to))),
            Self::Write { path, .. } | Self::Remove { path, .. } => (path, None),
        };
        Some(LeftChanged { path: (*path).to_owned(), kept_at })
    }

    /// The content that it writes to a file of the plan.
    pub(super) fn written(&self) -> Option<&[u8]> {
        match self {
            Self::Write { new, .. } => Some(new),
            Self::Reserve { .. }
            | Self::Release { .. }
            | Self::Compare { .. }
            | Self::SetAside { .. }
            | Self::Directory { .. }
            | Self::Rename { .. }
            | Self::Discard { .. }
            | Self::Remove { .. } => None,
        }
    }

    /// How many bytes longer a file is by it; what undoing it gives back.
    pub(super) fn growth(&self) -> i64 {
        let length = |content: &[u8]| i64::try_from(content.len()).unwrap_or(i64::MAX);
        let old = if let Self::Write { old: Some(old), .. } = self { length(old) } else { 0 };
        self.written().map_or(0, length) - old
    }
}

/// Contents as they take room on a disk, one after the other.
fn in_blocks(contents: &[&[u8]]) -> Vec<u8> {
    let mut room = Vec::new();
    for content in contents {
        room.extend_from_slice(content);
        room.resize(room.len().next_multiple_of(BLOCK), 0);
    }
    room
}

/// Removes a directory that nobody else has put something in.
async fn remove_if_empty(env: &dyn ExecutionEnvironment, directory: &Path) -> Result<(), EnvError> {
    // The way may never have been gone, or a file may stand there.
    if !env.metadata(directory).await.is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    match env.remove(directory).await {
        Err(EnvError::IsADirectory { .. }) => Ok(()),
        removed => unless_missing(removed),
    }
}

fn unless_missing(done: Result<(), EnvError>) -> Result<(), EnvError> {
    match done {
        Err(EnvError::NotFound { .. }) => Ok(()),
        done => done,
    }
}

/// Compares what is at a path with what the plan was made for; `None` is nothing.
async fn expect(
    env: &dyn ExecutionEnvironment,
    path: impl AsRef<Path>,
    content: Option<&[u8]>,
) -> Result<(), ApplyPlanCause> {
    if holds(env, path.as_ref(), content).await? { Ok(()) } else { Err(ApplyPlanCause::Changed) }
}

/// Whether a path has this content, as [`holds`]; what is no file has none.
async fn stands(
    env: &dyn ExecutionEnvironment,
    path: impl AsRef<Path>,
    content: Option<&[u8]>,
) -> Result<bool, EnvError> {
    match holds(env, path.as_ref(), content).await {
        Err(EnvError::IsADirectory { .. } | EnvError::NotARegularFile { .. }) => Ok(false),
        found => found,
    }
}

/// Whether a path has this content; `None` is nothing.
async fn holds(
    env: &dyn ExecutionEnvironment,
    path: &Path,
    content: Option<&[u8]>,
) -> Result<bool, EnvError> {
    // One byte more shows that there is more.
    let enough = content.map_or(0, <[u8]>::len) as u64 + 1;
    match env.read(path, Some(0..enough)).await {
        Ok(found) => Ok(content == Some(found.as_slice())),
        Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => Ok(content.is_none()),
        Err(error) => Err(error),
    }
}
