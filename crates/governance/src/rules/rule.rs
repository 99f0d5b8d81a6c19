//! One rule.

use std::fmt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use pintle_tools::gate::{CommandMention, CommandPattern};
use pintle_tools::{Effect, ToolKind, most_similar};

use super::{Address, CallFacts, JudgedPath, JudgedPaths};
use crate::pattern::Pattern;
use crate::tool_names::{self, WEB_FETCH, kind_of_tool};

/// Selects calls by tool or effect, and by the command, files or host that they touch.
///
/// | rule | calls |
/// |---|---|
/// | `shell` | of the tool with this name or [kind](ToolKind), also by the name that it has in another toolset, such as `Bash`; `*` in it matches any characters |
/// | `@write` | with this effect: `@read`, `@write`, `@execute` or `@network` |
/// | `shell(git push *)` | that run this command: its words, with `*` for any characters, or at the end for any words |
/// | `@write(src/**)` | that touch these files: relative to the workspace or from `/`, with `*`, `**` and `?` |
/// | `web_fetch(*.rust-lang.org)` | that reach this host |
///
/// The text in parentheses is a command, a path or a host, as the tool takes it. For a tool that is not one of the
/// built-in kinds, a prefix says which: `query(host:example.org)`, `Build(command:make *)`, `Save(path:out/**)`.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    calls: Calls,
    target: Option<Target>,
}

#[derive(Clone, Debug)]
enum Calls {
    Tool(Pattern),
    Effect(Effect),
}

/// Target of a call.
#[derive(Clone, Debug)]
enum Target {
    Command(CommandPattern),
    Path(PathGlob),
    Host(Pattern),
}

/// Pattern of paths.
#[derive(Clone, Debug)]
struct PathGlob {
    /// Common prefix of all matching paths. It rejects most other paths at a fraction of the cost.
    prefix: String,
    /// Directory or file up to the first wildcard, in which links are followed.
    path: PathBuf,
    glob: GlobMatcher,
}

/// Kind of the text in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetKind {
    Command,
    Path,
    Host,
}

/// Reason why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rule `{rule}` {problem}")]
pub struct RuleError {
    rule: String,
    problem: String,
}

impl Rule {
    /// Parses a rule. `workspace` is the base of relative paths: an absolute path with all links resolved.
    ///
    /// # Errors
    ///
    /// [`RuleError`] with the expected form.
    pub fn parse(text: &str, workspace: &Path) -> Result<Self, RuleError> {
        let text = text.trim();
        let refused = |problem: String| RuleError { rule: text.to_owned(), problem };
        let (name, target) = match text.split_once('(') {
            None if text.contains(')') => return Err(refused("has no `(`".to_owned())),
            None => (text, None),
            Some((name, rest)) => {
                let inside =
                    rest.strip_suffix(')').ok_or_else(|| refused("has no `)` at its end".to_owned()))?;
                (name.trim_end(), Some(inside.trim()))
            }
        };
        let calls = Calls::parse(name).map_err(refused)?;
        let target = match target {
            None => None,
            Some("") => {
                return Err(refused(
                    "has nothing in its parentheses; without them it names all calls".to_owned(),
                ));
            }
            Some(target) => Some(Target::parse(&calls, target, workspace).map_err(refused)?),
        };
        Ok(Self { text: text.to_owned(), calls, target })
    }

    /// Returns the name of the tool, if it is one and not a pattern or an effect.
    pub(super) fn tool_name(&self) -> Option<&str> {
        match &self.calls {
            Calls::Tool(pattern) if !pattern.has_wildcard() => Some(pattern.as_str()),
            Calls::Tool(_) | Calls::Effect(_) => None,
        }
    }

    /// Returns whether it names calls like this one, regardless of their targets.
    pub(super) fn names(&self, call: &CallFacts) -> bool {
        match &self.calls {
            Calls::Tool(pattern) => {
                pattern.matches(&call.tool)
                    || pattern.matches(&call.kind)
                    || kind_of_tool(pattern.as_str()).is_some_and(|kind| kind == call.kind)
            }
            Calls::Effect(effect) => *effect == call.effect,
        }
    }

