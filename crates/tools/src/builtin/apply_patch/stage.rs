//! Steps that are done side by side.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use pintle_env::{EnvError, ExecutionEnvironment};

use super::error::{ApplyPlanCause, LeftChanged};
use super::step::Step;

/// How many steps are done at a time. A write waits for the disk, or for the far side of a connection, and not for a
/// processor; files that a disk is asked to keep at the same time it keeps together.
const AT_ONCE: usize = 16;

/// Some steps of writing a plan, all of one kind.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    steps: Vec<Step<'a>>,
    at_once: usize,
}

/// A stage did not come to its end.
#[derive(Debug)]
pub(super) struct Stopped<'s> {
    /// The file at which it stopped.
    pub(super) path: &'s str,
    pub(super) cause: ApplyPlanCause,
    /// What the steps that failed have done all the same, and what could not be taken back.
    pub(super) left_changed: Vec<LeftChanged>,
}

impl<'a> Stage<'a> {
    /// Steps that can be done in any order.
    pub(super) fn side_by_side(steps: Vec<Step<'a>>) -> Self {
        Self { steps, at_once: AT_ONCE }
    }

    /// Steps of which each must find what those before it leave.
    pub(super) fn one_by_one(steps: Vec<Step<'a>>) -> Self {
        Self { steps, at_once: 1 }
    }

    /// Does the steps, and adds those that are done to `done`, in an order whose reverse undoes them.
    ///
    /// When one fails, those that have begun come to their end and no other begins.
    pub(super) async fn run<'s>(
        &'s self,
        env: &dyn ExecutionEnvironment,
        done: &mut Vec<&'s Step<'a>>,
    ) -> Result<(), Stopped<'s>> {
        let before = done.len();
        let mut failures = Vec::new();
        for (step, outcome) in self.steps.iter().zip(self.attempt_each(env).await) {
            match outcome {
                Some(Ok(())) => done.push(step),
                Some(Err(cause)) => failures.push((step, cause)),
                None => {}
            }
        }
        // What takes the most room is undone first: there may be none left.
        done.get_mut(before..).unwrap_or_default().sort_by_key(|step| step.growth());
        let left_changed = retract(env, &failures).await;
        let Some((step, cause)) = failures.into_iter().next() else { return self.tell_apart(env).await };
        let other = match cause {
            ApplyPlanCause::Changed => self.other_name(env, step).await,
            ApplyPlanCause::SameFile { .. }
            | ApplyPlanCause::LinkToNowhere
            | ApplyPlanCause::Environment(_) => None,
        };
        match other {
            Some(other) => Err(self.one_file(step, other, left_changed)),
            None => Err(Stopped { path: step.path(), cause, left_changed }),
        }
    }

    /// What became of each step; `None` where another one failed before it began.
    async fn attempt_each(&self, env: &dyn ExecutionEnvironment) -> Vec<Option<Result<(), ApplyPlanCause>>> {
        let has_failed = &AtomicBool::new(false);
        let attempts = self.steps.iter().map(|step| async move {
            if has_failed.load(Ordering::Relaxed) {
                return None;
            }
            let outcome = step.run(env).await;
            if outcome.is_err() {
                has_failed.store(true, Ordering::Relaxed);
            }
            Some(outcome)
        });
        at_most(self.at_once, attempts).await
    }

    /// Sees that no file was written under two names, as it can be where links lead to one place.
    ///
    /// Steps that are done side by side find the file as it was before either of them.
    async fn tell_apart<'s>(&'s self, env: &dyn ExecutionEnvironment) -> Result<(), Stopped<'s>> {
        if self.steps.len() < 2 || self.at_once == 1 {
            return Ok(());
        }
        let others = self.steps.iter().map(|step| self.other_name(env, step));
        let others = at_most(self.at_once, others).await;
        let found = self.steps.iter().zip(others).find_map(|(step, other)| Some((step, other?)));
        match found {
            Some((step, other)) => Err(self.one_file(step, other, Vec::new())),
            None => Ok(()),
        }
    }

    /// The other step whose content stands where that of this one should. Content of somebody else says nothing: a
    /// tool that watches the files may have put it there.
    async fn other_name<'s>(
        &'s self,
        env: &dyn ExecutionEnvironment,
        step: &Step<'a>,
    ) -> Option<&'s Step<'a>> {
        let new = step.written()?;
        let longest = self.steps.iter().filter_map(Step::written).map(<[u8]>::len).max()? as u64;
        // What cannot be read now tells nothing either.
        let found = env.read(step.path().as_ref(), Some(0..longest + 1)).await.ok()?;
        if found == new {
            return None;
        }
        self.steps.iter().find(|other| other.written() == Some(&found))
    }

    /// Stopped at the later of two steps that are about one file.
    fn one_file<'s>(
        &'s self,
        one: &'s Step<'a>,
        other: &'s Step<'a>,
        left_changed: Vec<LeftChanged>,
    ) -> Stopped<'s> {
        let place = |step: &Step<'a>| self.steps.iter().position(|candidate| candidate == step);
        let (earlier, later) = if place(one) < place(other) { (one, other) } else { (other, one) };
        let cause = ApplyPlanCause::SameFile { other: earlier.path().to_owned() };
        Stopped { path: later.path(), cause, left_changed }
    }
}

