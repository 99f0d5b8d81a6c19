//! Concurrent steps of a transaction.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use pintle_env::{EnvError, ExecutionEnvironment};

use super::error::{ApplyPlanCause, UnrestoredFile};
use super::step::Step;

/// Maximum number of concurrent steps. Writes wait for a disk or a remote host rather than a processor, and disks flush
/// concurrent writes together.
const MAX_CONCURRENT: usize = 16;

/// Steps of one kind in a transaction.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    steps: Vec<Step<'a>>,
    max_concurrent: usize,
}

/// A stage that failed.
#[derive(Debug)]
pub(super) struct StageFailure<'s> {
    /// The file that failed.
    pub(super) path: &'s str,
    pub(super) cause: ApplyPlanCause,
    /// The effects of failed steps that could not be undone.
    pub(super) left_changed: Vec<UnrestoredFile>,
}

impl<'a> Stage<'a> {
    /// Creates a stage of steps that are independent of each other.
    pub(super) fn concurrent(steps: Vec<Step<'a>>) -> Self {
        Self { steps, max_concurrent: MAX_CONCURRENT }
    }

    /// Creates a stage of steps that depend on earlier ones.
    pub(super) fn sequential(steps: Vec<Step<'a>>) -> Self {
        Self { steps, max_concurrent: 1 }
    }

    /// Runs the steps, and adds the successful ones to `done`, to be undone in reverse order.
    ///
    /// When a step fails, running steps finish and no further step is started.
    pub(super) async fn run<'s>(
        &'s self,
        env: &dyn ExecutionEnvironment,
        done: &mut Vec<&'s Step<'a>>,
    ) -> Result<(), StageFailure<'s>> {
        let before = done.len();
        let mut failures = Vec::new();
        for (step, outcome) in self.steps.iter().zip(self.attempt_each(env).await) {
            match outcome {
                Some(Ok(())) => done.push(step),
                Some(Err(cause)) => failures.push((step, cause)),
                None => {}
            }
        }
        // The steps that use the most disk space are undone first, since the disk may be full.
        done.get_mut(before..).unwrap_or_default().sort_by_key(|step| step.growth());
        let left_changed = retract(env, &failures).await;
        let Some((step, cause)) = failures.into_iter().next() else { return self.check_distinct(env).await };
        let other = match cause {
            ApplyPlanCause::Changed => self.other_name(env, step).await,
            ApplyPlanCause::SameFile { .. }
            | ApplyPlanCause::LinkToNowhere
            | ApplyPlanCause::Environment(_) => None,
        };
        match other {
            Some(other) => Err(self.same_file(step, other, left_changed)),
            None => Err(StageFailure { path: step.path(), cause, left_changed }),
        }
    }

    /// Returns the outcome of each step; `None` if it was not started because another one had failed.
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
        run_concurrently(self.max_concurrent, attempts).await
    }

    /// Checks that no file was written under two names, which is possible through links.
    ///
    /// Concurrent steps cannot detect this themselves, since each finds the file as it was before both.
    async fn check_distinct<'s>(&'s self, env: &dyn ExecutionEnvironment) -> Result<(), StageFailure<'s>> {
        if self.steps.len() < 2 || self.max_concurrent == 1 {
            return Ok(());
        }
        let others = self.steps.iter().map(|step| self.other_name(env, step));
        let others = run_concurrently(self.max_concurrent, others).await;
        let found = self.steps.iter().zip(others).find_map(|(step, other)| Some((step, other?)));
        match found {
            Some((step, other)) => Err(self.same_file(step, other, Vec::new())),
            None => Ok(()),
        }
    }

    /// Returns the step whose content is at this step's path. Content of neither step is ignored: a program that
    /// watches the files, such as a formatter, may have written it.
    async fn other_name<'s>(
        &'s self,
        env: &dyn ExecutionEnvironment,
        step: &Step<'a>,
    ) -> Option<&'s Step<'a>> {
        let new = step.written()?;
        let longest = self.steps.iter().filter_map(Step::written).map(<[u8]>::len).max()? as u64;
        // A file that cannot be read is ignored as well.
        let found = env.read(step.path().as_ref(), Some(0..longest + 1)).await.ok()?;
        if found == new {
            return None;
        }
        self.steps.iter().find(|other| other.written() == Some(&found))
    }

    /// Returns the failure of the later of two steps that write the same file.
    fn same_file<'s>(
        &'s self,
        one: &'s Step<'a>,
        other: &'s Step<'a>,
        left_changed: Vec<UnrestoredFile>,
    ) -> StageFailure<'s> {
        let position = |step: &Step<'a>| self.steps.iter().position(|candidate| candidate == step);
        let (earlier, later) = if position(one) < position(other) { (one, other) } else { (other, one) };
        let cause = ApplyPlanCause::SameFile { other: earlier.path().to_owned() };
        StageFailure { path: later.path(), cause, left_changed }
    }
}

/// Undoes steps in reverse order, and adds the files for which this failed to `left_changed`.
pub(super) async fn undo(
    env: &dyn ExecutionEnvironment,
    done: &[&Step<'_>],
    left_changed: &mut Vec<UnrestoredFile>,
) {
    for step in done.iter().rev() {
        if let Err(error) = step.undo(env).await {
            record_left_changed(left_changed, step, &error);
        }
    }
}

/// Undoes the effects of steps that failed in the environment.
async fn retract(
    env: &dyn ExecutionEnvironment,
    failures: &[(&Step<'_>, ApplyPlanCause)],
) -> Vec<UnrestoredFile> {
    let mut left_changed = Vec::new();
    for (step, cause) in failures {
        if let ApplyPlanCause::Environment(_) = cause
            && let Err(error) = step.retract(env).await
        {
            record_left_changed(&mut left_changed, step, &error);
        }
    }
    left_changed
}

fn record_left_changed(left_changed: &mut Vec<UnrestoredFile>, step: &Step<'_>, error: &EnvError) {
    tracing::warn!(path = step.path(), %error, "a change of a failed patch cannot be undone");
    if let Some(left) = step.left_changed()
        && !left_changed.iter().any(|other| other.path == left.path)
    {
        left_changed.push(left);
    }
}

/// Runs `tasks` to completion, at most `limit` of them concurrently. The results are in the order of the tasks.
async fn run_concurrently<T, F: Future<Output = T>>(limit: usize, tasks: impl Iterator<Item = F>) -> Vec<T> {
    let mut waiting = tasks.enumerate();
    let mut running = Vec::with_capacity(limit);
    let mut results = Vec::new();
    poll_fn(|context| {
        loop {
            let free = limit.saturating_sub(running.len());
            running.extend(waiting.by_ref().take(free).map(|(index, task)| (index, Box::pin(task))));
            if running.is_empty() {
                return Poll::Ready(());
            }
            let before = results.len();
            running.retain_mut(|(index, task)| match task.as_mut().poll(context) {
                Poll::Ready(result) => {
                    results.push((*index, result));
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
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[tokio::test]
    async fn tasks_run_concurrently_up_to_the_limit() {
        for (limit, tasks, most) in [(1, 5, 1), (3, 50, 3), (16, 4, 4), (2, 0, 0)] {
            let (running, peak) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
            let tasks = (0..tasks).map(|number| async move {
                peak.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                // Some finish before others that started earlier.
                for _ in 0..(number * 7) % 5 + 1 {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, Ordering::Relaxed);
                number
            });
            let expected: Vec<usize> = (0..tasks.len()).collect();
            assert_eq!(run_concurrently(limit, tasks).await, expected);
            assert_eq!(peak.load(Ordering::Relaxed), most);
        }
    }
}
