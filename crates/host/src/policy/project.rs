//! Files in which a project declares permissions of agents.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment, ExecutionEnvironmentExt as _, FileContent, ReadLimits};
use pintle_governance::{HookCommands, TrustedPrograms, WorkspacePolicy};
use pintle_store::Hash;
use pintle_tools::gate::CommandLine;
use serde_json::Value;

use crate::config_file::File;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env;
use crate::tool_manifests::ToolDirectory;

/// Directory of a project's own files.
pub const DIRECTORY: &str = WorkspacePolicy::SETTINGS;

/// Files of a project. The trusted hash covers them.
const FILES: [&str; 5] = [RULES, HOOKS, BUDGET, CONFIGURATION, SERVERS];

/// The rules file.
const RULES: &str = "rules.toml";

/// The file with commands that run at points of a session.
pub(super) const HOOKS: &str = "hooks.toml";

/// The file with spending limits.
const BUDGET: &str = "budget.toml";

/// The file with values for flags.
const CONFIGURATION: &str = "config.toml";

/// The file in which a project declares MCP servers, for all agents and not only for this one.
const SERVERS: &str = ".mcp.json";

/// Largest file, in bytes.
const MAX_FILE: usize = 1 << 20;

/// Largest file named `.git` that is read to look whether it exists, and total size of these files.
const MAX_ENTRY: u64 = 4 << 10;
const MAX_ENTRIES: u64 = 1 << 20;

/// Files of a project.
#[derive(Clone, Debug)]
pub struct Project {
    /// Directory that has the project's own directory, with all links resolved.
    pub root: PathBuf,
    /// Its directory of files as messages name it, relative to the working directory.
    name: String,
    files: Vec<(&'static str, String)>,
    /// Commands of its hooks.
    hooks: HookCommands,
    /// MCP servers.
    servers: Vec<ProjectServer>,
    /// Programs of the hooks and servers, with the hash of each.
    programs: TrustedPrograms,
    /// Manifests of tools, with the state of the files that they run.
    tools: Vec<ToolDirectory>,
}

/// MCP server that a project declares.
#[derive(Clone, Debug)]
struct ProjectServer {
    name: String,
    /// The command line that starts it, or its URL.
    words: Vec<String>,
    /// Directory in which it starts, if the declaration names one.
    directory: Option<PathBuf>,
}

/// A project's file with values for flags.
#[derive(Clone, Debug)]
pub struct ProjectConfiguration {
    /// Root of the project.
    pub root: PathBuf,
    /// Path of the file.
    pub path: PathBuf,
    /// Content of the file.
    pub text: String,
}

impl Project {
    /// Reads the files of the projects that `environment` works in, the nearest first: of all directories that have
    /// any, from the working directory up to the root of the outermost repository. A directory that is created later is
    /// added, and does not replace the directories above it.
    ///
    /// A file that cannot be read is a failure: it could contain a denial.
    pub async fn read_all(environment: &dyn ExecutionEnvironment) -> Result<Vec<Self>, Failure> {
        let mut projects = Vec::new();
        for (level, root) in levels(environment).await.into_iter().enumerate() {
            let name = format!("{}{DIRECTORY}", "../".repeat(level));
            projects.extend(Self::read(environment, root, name).await?);
        }
        Ok(projects)
    }

    /// Reads only the nearest file with values for flags; `None` if no project has one.
    pub async fn read_configuration(
        environment: &dyn ExecutionEnvironment,
    ) -> Result<Option<ProjectConfiguration>, Failure> {
        for root in levels(environment).await {
            if let Some((_, text)) = read_files(environment, &root, &[CONFIGURATION]).await?.pop() {
                let path = configuration_path(&root);
                return Ok(Some(ProjectConfiguration { root, path, text }));
            }
        }
        Ok(None)
    }

    /// Returns the root of the project that `environment` works in: the nearest directory that has files of a project, or else
    /// the root of the repository, or else the working directory.
    pub async fn root(environment: &dyn ExecutionEnvironment) -> Result<PathBuf, Failure> {
        let mut levels = levels(environment).await;
        for root in &levels {
            for file in FILES {
                if read_file(environment, &file_path(root, file)).await?.is_some() {
                    return Ok(root.clone());
                }
            }
        }
        Ok(levels.pop().unwrap_or_else(|| environment.working_directory().to_path_buf()))
    }