    /// Returns whether it names calls like this one as a rule that denies or asks: `Edit` then includes patches.
    fn restricts(&self, call: &CallFacts) -> bool {
        match &self.calls {
            Calls::Tool(pattern) => tool_names::is_named(pattern, &[&call.tool, &call.kind]),
            Calls::Effect(effect) => *effect == call.effect,
        }
    }

    /// Returns whether it names any part of a call like this one: a call that changes a file may read it as well.
    pub(super) fn concerns(&self, call: &CallFacts) -> bool {
        self.restricts(call)
            || match &self.calls {
                Calls::Effect(Effect::Read) => !call.reads.is_empty(),
                Calls::Effect(Effect::Write) => !call.writes.is_empty(),
                Calls::Effect(Effect::Network) => !call.addresses.is_empty(),
                Calls::Effect(Effect::Execute) | Calls::Tool(_) => false,
            }
    }

    /// Returns the directory or file up to the first wildcard of its paths.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.target {
            Some(Target::Path(glob)) => Some(&glob.path),
            Some(Target::Command(_) | Target::Host(_)) | None => None,
        }
    }

    /// Returns whether it can name a file below a directory that the call reads.
    pub(super) fn may_name_below(&self, call: &CallFacts, directory: &Path) -> bool {
        self.may_match_below(directory) && self.judges_reads(call)
    }

    /// Returns whether it names a file that the call reads.
    pub(super) fn names_path(&self, call: &CallFacts, path: &Path) -> bool {
        self.matches_path(path) && self.judges_reads(call)
    }

    /// Returns whether it names files that a call like this one reads, and not only files that it changes.
    fn judges_reads(&self, call: &CallFacts) -> bool {
        self.restricts(call) || matches!(&self.calls, Calls::Effect(Effect::Read))
    }

    /// Returns whether it is about reading the content of files.
    pub(super) fn is_about_reads(&self) -> bool {
        match &self.calls {
            Calls::Effect(effect) => *effect == Effect::Read,
            Calls::Tool(pattern) => {
                [ToolKind::ReadFile, ToolKind::ReadManyFiles, ToolKind::Grep].iter().any(|kind| {
                    pattern.matches(kind.as_str()) || ToolKind::of_tool(pattern.as_str()) == Some(*kind)
                })
            }
        }
    }

    /// Returns whether its paths include this one.
    pub(super) fn matches_path(&self, path: &Path) -> bool {
        matches!(&self.target, Some(Target::Path(glob)) if glob.glob.is_match(path))
    }

    /// Returns whether its paths can include one below a directory.
    pub(super) fn may_match_below(&self, directory: &Path) -> bool {
        matches!(&self.target, Some(Target::Path(glob)) if glob.may_match_below(directory))
    }

    /// Returns whether it names files of a call whose files are not all known.
    pub(super) fn may_touch(&self, call: &CallFacts) -> bool {
        self.path().is_some() && self.concerns(call)
    }

    /// Returns whether it names any part of the call, whose paths are `paths`. An unreadable address matches.
    pub(super) fn touches(&self, call: &CallFacts, paths: &JudgedPaths<'_>) -> bool {
        self.concerns(call)
            && match &self.target {
                None => true,
                Some(Target::Command(pattern)) => {
                    call.command.as_ref().is_some_and(|line| line.mentions(pattern))
                }
                Some(Target::Path(glob)) => {
                    let (reads, writes) = self.judged(call);
                    (reads && paths.reads.iter().any(|path| glob.matches(path)))
                        || (writes && paths.writes.iter().any(|path| glob.matches(path)))
                }
                Some(Target::Host(pattern)) => call.addresses.iter().any(|address| match address {
                    Address::Host(host) => pattern.matches(host),
                    Address::Unreadable => true,
                }),
            }
    }

    /// Returns how a command line contains the rule's command; `None` if the rule names no command, or the line lacks it.
    pub(super) fn mention_in(&self, call: &CallFacts) -> Option<CommandMention> {
        match &self.target {
            Some(Target::Command(pattern)) => call.command.as_ref()?.mention(pattern),
            Some(Target::Path(_) | Target::Host(_)) | None => None,
        }
    }

    /// Returns whether it judges the reads of the call, and whether it judges the writes.
    fn judged(&self, call: &CallFacts) -> (bool, bool) {
        match &self.calls {
            Calls::Effect(Effect::Read) if call.effect != Effect::Read => (true, false),
            Calls::Effect(Effect::Write) if call.effect != Effect::Write => (false, true),
            Calls::Effect(_) | Calls::Tool(_) => (true, true),
        }
    }
}

