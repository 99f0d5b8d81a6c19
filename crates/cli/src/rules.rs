//! `pintle rules`: the rules that apply, and what would happen to a call.

use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_governance::{CallFacts, PolicyGate};
use pintle_tools::gate::Permission;
use serde_json::json;

use crate::args::{CheckRulesArgs, ListFormat, RulesArgs, RulesCommand, RulesScope};
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::{Failure, OrFailure as _};
use crate::policy::{self, LoadedPolicy};
use crate::process_env::ProcessEnv;
use crate::render;

/// Runs `pintle rules`.
///
/// # Errors
///
/// A usage failure for a wrong rule, rules file or call.
pub(crate) async fn rules(args: RulesArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    match args.command {
        RulesCommand::List(scope) => list(&scope, process_env).await,
        RulesCommand::Check(args) => check(&args, process_env).await,
    }
}

async fn load(
    scope: &RulesScope,
    process_env: &ProcessEnv,
) -> Result<(LoadedPolicy, Arc<dyn ExecutionEnvironment>), Failure> {
    let directory = process_env.directory(scope.dir.as_deref())?;
    let environment: Arc<dyn ExecutionEnvironment> = Arc::new(process_env.local_environment(&directory)?);
    let loaded = policy::load(&scope.policy, environment.as_ref(), "local", process_env).await?;
    Ok((loaded, environment))
}

async fn list(scope: &RulesScope, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (loaded, _environment) = load(scope, process_env).await?;
    let rules = loaded.policy.rules();
    let text = match scope.output {
        ListFormat::Json => {
            let rows: Vec<_> = rules.on_record().map(|rule| json!(rule)).collect();
            render::json_line(&json!(rows))?
        }
        ListFormat::Text => {
            let mut text = String::new();
            for rule in rules.on_record() {
                text.push_str(&format!("{:<5} {}  ({})\n", rule.permission.as_str(), rule.rule, rule.source));
            }
            text.push_str(&format!("mode {} for all other calls\n", loaded.policy.mode()));
            text
        }
    };
    Console::new().write(&text).await?;
    if let Some(untrusted) = loaded.untrusted {
        untrusted.notice();
    }
    Ok(Exit::Done)
}

async fn check(args: &CheckRulesArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let (loaded, environment) = load(&args.scope, process_env).await?;
    let call =
        CallFacts::parse(&args.call, environment.as_ref()).await.or_usage("the call is not understood")?;
    let verdict = PolicyGate::new(loaded.policy, environment).verdict(&call).await;
    let rule = verdict.rule().unwrap_or_default();
    let text = match args.scope.output {
        ListFormat::Json => render::json_line(&json!({
            "permission": verdict.permission(),
            "rule": rule,
            "reason": verdict.reason(),
            "by_default": verdict.is_by_default(),
        }))?,
        ListFormat::Text => match verdict.permission() {
            Permission::Allow => format!("allow: {rule}\n"),
            Permission::Ask | Permission::Deny => {
                format!("{}: {rule}: {}\n", verdict.permission(), verdict.reason())
            }
        },
    };
    Console::new().write(&text).await?;
    if let Some(untrusted) = loaded.untrusted {
        untrusted.notice();
    }
    Ok(Exit::Done)
}
