//! `pintle mcp`.

use std::path::PathBuf;
use std::sync::Arc;

use pintle_host::env_spec::{EnvSpec, EnvironmentChoice};
use pintle_host::environment::{Confinement, EnvTarget, SandboxRequirements};
use pintle_host::failure::Failure;
use pintle_host::mcp::declarations::{self, Declarations, DeclaredServer, describe_server};
use pintle_host::mcp::listings::ServerListings;
use pintle_host::mcp::{ServerChoice, prompts};
use pintle_host::policy::{self, PolicyChoice, Project};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, sanitize, to_single_line};
use pintle_host::server_tokens::{self, FileTokenStore};
use pintle_mcp::{DismissAll, McpServers, ServerError, ServerName, ServerSpec, ServerTransport, ToolListing};
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;
use pintle_tui::render;
use serde_json::{Map, Value, json};

use super::file;
use super::login::{login, logout};
use super::serve::serve;
use crate::arguments::{
    AddServerArgs, ListFormat, McpArgs, McpCommand, ServerArg, ServerToolsArgs, ServersArgs,
};
use crate::exit::Exit;

/// Runs `pintle mcp`.
pub(crate) async fn command(args: McpArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let text = match args.command {
        McpCommand::List(args) => list(&args, process_env).await?,
        McpCommand::Add(args) => add(&args, process_env).await?,
        McpCommand::Remove(args) => remove(&args, process_env).await?,
        McpCommand::Tools(args) => {
            let interrupts = Interrupts::listen()?;
            interrupts.race(tools(&args, process_env)).await?
        }
        McpCommand::Login(args) => {
            let interrupts = Interrupts::listen()?;
            let declarations = read_declarations_with(&args.mcp_config, process_env).await?;
            interrupts.race(login(&args.name, &declarations, process_env)).await?
        }
        McpCommand::Logout(args) => {
            let interrupts = Interrupts::listen()?;
            let declarations = read_declarations_with(&args.mcp_config, process_env).await?;
            interrupts.race(logout(&args.name, &declarations, process_env)).await?
        }
        McpCommand::Serve(args) => return serve(*args, process_env).await,
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Returns the servers that a session in the current directory would have.
async fn read_declarations(process_env: &ProcessEnv) -> Result<Declarations, Failure> {
    read_declarations_with(&[], process_env).await
}

/// As [`read_declarations`], with the servers of further files.
async fn read_declarations_with(
    files: &[PathBuf],
    process_env: &ProcessEnv,
) -> Result<Declarations, Failure> {
    let environment = process_env.local_environment(&process_env.directory(None)?)?;
    let projects = Project::read_all(&environment).await?;
    let loaded =
        policy::load(&PolicyChoice::default(), &environment, EnvSpec::LOCAL, &projects, process_env).await?;
    let more = ServerChoice { files: files.to_vec(), ..ServerChoice::default() };
    let mut declarations = Declarations::collect(&loaded.server_files, &more, process_env)?;
    if let Some(untrusted) = loaded.untrusted.filter(|untrusted| !untrusted.servers.is_empty()) {
        process_env.notices().report(untrusted.notice());
        let state = untrusted.state();
        declarations.problems.extend(untrusted.servers.iter().map(|server| untrusted_server(server, state)));
    }
    Ok(declarations)
}

/// Returns the reason why a server of a project is left out. `server` is its name, followed by its program, and `state` the
/// state of the project.
fn untrusted_server(server: &str, state: &str) -> String {
    let (name, program) = server.split_once(' ').unwrap_or((server, ""));
    format!("server `{name}` {program}: the project {state}; `pintle trust` changes that")
}

fn select_declarations(
    declarations: &Declarations,
    name: Option<&ServerName>,
) -> Result<Vec<DeclaredServer>, Failure> {
    match name {
        Some(name) => declarations.find(name).map(|declared| vec![declared.clone()]),
        None => Ok(declarations.servers.clone()),
    }
}

fn listings(process_env: &ProcessEnv) -> Result<Option<ServerListings>, Failure> {
    let directory = process_env.directory(None)?;
    Ok(ServerListings::open(EnvSpec::LOCAL, &directory.to_string_lossy(), process_env))
}

async fn list(args: &ServersArgs, process_env: &ProcessEnv) -> Result<String, Failure> {
    let declarations = read_declarations(process_env).await?;
    let listings = listings(process_env)?;
    let known = |declared: &DeclaredServer| {
        let listing = listings.as_ref()?.read(&declared.spec)?;
        Some(listing.names().filter(|name| declared.spec.filter.allows(name)).count())
    };
    let tokens = FileTokenStore::open(process_env).ok();
    let logged_in = |declared: &DeclaredServer| is_logged_in(declared, tokens.as_ref());
    let servers = select_declarations(&declarations, args.name.as_ref())?;
    if args.output == ListFormat::Json {
        let rows = servers.iter().map(|declared| {
            json!({
                "name": declared.spec.name.as_str(), "reached": describe_server(&declared.spec), "source": declared.source,
                "effect": declared.spec.effect, "tools": known(declared), "logged_in": logged_in(declared),
            })
        });
        return json_line(&json!({
            "servers": rows.collect::<Vec<_>>(), "problems": declarations.problems,
            "warnings": declarations.warnings,
        }));
    }
    let mut text = String::new();
    for declared in &servers {
        let tools = known(declared)
            .map_or_else(|| "not started yet".to_owned(), |tools| render::plural(tools as u64, "tool"));
        let reached = sanitize(&describe_server(&declared.spec)).into_owned();
        let login = if logged_in(declared) == Some(true) { "logged in; " } else { "" };
        let source = to_single_line(&declared.source);
        text.push_str(&format!("{}  {reached}  ({tools}; {login}{source})\n", declared.spec.name));
    }
    for problem in &declarations.problems {
        text.push_str(&format!("left out: {}\n", sanitize(problem)));
    }
    for warning in &declarations.warnings {
        text.push_str(&format!("warning: {}\n", sanitize(warning)));
    }
    if text.is_empty() {
        text.push_str("no servers are declared; `pintle mcp add NAME -- COMMAND` declares one\n");
    }
    Ok(text)
}

/// Returns whether tokens of a server are stored; `None` for a server without logins.
fn is_logged_in(declared: &DeclaredServer, tokens: Option<&FileTokenStore>) -> Option<bool> {
    match &declared.spec.transport {
        ServerTransport::Http(server) if !server.has_authorization() => {
            // An unusable file counts as logged out.
            Some(tokens.is_some_and(|tokens| matches!(tokens.read(server.url()), Ok(Some(_)))))
        }
        ServerTransport::Http(_) | ServerTransport::Stdio(_) | _ => None,
    }
}

async fn add(args: &AddServerArgs, process_env: &ProcessEnv) -> Result<String, Failure> {
    let path = file_of(&args.server, process_env).await?;
    let name = args.server.name.as_str();
    let declaration = declaration(args);
    // A session uses the same parser.
    let alone = json!({"mcpServers": {name: declaration}}).to_string();
    let declared = pintle_mcp::parse_declared_servers(&alone, |name| {
        Some(process_env.variable(name).unwrap_or_default())
    });
    if let Some(problem) = declared.problems.first() {
        return Err(Failure::usage(problem.clone()));
    }
    let text = file::add_declaration(&declarations::read(&path)?, name, declaration, args.replace)?;
    let all = pintle_mcp::parse_declared_servers(&text, |name| {
        Some(process_env.variable(name).unwrap_or_default())
    });
    let is_alike = |server: &&ServerSpec| {
        server.name.as_str() != name && server.name.shares_tool_names(&args.server.name)
    };
    if let Some(other) = all.servers.iter().find(is_alike) {
        let problem = format!(
            "the tools of server `{name}` would have the same names as the tools of `{}`",
            other.name
        );
        return Err(Failure::usage(problem).with_hint("choose another name"));
    }
    write(&args.server, &path, &text, process_env)?;
    let mut said = format!("declared server `{name}` in {}\n", path.display());
    if args.server.project {
        said.push_str("servers of a project are used only after `pintle trust`\n");
    } else {
        let network = if args.url.is_some() { " --network on" } else { "" };
        said.push_str(&format!("`pintle mcp tools {name}{network}` starts it and lists its tools\n"));
    }
    Ok(said)
}

/// Returns the declaration that the arguments describe.
fn declaration(args: &AddServerArgs) -> Value {
    let mut server = Map::new();
    let mut set = |key: &str, value: Value| drop(server.insert(key.to_owned(), value));
    let object = |pairs: &[(String, String)]| {
        Value::from(pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>())
    };
    if let Some(url) = &args.url {
        set("url", json!(url));
    }
    if let Some((program, arguments)) = args.command.split_first() {
        set("command", json!(program));
        if !arguments.is_empty() {
            set("args", json!(arguments));
        }
    }
    if !args.env.is_empty() {
        set("env", object(&args.env));
    }
    if !args.header.is_empty() {
        set("headers", object(&args.header));
    }
    for (key, patterns) in [("allow", &args.allow), ("deny", &args.deny)] {
        if !patterns.is_empty() {
            set(key, json!(patterns));
        }
    }
    if let Some(effect) = args.effect {
        set("effect", json!(effect));
    }
    if args.outside_sandbox {
        set("sandbox", json!(false));
    }
    Value::Object(server)
}

async fn remove(args: &ServerArg, process_env: &ProcessEnv) -> Result<String, Failure> {
    let path = file_of(args, process_env).await?;
    match file::remove_declaration(&declarations::read(&path)?, args.name.as_str())? {
        Some(text) => write(args, &path, &text, process_env)?,
        None => {
            let other = if args.project { "your own file" } else { "the project's file, with --project" };
            return Err(Failure::usage(format!("{} declares no server `{}`", path.display(), args.name))
                .with_hint(&format!("it may be in {other}")));
        }
    }
    Ok(format!("removed server `{}` from {}\n", args.name, path.display()))
}

async fn file_of(args: &ServerArg, process_env: &ProcessEnv) -> Result<PathBuf, Failure> {
    if args.project {
        return declarations::project_file(process_env).await;
    }
    let none = || {
        Failure::usage(
            "no directory for the configuration: expected PINTLE_CONFIG_DIR, XDG_CONFIG_HOME or HOME",
        )
    };
    declarations::user_file(process_env).ok_or_else(none)
}

fn write(
    args: &ServerArg,
    path: &std::path::Path,
    text: &str,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    if args.project {
        // Other users of the project read it.
        return process_env.write_keeping_mode(path, text, 0o644);
    }
    process_env.write_configuration(path, text)
}

/// Starts servers in the environment of a session, and lists their tools.
async fn tools(args: &ServerToolsArgs, process_env: &ProcessEnv) -> Result<String, Failure> {
    let declarations = read_declarations(process_env).await?;
    let (confinement, args): (Confinement, _) = ((&args.confinement).into(), &args.servers);
    let selected = select_declarations(&declarations, args.name.as_ref())?;
    let has_network = confinement.has_network();
    let target = EnvTarget::new(EnvironmentChoice::here(), confinement, process_env)?;
    let environment = target
        .with_requirements(SandboxRequirements { keeps_state: true, ..SandboxRequirements::default() })
        .connect()
        .await?;
    let specs = selected.iter().map(|declared| declared.spec.clone());
    let servers = McpServers::with_tokens(
        environment.server_environment(),
        specs,
        Arc::new(DismissAll),
        server_tokens::store(process_env),
    );
    let asked = selected.iter().map(|declared| async {
        let name = &declared.spec.name;
        if let Some(objection) = declarations::network_objection(&declared.spec.transport, has_network) {
            return Err(Failure::usage(format!("server `{name}` is left out: {objection}")));
        }
        let failed = |error: ServerError| Failure::failed("a server failed").caused_by(&error);
        let listing = servers.list(name).await.map_err(failed)?;
        // A server with tools only works as well.
        let prompts = prompts::list_prompts(&servers, name).await.ok();
        Ok((listing, prompts))
    });
    let answers = futures_util::future::join_all(asked).await;
    servers.close().await;
    environment.close().await?;
    let listings = listings(process_env)?;
    let (mut text, mut rows, mut failed) = (String::new(), Vec::new(), None);
    for (declared, answer) in selected.iter().zip(answers) {
        match answer {
            Ok((listing, prompts)) => {
                if let Some(listings) = &listings {
                    listings.write(&declared.spec, &listing)?;
                    if let Some(prompts) = &prompts {
                        listings.write_prompts(&declared.spec, prompts)?;
                    }
                }
                for (name, reason) in listing.malformed() {
                    let tool = format!("tool {name:?} of server `{}`", declared.spec.name);
                    console::notice(&format!("{tool} is left out: {reason}"));
                }
                let names = allowed_tool_names(declared, &listing);
                let count = render::plural(names.len() as u64, "tool");
                text.push_str(&format!("{}  {count}\n", declared.spec.name));
                names.iter().for_each(|name| text.push_str(&format!("    {name}\n")));
                rows.push(json!({"name": declared.spec.name.as_str(), "tools": names}));
            }
            Err(failure) => {
                rows.push(json!({"name": declared.spec.name.as_str(), "error": failure.message()}));
                if let Some(earlier) = failed.replace(failure) {
                    console::report(&earlier);
                }
            }
        }
    }
    let text = if args.output == ListFormat::Json { json_line(&json!(rows))? } else { text };
    match failed {
        None => Ok(text),
        Some(failure) => {
            console::print(&text).await?;
            Err(failure)
        }
    }
}

fn allowed_tool_names(declared: &DeclaredServer, listing: &ToolListing) -> Vec<String> {
    let mut names: Vec<String> = listing
        .names()
        .filter(|name| declared.spec.filter.allows(name))
        .map(|name| sanitize(name).into_owned())
        .collect();
    names.sort();
    names
}
