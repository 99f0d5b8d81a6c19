//! Policy of a run: its mode, and the rules of the user, of the project, and of the command line.

pub mod grant;
mod project;
mod project_files;
mod trust;
mod untrusted;

use std::iter;
use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;
use pintle_governance::{HookCommands, Mode, Policy, Rule, Rules, TrustedPrograms};
use pintle_tools::gate::Permission;

pub use self::project::{DIRECTORY as PROJECT_DIRECTORY, Project, configuration_path, server_file_path};
pub use self::project_files::ProjectFiles;
pub use self::trust::TrustedProjects;
pub(crate) use self::untrusted::untrusted_notice;
pub use self::untrusted::{UntrustedParts, check_project, find_undecided_projects};
use crate::env_spec::EnvSpec;
use crate::failure::{Failure, OrFailure as _};
use crate::notice::Notice;
use crate::process_env::{self, ProcessEnv};
use crate::spec::{PolicySpec, SessionSpec};
use crate::tool_manifests::{self, ToolDirectory};
use crate::toolset;

/// Mode and rules that a run asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyChoice {
    /// Mode; `None` for [`Mode::Auto`].
    pub mode: Option<Mode>,
    /// Rules that let calls run.
    pub allow: Vec<String>,
    /// Rules for calls that need a decision.
    pub ask: Vec<String>,
    /// Rules that deny calls.
    pub deny: Vec<String>,
}

impl From<&SessionSpec> for PolicyChoice {
    fn from(spec: &SessionSpec) -> Self {
        let PolicySpec { mode, allow, ask, deny, .. } = &spec.policy;
        Self { mode: Some(*mode), allow: allow.clone(), ask: ask.clone(), deny: deny.clone() }
    }
}

/// Policy of a run, and the parts of projects that do not apply.
#[derive(Debug)]
pub struct LoadedPolicy {
    /// Mode and rules.
    pub policy: Policy,
    /// Hooks of the user.
    pub user_hooks: HookCommands,
    /// Hooks of trusted projects with the hashes of their programs.
    pub project_hooks: Vec<(HookCommands, TrustedPrograms)>,
    /// MCP server files of trusted projects, the nearest last.
    pub server_files: Vec<ProjectServerFile>,
    /// Manifests of tools, of the user and of trusted projects, the nearest first.
    pub tools: Vec<ToolDirectory>,
    /// Rules of projects that are not trusted, which do not apply.
    pub untrusted: Option<UntrustedParts>,
}

/// A project's MCP server file.
#[derive(Clone, Debug)]
pub struct ProjectServerFile {
    /// Its name for messages.
    pub name: String,
    /// Its content.
    pub text: String,
    /// Root of the project, where its servers start.
    pub root: PathBuf,
    /// Hashes of the programs that its servers and the project's hooks run.
    pub programs: TrustedPrograms,
}

/// Loads mode and rules of a run in an environment, with the projects that contain its working directory.
///
/// A rule or a rules file with mistakes is a usage failure: an invalid rule could be a denial.
pub async fn load(
    choice: &PolicyChoice,
    environment: &dyn ExecutionEnvironment,
    environment_name: &str,
    projects: &[Project],
    process_env: &ProcessEnv,
) -> Result<LoadedPolicy, Failure> {
    let workspace = real_working_directory(environment).await;
    // The environment can be a wrapper, which does not tell whose files it has.
    let is_local = environment_name == EnvSpec::LOCAL;
    refuse_protected_workspace(&workspace, is_local, process_env)?;
    let mut rules = user_rules(process_env, &workspace)?;
    let user_hooks = user_hooks(process_env)?;
    let of_projects = if projects.is_empty() {
        ProjectParts::default()
    } else {
        collect_project_parts(projects, &TrustedProjects::open(process_env)?, environment_name, &workspace)?
    };
    let ProjectParts { rules: of_projects, hooks: project_hooks, server_files, tools: of_trusted, untrusted } =
        of_projects;
    let mut tools = match is_local {
        true => tool_manifests::read_user_directories(&workspace, process_env).await?,
        false => Vec::new(),
    };
    tools.extend(of_trusted);
    rules.extend(of_projects);
    for directory in tools.iter().filter(|directory| !directory.tools.is_empty()) {
        // File tools must not change trusted manifests.
        let rule = format!("@write({}/**)", escaped(&directory.path.to_string_lossy()));
        let rule = Rule::parse(&rule, &workspace).or_usage("cannot protect a directory of tools")?;
        rules.add(Permission::Deny, rule, "directories of tools");
    }
    add_flags(&mut rules, Permission::Allow, &choice.allow, &workspace)?;
    add_flags(&mut rules, Permission::Ask, &choice.ask, &workspace)?;
    add_flags(&mut rules, Permission::Deny, &choice.deny, &workspace)?;
    check_rule_names(&rules)?;
    for hooks in iter::once(&user_hooks).chain(project_hooks.iter().map(|(hooks, _trusted)| hooks)) {
        check_hook_names(hooks)?;
    }
    let policy = Policy::new(choice.mode.unwrap_or(Mode::Auto), rules, workspace);
    Ok(LoadedPolicy { policy, user_hooks, project_hooks, server_files, tools, untrusted })
}

