//! Question at the first start of a conversation in a project: whether it is trusted.

use std::collections::BTreeSet;

use pintle_host::env_spec::{EnvSpec, EnvironmentChoice};
use pintle_host::failure::Failure;
use pintle_host::policy::{self, Project, TrustedProjects, UntrustedParts};
use pintle_host::process_env::ProcessEnv;
use pintle_tui::approve::Prompter;
use pintle_tui::console;
use pintle_tui::render::Section;

use crate::commands::trust;

/// Prompt of the question.
const PROMPT: &str = "Trust its current state? [y]es, [n]o (start without these), [q]uit: ";

/// Decision about the project of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrustDecision {
    /// The user trusts it from now on, so that more of its settings apply.
    Trusted,
    /// No question was asked, or the user refused. The settings apply as they are.
    Unchanged,
    /// The conversation does not start.
    Quit,
}

/// Answer to the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrustAnswer {
    Trust,
    Refuse,
    Quit,
}

/// Asks whether the project is trusted, if it declares something to trust and has no decision about its current state.
/// Stores the answer.
///
/// Without a terminal, and for projects that are not on this machine, no question is asked and untrusted parts are left
/// out. A project with a mistake that would keep sessions from starting is not trusted: the mistake is a usage failure.
pub(super) async fn decide_trust(
    choice: &EnvironmentChoice,
    process_env: &ProcessEnv,
) -> Result<TrustDecision, Failure> {
    if choice.spec != EnvSpec::Local || !Prompter::has_terminal() {
        return Ok(TrustDecision::Unchanged);
    }
    let environment = process_env.local_environment(&process_env.directory(choice.directory.as_deref())?)?;
    let name = choice.spec.to_string();
    let Some((projects, parts)) = policy::find_undecided_projects(&environment, &name, process_env).await?
    else {
        return Ok(TrustDecision::Unchanged);
    };
    let prompter = Prompter::from_process(console::style(process_env), None, false);
    let (head, sections) = question(&projects, &parts);
    let answer = loop {
        // End of input is not consent.
        let Some(line) = prompter.ask_about(&head, &sections, PROMPT).await else { break TrustAnswer::Quit };
        if let Some(answer) = TrustAnswer::parse(&line) {
            break answer;
        }
    };
    let mut trusted = TrustedProjects::open(process_env)?;
    match answer {
        TrustAnswer::Quit => Ok(TrustDecision::Quit),
        TrustAnswer::Refuse => {
            for project in &projects {
                trusted.refuse(&name, project, process_env)?;
            }
            Ok(TrustDecision::Unchanged)
        }
        TrustAnswer::Trust => {
            trust::check(&projects, process_env)?;
            for project in &projects {
                trusted.add(&name, project, process_env)?;
            }
            Ok(TrustDecision::Trusted)
        }
    }
}

/// Returns the head of the question, and a section with everything that trust grants.
fn question(projects: &[Project], parts: &UntrustedParts) -> (String, Vec<Section>) {
    let roots: Vec<String> = projects.iter().map(|project| project.root.display().to_string()).collect();
    let root = roots.join(" and ");
    let head = if parts.was_trusted {
        format!(
            "The project in {root} has changed since you trusted it. It can change settings, run commands and allow calls only if you trust it again"
        )
    } else {
        format!(
            "The project in {root} can change settings, run commands and allow calls only if you trust it"
        )
    };
    let launchers: BTreeSet<String> = projects.iter().flat_map(Project::launchers).collect();
    let launchers =
        launchers.iter().map(|launcher| format!("not covered by trust: the files that `{launcher}` runs"));
    let lines: Vec<String> = parts.lines().into_iter().chain(launchers).collect();
    (head, vec![Section::text(&lines.join("\n"))])
}

impl TrustAnswer {
    fn parse(line: &str) -> Option<Self> {
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Some(Self::Trust),
            "n" | "no" => Some(Self::Refuse),
            "q" | "quit" => Some(Self::Quit),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_answers_decide() {
        let cases = [
            ("y", Some(TrustAnswer::Trust)),
            (" YES ", Some(TrustAnswer::Trust)),
            ("no", Some(TrustAnswer::Refuse)),
            ("q", Some(TrustAnswer::Quit)),
            ("", None),
            ("yes please", None),
            ("all", None),
        ];
        for (line, expected) in cases {
            assert_eq!(TrustAnswer::parse(line), expected, "{line:?}");
        }
    }
}