/// Returns whether these rules, all of which name the call, match all parts of it: its commands, its files and its hosts.
/// Parts that cannot be judged do not match.
pub(super) fn cover<'a>(rules: impl Iterator<Item = &'a Rule>, call: &CallFacts) -> bool {
    let (mut commands, mut globs, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
    for rule in rules {
        match &rule.target {
            None => return true,
            Some(Target::Command(pattern)) => commands.push(pattern),
            Some(Target::Path(glob)) => globs.push(glob),
            Some(Target::Host(pattern)) => hosts.push(pattern),
        }
    }
    let is_matched = |path: &PathBuf| globs.iter().any(|glob| glob.matches(&JudgedPath::new(path)));
    let is_named = |address: &Address| match address {
        Address::Host(host) => hosts.iter().any(|pattern| pattern.matches(host)),
        Address::Unreadable => false,
    };
    let mut paths = call.reads.iter().chain(&call.writes).peekable();
    // A call that changes files without naming them has paths.
    let has_paths = paths.peek().is_some() || call.undecided.is_some() || call.effect == Effect::Write;
    let is_known = call.undecided.is_none() && (call.effect != Effect::Write || !call.writes.is_empty());
    let parts = [
        call.command.as_ref().map(|line| line.is_only(&commands)),
        has_paths.then(|| is_known && paths.all(is_matched)),
        (!call.addresses.is_empty()).then(|| call.addresses.iter().all(is_named)),
    ];
    parts.iter().any(Option::is_some) && parts.into_iter().flatten().all(|is_covered| is_covered)
}

impl Calls {
    fn parse(name: &str) -> Result<Self, String> {
        if let Some(effect) = name.strip_prefix('@') {
            return Ok(Self::Effect(match effect {
                "read" => Effect::Read,
                "write" => Effect::Write,
                "execute" => Effect::Execute,
                "network" => Effect::Network,
                _ => {
                    return Err(format!(
                        "names no effect with `@{effect}`, expected `@read`, `@write`, `@execute` or `@network`"
                    ));
                }
            }));
        }
        let is_name = |c: char| c.is_alphanumeric() || "_-.:/*".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(
                "names no tool, expected one such as `shell`, `shell(git log *)` or `@write(src/**)`"
                    .to_owned(),
            );
        }
        tool_names::parse(name).map(Self::Tool)
    }

    fn is_tool(&self, name: &str) -> bool {
        matches!(self, Self::Tool(pattern) if pattern.as_str() == name)
    }

    /// Returns the kind of target of these calls; `None` if it is unknown.
    fn target_kind(&self) -> Option<TargetKind> {
        match self {
            Self::Effect(Effect::Execute) => Some(TargetKind::Command),
            Self::Effect(Effect::Read | Effect::Write) => Some(TargetKind::Path),
            Self::Effect(Effect::Network) => Some(TargetKind::Host),
            Self::Tool(pattern) if kind_of_tool(pattern.as_str()) == Some(WEB_FETCH) => {
                Some(TargetKind::Host)
            }
            Self::Tool(pattern) => match ToolKind::of_tool(pattern.as_str())? {
                ToolKind::Shell => Some(TargetKind::Command),
                ToolKind::ReadFile
                | ToolKind::ReadManyFiles
                | ToolKind::WriteFile
                | ToolKind::EditFile
                | ToolKind::ApplyPatch
                | ToolKind::Grep
                | ToolKind::Glob
                | ToolKind::ListDir => Some(TargetKind::Path),
                ToolKind::SpawnAgent => None,
            },
        }
    }
}

/// Call that is described in the form of a rule.
#[derive(Debug)]
pub(super) struct DescribedCall {
    pub(super) tool: String,
    pub(super) effect: Effect,
    pub(super) target: Option<DescribedTarget>,
}

/// Target of a described call.
#[derive(Debug)]
pub(super) enum DescribedTarget {
    Command(String),
    Path(String),
    Host(String),
}

