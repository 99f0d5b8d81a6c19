//! Answers of several hooks, merged in the order of their files.

use pintle_agent::{CallAnswer, Decision, EndAnswer, HookContext, InputAnswer, ResultAnswer};
use pintle_tools::gate::Permission;

use super::answer::{Answer, strictness};

/// Answer of one hook, with the hook's origin.
#[derive(Clone, Debug)]
pub(super) struct AttributedAnswer {
    pub(super) hook: String,
    pub(super) answer: Answer,
}

/// Merges answers before a call: the strictest permission counts, and the last arguments if no hook denies it.
pub(super) fn call(answers: &[AttributedAnswer]) -> CallAnswer {
    let answers = &without_other_allowances(answers);
    let permission = permission(answers);
    let mut hooks: Vec<&str> = deciding(answers, permission).map(|(hook, _)| hook).collect();
    let reasons = permission.filter(|permission| *permission != Permission::Allow);
    let reason = reasons.and_then(|_| joined(deciding(answers, permission).filter_map(|(_, reason)| reason)));
    let changed = answers.iter().rev().find(|answered| answered.answer.arguments.is_some());
    let changed = changed.filter(|_| permission != Some(Permission::Deny));
    if let Some(AttributedAnswer { hook, .. }) = changed
        && !hooks.contains(&hook.as_str())
    {
        hooks.push(hook);
    }
    let mut answer = permission.map_or_else(CallAnswer::default, |given| CallAnswer::judge(given, reason));
    if !hooks.is_empty() {
        answer = answer.with_hook(hooks.join(", "));
    }
    answer.stop = stopped(answers);
    answer
        .with_arguments(changed.and_then(|changed| changed.answer.arguments.clone()))
        .with_context(context(answers).0)
}

/// Merges answers to a request for approval. If a hook asks, the request goes to the approver.
pub(super) fn approval(answers: &[AttributedAnswer]) -> Option<Decision> {
    let answers = &without_other_allowances(answers);
    let permission = permission(answers)?;
    match permission {
        Permission::Deny => {
            let deciding = || deciding(answers, Some(permission));
            let hooks = deciding().map(|(hook, _)| hook).collect::<Vec<_>>().join(", ");
            let reason = match joined(deciding().filter_map(|(_, reason)| reason)) {
                Some(reason) if reason.contains(&hooks) => reason,
                Some(reason) => format!("{reason} (hook {hooks})"),
                None => format!("the hook {hooks} denies it"),
            };
            Some(Decision::Deny { reason: Some(reason) })
        }
        Permission::Ask => None,
        Permission::Allow => {
            let arguments = answers.iter().rev().find_map(|answered| answered.answer.arguments.clone());
            Some(arguments.map_or(Decision::Approve, |arguments| Decision::Change { arguments }))
        }
    }
}

/// Merges answers to an input.
pub(super) fn input(answers: &[AttributedAnswer]) -> InputAnswer {
    match blocked(answers) {
        Some(reason) => InputAnswer::refuse(reason),
        None => context(answers).0.map_or_else(InputAnswer::default, InputAnswer::add),
    }
}

/// Merges the texts that hooks add for the model.
pub(super) fn context(answers: &[AttributedAnswer]) -> HookContext {
    HookContext(joined(answers.iter().filter_map(|answered| answered.answer.context.as_deref())))
}

/// Merges answers to a result. The call has run, so objections are text for the model.
pub(super) fn result(answers: &[AttributedAnswer]) -> ResultAnswer {
    let texts = answers.iter().flat_map(|AttributedAnswer { answer, .. }| {
        let objects = answer.permission == Some(Permission::Deny) && answer.stop.is_none();
        let reason = objects.then(|| answer.reason.as_deref().unwrap_or("a hook objects to it"));
        [reason, answer.context.as_deref()]
    });
    let mut merged = joined(texts.flatten()).map_or_else(ResultAnswer::default, ResultAnswer::add);
    merged.stop = stopped(answers);
    merged.replacement = answers.iter().rev().find_map(|answered| answered.answer.replacement.clone());
    merged
}

/// Merges answers at the end of a turn. If a hook stops the agent, no other hook can make it continue.
pub(super) fn end(answers: &[AttributedAnswer]) -> EndAnswer {
    if stopped(answers).is_some() {
        return EndAnswer::default();
    }
    blocked(answers).map_or_else(EndAnswer::default, EndAnswer::send_on)
}

/// Returns the reasons of the hooks that block, if any hook blocks.
pub(super) fn blocked(answers: &[AttributedAnswer]) -> Option<String> {
    let denied = permission(answers).filter(|permission| *permission == Permission::Deny)?;
    let reasons = joined(deciding(answers, Some(denied)).filter_map(|(_, reason)| reason));
    Some(reasons.unwrap_or_else(|| "a hook blocks it".to_owned()))
}

/// Returns the reasons of the hooks that stop the agent, if any hook does.
fn stopped(answers: &[AttributedAnswer]) -> Option<String> {
    joined(answers.iter().filter_map(|answered| answered.answer.stop.as_deref()))
}

/// Removes allowances that were given for other arguments than the last ones. A hook that changes no arguments allows the
/// original ones.
fn without_other_allowances(answers: &[AttributedAnswer]) -> Vec<AttributedAnswer> {
    let mut answers = answers.to_vec();
    let last = answers.iter().rev().find_map(|answered| answered.answer.arguments.clone());
    for AttributedAnswer { answer, .. } in &mut answers {
        if answer.permission == Some(Permission::Allow) && answer.arguments != last {
            (answer.permission, answer.reason) = (None, None);
        }
    }
    answers
}

fn permission(answers: &[AttributedAnswer]) -> Option<Permission> {
    answers.iter().filter_map(|answered| permission_of(&answered.answer)).max_by_key(|p| strictness(*p))
}

/// Returns the permission of one answer. An answer that stops the agent is a denial.
fn permission_of(answer: &Answer) -> Option<Permission> {
    if answer.stop.is_some() { Some(Permission::Deny) } else { answer.permission }
}

/// Returns the hooks with this permission, and their reasons.
fn deciding(
    answers: &[AttributedAnswer],
    permission: Option<Permission>,
) -> impl Iterator<Item = (&str, Option<&str>)> {
    let decides = move |answer: &Answer| permission.is_some() && permission_of(answer) == permission;
    answers.iter().filter(move |answered| decides(&answered.answer)).map(
        |AttributedAnswer { hook, answer }| {
            let reason = if answer.stop.is_some() { &answer.stop } else { &answer.reason };
            (hook.as_str(), reason.as_deref())
        },
    )
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    (!all.is_empty()).then(|| all.join("\n"))
}