/// Returns the rules of the user, of the projects that contain the working directory, and of `--deny`, for their denials: these
/// apply whether a project is trusted or not.
pub(crate) async fn load_denials(
    flags: &[String],
    environment: &dyn ExecutionEnvironment,
    projects: &[Project],
    process_env: &ProcessEnv,
) -> Result<Rules, Failure> {
    let workspace = real_working_directory(environment).await;
    let mut rules = user_rules(process_env, &workspace)?;
    for project in projects {
        rules.extend(project_rules(project)?);
    }
    add_flags(&mut rules, Permission::Deny, flags, &workspace)?;
    Ok(rules)
}

/// Returns the working directory with all links resolved.
async fn real_working_directory(environment: &dyn ExecutionEnvironment) -> PathBuf {
    let working_directory = environment.working_directory();
    let real = environment.canonicalize(working_directory).await;
    real.unwrap_or_else(|_| working_directory.to_path_buf())
}

/// Refuses a workspace inside a git directory or a directory for settings of a project: commands can write in their workspace,
/// and must not change these directories.
fn refuse_protected_workspace(
    workspace: &Path,
    is_local: bool,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let state = process_env.state_directory().map(|state| process_env.real_path(&state)).ok();
    let is_protected = |directory: &&Path| {
        let is_named = directory.file_name().is_some_and(|name| name == ".git" || name == PROJECT_DIRECTORY);
        let is_git_directory = || {
            let has = |name: &str| process_env.is_directory(&directory.join(name));
            is_local && has("objects") && has("refs") && directory.join("HEAD").exists()
        };
        is_named || is_git_directory()
    };
    // Worktrees of sessions are below the state directory, and worktrees of a bare repository may be inside the
    // repository.
    let is_end = |directory: &Path| {
        state.as_deref() == Some(directory) || (is_local && directory.join(".git").exists())
    };
    let mut directories = workspace.ancestors().take_while(|directory| !is_end(directory));
    match directories.find(is_protected) {
        None => Ok(()),
        Some(directory) => Err(Failure::usage(format!(
            "cannot start a session in {}: it is in the protected directory {}",
            workspace.display(),
            directory.display()
        ))
        .with_hint("use the directory of the project")),
    }
}

fn add_flags(
    rules: &mut Rules,
    permission: Permission,
    texts: &[String],
    workspace: &Path,
) -> Result<(), Failure> {
    // No flag has rules that ask.
    let source = match permission {
        Permission::Allow | Permission::Deny => format!("--{permission}"),
        Permission::Ask => "policy.ask".to_owned(),
    };
    for text in texts {
        let rule = Rule::parse(text, workspace).or_usage(&format!("{source} is wrong"))?;
        rules.add(permission, rule, source.clone());
    }
    Ok(())
}

/// Parts of projects that apply, and parts that do not.
#[derive(Debug, Default)]
struct ProjectParts {
    rules: Rules,
    hooks: Vec<(HookCommands, TrustedPrograms)>,
    server_files: Vec<ProjectServerFile>,
    tools: Vec<ToolDirectory>,
    untrusted: Option<UntrustedParts>,
}

/// Returns the parts of the projects of a working directory. No project can revoke a denial or question of another.
fn collect_project_parts(
    projects: &[Project],
    trusted: &TrustedProjects,
    environment_name: &str,
    workspace: &Path,
) -> Result<ProjectParts, Failure> {
    let mut parts = ProjectParts::default();
    for project in projects {
        let rules = project_rules(project)?;
        if trusted.contains(environment_name, project) {
            parts.rules.extend(rules);
            if !project.hooks().is_empty() {
                parts.hooks.push((project.hooks().clone(), project.programs().clone()));
            }
            if let Some((name, text)) = project.server_file() {
                parts.server_files.insert(
                    0,
                    ProjectServerFile {
                        name,
                        text: text.to_owned(),
                        root: project.root.clone(),
                        programs: project.programs().clone(),
                    },
                );
            }
            // Commands must not change trusted programs. A project with a program whose path is not text is not trusted.
            for program in project.programs().iter().filter_map(|(path, _)| path.to_str()) {
                let rule = format!("@write({})", escaped(program));
                let rule = Rule::parse(&rule, workspace)
                    .or_usage("cannot protect the program of a hook or server")?;
                parts.rules.add(Permission::Deny, rule, "programs of hooks and servers");
            }
            parts.tools.extend_from_slice(project.tools());
            continue;
        }
        let (narrowing, widening) = rules.split_widening();
        parts.rules.extend(narrowing);
        let of_project = UntrustedParts::new(project, &widening);
        if of_project.has_policy_parts() {
            let untrusted = parts.untrusted.get_or_insert_default();
            untrusted.extend(of_project);
            untrusted.was_trusted |= trusted.has_outdated_trust(environment_name, project);
        }
    }
    Ok(parts)
}