impl DescribedCall {
    pub(super) fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let refused = |problem: &str| RuleError { rule: text.to_owned(), problem: problem.to_owned() };
        let (name, target) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                let inside = rest.strip_suffix(')').ok_or_else(|| refused("has no `)` at its end"))?;
                (name.trim_end(), Some(inside.trim()))
            }
        };
        let calls = Calls::parse(name).map_err(|problem| refused(&problem))?;
        if name.contains('*') {
            return Err(refused("names several tools, expected one call such as `shell(git push)`"));
        }
        let target = match target {
            None | Some("") => None,
            Some(target) => Some(target_of(&calls, target).map_err(|problem| refused(&problem))?),
        };
        let effect = match (&calls, target) {
            (Calls::Effect(effect), _) => *effect,
            (Calls::Tool(pattern), target) => effect_of(pattern.as_str(), target.map(|(kind, _)| kind)),
        };
        let target = target.map(|(kind, text)| match kind {
            TargetKind::Command => DescribedTarget::Command(text.to_owned()),
            TargetKind::Path => DescribedTarget::Path(text.to_owned()),
            TargetKind::Host => DescribedTarget::Host(text.to_owned()),
        });
        let is_incomplete = target.is_none() && effect != Effect::Read;
        if is_incomplete && calls.target_kind().is_some() {
            return Err(refused("has no target, expected one call such as `shell(git push)`"));
        }
        Ok(Self { tool: name.to_owned(), effect, target })
    }
}

/// Returns the effect of a tool. An unknown tool has the worst effect that fits its target.
fn effect_of(tool: &str, target: Option<TargetKind>) -> Effect {
    match ToolKind::of_tool(tool) {
        Some(ToolKind::Shell) => Effect::Execute,
        Some(ToolKind::WriteFile | ToolKind::EditFile | ToolKind::ApplyPatch) => Effect::Write,
        Some(
            ToolKind::ReadFile
            | ToolKind::ReadManyFiles
            | ToolKind::Grep
            | ToolKind::Glob
            | ToolKind::ListDir
            | ToolKind::SpawnAgent,
        ) => Effect::Read,
        None if kind_of_tool(tool) == Some(WEB_FETCH) => Effect::Network,
        None => match target {
            Some(TargetKind::Path) => Effect::Write,
            Some(TargetKind::Host) => Effect::Network,
            Some(TargetKind::Command) | None => Effect::Execute,
        },
    }
}

/// Splits the text in parentheses into its kind and its value.
fn target_of<'t>(calls: &Calls, text: &'t str) -> Result<(TargetKind, &'t str), String> {
    let prefixes =
        [("command:", TargetKind::Command), ("path:", TargetKind::Path), ("host:", TargetKind::Host)];
    let prefixed =
        prefixes.into_iter().find_map(|(prefix, kind)| Some((kind, text.strip_prefix(prefix)?.trim())));
    match (prefixed, calls.target_kind()) {
        (Some((kind, _)), Some(own)) if kind != own => {
            let name = |kind| match kind {
                TargetKind::Command => "command",
                TargetKind::Path => "path",
                TargetKind::Host => "host",
            };
            Err(format!("names a {} where calls have a {}", name(kind), name(own)))
        }
        (Some((kind, text)), _) => Ok((kind, text)),
        (None, Some(kind)) => Ok((kind, text)),
        (None, None) => {
            let kinds = ToolKind::ALL.map(ToolKind::as_str).into_iter().chain([WEB_FETCH]);
            let meant = match calls {
                Calls::Tool(tool) => most_similar(tool.as_str(), kinds),
                Calls::Effect(_) => Vec::new(),
            };
            let meant = meant.first().map(|meant| format!("; did you mean `{meant}({text})`?"));
            Err(format!(
                "does not say what `{text}` is, expected `command:{text}`, `path:{text}` or `host:{text}`{}",
                meant.unwrap_or_default()
            ))
        }
    }
}