    /// Reads the files of the project in a directory; `None` if it has no files.
    async fn read(
        environment: &dyn ExecutionEnvironment,
        root: PathBuf,
        name: String,
    ) -> Result<Option<Self>, Failure> {
        let files = read_files(environment, &root, &FILES).await?;
        if files.is_empty() {
            return Ok(None);
        }
        let hooks = match files.iter().find(|(file, _)| *file == HOOKS) {
            None => HookCommands::new(),
            Some((file, text)) => HookCommands::parse(&format!("{name}/{file}"), text)
                .or_usage("the project's hooks file is wrong, so nothing runs")?,
        };
        let servers = files.iter().find(|(file, _)| *file == SERVERS);
        let servers = servers.map(|(_, text)| parse_project_servers(text)).unwrap_or_default();
        let mut programs = TrustedPrograms::read(&hooks, &root, environment).await;
        for ProjectServer { words, directory, .. } in &servers {
            programs.add_invocation(words, directory.as_deref(), environment).await;
        }
        let mut project = Self { root, name, files, hooks, servers, programs, tools: Vec::new() };
        let directories = project.configuration_file().map(|file| file.tool_dirs).unwrap_or_default();
        for directory in directories {
            let tools = ToolDirectory::read(&directory.path, Some(&project.root), environment).await;
            project.tools.push(tools);
        }
        Ok(Some(project))
    }

    /// Returns the rules file, and its name for messages.
    pub fn rules(&self) -> Option<(String, &str)> {
        self.file(RULES)
    }

    /// Returns the file with spending limits, and its name for messages.
    pub fn budget(&self) -> Option<(String, &str)> {
        self.file(BUDGET)
    }

    /// Returns the file with values for flags.
    pub fn configuration(&self) -> Option<&str> {
        self.file(CONFIGURATION).map(|(_, text)| text)
    }

    /// Returns the parsed file with values for flags; `None` if the project has none.
    pub(super) fn configuration_file(&self) -> Option<File> {
        let (name, text) = self.file(CONFIGURATION)?;
        Some(File::parse(&name, &self.root.join(DIRECTORY), text))
    }

    /// Returns the MCP server file, and its name for messages.
    pub(crate) fn server_file(&self) -> Option<(String, &str)> {
        let (_, text) = self.files.iter().find(|(file, _)| *file == SERVERS)?;
        Some((format!("{}{SERVERS}", self.name.strip_suffix(DIRECTORY).unwrap_or_default()), text.as_str()))
    }

    /// Returns a line for each MCP server: its name, and its command line or URL.
    pub fn servers(&self) -> impl Iterator<Item = String> {
        self.servers.iter().map(|server| format!("{} ({})", server.name, server.words.join(" ")))
    }

    /// Returns programs such as `make` of its hooks and servers: they run files of the project that are not declared
    /// and not part of the hash.
    pub fn launchers(&self) -> BTreeSet<String> {
        let hooks = self.hooks.iter().filter_map(|hook| CommandLine::parse(hook.command()).launcher());
        let of_server = |server: &ProjectServer| CommandLine::of_words(server.words.clone()).launcher();
        hooks.chain(self.servers.iter().filter_map(of_server)).collect()
    }

    /// Returns the files in it that its hooks and servers seem to run, and that are missing or cannot be read.
    pub fn missing_programs(&self) -> Vec<&Path> {
        let hooks = self.hooks.iter().filter_map(|hook| hook.command().split_whitespace().next());
        let servers = self.servers.iter().filter_map(|server| server.words.first().map(String::as_str));
        let started: Vec<&str> = hooks.chain(servers).map(|word| word.trim_matches(['"', '\''])).collect();
        let missing = self.programs.iter().filter(|(_, hash)| hash.is_none()).map(|(path, _)| path);
        missing.filter(|path| seems_run(path, &started)).collect()
    }

    fn file(&self, name: &str) -> Option<(String, &str)> {
        let (name, text) = self.files.iter().find(|(file, _)| *file == name)?;
        Some((format!("{}/{name}", self.name), text.as_str()))
    }

