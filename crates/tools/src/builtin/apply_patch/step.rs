//! One step of writing a plan, and how it is undone.

use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment};

use super::error::ApplyPlanCause;

/// What a file's length is rounded up to on most file systems, in bytes.
const BLOCK: usize = 4096;

/// One thing done to the files, with what is needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Takes the room that later writes need; `path` is the largest of the files.
    Reserve { path: &'a str, room: PathBuf, contents: Vec<&'a [u8]> },
    /// Gives that room back.
    Release { path: &'a str, room: PathBuf },
    /// Writes a file.
    Write { path: &'a str, old: Option<&'a [u8]>, new: &'a [u8] },
    /// Gives a file another path. It keeps the file itself, with its mode.
    Rename { from: &'a str, to: &'a str, content: &'a [u8] },
    /// Gives a file that goes a name that nobody looks at.
    SetAside { path: &'a str, aside: PathBuf, content: &'a [u8] },
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
            Self::Write { path, old, new } => {
                expect(env, path, *old).await?;
                env.write(Path::new(path), new).await?;
            }
            Self::Rename { from, to, content } => {
                expect(env, from, Some(content)).await?;
                expect(env, to, None).await?;
                env.rename(Path::new(from), Path::new(to)).await?;
            }
            Self::SetAside { path, aside, content } => {
                expect(env, path, Some(content)).await?;
                env.rename(Path::new(path), aside).await?;
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
            Self::Reserve { room, .. } => match env.remove(room).await {
                // It was given back.
                Err(EnvError::NotFound { .. }) => Ok(()),
                removed => removed,
            },
            Self::Release { .. } => Ok(()),
            Self::Write { path, old: Some(old), .. } => env.write(Path::new(path), old).await,
            Self::Write { path, old: None, .. } => env.remove(Path::new(path)).await,
            Self::Rename { from, to, .. } => env.rename(Path::new(to), Path::new(from)).await,
            Self::SetAside { path, aside, .. } => env.rename(aside, Path::new(path)).await,
            Self::Discard { aside, content, .. } => env.write(aside, content).await,
            Self::Remove { path, content } => env.write(Path::new(path), content).await,
        }
    }

    /// The file of the plan that it is about.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Reserve { path, .. }
            | Self::Release { path, .. }
            | Self::Write { path, .. }
            | Self::Rename { to: path, .. }
            | Self::SetAside { path, .. }
            | Self::Discard { path, .. }
            | Self::Remove { path, .. } => path,
        }
    }

    /// Where the file is after it, with its old content, if it has another name only.
    pub(super) fn kept_at(&self) -> Option<&Path> {
        match self {
            Self::SetAside { aside, .. } => Some(aside),
            Self::Rename { to, .. } => Some(Path::new(to)),
            Self::Reserve { .. }
            | Self::Release { .. }
            | Self::Write { .. }
            | Self::Discard { .. }
            | Self::Remove { .. } => None,
        }
    }

    /// Whether it does something to a file of the plan.
    pub(super) fn changes_its_file(&self) -> bool {
        !matches!(self, Self::Reserve { .. } | Self::Release { .. })
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

/// Compares what is at a path with what the plan was made for; `None` is nothing.
async fn expect(
    env: &dyn ExecutionEnvironment,
    path: impl AsRef<Path>,
    content: Option<&[u8]>,
) -> Result<(), ApplyPlanCause> {
    let found = match env.read(path.as_ref(), None).await {
        Ok(found) => Some(found),
        Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    if found.as_deref() == content { Ok(()) } else { Err(ApplyPlanCause::Changed) }
}
