//! Parts of projects that apply only if the user trusts them.

use pintle_env::ExecutionEnvironment;
use pintle_governance::Rule;

use super::{Project, TrustedProjects, check_hook_names, check_rule_names, project_rules};
use crate::config_file::{File, Setting, problem};
use crate::failure::Failure;
use crate::layers::ValueKind;
use crate::notice::Notice;
use crate::process_env::ProcessEnv;
use crate::sanitize::to_single_line;
use crate::tool_manifests::ToolDirectory;

/// Parts of projects that apply only if the user trusts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UntrustedParts {
    /// Rules that allow something.
    pub rules: Vec<String>,
    /// Commands of hooks.
    pub hooks: Vec<String>,
    /// MCP servers.
    pub servers: Vec<String>,
    /// Tools of manifests.
    pub tools: Vec<String>,
    /// Keys of the configuration with their values, such as `mode = "auto"`.
    pub settings: Vec<String>,
    /// Whether the user trusted one of the projects before it changed.
    pub was_trusted: bool,
}

impl UntrustedParts {
    /// Returns the parts of a project, whether it is trusted or not. `was_trusted` is false.
    ///
    /// # Errors
    ///
    /// The rules file is wrong.
    pub fn from_project(project: &Project) -> Result<Self, Failure> {
        let (_, widening) = project_rules(project)?.split_widening();
        Ok(Self::new(project, &widening))
    }

    /// Returns the parts of a project with these rules that allow something.
    pub(super) fn new(project: &Project, widening: &[(Rule, String)]) -> Self {
        let configuration = project.configuration_file();
        Self {
            rules: widening.iter().map(|(rule, _)| rule.to_string()).collect(),
            hooks: project.hooks().iter().map(|hook| hook.command().to_owned()).collect(),
            // Some builds cannot start servers.
            servers: project.servers().filter(|_| cfg!(feature = "mcp")).collect(),
            tools: project.tools().iter().flat_map(ToolDirectory::lines).collect(),
            settings: configuration.as_ref().map(trusted_settings).unwrap_or_default(),
            was_trusted: false,
        }
    }

    /// Adds the parts of another project.
    pub(super) fn extend(&mut self, other: Self) {
        let Self { rules, hooks, servers, tools, settings, was_trusted } = other;
        self.rules.extend(rules);
        self.hooks.extend(hooks);
        self.servers.extend(servers);
        self.tools.extend(tools);
        self.settings.extend(settings);
        self.was_trusted |= was_trusted;
    }

    /// Returns whether there are rules, hooks, servers or tools. Settings do not count.
    pub(super) fn has_policy_parts(&self) -> bool {
        let Self { rules, hooks, servers, tools, .. } = self;
        [rules, hooks, servers, tools].into_iter().any(|parts| !parts.is_empty())
    }

    /// Returns a line for each part, with its kind.
    pub fn lines(&self) -> Vec<String> {
        let kinds = [
            ("setting", &self.settings),
            ("hook", &self.hooks),
            ("server", &self.servers),
            ("tool", &self.tools),
            ("allowed without asking", &self.rules),
        ];
        let lines_of = |(kind, parts): (&'static str, &Vec<String>)| -> Vec<String> {
            // A part with line ends could look like several parts.
            parts.iter().map(|part| format!("{kind}: {}", to_single_line(part))).collect()
        };
        kinds.into_iter().flat_map(lines_of).collect()
    }

    /// Returns the notice that rules, hooks, servers and tools do not apply, and how to change that. The settings have a separate
    /// notice where they are read.
    pub fn notice(&self) -> Notice {
        let parts = [
            ("rules that allow something", &self.rules),
            ("hooks", &self.hooks),
            ("servers", &self.servers),
            ("tools", &self.tools),
        ];
        let parts = parts.into_iter().filter(|(_, parts)| !parts.is_empty());
        // A command may have several lines.
        let parts = parts.map(|(kind, parts)| format!("{kind} ({})", to_single_line(&parts.join(", "))));
        let parts: Vec<String> = parts.collect();
        untrusted_notice(&format!("its {}", parts.join(" and ")), self.was_trusted)
    }

    /// Returns the state of the projects as a predicate for messages.
    pub fn state(&self) -> &'static str {
        state(self.was_trusted)
    }
}

/// Returns the notice that parts of a project do not apply, and how to change that.
pub(crate) fn untrusted_notice(parts: &str, was_trusted: bool) -> Notice {
    let state = state(was_trusted);
    Notice::from(format!("the project {state}, which leaves out {parts}; `pintle trust` changes that"))
}

fn state(was_trusted: bool) -> &'static str {
    if was_trusted { "is no longer trusted, since its files have changed" } else { "is not trusted" }
}