    /// Returns the commands of its hooks.
    pub fn hooks(&self) -> &HookCommands {
        &self.hooks
    }

    /// Returns the files in it that its hooks and servers run.
    pub fn programs(&self) -> &TrustedPrograms {
        &self.programs
    }

    /// Returns the manifests of its tools.
    pub fn tools(&self) -> &[ToolDirectory] {
        &self.tools
    }

    /// Returns the first of its programs that no rule protects against writes, because its path is not UTF-8.
    pub fn unprotected_program(&self) -> Option<&Path> {
        let directories = self.tools.iter().map(|directory| directory.path.as_path());
        let mut all = self.programs.iter().map(|(path, _)| path).chain(directories);
        all.find(|path| path.to_str().is_none())
    }

    /// Returns the hash that is stored if the user trusts the project in its current state.
    pub fn hash(&self) -> Hash {
        let mut all = Vec::new();
        for (name, text) in &self.files {
            // The lengths prevent one file from hashing like two.
            all.extend_from_slice(format!("{name} {}\n", text.len()).as_bytes());
            all.extend_from_slice(text.as_bytes());
        }
        for (path, content) in self.programs.iter() {
            let content = content.unwrap_or_else(|| "nothing".to_owned());
            all.extend_from_slice(format!("\n{} {content}", path.display()).as_bytes());
        }
        self.tools.iter().for_each(|directory| directory.append_state(&mut all));
        Hash::of(&all)
    }
}

/// Returns the servers that a file declares, with the command line or URL of each. This parser is lenient: in a file
/// with mistakes, it returns the servers that it finds. The code that starts servers parses the file strictly.
fn parse_project_servers(text: &str) -> Vec<ProjectServer> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let file: Value = serde_json::from_str(text).unwrap_or_default();
    let servers = file.get("mcpServers").and_then(Value::as_object).into_iter().flatten();
    let started = servers.map(|(name, server)| {
        let first = server.get("command").or_else(|| server.get("url"));
        let arguments = server.get("args").and_then(Value::as_array).into_iter().flatten();
        let words = first.into_iter().chain(arguments).filter_map(Value::as_str).map(str::to_owned);
        let directory = server.get("cwd").and_then(Value::as_str).map(PathBuf::from);
        ProjectServer { name: name.clone(), words: words.collect(), directory }
    });
    started.collect()
}

/// Returns whether a path that a command names is probably a program: the first word of one of the commands, or a file with an
/// extension. Other words, such as the name of a subcommand, name no file.
fn seems_run(path: &Path, started: &[&str]) -> bool {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return false };
    let is_started = |word: &&str| word.contains('/') && Path::new(word).file_name() == path.file_name();
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let has_extension = extension.starts_with(|c: char| c.is_ascii_alphabetic());
    // Quoted lines, assignments, patterns, addresses and versions of packages.
    let is_plain = !name.contains(|c: char| c.is_whitespace() || matches!(c, '=' | '*' | '?' | ':' | '@'));
    started.iter().any(is_started) || has_extension && is_plain
}

/// Returns the path of the MCP server file of a project with this root.
pub fn server_file_path(root: &Path) -> PathBuf {
    file_path(root, SERVERS)
}

/// Returns the path of the configuration of a project with this root.
pub fn configuration_path(root: &Path) -> PathBuf {
    file_path(root, CONFIGURATION)
}

/// Returns the path of one of the files of a project with this root.
fn file_path(root: &Path, name: &str) -> PathBuf {
    match name {
        SERVERS => root.join(name),
        _ => root.join(DIRECTORY).join(name),
    }
}

/// Returns the directories that may have files of a project, the nearest first.
async fn levels(environment: &dyn ExecutionEnvironment) -> Vec<PathBuf> {
    let working_directory = environment.working_directory();
    let real = environment.canonicalize(working_directory).await;
    let start = real.unwrap_or_else(|_| working_directory.to_path_buf());
    candidates(environment, &start).await
}

