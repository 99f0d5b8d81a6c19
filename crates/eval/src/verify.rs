//! Verification of a suite: its tests fail on the base, and pass with the gold change.

use std::path::Path;

use pintle_host::failure::Failure;

use crate::jobs::for_each;
use crate::judge::{Judgement, judge};
use crate::machine::Machine;
use crate::suite::Instance;
use crate::workspace::Workspace;

/// Name of the clone that gets the gold change.
const CLONE: &str = "gold";

/// Result of the verification of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
    for_each(instances, jobs, |number, instance| async move {
        report(&verify_one(instance, machine, number).await?);
        Ok(())
    })
    .await
}

async fn verify_one(
    instance: &Instance,
    machine: &Machine,
    number: usize,
) -> Result<VerifiedInstance, Failure> {
    let root = machine.work_directory(&format!("verify-{}-{number}", std::process::id()))?;
    let problems = find_problems(instance, machine, &root).await;
    machine.remove(&root)?;
    Ok(VerifiedInstance { instance: instance.id.clone(), problems: problems? })
}

async fn find_problems(instance: &Instance, machine: &Machine, root: &Path) -> Result<Vec<String>, Failure> {
    if instance.cheat.as_ref().is_some_and(|case| case.is_cheat) {
        // Its twin has the gold change. A cheat runs only in the sandbox of a session.
        return Ok(Vec::new());
    }
    if let Some(program) = machine.missing_program(&instance.needs).await? {
        return Ok(vec![format!("it needs `{program}`, which is missing")]);
    }
    let workspace = Workspace::create(machine, instance, root).await?;
    workspace.clone_to(CLONE).await?;
    let before = workspace.record_tree(CLONE).await?;
    let patch = workspace.path("gold.patch");
    workspace.write_patch(&before, &before, &patch).await?;
    let base = judge(&workspace, &patch).await?;
    let mut problems: Vec<String> = find_wrong_tests(&base, true).collect();
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
                problems.extend(find_wrong_tests(&judge(&workspace, &patch).await?, false));
            }
        },
    }
    Ok(problems)
}

/// Returns the tests whose results are wrong on the base, or with the gold change.
fn find_wrong_tests(judgement: &Judgement, is_base: bool) -> impl Iterator<Item = String> {
    let when = if is_base { "before the change" } else { "with the gold change" };
    let wrong = judgement.tests.iter().filter(move |test| test.passed != (test.passes_before || !is_base));
    let tests = wrong.map(move |test| match test.passed {
        true => format!("`{}` passes {when}", test.name),
        false => format!("`{}` fails {when}: {}", test.name, test.output),
    });
    judgement.problem.iter().map(move |problem| format!("{when}: {problem}")).chain(tests)
}
