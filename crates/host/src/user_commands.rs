//! Commands of the user: Markdown files whose text is sent with the arguments of the command.
//!
//! They are read from directories that other agents use as well. A file may start with front matter, of which `description`
//! and `argument-hint` are used. `$ARGUMENTS` is replaced with all arguments, and `$1` to `$9` with single arguments.
//! Arguments follow a text without placeholders. Nothing in a file is executed.

use std::path::{Path, PathBuf};

use pintle_env::{DirEntry, ExecutionEnvironment, leads_outside};

use crate::process_env::ProcessEnv;
use crate::sanitize::sanitize;
use crate::slash_commands;

/// Directories below the project directory, in order of precedence.
const OF_PROJECT: [&str; 3] = [".pintle/commands", ".agents/commands", ".claude/commands"];

/// Directories below the user's home, in order of precedence.
const OF_USER: [&str; 3] = [".agents/commands", ".claude/commands", ".codex/prompts"];

/// Name in the user's configuration directory.
const CONFIGURED: &str = "commands";

/// Maximum number of files read in one directory.
const MAX_FILES: usize = 200;

/// Maximum size of a file, in bytes. The rest is ignored.
const MAX_BYTES: u64 = 64 << 10;

/// Maximum length of a meaning in a list, in characters.
const MAX_MEANING: usize = 80;

/// Command of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCommand {
    /// Name, without the slash.
    pub name: String,
    /// Meaning for lists, with a hint about its arguments.
    pub meaning: String,
    text: String,
}

impl UserCommand {
    /// Parses the command in a file.
    fn parse(name: String, content: &str) -> Self {
        let (front_matter, text) = split(content);
        let value = |key: &str| {
            front_matter.lines().find_map(|line| {
                let (found, value) = line.split_once(':')?;
                (found.trim() == key).then(|| value.trim().trim_matches(['"', '\'']).to_owned())
            })
        };
        let hint = value("argument-hint").map(|hint| format!("{hint}: ")).unwrap_or_default();
        let first = || text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let described =
            value("description").unwrap_or_else(|| first().trim_start_matches('#').trim().to_owned());
        let meaning: String = sanitize(&format!("{hint}{described}")).chars().take(MAX_MEANING).collect();
        Self { name, meaning, text: text.trim().to_owned() }
    }

    /// Returns the message of the command with these arguments.
    pub fn say(&self, arguments: &str) -> String {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let mut said = String::new();
        let (mut rest, mut is_used) = (self.text.as_str(), false);
        while let Some((before, after)) = rest.split_once('$') {
            said.push_str(before);
            let digit = after.chars().next().and_then(|digit| digit.to_digit(10)).filter(|digit| *digit > 0);
            if let Some(after) = after.strip_prefix("ARGUMENTS") {
                said.push_str(arguments);
                (rest, is_used) = (after, true);
            } else if let (Some(number), Some(after)) = (digit, after.get(1..)) {
                said.push_str(words.get(number as usize - 1).copied().unwrap_or_default());
                (rest, is_used) = (after, true);
            } else {
                said.push('$');
                rest = after;
            }
        }
        said.push_str(rest);
        if !is_used && !arguments.is_empty() {
            said.push_str(&format!("\n\n{arguments}"));
        }
        said
    }
}

/// Splits the content of a file into its front matter and its text.
fn split(content: &str) -> (&str, &str) {
    let content = content.trim_start_matches('\u{feff}');
    let after = content.strip_prefix("---\n").or_else(|| content.strip_prefix("---\r\n"));
    let Some(after) = after else { return ("", content) };
    let mut at = 0;
    for line in after.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (after.get(..at).unwrap_or_default(), after.get(at + line.len()..).unwrap_or_default());
        }
        at += line.len();
    }
    ("", content)
}

