//! `pintle trust`: projects whose files may extend the permissions of agents.

use pintle_host::env_spec::EnvSpec;
use pintle_host::failure::Failure;
use pintle_host::policy::{Project, TrustedProjects};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::json_line;
use pintle_tui::console;
use serde_json::json;

use crate::arguments::{ListFormat, TrustArgs};
use crate::exit::Exit;

/// Runs `pintle trust`.
pub(crate) async fn trust(args: TrustArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let mut trusted = TrustedProjects::open(process_env)?;
    let text = if args.list {
        list(&trusted, args.output)?
    } else {
        let directory = process_env.directory(args.dir.as_deref())?;
        let environment = process_env.local_environment(&directory)?;
        let projects = Project::read_all(&environment).await?;
        if projects.is_empty() && !args.revoke {
            return Err(Failure::usage(format!(
                "{} has nothing to trust: expected .pintle/rules.toml or .mcp.json in it or above it, up to the root \
                 of the repository",
                directory.display()
            )));
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

fn list(trusted: &TrustedProjects, output: ListFormat) -> Result<String, Failure> {
    let rows: Vec<_> =
        trusted.all().map(|(project, hash)| json!({"project": project, "hash": hash})).collect();
    match output {
        ListFormat::Json => json_line(&json!(rows)),
        ListFormat::Text => {
            Ok(trusted.all().map(|(project, hash)| format!("{project}  {}\n", short(hash))).collect())
        }
    }
}

fn add(
    trusted: &mut TrustedProjects,
    project: &Project,
    output: ListFormat,
    process_env: &ProcessEnv,
) -> Result<String, Failure> {
    let hash = trusted.add(EnvSpec::LOCAL, project, process_env)?.to_string();
    match output {
        ListFormat::Json => json_line(&json!({"project": project.root.display().to_string(), "hash": hash})),
        ListFormat::Text => {
            let root = project.root.display();
            let mut text = format!(
                "trusted the current state of {root} ({}); a change revokes the trust\n",
                short(&hash)
            );
            for launcher in project.launchers() {
                text.push_str(&format!("not covered by trust: the files that `{launcher}` runs\n"));
            }
            Ok(text)
        }
    }
}

fn revoked(root: &std::path::Path, was_trusted: bool, output: ListFormat) -> Result<String, Failure> {
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
