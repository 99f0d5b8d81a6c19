//! Tools of manifests in the profile of a session.

use std::path::Path;
use std::sync::Arc;

use pintle_agent::ProviderProfile;
use pintle_env::ExecutionEnvironment;
use pintle_llm::error_chain;
use pintle_tools::{Effect, RegisteredTool};

use crate::environment::{EnvSession, SandboxState};
use crate::failure::Failure;
use crate::process_env::ProcessEnv;
use crate::tool_manifests::{ManifestTool, ToolDirectory};
use crate::toolset;

/// Adds the tools of manifests to a profile. A tool with a mistake, or with a name that another tool has, is left out with a
/// notice.
pub(super) fn add_to_profile(
    profile: &mut ProviderProfile,
    directories: &[ToolDirectory],
    env_session: &EnvSession,
    is_granted: bool,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let left_out = |reason: &dyn std::fmt::Display| {
        process_env.notices().report(format!("a tool of a manifest is left out: {reason}"));
    };
    for problem in directories.iter().flat_map(|directory| &directory.problems) {
        left_out(problem);
    }
    if directories.iter().all(|directory| directory.tools.is_empty()) {
        return Ok(());
    }
    let environment = env_session.environment();
    let files: Arc<dyn ExecutionEnvironment> = if environment.shares_host_files() {
        Arc::new(process_env.local_environment(Path::new("/"))?)
    } else {
        environment
    };
    let is_enforced = is_enforced(env_session.sandbox(), is_granted);
    let known = toolset::all_names()?;
    for directory in directories {
        for loaded in &directory.tools {
            let name = &loaded.manifest.definition.name;
            if known.contains(name) || profile.tool_registry.get(name).is_some() {
                let place = directory.path.display();
                left_out(&format!("{place}: there is another tool with the name `{name}`"));
                continue;
            }
            let declared = loaded.manifest.effect;
            let effect = if is_enforced { declared } else { Effect::Execute };
            let tool = ManifestTool::new(loaded.clone(), effect, Arc::clone(&files));
            match RegisteredTool::new(Arc::new(tool)) {
                Ok(tool) => profile.tool_registry.insert(Arc::new(tool)),
                Err(error) => left_out(&format!("{}: {}", directory.path.display(), error_chain(&error))),
            }
        }
    }
    Ok(())
}

/// Returns whether something other than the program enforces the declared effect. A grant by effect is about the code of
/// built-in tools, and not about programs.
fn is_enforced(sandbox: &SandboxState, is_granted: bool) -> bool {
    match sandbox {
        SandboxState::Level(level) => !is_granted && matches!(level.as_str(), "full" | "writes"),
        SandboxState::Off | SandboxState::Unavailable { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_effect_counts_only_in_a_sandbox_and_without_a_grant() {
        let level = |name: &str| SandboxState::Level(name.to_owned());
        let missing = SandboxState::Unavailable { reasons: "no kernel".to_owned() };
        for (sandbox, is_granted, expected) in [
            (level("full"), false, true),
            (level("writes"), false, true),
            (level("full"), true, false),
            (level("container"), false, false),
            (SandboxState::Off, false, false),
            (missing, false, false),
        ] {
            assert_eq!(is_enforced(&sandbox, is_granted), expected, "{sandbox:?} {is_granted}");
        }
    }
}
