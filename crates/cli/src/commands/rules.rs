//! `pintle rules`: lists the rules that apply, and evaluates them for a call.

mod described;

use std::sync::Arc;

use pintle_env::{ExecutionEnvironment, LocalEnvironment};
use pintle_host::env_spec::EnvSpec;
use pintle_host::failure::Failure;
use pintle_host::policy::{self, LoadedPolicy, Project};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, to_single_line};
use pintle_host::{SandboxLevel, environment};
use pintle_tools::gate::{Judgement, JudgementStep, Permission};
use pintle_tools::pipeline::JudgedCall;
use pintle_tui::console;
use serde_json::json;

use self::described::DescribedCall;
use crate::arguments::{CheckRulesArgs, ListFormat, RulesArgs, RulesCommand, RulesScope};
use crate::exit::Exit;

/// Runs `pintle rules`.
pub(crate) async fn rules(args: RulesArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    match args.command {
        RulesCommand::List(scope) => list(&scope, process_env).await,
        RulesCommand::Check(args) => check(&args, process_env).await,
    }
}

async fn load(
    scope: &RulesScope,
    process_env: &ProcessEnv,
) -> Result<(LoadedPolicy, LocalEnvironment), Failure> {
    let directory = process_env.directory(scope.dir.as_deref())?;
    let environment = process_env.local_environment(&directory)?;
    let projects = Project::read_all(&environment).await?;
    let loaded =
        policy::load(&(&scope.policy).into(), &environment, EnvSpec::LOCAL, &projects, process_env).await?;
    Ok((loaded, environment))
}

async fn list(scope: &RulesScope, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (loaded, _environment) = load(scope, process_env).await?;
    let rules = loaded.policy.rules();
    let text = match scope.output {
        ListFormat::Json => {
            let rows: Vec<_> = rules.on_record().map(|rule| json!(rule)).collect();
            json_line(&json!(rows))?
        }
        ListFormat::Text => {
            let mut text = String::new();
            for rule in rules.on_record() {
                let (named, source) = (to_single_line(&rule.rule), to_single_line(&rule.source));
                text.push_str(&format!("{:<5} {named}  ({source})\n", rule.permission.as_str()));
            }
            text.push_str(&format!("mode {} for all other calls\n", loaded.policy.mode()));
            text
        }
    };
    console::print(&text).await?;
    if let Some(untrusted) = loaded.untrusted {
        process_env.notices().report(untrusted.notice());
    }
    Ok(Exit::Done)
}

/// Evaluates a call like a run without sandbox flags.
async fn check(args: &CheckRulesArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (loaded, local) = load(&args.scope, process_env).await?;
    let mut workspace =
        environment::local_workspace_policy(local.working_directory(), SandboxLevel::Auto, process_env)?;
    workspace.sandbox_holds_commands = environment::has_sandbox(&local).await;
    let environment: Arc<dyn ExecutionEnvironment> = Arc::new(local);
    let gates = workspace.gates(&environment, &loaded.policy).in_order();
    let call = DescribedCall::parse(&args.call, environment.as_ref()).await?;
    let judgement = match call.judged_by(&gates, environment.as_ref()).await? {
        JudgedCall::Ready { judgement, .. } | JudgedCall::Ask { judgement, .. } => judgement,
        JudgedCall::Refused { error, judgement } if judgement.is_empty() => {
            return Err(Failure::usage("cannot parse the call").caused_by(&error));
        }
        JudgedCall::Refused { judgement, .. } => judgement,
    };
    let text = decision(&judgement, args.scope.output)?;
    console::print(&text).await?;
    if let Some(untrusted) = loaded.untrusted {
        process_env.notices().report(untrusted.notice());
    }
    Ok(Exit::Done)
}

/// Returns the decision and the step that made it.
fn decision(judgement: &Judgement, format: ListFormat) -> Result<String, Failure> {
    let permission = judgement.permission();
    let mut steps = judgement.steps().iter().filter(|step| step.permission == permission);
    let step = match permission {
        // All steps allow the call, and the last one has the rule or the mode.
        Permission::Allow => steps.next_back(),
        Permission::Ask | Permission::Deny => steps.next(),
    };
    let Some(JudgementStep { gate, rule, reason, by_default, .. }) = step else {
        return Err(Failure::failed("no step has judged the call"));
    };
    let rule = rule.as_deref().unwrap_or_default();
    // The gate by rules also applies the mode.
    let decided_by = if rule.starts_with("mode ") { "the mode: no rule names the call" } else { gate };
    match format {
        ListFormat::Json => json_line(&json!({
            "permission": permission,
            "step": gate,
            "rule": rule,
            "reason": reason,
            "by_default": by_default,
        })),
        ListFormat::Text => Ok(match permission {
            Permission::Allow => format!("allow: {rule}\ndecided by {decided_by}\n"),
            Permission::Ask | Permission::Deny => {
                format!("{permission}: {rule}: {reason}\ndecided by {decided_by}\n")
            }
        }),
    }
}
