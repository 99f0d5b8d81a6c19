//! Writing a plan: all of it, or nothing.

use std::path::Path;

use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_patch::{Change, ChangeKind, Plan};

use crate::error::ToolError;

/// One thing done to the files, with what is needed to undo it.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    Write { path: &'a str, old: Option<&'a [u8]>, new: &'a [u8] },
    Remove { path: &'a str, old: &'a [u8] },
    Rename { from: &'a str, to: &'a str },
}

/// Makes every change of a plan. If one fails, those before it are undone in reverse order.
pub(super) async fn apply(env: &dyn ExecutionEnvironment, plan: &Plan) -> Result<(), ToolError> {
    let steps: Vec<Step<'_>> = plan.changes.iter().flat_map(steps).collect();
    for (done, step) in steps.iter().enumerate() {
        if let Err(error) = step.run(env).await {
            let stuck = undo(env, steps.get(..done).unwrap_or_default()).await;
            return Err(failure(step, error, &stuck));
        }
    }
    Ok(())
}

/// The steps of one change. A rename keeps the file itself, with its mode, and then gets its new content.
fn steps(change: &Change) -> Vec<Step<'_>> {
    let path = change.path.as_str();
    let (old, new) = (change.old.as_deref(), change.new.as_deref());
    match (&change.kind, old, new) {
        (ChangeKind::Renamed { from }, old, Some(new)) => {
            let rename = Step::Rename { from, to: path };
            let write = (old != Some(new)).then_some(Step::Write { path, old, new });
            std::iter::once(rename).chain(write).collect()
        }
        (_, old, Some(new)) => vec![Step::Write { path, old, new }],
        (_, Some(old), None) => vec![Step::Remove { path, old }],
        (_, None, None) => Vec::new(),
    }
}

/// Undoes steps, the last one first; returns the paths for which it failed.
async fn undo<'a>(env: &dyn ExecutionEnvironment, steps: &[Step<'a>]) -> Vec<&'a str> {
    let mut stuck = Vec::new();
    for step in steps.iter().rev() {
        if let Err(error) = step.inverse().run(env).await {
            tracing::warn!(path = step.path(), %error, "a change of a failed patch cannot be taken back");
            stuck.push(step.path());
        }
    }
    stuck
}

fn failure(step: &Step<'_>, error: EnvError, stuck: &[&str]) -> ToolError {
    let outcome = if stuck.is_empty() {
        "The changes before it were taken back: no file is changed".to_owned()
    } else {
        format!("The changes before it were taken back, but for {}: look at them", stuck.join(", "))
    };
    let error = ToolError::from(error);
    let message =
        format!("The patch fits, but writing {} failed: {}. {outcome}", step.path(), error.for_model());
    ToolError::new(error.kind(), message).with_source(error)
}

impl<'a> Step<'a> {
    async fn run(&self, env: &dyn ExecutionEnvironment) -> Result<(), EnvError> {
        match self {
            Self::Write { path, new, .. } => env.write(Path::new(path), new).await,
            Self::Remove { path, .. } => env.remove(Path::new(path)).await,
            Self::Rename { from, to } => env.rename(Path::new(from), Path::new(to)).await,
        }
    }

    fn inverse(&self) -> Self {
        match *self {
            Self::Write { path, old: Some(old), new } => Self::Write { path, old: Some(new), new: old },
            Self::Write { path, old: None, new } => Self::Remove { path, old: new },
            Self::Remove { path, old } => Self::Write { path, old: None, new: old },
            Self::Rename { from, to } => Self::Rename { from: to, to: from },
        }
    }

    fn path(&self) -> &'a str {
        match self {
            Self::Write { path, .. } | Self::Remove { path, .. } | Self::Rename { to: path, .. } => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ToolErrorKind;

    #[test]
    fn a_failure_says_what_is_changed_and_what_is_not() {
        let step = Step::Write { path: "b", old: None, new: b"" };
        let full = || EnvError::from_io("write", Path::new("/b"), std::io::ErrorKind::StorageFull.into());
        let lost = || EnvError::EnvironmentLost { environment: "box".into(), source: None };
        let rows = [
            (
                failure(&step, full(), &[]),
                ToolErrorKind::Failed,
                "The patch fits, but writing b failed: cannot write /b: no storage space. \
                 The changes before it were taken back: no file is changed",
            ),
            (
                failure(&step, lost(), &["a", "c"]),
                ToolErrorKind::EnvironmentLost,
                "The patch fits, but writing b failed: the connection to box is lost. \
                 The changes before it were taken back, but for a, c: look at them",
            ),
        ];
        for (error, kind, expected) in rows {
            assert_eq!((error.kind(), error.for_model()), (kind, expected));
        }
    }

    #[test]
    fn each_step_has_its_inverse() {
        let steps = [
            Step::Write { path: "a", old: Some(b"1"), new: b"2" },
            Step::Write { path: "a", old: None, new: b"2" },
            Step::Remove { path: "a", old: b"1" },
            Step::Rename { from: "a", to: "b" },
        ];
        for step in steps {
            assert_ne!(step.inverse(), step);
            assert_eq!(step.inverse().inverse(), step);
        }
    }
}
