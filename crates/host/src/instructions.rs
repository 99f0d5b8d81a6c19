//! Instructions and skills of the user, for all projects.

use std::path::{Path, PathBuf};

use pintle_agent::{PROJECT_DOC_BUDGET, ProviderProfile};

use crate::env_spec::EnvSpec;
use crate::process_env::{self, ProcessEnv};

/// Name of the file in the directory of the user's configuration.
pub const FILE: &str = "AGENTS.md";

/// Files below the user's home that hold instructions for agents: for all models, or for models of one provider.
const FILES: [(Option<&str>, &str); 4] = [
    (None, ".agents/AGENTS.md"),
    (Some("anthropic"), ".claude/CLAUDE.md"),
    (Some("gemini"), ".gemini/GEMINI.md"),
    (Some("openai"), ".codex/AGENTS.md"),
];

/// Appended where a file does not fit.
const TRUNCATED: &str = "\n[User instructions truncated at 32KB]";

/// Returns the files of instructions that a user may have for models of a provider, the most general first.
pub fn files(provider: &str, process_env: &ProcessEnv) -> Vec<PathBuf> {
    let home = process_env.variable("HOME").map(PathBuf::from);
    let of_home = FILES.iter().filter_map(|(only_for, path)| {
        let is_for = only_for.is_none_or(|only| only == provider);
        is_for.then(|| home.as_ref().map(|home| home.join(path))).flatten()
    });
    let configured = process_env.configuration_directory().map(|directory| directory.join(FILE));
    of_home.chain(configured).collect()
}

/// Returns the user's instructions for models of a provider, followed by `others`; `None` without any. Unreadable files
/// are left out, as are duplicates of another file.
pub fn load_user_instructions(
    provider: &str,
    others: Option<&str>,
    process_env: &ProcessEnv,
) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for path in files(provider, process_env) {
        let text = process_env::read_text_if_exists("instructions", &path).ok().flatten().unwrap_or_default();
        let text = text.trim_start_matches('\u{feff}').trim();
        if !text.is_empty() && !texts.iter().any(|known| known == text) {
            texts.push(text.to_owned());
        }
    }
    let mut text = truncate(texts.join("\n\n"), PROJECT_DOC_BUDGET);
    if let Some(others) = others {
        text = if text.is_empty() { others.to_owned() } else { format!("{text}\n\n{others}") };
    }
    (!text.is_empty()).then_some(text)
}

/// Returns the profile with the user's directories of skills, which come after the project's directories.
pub fn add_user_skills(
    profile: ProviderProfile,
    environment: &EnvSpec,
    process_env: &ProcessEnv,
) -> ProviderProfile {
    // Other environments have a different home directory.
    let Some(home) = process_env.variable("HOME").filter(|_| *environment == EnvSpec::Local) else {
        return profile;
    };
    let relative = profile.skill_dirs.clone();
    if relative.is_empty() {
        return profile;
    }
    let of_home =
        relative.iter().filter(|name| Path::new(name).is_relative()).map(|name| format!("{home}/{name}"));
    let all: Vec<String> = of_home.chain(relative.iter().cloned()).collect();
    profile.with_skill_dirs(all)
}

fn truncate(mut text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    text + TRUNCATED
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests write the files that are read")]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_those_of_the_user_and_the_provider() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let process_env = ProcessEnv::from_variables([("HOME", home.path().as_os_str())]);
        assert_eq!(load_user_instructions("openai", None, &process_env), None);
        assert_eq!(load_user_instructions("openai", Some("others"), &process_env).as_deref(), Some("others"));
        write(".claude/CLAUDE.md", "for claude\n");
        write(".codex/AGENTS.md", "\u{feff}for codex");
        write(".config/pintle/AGENTS.md", "for all\n");
        write(".agents/AGENTS.md", "for all");
        let text = |provider| load_user_instructions(provider, Some("others"), &process_env).unwrap();
        assert_eq!(text("openai"), "for all\n\nfor codex\n\nothers");
        assert_eq!(text("anthropic"), "for all\n\nfor claude\n\nothers");
        assert_eq!(text("gemini"), "for all\n\nothers");
        write(".agents/AGENTS.md", &"é".repeat(PROJECT_DOC_BUDGET));
        let long = load_user_instructions("gemini", None, &process_env).unwrap();
        assert!(long.len() <= PROJECT_DOC_BUDGET + TRUNCATED.len() && long.ends_with(TRUNCATED));
    }

    #[test]
    fn skills_of_the_home_come_last() {
        let process_env = ProcessEnv::from_variables([("HOME", std::ffi::OsStr::new("/u/me"))]);
        let profile = || ProviderProfile::new("x", "m").with_skill_dirs([".agents/skills", "/opt/skills"]);
        let local = add_user_skills(profile(), &EnvSpec::Local, &process_env);
        assert_eq!(local.skill_dirs, ["/u/me/.agents/skills", ".agents/skills", "/opt/skills"]);
        let elsewhere = add_user_skills(profile(), &"docker:web".parse().unwrap(), &process_env);
        assert_eq!(elsewhere.skill_dirs, profile().skill_dirs);
        let none = add_user_skills(profile().with_skill_dirs([""; 0]), &EnvSpec::Local, &process_env);
        assert!(none.skill_dirs.is_empty(), "an empty list turns skills off");
    }
}
