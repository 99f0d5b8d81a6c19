//! Rules: which calls run, are asked about, or never run.

mod denied_reads;
mod facts;
mod file;
mod links;
mod rule;
mod searched;
mod suggest;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use globset::Candidate;
use pintle_agent::PolicyRule;
use pintle_tools::gate::{CommandLine, CommandMention, Permission};
use pintle_tools::{Effect, ReadExtent};

pub use self::denied_reads::DeniedReads;
pub(crate) use self::facts::{SERVER_PREFIX, are_below};
pub use self::file::RulesError;
pub(crate) use self::file::form_error;
pub(crate) use self::links::RuleLinks;
pub use self::rule::{Rule, RuleError};
use self::searched::ReadRoot;
use crate::network::HostScope;

/// Rules from files, the command line or an application. Rules that deny take precedence over rules that ask, and these
/// over rules that allow, regardless of their origin. Calls that no rule names follow the [mode](crate::Mode).
///
/// ```
/// use pintle_governance::Rules;
///
/// let rules = Rules::parse(
///     "rules.toml",
///     r#"
///     allow = ["shell(cargo test *)", "web_fetch(docs.rs)"]
///     ask = ["@write(Cargo.toml)"]
///     deny = ["@read(**/.env)", "@write(**/.env)", "shell(git push *)"]
///     "#,
///     std::path::Path::new("/project"),
/// )?;
/// assert_eq!(rules.len(), 6);
/// # Ok::<(), pintle_governance::RulesError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules {
    entries: Vec<RuleEntry>,
    /// Hosts that a session may reach; `None` without such a limit.
    network: Option<HostScope>,
}

/// Rule with its permission and its origin.
#[derive(Clone, Debug)]
struct RuleEntry {
    permission: Permission,
    rule: Rule,
    source: String,
}

/// Properties of a call that rules judge by.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallFacts {
    /// Name of the tool.
    pub tool: String,
    /// Canonical kind of the tool.
    pub kind: String,
    /// Effect of the call.
    pub effect: Effect,
    /// Files and directories that it reads: each as the call names it, and with all links resolved.
    pub reads: Vec<PathBuf>,
    /// Files that it may change, likewise.
    pub writes: Vec<PathBuf>,
    /// How much of the directories among `reads` it reads.
    pub read_extent: ReadExtent,
    /// Why not all files that it touches are known, such as a path that cannot be resolved.
    pub undecided: Option<String>,
    /// Commands that it runs, if it runs any.
    pub command: Option<CommandLine>,
    /// Addresses that it reaches.
    pub addresses: Vec<Address>,
    /// Files and directories that it reads, for the search below them.
    read_roots: Vec<ReadRoot>,
    /// Further files and file names, which only rules that deny or ask match.
    others: OtherPaths,
}

#[derive(Clone, Debug, Default)]
struct OtherPaths {
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
}

/// Address of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Name of a host, in lower case.
    Host(String),
    /// Something that cannot be read as an address.
    Unreadable,
}

impl Address {
    /// Creates the address of a host, as parsed by the client that connects to it. Another parser could read another
    /// host.
    #[must_use]
    pub fn of_host(host: &str) -> Self {
        // A dot at the end names the same host.
        match host.trim_end_matches('.').to_lowercase() {
            host if host.is_empty() => Self::Unreadable,
            host => Self::Host(host),
        }
    }
}

/// Paths of a call, prepared for any number of rules.
struct JudgedPaths<'a> {
    reads: Vec<JudgedPath<'a>>,
    writes: Vec<JudgedPath<'a>>,
}

struct JudgedPath<'a> {
    text: &'a std::ffi::OsStr,
    candidate: Candidate<'a>,
}

/// Decision of the rules on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ruling {
    /// Permission of the call.
    pub permission: Permission,
    /// The rule, as it was written.
    pub rule: String,
    /// Origin of the rule: a file with a line, or another source.
    pub source: String,
    /// Why it could not be decided whether the rule names the call; `None` if it does.
    pub undecided: Option<String>,
    /// Whether the rule names no path of the call itself, but a file below a directory that it searches.
    pub is_below_search: bool,
    /// How the command line contains the command of the rule, if the rule asks or denies and is about commands.
    pub mention: Option<CommandMention>,
}

