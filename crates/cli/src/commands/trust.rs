//! `pintle trust`: projects whose files may extend the permissions of agents.

use std::path::Path;
use std::slice;

use pintle_agent::Limits;
use pintle_host::budget::{self, BudgetChoice};
use pintle_host::env_spec::EnvSpec;
use pintle_host::failure::Failure;
use pintle_host::policy::{self, Project, TrustedProjects, UntrustedParts};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, to_single_line};
use pintle_tui::console;
use serde_json::json;

use crate::arguments::{ListFormat, TrustArgs};
use crate::exit::Exit;

/// Runs `pintle trust`.
pub(crate) async fn trust(args: TrustArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let mut trusted = TrustedProjects::open(process_env)?;
    let text = if args.list {
        list(&trusted, args.output, process_env).await?
    } else {
        let directory = process_env.directory(args.dir.as_deref())?;
        let environment = process_env.local_environment(&directory)?;
        let projects = Project::read_all(&environment).await?;
        if projects.is_empty() && !args.revoke {
            return Err(Failure::usage(format!(
                "{} has nothing to trust: expected .pintle/rules.toml, .pintle/hooks.toml, .pintle/config.toml or \
                 .mcp.json in it or above it, up to the root of the repository",
                directory.display()
            )));
        }
        if !args.revoke {
            check(&projects, process_env)?;
        }
        let mut text = String::new();
        if projects.is_empty() {
            let was_trusted = trusted.remove(EnvSpec::LOCAL, &directory, process_env)?;
            text.push_str(&revoked(&directory, was_trusted, args.output)?);
        }
        for project in &projects {
            text.push_str(&if args.revoke {
                let was_trusted = trusted.remove(EnvSpec::LOCAL, &project.root, process_env)?;
                revoked(&project.root, was_trusted, args.output)?
            } else {
                add(&mut trusted, project, args.output, process_env)?
            });
        }
        text
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Checks projects before they are trusted. Reports programs of theirs that are missing.
///
/// A mistake with which no session starts once they are trusted is a usage failure.
pub(super) fn check(projects: &[Project], process_env: &ProcessEnv) -> Result<(), Failure> {
    for project in projects {
        policy::check_project(project)?;
        budget::load(&BudgetChoice::default(), &Limits::default(), slice::from_ref(project), process_env)?;
    }
    for program in projects.iter().flat_map(Project::missing_programs) {
        let program = to_single_line(&program.to_string_lossy());
        process_env.notices().report(format!(
            "{program}, which a hook or an MCP server names, is missing or cannot be read; creating it ends the trust"
        ));
    }
    Ok(())
}

async fn list(
    trusted: &TrustedProjects,
    output: ListFormat,
    process_env: &ProcessEnv,
) -> Result<String, Failure> {
    let (mut rows, mut text) = (Vec::new(), String::new());
    for (project, hash) in trusted.all() {
        let is_current = is_current(project, hash, process_env).await;
        rows.push(json!({"project": project, "hash": hash, "is_current": is_current}));
        let mark = if is_current == Some(false) { "  no longer trusted: its files have changed" } else { "" };
        text.push_str(&format!("{}  {}{mark}\n", to_single_line(project), short(hash)));
    }
    match output {
        ListFormat::Json => json_line(&json!(rows)),
        ListFormat::Text => Ok(text),
    }
}

/// Returns whether a project is unchanged since it was trusted; `None` if it is not on this machine. `project` is its
/// environment and its root.
async fn is_current(project: &str, hash: &str, process_env: &ProcessEnv) -> Option<bool> {
    let root = Path::new(project.strip_prefix(EnvSpec::LOCAL)?.strip_prefix(' ')?);
    // Files that cannot be read have changed.
    Some(has_hash(root, hash, process_env).await.unwrap_or(false))
}

async fn has_hash(root: &Path, hash: &str, process_env: &ProcessEnv) -> Result<bool, Failure> {
    let environment = process_env.local_environment(root)?;
    let projects = Project::read_all(&environment).await?;
    Ok(projects.iter().any(|project| project.root == root && project.hash().to_string() == hash))
}

fn add(
    trusted: &mut TrustedProjects,
    project: &Project,
    output: ListFormat,
    process_env: &ProcessEnv,
) -> Result<String, Failure> {
    let parts = UntrustedParts::from_project(project)?;
    let hash = trusted.add(EnvSpec::LOCAL, project, process_env)?.to_string();
    match output {
        ListFormat::Json => {
            let UntrustedParts { rules, hooks, servers, tools, settings, .. } = parts;
            json_line(&json!({
                "project": project.root.display().to_string(),
                "hash": hash,
                "settings": settings,
                "hooks": hooks,
                "servers": servers,
                "tools": tools,
                "rules": rules,
            }))
        }
        ListFormat::Text => {
            let root = project.root.display();
            let mut text = format!(
                "trusted the current state of {root} ({}); a change revokes the trust\n",
                short(&hash)
            );
            for line in parts.lines() {
                text.push_str(&format!("  {line}\n"));
            }
            for launcher in project.launchers() {
                let launcher = to_single_line(&launcher);
                text.push_str(&format!("not covered by trust: the files that `{launcher}` runs\n"));
            }
            Ok(text)
        }
    }
}

fn revoked(root: &Path, was_trusted: bool, output: ListFormat) -> Result<String, Failure> {
    let root = root.display().to_string();
    match output {
        ListFormat::Json => json_line(&json!({"project": root, "was_trusted": was_trusted})),
        ListFormat::Text if was_trusted => Ok(format!("{root} is no longer trusted\n")),
        ListFormat::Text => Ok(format!("{root} was not trusted\n")),
    }
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
