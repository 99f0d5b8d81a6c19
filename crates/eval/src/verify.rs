//! Verification of a suite: its tests fail on the base, and pass with the gold change.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use pintle_host::failure::Failure;

use crate::judge::{Judgement, judge};
use crate::machine::Machine;
use crate::suite::Instance;
use crate::workspace::Workspace;

/// Name of the clone that gets the gold change.
const CLONE: &str = "gold";

/// Result of the verification of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedInstance {
    /// Name of the instance.
    pub instance: String,
    /// Problems, as text for users. None if the instance is valid.
    pub problems: Vec<String>,
}

/// Verifies instances, `jobs` of them concurrently, and reports each.
///
/// Dropping the future ends the tests.
///
/// # Errors
///
/// Files that cannot be read or written. A change that cannot be applied is a problem of the instance.
pub async fn verify(
    instances: &[&Instance],
    machine: &Machine,
    jobs: usize,
    report: &dyn Fn(&VerifiedInstance),
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let workers = (0..jobs.max(1)).map(|_| verify_next(instances, machine, &next, report));
    join_all(workers).await.into_iter().collect()
}

/// Verifies instances until none is left.
async fn verify_next(
    instances: &[&Instance],
    machine: &Machine,
    next: &AtomicUsize,
    report: &dyn Fn(&VerifiedInstance),
) -> Result<(), Failure> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(instance) = instances.get(number) else { return Ok(()) };
        match verify_one(instance, machine, number).await {
            Ok(verified) => report(&verified),
            Err(failure) => {
                // The other workers start no further instance.
                next.store(instances.len(), Ordering::Relaxed);
                return Err(failure);
            }
        }
    }
}

async fn verify_one(
    instance: &Instance,
    machine: &Machine,
    number: usize,
) -> Result<VerifiedInstance, Failure> {
    let root = machine.work_directory(&format!("verify-{}-{number}", std::process::id()))?;
    let mut problems = Vec::new();
    if instance.cheat.as_ref().is_some_and(|case| case.is_cheat) {
        // Its twin has the gold change. A cheat runs only in the sandbox of a session.
        return Ok(VerifiedInstance { instance: instance.id.clone(), problems });
    }
    if let Some(program) = machine.missing_program(&instance.needs).await? {
        problems.push(format!("it needs `{program}`, which is missing"));
        return Ok(VerifiedInstance { instance: instance.id.clone(), problems });
    }
    let workspace = Workspace::create(machine, instance, &root).await?;
    workspace.clone_to(CLONE).await?;
    let before = workspace.record_tree(CLONE).await?;
    let patch = workspace.path("gold.patch");
    workspace.write_patch(&before, &before, &patch).await?;
    problems.extend(problems_of_base(&judge(&workspace, &patch).await?));
    match &instance.gold {
        None => problems.push("it has no gold change".to_owned()),
        Some(gold) => match workspace.apply_change(CLONE, gold).await {
            Err(failure) => {
                problems.push(format!("the gold change cannot be applied: {}", failure.message()))
            }
            Ok(()) => {
                let after = workspace.record_tree(CLONE).await?;
                if after == before {
                    problems.push("the gold change changes nothing".to_owned());
                }
                workspace.write_patch(&before, &after, &patch).await?;
                problems.extend(problems_of_gold(&judge(&workspace, &patch).await?));
            }
        },
    }
    workspace.remove()?;
    Ok(VerifiedInstance { instance: instance.id.clone(), problems })
}

fn problems_of_base(judgement: &Judgement) -> Vec<String> {
    let tests = judgement.tests.iter().filter(|test| test.passed != test.passes_before);
    let tests = tests.map(|test| match test.passed {
        true => format!("`{}` passes before the change", test.name),
        false => format!("`{}` fails before the change: {}", test.name, test.output),
    });
    judgement.problem.iter().map(|problem| format!("before the change: {problem}")).chain(tests).collect()
}

fn problems_of_gold(judgement: &Judgement) -> Vec<String> {
    let tests = judgement.failures();
    let tests = tests.map(|test| format!("`{}` fails with the gold change: {}", test.name, test.output));
    judgement.problem.iter().map(|problem| format!("with the gold change: {problem}")).chain(tests).collect()
}
