//! `pintle mcp serve`: our tools for an MCP client, confined like the tools of a run.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_agent::{SessionId, SystemClock, Toolset, ToolsetOptions};
use pintle_env::{ExecutionEnvironment, WriteSwitch};
use pintle_governance::{
    GateChain, GatePosition, Grant, GrantGate, HookCommand, Mode, Policy, WorkspacePolicy,
};
use pintle_host::environment::{EnvSession, EnvTarget, SandboxRequirements, SandboxState};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::grant_workspace;
use pintle_host::policy::{self, LoadedPolicy};
use pintle_host::process_env::ProcessEnv;
use pintle_host::provider::Provider;
use pintle_mcp::McpServer;
use pintle_tools::ToolContext;
use pintle_tools::gate::ReadBeforeWrite;
use pintle_tools::pipeline::RunOptions;
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;

use crate::arguments::ServeToolsArgs;
use crate::exit::Exit;

/// Name of a model that no tool depends on.
const ANY_MODEL: &str = "any";

/// Answers a client on standard input and output until it closes its end.
pub(super) async fn serve(args: ServeToolsArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let target = EnvTarget::new((&args.environment).into(), (&args.confinement).into(), process_env)?
        .with_denials(&args.policy.deny)
        .with_requirements(SandboxRequirements {
            writes: WriteSwitch::new(args.policy.mode != Some(Mode::Plan)),
            keeps_state: true,
            ..SandboxRequirements::default()
        });
    let interrupts = Interrupts::listen()?;
    let env_session = interrupts.race(target.connect()).await?;
    interrupts.kill_commands_of(&env_session);
    let served = interrupts.race(answer(&args, &env_session, process_env)).await;
    let closed = env_session.close().await;
    served.and(closed).map(|()| Exit::Done).map_err(|failure| interrupts.reclassify(failure))
}

async fn answer(
    args: &ServeToolsArgs,
    env_session: &EnvSession,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let environment = env_session.environment();
    let name = args.environment.env.to_string();
    let projects = env_session.projects().await?;
    let loaded =
        policy::load(&(&args.policy).into(), environment.as_ref(), &name, projects, process_env).await?;
    let LoadedPolicy { policy, user_hooks, project_hooks, untrusted, .. } = loaded;
    let of_projects = project_hooks.iter().flat_map(|(hooks, _programs)| hooks.iter());
    check_hooks(user_hooks.iter().collect(), of_projects.collect())?;
    if let Some(untrusted) = untrusted {
        process_env.notices().report(untrusted.notice());
    }
    if matches!(env_session.sandbox(), SandboxState::Unavailable { .. }) && args.policy.mode.is_none() {
        // There is neither a sandbox nor a user to ask.
        policy.set_mode(Mode::Ask).await.or_failed("cannot set the mode")?;
    }
    policy.drive(env_session.writes().clone());
    let grant = args.grant.as_deref();
    let grant = grant.map(|file| policy::grant::read_file(file, process_env)).transpose()?;
    let workspace = grant_workspace::workspace_policy(env_session, grant.is_some(), process_env)?;
    let mut chain = chain(args, env_session, &policy);
    if let Some(grant) = grant {
        if grant.budget != pintle_agent::Limits::default() {
            return Err(Failure::usage(
                "a grant with a budget is not supported here, because the costs of a client's model are unknown",
            ));
        }
        grant_workspace::require_network_blocked(
            &grant,
            env_session.sandbox(),
            &(&args.confinement).into(),
            false,
        )?;
        let gate = grant_gate(grant, SessionId::generate(), &name, &environment, &workspace)?;
        chain = chain.with_gate(GatePosition::Grant, gate);
    }
    env_session.compare_with_earlier().await?;
    let options = RunOptions::new().with_gates(chain.in_order());
    let toolset = Toolset::from(args.toolset);
    let profile = Provider::OpenAi.profile(ANY_MODEL);
    let profile = profile.with_toolset_options(toolset, &ToolsetOptions::new().with_background(true));
    let directory = environment.working_directory().display().to_string();
    let instructions = format!("Relative paths start at {directory}, where commands run as well.");
    let context = ToolContext::new(Arc::clone(&environment), String::new());
    let server = McpServer::new(profile.tool_registry, context, options).with_instructions(instructions);
    server.serve(tokio::io::stdin(), tokio::io::stdout()).await.or_failed("the client disconnected")
}

/// Returns the gate that enforces the grant of a session.
///
/// A grant that is not valid here and now is a usage failure, so that the model is not called.
fn grant_gate(
    grant: Grant,
    session: SessionId,
    environment_name: &str,
    environment: &Arc<dyn ExecutionEnvironment>,
    workspace: &WorkspacePolicy,
) -> Result<GrantGate, Failure> {
    let clock = Arc::new(SystemClock);
    let gate = workspace.grant_gate(Arc::new(grant), session, environment, environment_name, clock);
    match gate.standing() {
        None => Ok(gate),
        Some(reason) => Err(Failure::usage(format!("invalid grant: {reason}"))),
    }
}

/// Returns the gates of a session without a grant.
fn chain(args: &ServeToolsArgs, env_session: &EnvSession, policy: &Policy) -> GateChain {
    let environment = env_session.environment();
    let chain = env_session.workspace().gates(&environment, policy);
    let chain = chain.with_gate(GatePosition::Watch, env_session.guarded_watch());
    match args.confinement.read_before_write {
        true => chain.with_gate(GatePosition::ReadBeforeWrite, ReadBeforeWrite::new(environment)),
        false => chain,
    }
}

/// Prints a notice that hooks do not run: only sessions run them.
///
/// A required hook is a usage failure, because it would have to approve each call.
fn check_hooks(of_user: Vec<&HookCommand>, of_projects: Vec<&HookCommand>) -> Result<(), Failure> {
    for (hooks, remedy) in [
        // It applies in every directory.
        (&of_user, "remove `required` from it"),
        (&of_projects, "remove `required` from it, or use another directory"),
    ] {
        if let Some(required) = hooks.iter().find(|hook| hook.is_required()) {
            let source = required.source();
            let message =
                format!("the hook in {source} is required, but hooks do not run in `pintle mcp serve`");
            return Err(Failure::usage(message).with_hint(remedy));
        }
    }
    let hooks: Vec<&HookCommand> = of_user.into_iter().chain(of_projects).collect();
    if !hooks.is_empty() {
        let sources: BTreeSet<&str> = hooks.iter().map(|hook| hook.source()).collect();
        let sources: Vec<&str> = sources.into_iter().collect();
        console::notice(&format!("hooks do not run in `pintle mcp serve`: {}", sources.join(", ")));
    }
    Ok(())
}
