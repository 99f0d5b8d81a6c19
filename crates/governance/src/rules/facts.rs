//! Facts about a call, gathered where its tools work.

use std::path::{Path, PathBuf};

use globset::Candidate;
use pintle_env::ExecutionEnvironment;
use pintle_tools::Effect;
use pintle_tools::gate::{CommandLine, write_locations};
use pintle_tools::pipeline::PreparedCall;

use super::rule::{DescribedCall, DescribedTarget};
use super::{Address, CallFacts, RealPath, RuleError};

impl CallFacts {
    /// Gathers the facts about a call. Paths are resolved in its environment.
    pub async fn of_call(call: &PreparedCall, env: &dyn ExecutionEnvironment) -> Self {
        let mut facts = Self::without_paths(call);
        let (reads, has_unresolved_reads) = resolved(env, call.reads()).await;
        let mut writes = Vec::with_capacity(call.writes().len());
        let mut has_unresolved_writes = false;
        for path in call.writes() {
            match write_locations(env, path).await {
                Ok(locations) => writes.extend(locations),
                Err(_) => has_unresolved_writes = true,
            }
        }
        facts.writes.clone_from(&writes);
        facts.paths = reads.into_iter().chain(writes).collect();
        facts.has_unresolved_paths = has_unresolved_reads || has_unresolved_writes;
        facts
    }

    /// Reads a call that somebody describes as a rule names it, such as `shell(git push)`, to ask what would happen to it. The
    /// tool is named by its name or kind, and what stands in parentheses is the whole command, one path, or one host. Paths
    /// are resolved in the environment.
    ///
    /// # Errors
    ///
    /// [`RuleError`], which says what was expected.
    pub async fn parse(text: &str, env: &dyn ExecutionEnvironment) -> Result<Self, RuleError> {
        let described = DescribedCall::parse(text)?;
        let mut facts = Self {
            tool: described.tool.clone(),
            kind: described.tool,
            effect: described.effect,
            paths: Vec::new(),
            writes: Vec::new(),
            has_unresolved_paths: false,
            command: None,
            addresses: Vec::new(),
        };
        match described.target {
            None => {}
            Some(DescribedTarget::Command(line)) => facts.command = Some(CommandLine::parse(&line)),
            Some(DescribedTarget::Host(host)) => facts.addresses = vec![Address::of_host(&host)],
            Some(DescribedTarget::Path(path)) => {
                let (paths, has_unresolved) = resolved(env, &[env.resolve(Path::new(&path))]).await;
                facts.has_unresolved_paths = has_unresolved;
                if facts.effect == Effect::Write {
                    facts.writes.clone_from(&paths);
                }
                facts.paths = paths;
            }
        }
        if facts.effect == Effect::Network && facts.addresses.is_empty() {
            facts.addresses = vec![Address::Unreadable];
        }
        Ok(facts)
    }

    /// Returns its paths, prepared for any number of rules.
    pub(super) fn candidates(&self) -> Vec<RealPath<'_>> {
        self.paths
            .iter()
            .map(|path| RealPath { text: path.as_os_str(), candidate: Candidate::new(path) })
            .collect()
    }

    fn without_paths(call: &PreparedCall) -> Self {
        let effect = call.effect();
        Self {
            tool: call.name().to_owned(),
            kind: call.kind().to_owned(),
            effect,
            paths: Vec::new(),
            writes: Vec::new(),
            has_unresolved_paths: false,
            command: (effect == Effect::Execute).then(|| CommandLine::of_arguments(call.arguments())),
            addresses: addresses(call),
        }
    }
}

async fn resolved(env: &dyn ExecutionEnvironment, paths: &[PathBuf]) -> (Vec<PathBuf>, bool) {
    let mut real = Vec::with_capacity(paths.len());
    for path in paths {
        real.extend(env.canonicalize(path).await.ok());
    }
    let has_unresolved = real.len() < paths.len();
    (real, has_unresolved)
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