/// Undoes steps, the last one first; adds the files for which it failed to `left_changed`.
pub(super) async fn undo(
    env: &dyn ExecutionEnvironment,
    done: &[&Step<'_>],
    left_changed: &mut Vec<LeftChanged>,
) {
    for step in done.iter().rev() {
        if let Err(error) = step.undo(env).await {
            note(left_changed, step, &error);
        }
    }
}

/// Takes back what steps did that failed in the environment.
async fn retract(
    env: &dyn ExecutionEnvironment,
    failures: &[(&Step<'_>, ApplyPlanCause)],
) -> Vec<LeftChanged> {
    let mut left_changed = Vec::new();
    for (step, cause) in failures {
        if let ApplyPlanCause::Environment(_) = cause
            && let Err(error) = step.retract(env).await
        {
            note(&mut left_changed, step, &error);
        }
    }
    left_changed
}

fn note(left_changed: &mut Vec<LeftChanged>, step: &Step<'_>, error: &EnvError) {
    tracing::warn!(path = step.path(), %error, "a change of a failed patch cannot be taken back");
    if let Some(left) = step.left_changed()
        && !left_changed.iter().any(|other| other.path == left.path)
    {
        left_changed.push(left);
    }
}

/// Drives `tasks` to their ends, at most `limit` at a time. The results are in the order of the tasks.
async fn at_most<T, F: Future<Output = T>>(limit: usize, tasks: impl Iterator<Item = F>) -> Vec<T> {
    let mut waiting = tasks.enumerate();
    let mut running = Vec::with_capacity(limit);
    let mut results = Vec::new();
    poll_fn(|context| {
        loop {
            let free = limit.saturating_sub(running.len());
            running.extend(waiting.by_ref().take(free).map(|(place, task)| (place, Box::pin(task))));
            if running.is_empty() {
                return Poll::Ready(());
            }
            let before = results.len();
            running.retain_mut(|(place, task)| match task.as_mut().poll(context) {
                Poll::Ready(result) => {
                    results.push((*place, result));
                    false
                }
                Poll::Pending => true,
            });
            if results.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await;
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[tokio::test]
    async fn tasks_run_side_by_side_within_the_limit_and_answer_in_order() {
        for (limit, tasks, most) in [(1, 5, 1), (3, 50, 3), (16, 4, 4), (2, 0, 0)] {
            let (running, peak) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
            let tasks = (0..tasks).map(|number| async move {
                peak.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                // Some come to their end before others that began earlier.
                for _ in 0..(number * 7) % 5 + 1 {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, Ordering::Relaxed);
                number
            });
            let expected: Vec<usize> = (0..tasks.len()).collect();
            assert_eq!(at_most(limit, tasks).await, expected);
            assert_eq!(peak.load(Ordering::Relaxed), most);
        }
    }
}