/// Finds the commands of the project in which the tools work, and of the user. Of several commands with one name, the
/// project's takes precedence. Built-in commands take precedence over all. Skips files that cannot be read, and project
/// files that link out of the project directory.
pub async fn discover(environment: &dyn ExecutionEnvironment, process_env: &ProcessEnv) -> Vec<UserCommand> {
    let mut found = Vec::new();
    let project = environment.working_directory();
    for directory in OF_PROJECT {
        read_all(environment, Some(project), &project.join(directory), &mut found).await;
    }
    let home = process_env.home();
    let of_home = home.iter().flat_map(|home| OF_USER.map(|directory| home.join(directory)));
    let configured = process_env.configuration_directory().map(|directory| directory.join(CONFIGURED));
    let directories: Vec<PathBuf> = configured.into_iter().chain(of_home).collect();
    if let Ok(host) = process_env.local_environment(Path::new("/")) {
        for directory in directories {
            read_all(&host, None, &directory, &mut found).await;
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Adds the commands of a directory whose names are new. With a `root`, skips files that lead out of it. The name of a
/// command in a subdirectory starts with the name of the subdirectory and a colon.
async fn read_all(
    environment: &dyn ExecutionEnvironment,
    root: Option<&Path>,
    directory: &Path,
    found: &mut Vec<UserCommand>,
) {
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    let Ok(entries) = environment.list(directory).await else { return };
    for entry in entries {
        let path = directory.join(&entry.name);
        let Some(name) = entry.name.to_str().map(str::to_owned) else { continue };
        if entry.is_dir {
            let below = environment.list(&path).await.unwrap_or_default();
            files.extend(
                below
                    .iter()
                    .filter_map(|entry| Some((format!("{name}:{}", stem(entry)?), path.join(&entry.name)))),
            );
        } else {
            files.extend(stem(&entry).map(|name| (name, path)));
        }
    }
    files.truncate(MAX_FILES);
    for (name, path) in files {
        if slash_commands::is_known(&name) || found.iter().any(|command| command.name == name) {
            continue;
        }
        if let Some(content) = read(environment, root, &path).await {
            found.push(UserCommand::parse(name, &String::from_utf8_lossy(&content)));
        }
    }
}

/// Returns the start of a file, or `None` if it cannot be read or if links lead from it out of the `root`.
async fn read(environment: &dyn ExecutionEnvironment, root: Option<&Path>, path: &Path) -> Option<Vec<u8>> {
    let Some(root) = root else { return environment.read(path, Some(0..MAX_BYTES)).await.ok() };
    // Check and read the same file.
    let held = environment.hold(&[path.to_path_buf()]).await.ok()?;
    let environment = held.as_deref().unwrap_or(environment);
    if leads_outside(environment, path, &[root.to_path_buf()]).await {
        return None;
    }
    environment.read(path, Some(0..MAX_BYTES)).await.ok()
}

/// Returns the name of the command in a file, or `None` if the file is not a command.
fn stem(entry: &DirEntry) -> Option<String> {
    let stem = entry.name.to_str()?.strip_suffix(".md")?;
    let is_name = !stem.is_empty()
        && stem.chars().all(|character| character.is_alphanumeric() || matches!(character, '-' | '_' | '.'));
    (is_name && !entry.is_dir).then(|| stem.to_owned())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests write the files that are read")]
mod tests {
    use super::*;

    #[test]
    fn arguments_take_their_places() {
        for (text, arguments, said) in [
            ("Fix $1 in $2.", "a b c", "Fix a in b."),
            ("Fix $1 and $3.", "a", "Fix a and ."),
            ("All: $ARGUMENTS!", "a  b", "All: a  b!"),
            ("Review it.", "src/main.rs", "Review it.\n\nsrc/main.rs"),
            ("Review it.", "", "Review it."),
            ("It costs $0 and $x, $", "", "It costs $0 and $x, $"),
            ("$1é", "$2", "$2é"),
        ] {
            assert_eq!(UserCommand::parse("x".into(), text).say(arguments), said, "{text}");
        }
    }

    #[test]
    fn front_matter_describes() {
        for (content, meaning, said) in [
            (
                "---\ndescription: \"Does it\"\nargument-hint: [file]\n---\n\nDo it.\n",
                "[file]: Does it",
                "Do it.",
            ),
            ("# A title\n\nDo it.", "A title", "# A title\n\nDo it."),
            ("---\r\ndescription: x\r\n---\r\nDo it.", "x", "Do it."),
            ("---\ndescription: open\n", "---", "---\ndescription: open"),
            ("Clear\u{1b}[2J", "Clear[2J", "Clear\u{1b}[2J"),
            ("", "", ""),
        ] {
            let command = UserCommand::parse("x".into(), content);
            assert_eq!((command.meaning.as_str(), command.say("").as_str()), (meaning, said), "{content:?}");
        }
    }

    #[tokio::test]
    async fn commands_are_found_where_agents_keep_them() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |base: &Path, path: &str, text: &str| {
            let path = base.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(project.path(), ".claude/commands/review.md", "of the project");
        write(project.path(), ".claude/commands/git/sync.md", "sync");
        write(project.path(), ".pintle/commands/help.md", "the name of one that is built in");
        write(home.path(), ".claude/commands/review.md", "of the user");
        write(home.path(), ".codex/prompts/draft.md", "draft");
        write(home.path(), ".config/pintle/commands/own.md", "own");
        write(home.path(), ".config/pintle/commands/no text.txt", "no command");
        // A project reads no other files of the user; the user's own commands may be links.
        write(home.path(), "dotfiles/linked.md", "linked");
        let link = |target: PathBuf, path: PathBuf| std::os::unix::fs::symlink(target, path).unwrap();
        link(home.path().join("dotfiles/linked.md"), home.path().join(".config/pintle/commands/linked.md"));
        link(home.path().join("dotfiles/linked.md"), project.path().join(".claude/commands/key.md"));
        link(home.path().join("dotfiles"), project.path().join(".agents"));
        link("review.md".into(), project.path().join(".claude/commands/again.md"));
        write(home.path(), "dotfiles/commands/key.md", "outside");
        let process_env = ProcessEnv::from_variables([("HOME", home.path().as_os_str())]);
        let environment = process_env.local_environment(project.path()).unwrap();
        let found = discover(&environment, &process_env).await;
        let found: Vec<_> =
            found.iter().map(|command| (command.name.as_str(), command.text.as_str())).collect();
        let expected = [
            ("again", "of the project"),
            ("draft", "draft"),
            ("git:sync", "sync"),
            ("linked", "linked"),
            ("own", "own"),
            ("review", "of the project"),
        ];
        assert_eq!(found, expected);
    }
}