impl Rules {
    /// Creates an empty set, with which every call follows the mode.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule. `source` is its origin.
    pub fn add(&mut self, permission: Permission, rule: Rule, source: impl Into<String>) {
        self.entries.push(RuleEntry { permission, rule, source: source.into() });
    }

    /// Adds all rules of another set.
    pub fn extend(&mut self, other: Self) {
        self.entries.extend(other.entries);
        if let Some(hosts) = other.network {
            self.limit_network(hosts);
        }
    }

    /// Limits the network to the hosts that these and earlier limits allow.
    pub fn limit_network(&mut self, hosts: HostScope) {
        self.network = Some(match &self.network {
            Some(earlier) => earlier.narrowed_by(&hosts),
            None => hosts,
        });
    }

    /// Returns the hosts that a session may reach, whatever its settings allow; `None` without such a limit.
    #[must_use]
    pub fn network(&self) -> Option<&HostScope> {
        self.network.as_ref()
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the first unknown tool that a rule names, with the rule and its origin. `is_known` receives a name or
    /// kind. Names with `*` are patterns and need not match a tool.
    #[must_use]
    pub fn unknown_tool(&self, is_known: impl Fn(&str) -> bool) -> Option<(&str, &Rule, &str)> {
        self.entries.iter().find_map(|entry| {
            let tool = entry.rule.tool_name()?;
            (!is_known(tool)).then_some((tool, &entry.rule, entry.source.as_str()))
        })
    }

    /// Returns the ruling on a call; `None` if no rule names it.
    ///
    /// A rule that denies or asks applies if any part of the call matches: one command of a line, one of several files.
    /// Rules that allow apply only if each part matches one of them.
    #[must_use]
    pub fn judge(&self, call: &CallFacts) -> Option<Ruling> {
        let paths = call.judged_paths();
        for permission in [Permission::Deny, Permission::Ask] {
            if let Some(entry) =
                self.with_permission(permission).find(|entry| entry.rule.touches(call, &paths))
            {
                let names_any = |paths: &[PathBuf]| paths.iter().any(|path| entry.rule.matches_path(path));
                let is_below_search = !names_any(&call.reads) && names_any(&call.others.reads);
                let mention = entry.rule.mention_in(call);
                return Some(Ruling { is_below_search, mention, ..entry.ruling() });
            }
            if let Some(reason) = &call.undecided
                && let Some(entry) = self.with_permission(permission).find(|entry| entry.rule.may_touch(call))
            {
                return Some(Ruling { undecided: Some(reason.clone()), ..entry.ruling() });
            }
        }
        let named: Vec<&RuleEntry> =
            self.with_permission(Permission::Allow).filter(|entry| entry.rule.names(call)).collect();
        let first = named.iter().find(|entry| entry.rule.touches(call, &paths))?;
        rule::cover(named.iter().map(|entry| &entry.rule), call).then(|| first.ruling())
    }

    /// Separates the rules that ask or deny from the rules that allow something. The latter require the trust of the
    /// machine's owner.
    #[must_use]
    pub fn split_widening(self) -> (Self, Vec<(Rule, String)>) {
        let (widening, narrowing): (Vec<RuleEntry>, Vec<RuleEntry>) =
            self.entries.into_iter().partition(|entry| entry.permission == Permission::Allow);
        let narrowing = Self { entries: narrowing, network: self.network };
        (narrowing, widening.into_iter().map(|entry| (entry.rule, entry.source)).collect())
    }

    /// Returns the rules in the form of a record.
    pub fn on_record(&self) -> impl Iterator<Item = PolicyRule> {
        self.entries.iter().map(|RuleEntry { permission, rule, source }| PolicyRule {
            permission: *permission,
            rule: rule.to_string(),
            source: source.clone(),
        })
    }

    fn with_permission(&self, permission: Permission) -> impl Iterator<Item = &RuleEntry> {
        self.entries.iter().filter(move |entry| entry.permission == permission)
    }
}

impl RuleEntry {
    fn ruling(&self) -> Ruling {
        let (rule, source) = (self.rule.to_string(), self.source.clone());
        Ruling {
            permission: self.permission,
            rule,
            source,
            undecided: None,
            is_below_search: false,
            mention: None,
        }
    }
}