/// Checks rules that a client sets. `place` names them in messages, such as `rules.deny`.
///
/// An unknown tool whose name resembles a known one is a usage failure.
pub fn check_rules(texts: &[String], place: &str) -> Result<(), Failure> {
    let mut rules = Rules::new();
    for text in texts {
        let rule = Rule::parse(text, Path::new("/")).or_usage(&format!("{place} is wrong"))?;
        // Names do not depend on the permission.
        rules.add(Permission::Deny, rule, place);
    }
    check_rule_names(&rules)
}

fn user_rules(process_env: &ProcessEnv, workspace: &Path) -> Result<Rules, Failure> {
    let Some(directory) = process_env.configuration_directory() else { return Ok(Rules::new()) };
    let path = directory.join("rules.toml");
    match process_env::read_text_if_exists("rules file", &path)? {
        None => Ok(Rules::new()),
        Some(text) => Rules::parse(&path.display().to_string(), &text, workspace)
            .or_usage("the rules file is wrong, so nothing runs"),
    }
}

fn user_hooks(process_env: &ProcessEnv) -> Result<HookCommands, Failure> {
    let Some(directory) = process_env.configuration_directory() else { return Ok(HookCommands::new()) };
    let path = directory.join("hooks.toml");
    let hooks = match process_env::read_text_if_exists("hooks file", &path)? {
        None => HookCommands::new(),
        Some(text) => HookCommands::parse(&path.display().to_string(), &text)
            .or_usage("the hooks file is wrong, so nothing runs")?,
    };
    process_env.notices().report_all(hooks.warnings().iter().map(|warning| Notice::from(warning.as_str())));
    Ok(hooks)
}

/// Returns the pattern of a path that matches only that path.
fn escaped(path: &str) -> String {
    let is_special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\');
    path.chars().flat_map(|c| is_special(c).then_some('\\').into_iter().chain([c])).collect()
}

fn project_rules(project: &Project) -> Result<Rules, Failure> {
    match project.rules() {
        None => Ok(Rules::new()),
        Some((name, text)) => Rules::parse(&name, text, &project.root)
            .or_usage("the project's rules file is wrong, so nothing runs"),
    }
}

/// Refuses rules about tools that look like a mistake for a known one.
fn check_rule_names(rules: &Rules) -> Result<(), Failure> {
    check_names(|is_known| {
        rules
            .unknown_tool(is_known)
            .map(|(name, rule, source)| (name, format!("the rule `{rule}` of {source}")))
    })
}

/// Refuses hooks about tools that look like a mistake for a known one.
fn check_hook_names(hooks: &HookCommands) -> Result<(), Failure> {
    check_names(|is_known| {
        hooks.unknown_tool(is_known).map(|(name, hook)| (name, format!("the hook in {}", hook.source())))
    })
}

/// Refuses rules and hooks about tools that look like a mistake for a known one. `find` returns the first name that is not
/// known, with the rule or hook.
fn check_names<'a>(find: impl Fn(&dyn Fn(&str) -> bool) -> Option<(&'a str, String)>) -> Result<(), Failure> {
    let kinds = pintle_tools::ToolKind::ALL.map(pintle_tools::ToolKind::as_str);
    if find(&|name| kinds.contains(&name)).is_none() {
        return Ok(());
    }
    let mut known = toolset::all_names()?;
    known.extend(kinds.map(str::to_owned));
    let similar = |name: &str| pintle_tools::most_similar(name, known.iter().map(String::as_str));
    match find(&|name| known.contains(name) || similar(name).is_empty()) {
        None => Ok(()),
        Some((name, place)) => {
            let meant = similar(name).join(" or ");
            let message = format!("{place} names the unknown tool `{name}`; did you mean {meant}?");
            Err(Failure::usage(message).with_hint("a name with `*`, such as `mytool*`, is not checked"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test writes the file of a user")]
    fn unknown_events_of_hooks_are_notices_in_the_order_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let text = "[[NoSuchEvent]]\ncommand = \"true\"\n\n[[Another]]\ncommand = \"true\"\n";
        std::fs::write(directory.path().join("hooks.toml"), text).unwrap();
        let process_env = ProcessEnv::from_variables([("PINTLE_CONFIG_DIR", directory.path().as_os_str())]);
        assert!(user_hooks(&process_env).unwrap().is_empty());
        let notices = process_env.notices().take();
        let [first, second] = notices.as_slice() else { panic!("{notices:?}") };
        assert!(first.text().contains("there is no event `NoSuchEvent`"), "{first:?}");
        assert!(second.text().contains("there is no event `Another`"), "{second:?}");
    }

    #[test]
    fn wrong_rules_of_a_client_name_their_field() {
        for (rule, expected) in [
            ("shel", Some("the rule `shel` of rules.deny names the unknown tool `shel`")),
            ("shell(", Some("rules.deny is wrong")),
            ("shell(rm *)", None),
            ("@write(src/**)", None),
        ] {
            let checked = check_rules(&[rule.to_owned()], "rules.deny");
            let message = checked.err().map(|failure| failure.message());
            match (&message, expected) {
                (Some(message), Some(expected)) => assert!(message.starts_with(expected), "{message}"),
                (message, expected) => assert_eq!(message.as_deref(), expected, "{rule}"),
            }
        }
    }
}