/// Returns the directories to look in, the nearest first: up to the root of the outermost repository, if it is in one.
/// A repository inside another does not end the search, since a command can create one.
async fn candidates(environment: &dyn ExecutionEnvironment, start: &Path) -> Vec<PathBuf> {
    let mut above: Vec<PathBuf> = start.ancestors().map(Path::to_path_buf).collect();
    let entries: Vec<PathBuf> = above.iter().map(|directory| directory.join(".git")).collect();
    // One call for all levels, since most have no repository.
    let contents = environment.read_many(&entries, ReadLimits::new(MAX_ENTRY, MAX_ENTRIES)).await;
    let contents = contents.unwrap_or_else(|_| vec![FileContent::Unreadable; entries.len()]);
    let mut number = 1;
    for (level, (entry, content)) in entries.iter().zip(contents).enumerate() {
        let exists = match content {
            FileContent::Missing => false,
            FileContent::Bytes(_) | FileContent::TooLarge => true,
            // A directory, or a link whose target may be missing.
            FileContent::NotAFile | FileContent::Unreadable | FileContent::Skipped => {
                environment.file_exists(entry).await.unwrap_or(false)
            }
        };
        if exists {
            number = level + 1;
        }
    }
    above.truncate(number);
    above
}

/// Returns whether a path that does not exist, or its directory, is a link whose target is missing.
async fn is_dangling_link(environment: &dyn ExecutionEnvironment, path: &Path) -> bool {
    for path in path.ancestors().take(2) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        let own = environment.canonicalize(parent).await.map(|parent| parent.join(name));
        let is_link = match (own, environment.canonicalize(path).await) {
            (Ok(own), Ok(target)) => own != target,
            (_, _) => false,
        };
        if is_link && !environment.file_exists(path).await.unwrap_or(true) {
            return true;
        }
    }
    false
}

/// Reads the existing files with these names of a project, with one call for most. `root` has all links resolved.
async fn read_files(
    environment: &dyn ExecutionEnvironment,
    root: &Path,
    names: &[&'static str],
) -> Result<Vec<(&'static str, String)>, Failure> {
    let paths: Vec<PathBuf> = names.iter().map(|name| file_path(root, name)).collect();
    let limit = MAX_FILE as u64;
    let limits = ReadLimits::new(limit, limit * names.len() as u64);
    let contents = environment.read_many(&paths, limits).await;
    let contents =
        contents.or_usage(&format!("cannot read the files of the project in {}", root.display()))?;
    let directory = root.join(DIRECTORY);
    // Behind a link, a missing file may be one that cannot be read.
    let is_link = contents.contains(&FileContent::Missing)
        && environment.canonicalize(&directory).await.is_ok_and(|real| real != directory);
    let mut files = Vec::new();
    for ((name, path), content) in names.iter().zip(&paths).zip(contents) {
        let text = match content {
            FileContent::Bytes(bytes) => Some(parse_text(path, bytes)?),
            FileContent::Missing if *name == SERVERS || !is_link => None,
            // Reading it reports the reason, and follows links.
            FileContent::Missing
            | FileContent::TooLarge
            | FileContent::NotAFile
            | FileContent::Unreadable
            | FileContent::Skipped => read_file(environment, path).await?,
        };
        files.extend(text.map(|text| (*name, text)));
    }
    Ok(files)
}

async fn read_file(environment: &dyn ExecutionEnvironment, path: &Path) -> Result<Option<String>, Failure> {
    let bytes = match environment.read(path, None).await {
        Ok(bytes) => bytes,
        Err(error @ (EnvError::NotFound { .. } | EnvError::NotADirectory { .. })) => {
            return match is_dangling_link(environment, path).await {
                // A dangling link: its rules are unknown.
                true => Err(error).or_usage(&format!("cannot read {}, a link", path.display())),
                false => Ok(None),
            };
        }
        Err(error) => return Err(error).or_usage(&format!("cannot read {}", path.display())),
    };
    if bytes.len() > MAX_FILE {
        return Err(Failure::usage(format!("{} is larger than {} MiB", path.display(), MAX_FILE >> 20)));
    }
    parse_text(path, bytes).map(Some)
}

fn parse_text(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    process_env::utf8_text(&path.display().to_string(), bytes)
}

#[cfg(test)]
mod tests;