/// Returns the projects with parts that apply only if they are trusted, and these parts, if the user has not decided
/// about their current state. A configuration counts if it is the nearest, since no other applies.
///
/// Dropping the future stops reading. Nothing is changed.
///
/// # Errors
///
/// Files of the projects, or the list of trusted projects, cannot be read or are wrong.
pub async fn find_undecided_projects(
    environment: &dyn ExecutionEnvironment,
    environment_name: &str,
    process_env: &ProcessEnv,
) -> Result<Option<(Vec<Project>, UntrustedParts)>, Failure> {
    let projects = Project::read_all(environment).await?;
    if projects.is_empty() {
        return Ok(None);
    }
    let trusted = TrustedProjects::open(process_env)?;
    let configured = projects.iter().position(|project| project.configuration().is_some());
    let (mut undecided, mut all) = (Vec::new(), UntrustedParts::default());
    for (level, project) in projects.into_iter().enumerate() {
        if trusted.contains(environment_name, &project) || trusted.is_refused(environment_name, &project) {
            continue;
        }
        let parts = UntrustedParts::from_project(&project)?;
        // Denials of a project need no trust.
        if parts.has_policy_parts() || configured == Some(level) && !parts.settings.is_empty() {
            all.extend(parts);
            all.was_trusted |= trusted.has_outdated_trust(environment_name, &project);
            undecided.push(project);
        }
    }
    Ok((!undecided.is_empty()).then_some((undecided, all)))
}

/// Checks the parts of a project that apply once the user trusts it.
///
/// # Errors
///
/// A usage failure for a mistake with which no session starts once the project is trusted: in its rules, in the names of tools
/// in its rules and hooks, or in its configuration.
pub fn check_project(project: &Project) -> Result<(), Failure> {
    check_rule_names(&project_rules(project)?)?;
    check_hook_names(project.hooks())?;
    let problems = project.configuration_file().map(|file| file.problems).unwrap_or_default();
    problem::failure(&problems).map_or(Ok(()), Err)
}

/// Returns the keys of a project's configuration that apply only if it is trusted, with their values.
fn trusted_settings(file: &File) -> Vec<String> {
    let line = |prefix: &str, setting: &Setting| {
        let Setting { key, value, .. } = setting;
        let value = match key.row.kind {
            ValueKind::Count | ValueKind::Percent | ValueKind::Switch => value.clone(),
            ValueKind::Text
            | ValueKind::Url
            | ValueKind::Choice(_)
            | ValueKind::Time
            | ValueKind::Path
            | ValueKind::Profile
            | ValueKind::Rule
            | ValueKind::Structure => format!("{value:?}"),
        };
        format!("{prefix}{} = {value}", key.name)
    };
    let counts = |setting: &&Setting| setting.needs_trust() && !setting.is_of_user();
    let mut lines: Vec<String> =
        file.settings.iter().filter(counts).map(|setting| line("", setting)).collect();
    for (profile, settings) in &file.profiles {
        let prefix = format!("profiles.{profile}.");
        lines.extend(settings.iter().filter(counts).map(|setting| line(&prefix, setting)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn untrusted_parts_are_a_notice() {
        let mut untrusted = UntrustedParts { rules: vec!["shell".to_owned()], ..UntrustedParts::default() };
        assert_eq!(
            untrusted.notice().text(),
            "the project is not trusted, which leaves out its rules that allow something (shell); `pintle trust` \
             changes that"
        );
        untrusted.hooks = vec!["a".to_owned(), "b\nc".to_owned()];
        untrusted.was_trusted = true;
        assert_eq!(
            untrusted.notice().text(),
            "the project is no longer trusted, since its files have changed, which leaves out its rules that allow \
             something (shell) and hooks (a, b\\nc); `pintle trust` changes that"
        );
    }

    #[test]
    fn each_part_is_a_line() {
        let parts = UntrustedParts {
            rules: vec!["shell(ls)".to_owned()],
            hooks: vec!["true\nserver: none".to_owned()],
            servers: vec!["s (a b)".to_owned()],
            tools: vec!["t (./t, read)".to_owned()],
            settings: vec!["mode = \"auto\"".to_owned()],
            was_trusted: false,
        };
        let lines = parts.lines();
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert_eq!((lines[0].as_str(), lines[2].as_str()), ("setting: mode = \"auto\"", "server: s (a b)"));
        assert!(lines[1].starts_with("hook: true\\n"), "{lines:?}");
        assert_eq!(lines[3], "tool: t (./t, read)");
        assert_eq!(lines[4], "allowed without asking: shell(ls)");
    }

    #[test]
    fn settings_that_need_trust_have_their_values() {
        let text = "sandbox = \"off\"\ntimeout = \"7m\"\nmax_turns = 3\nprofile = \"own.toml\"\nbase_url = \"http://h\"\n\
                    [profiles.p]\nconfine = false\ncompact_at = 7\n";
        let file = File::parse("config.toml", Path::new("/p/.pintle"), text);
        assert_eq!(file.problems, []);
        assert_eq!(
            trusted_settings(&file),
            ["sandbox = \"off\"", "max_turns = 3", "profiles.p.confine = false"]
        );
    }
}