impl Target {
    fn parse(calls: &Calls, text: &str, workspace: &Path) -> Result<Self, String> {
        let (kind, text) = target_of(calls, text)?;
        match kind {
            // Rules of another agent with tools of these names.
            TargetKind::Command if calls.is_tool("Bash") && text.ends_with(":*") => {
                let command = text.trim_end_matches(":*");
                Err(format!("ends with `:*`, expected `{command} *` for the command with any arguments"))
            }
            TargetKind::Host if text.starts_with("domain:") => Err(format!(
                "has `domain:`, expected only the host, as in `{}`",
                text.trim_start_matches("domain:")
            )),
            TargetKind::Command => {
                CommandPattern::parse(text).map(Self::Command).map_err(|error| format!("is wrong: {error}"))
            }
            TargetKind::Path => path_glob(text, workspace).map(Self::Path),
            TargetKind::Host => {
                let is_host = |c: char| c.is_ascii_alphanumeric() || "-.*:[]_".contains(c);
                if text.chars().all(is_host) {
                    Ok(Self::Host(Pattern::new(text.to_lowercase())))
                } else {
                    Err(format!(
                        "names no host with `{text}`, expected one such as `docs.rs` or `*.rust-lang.org`"
                    ))
                }
            }
        }
    }
}

/// Returns why a text that other tools read as a path is invalid: here it would match no file.
fn path_problem(text: &str) -> Option<String> {
    let expected = "expected a path below the workspace, or one from `/`";
    if text.starts_with("~/") || text == "~" {
        return Some(format!("has a path with `~`, which is not expanded; {expected}"));
    }
    if text.starts_with('$') {
        return Some(format!("has a path with a variable, which is not expanded; {expected}"));
    }
    if text.starts_with('!') {
        return Some(format!("has a path with `!`: a rule has no exceptions; {expected}"));
    }
    if text.contains("//") {
        return Some(format!("has a path with `//`; {expected}"));
    }
    if matches!(text, "." | "./") {
        return Some("has the path of the workspace itself; expected `**` for all files in it".to_owned());
    }
    None
}

/// Returns the pattern of these files. `dir/**` also matches the directory itself, which a search reads.
fn path_glob(text: &str, workspace: &Path) -> Result<PathGlob, String> {
    if let Some(problem) = path_problem(text) {
        return Err(problem);
    }
    let relative = text.strip_prefix("./").unwrap_or(text);
    // A directory, as in an ignore file.
    let below = relative.strip_suffix('/').filter(|directory| !directory.is_empty());
    let below = below.map(|directory| format!("{directory}/**"));
    let relative = below.as_deref().unwrap_or(relative);
    if Path::new(relative).components().any(|part| part == std::path::Component::ParentDir) {
        return Err("names a path with `..`, expected one below the workspace, or from `/`".to_owned());
    }
    let literal = pintle_env::glob_base(relative);
    // Joining an empty path would append a slash.
    let path = if literal.is_empty() { workspace.to_path_buf() } else { workspace.join(literal) };
    let path = path.components().collect();
    let root = globset::escape(&workspace.to_string_lossy());
    let text = if relative.starts_with('/') {
        relative.to_owned()
    } else {
        format!("{}/{relative}", root.trim_end_matches('/'))
    };
    let text = match text.strip_suffix("/**") {
        Some(directory) => format!("{directory}{{,/**}}"),
        None => text,
    };
    let glob =
        GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).empty_alternates(true).build();
    let glob = glob.map_err(|error| format!("is wrong: {}", error.kind()))?.compile_matcher();
    let end = text.find(['*', '?', '[', '{', '\\']).unwrap_or(text.len());
    let prefix = text.get(..end).unwrap_or_default().to_owned();
    Ok(PathGlob { prefix, path, glob })
}

impl PathGlob {
    fn may_match_below(&self, directory: &Path) -> bool {
        let (prefix, directory) = (self.prefix.as_bytes(), directory.as_os_str().as_encoded_bytes());
        prefix.starts_with(directory) || directory.starts_with(prefix)
    }

    fn matches(&self, path: &JudgedPath<'_>) -> bool {
        path.text.as_encoded_bytes().starts_with(self.prefix.as_bytes())
            && self.glob.is_match_candidate(&path.candidate)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The beginning of a pattern only saves time.
        #[test]
        fn prefixes_exclude_nothing_that_matches(text in r"(/|\./)?[ab*?{},\[\]\\/!]{1,10}", path in "/w(/[ab]{0,3}){0,4}") {
            let Ok(glob) = path_glob(&text, Path::new("/w")) else { return Ok(()) };
            let path = PathBuf::from(path);
            prop_assert_eq!(glob.matches(&JudgedPath::new(&path)), glob.glob.is_match(&path));
        }
    }
}
