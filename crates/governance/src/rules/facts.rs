//! Facts about a call, gathered where its tools work.

use std::path::{Path, PathBuf};

use globset::Candidate;
use pintle_env::ExecutionEnvironment;
use pintle_tools::gate::{CommandLine, write_locations};
use pintle_tools::pipeline::PreparedCall;
use pintle_tools::{Effect, ReadExtent, ToolKind};

use super::links::joined;
use super::rule::{DescribedCall, DescribedTarget};
use super::{Address, CallFacts, JudgedPath, JudgedPaths, OtherPaths, ReadRoot, RuleError};

/// Prefix of the names of tools of MCP servers.
pub(crate) const SERVER_PREFIX: &str = "mcp__";

impl CallFacts {
    /// Creates facts about a call that touches nothing.
    pub(crate) fn new(effect: Effect) -> Self {
        Self {
            tool: String::new(),
            kind: String::new(),
            effect,
            reads: Vec::new(),
            writes: Vec::new(),
            read_extent: ReadExtent::default(),
            undecided: None,
            command: None,
            addresses: Vec::new(),
            read_roots: Vec::new(),
            others: OtherPaths::default(),
        }
    }

    /// Gathers the facts about a call. Paths are resolved in its environment.
    pub async fn of_call(call: &PreparedCall, env: &dyn ExecutionEnvironment) -> Self {
        let mut facts = Self::without_paths(call);
        for path in call.reads() {
            facts.add_read(path, env).await;
        }
        for path in call.writes() {
            facts.add_write(path, env).await;
        }
        facts
    }

    async fn add_read(&mut self, path: &Path, env: &dyn ExecutionEnvironment) {
        match env.canonicalize(path).await {
            Ok(real) => {
                let named = named_from_workspace(path, &real, env).await;
                add(&mut self.reads, [&named, &real]);
                self.read_roots.push(ReadRoot { named: path.to_path_buf(), real });
            }
            Err(error) => {
                add(&mut self.reads, [path]);
                self.undecided = Some(format!("{} cannot be resolved: {error}", path.display()));
            }
        }
    }

    async fn add_write(&mut self, path: &Path, env: &dyn ExecutionEnvironment) {
        match write_locations(env, path).await {
            Ok(locations) => {
                let target = locations.first().map_or(path, PathBuf::as_path);
                let named = named_from_workspace(path, target, env).await;
                add(&mut self.writes, [&named]);
                add(&mut self.writes, &locations);
            }
            Err(error) => {
                add(&mut self.writes, [path]);
                self.undecided = Some(format!("{} cannot be resolved: {error}", path.display()));
            }
        }
    }

    /// Parses the description of a call in the form of a rule, such as `shell(git push)`, to find its ruling. The tool is
    /// given by its name or kind. The text in parentheses is the whole command, one path, or one host. Paths are resolved
    /// in the environment.
    ///
    /// # Errors
    ///
    /// [`RuleError`] with the expected form.
    pub async fn parse(text: &str, env: &dyn ExecutionEnvironment) -> Result<Self, RuleError> {
        let described = DescribedCall::parse(text)?;
        let mut facts = Self {
            tool: described.tool.clone(),
            kind: described.tool,
            read_extent: ReadExtent::Searched,
            ..Self::new(described.effect)
        };
        let kind = ToolKind::from_name(&facts.kind);
        if kind == Some(ToolKind::ListDir) {
            facts.read_extent = ReadExtent::Names { levels: 1 };
        }
        match described.target {
            None => {}
            Some(DescribedTarget::Command(line)) => facts.command = Some(CommandLine::parse(&line)),
            Some(DescribedTarget::Host(host)) => facts.addresses = vec![Address::of_host(&host)],
            Some(DescribedTarget::Path(path)) => {
                let path = env.resolve(Path::new(&path));
                let is_edit = matches!(kind, Some(ToolKind::EditFile | ToolKind::ApplyPatch));
                if facts.effect != Effect::Write || is_edit {
                    facts.add_read(&path, env).await;
                }
                if facts.effect == Effect::Write {
                    facts.add_write(&path, env).await;
                }
            }
        }
        if facts.effect == Effect::Network && facts.addresses.is_empty() {
            facts.addresses = vec![Address::Unreadable];
        }
        Ok(facts)
    }

    /// Returns whether an MCP server provides the tool. Such a server interprets the arguments freely.
    pub(crate) fn is_of_server(&self) -> bool {
        self.tool.starts_with(SERVER_PREFIX)
    }

    /// Returns its paths, prepared for any number of rules.
    pub(super) fn judged_paths(&self) -> JudgedPaths<'_> {
        JudgedPaths {
            reads: self.reads.iter().chain(&self.others.reads).map(JudgedPath::new).collect(),
            writes: self.writes.iter().chain(&self.others.writes).map(JudgedPath::new).collect(),
        }
    }

    fn without_paths(call: &PreparedCall) -> Self {
        let effect = call.effect();
        let runs_commands = effect == Effect::Execute && !call.name().starts_with(SERVER_PREFIX);
        Self {
            tool: call.name().to_owned(),
            kind: call.kind().to_owned(),
            read_extent: call.read_extent(),
            command: runs_commands.then(|| CommandLine::of_arguments(call.arguments())),
            addresses: addresses(call),
            ..Self::new(effect)
        }
    }
}

impl<'a> JudgedPath<'a> {
    pub(super) fn new(path: &'a PathBuf) -> Self {
        Self { text: path.as_os_str(), candidate: Candidate::new(path) }
    }
}

fn add<'p>(paths: &mut Vec<PathBuf>, more: impl IntoIterator<Item = &'p (impl AsRef<Path> + ?Sized + 'p)>) {
    for path in more {
        if !paths.iter().any(|known| known == path.as_ref()) {
            paths.push(path.as_ref().to_path_buf());
        }
    }
}

/// Returns a path as the call names it. Rules start at the resolved workspace, and so must a path below the working
/// directory.
async fn named_from_workspace(path: &Path, real: &Path, env: &dyn ExecutionEnvironment) -> PathBuf {
    match path.strip_prefix(env.working_directory()) {
        // Without links, both paths are equal.
        Ok(below) if path != real => match env.canonicalize(env.working_directory()).await {
            Ok(directory) => joined(&directory, below),
            Err(_) => path.to_path_buf(),
        },
        Ok(_) | Err(_) => path.to_path_buf(),
    }
}

fn addresses(call: &PreparedCall) -> Vec<Address> {
    match call.hosts() {
        Some(hosts) => hosts.iter().map(|host| Address::of_host(host)).collect(),
        None if call.effect() == Effect::Network => vec![Address::Unreadable],
        None => Vec::new(),
    }
}

/// Returns whether all of these files are below one of the directories.
pub(crate) fn are_below(paths: &[PathBuf], directories: &[PathBuf]) -> bool {
    let is_below = |path: &Path| directories.iter().any(|directory| path.starts_with(directory));
    paths.iter().all(|path| is_below(path))
}
