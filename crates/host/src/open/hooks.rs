//! Hooks of a session: of the user, and of trusted projects.

use std::path::Path;
use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_governance::{ExternalHooks, HookCommands, HookRun, Policy, TrustedPrograms};
use pintle_llm::ToolList;

use crate::environment::{EnvSession, offline_environment};
use crate::failure::Failure;
use crate::notice::Notice;
use crate::process_env::ProcessEnv;
use crate::toolset;

/// Returns the hooks of a session; `None` without hooks. The user's hooks run on this machine with the user's rights,
/// but without network if the grant allows none. Hooks of the project run in the environment of its commands.
pub(super) async fn load(
    of_user: HookCommands,
    of_projects: Vec<(HookCommands, TrustedPrograms)>,
    env_session: &EnvSession,
    has_network: bool,
    policy: &Policy,
    process_env: &ProcessEnv,
) -> Result<Option<ExternalHooks>, Failure> {
    if of_user.is_empty() && of_projects.is_empty() {
        return Ok(None);
    }
    let environment = env_session.environment();
    let directory = environment.working_directory();
    let here = if process_env.is_directory(directory) { directory } else { Path::new("/") };
    let host: Arc<dyn ExecutionEnvironment> = match has_network || of_user.is_empty() {
        true => Arc::new(process_env.local_environment(here)?),
        false => offline_environment(here, process_env).await?,
    };
    let hooks = ExternalHooks::new(of_user, host).with_working_directory(process_env.unsandboxed_directory());
    let hooks = of_projects.into_iter().fold(hooks, |hooks, (commands, programs)| {
        hooks.and_trusted(commands, Arc::clone(&environment), programs)
    });
    let notices = process_env.notices().clone();
    let hooks = hooks.with_policy(policy.clone()).with_observer(move |run| {
        let HookRun { hook, failure, message, .. } = run;
        match (failure, message) {
            (Some(failure), _) => {
                notices.report(format!("the hook {hook} did not answer: {}", failure.describe()))
            }
            (None, Some(message)) => notices.report(format!("the hook {hook}: {message}")),
            (None, None) => {}
        }
    });
    Ok(Some(hooks))
}

/// Returns notices about hooks for tools that neither this session nor another toolset has. Tools of MCP servers may come later.
pub(super) fn unknown_tools(hooks: &ExternalHooks, offered: &ToolList) -> Result<Vec<Notice>, Failure> {
    let is_offered = |name: &str| name.starts_with("mcp__") || offered.iter().any(|tool| tool.name == name);
    if hooks.unknown_tools(is_offered).is_empty() {
        return Ok(Vec::new());
    }
    let known = toolset::all_names()?;
    let unknown = hooks.unknown_tools(|name| is_offered(name) || known.contains(name));
    let notices = unknown.into_iter().map(|(tool, hook)| {
        let source = hook.source();
        let text = format!("the hook in {source} is for the tool `{tool}`, which this session does not have");
        Notice::from(text)
    });
    Ok(notices.collect())
}
