//! Files that a shell line may name.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Notations for the directory of the project at the beginning of a word.
const PROJECT: [&str; 5] =
    ["$PINTLE_PROJECT_DIR", "${PINTLE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}", "$PWD"];

/// Maximum depth of nested shell lines, as in `sh -c "sh -c 'x y'"`.
const MAX_DEPTH: usize = 4;

/// Word of a shell line, without its quotes.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// Whether it is the name of a program.
    is_program: bool,
}

/// Returns the paths below the workspace that the words of a line may name.
pub(super) fn find_paths(line: &str, workspace: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    collect(line, workspace, workspace, MAX_DEPTH, &mut found);
    found
}

/// Returns these paths for a program that is started with arguments in a directory, without a shell.
pub(super) fn find_argument_paths(
    arguments: &[String],
    directory: &Path,
    workspace: &Path,
) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    collect(&line_of(arguments), directory, workspace, MAX_DEPTH, &mut found);
    found
}

/// Returns the line of a shell that starts a program with arguments.
fn line_of(arguments: &[String]) -> String {
    let quoted = arguments.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

fn collect(line: &str, directory: &Path, workspace: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    for word in words(line) {
        // A quoted word may be a line for another shell.
        if depth > 0 && word.text.contains(char::is_whitespace) {
            collect(&word.text, directory, workspace, depth - 1, found);
        }
        let value = word.text.split_once('=').map(|(_, value)| value);
        for text in [Some(word.text.as_str()), value].into_iter().flatten() {
            // The shell searches `PATH` for a program without a slash.
            let is_elsewhere = word.is_program && !text.contains('/');
            if !is_elsewhere && !text.starts_with('-') {
                found.extend(below(text, directory, workspace));
            }
        }
    }
}

/// Returns the path that a word names, if it is below the workspace.
fn below(text: &str, directory: &Path, workspace: &Path) -> Option<PathBuf> {
    let project = PROJECT.iter().find_map(|name| {
        let rest = text.strip_prefix(name)?;
        rest.starts_with('/').then(|| rest.trim_start_matches('/'))
    });
    let (text, directory) = project.map_or((text, directory), |rest| (rest, workspace));
    if text.contains(['$', '\n']) || text.starts_with('~') {
        return None;
    }
    let mut path = PathBuf::new();
    for component in directory.join(text).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(component),
        }
    }
    (path.starts_with(workspace) && path != workspace).then_some(path)
}

/// Splits a line into words like a shell, as far as file names require it.
fn words(line: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut word = String::new();
    let mut is_program = true;
    let mut quote = None;
    let mut characters = line.chars();
    let mut end = |word: &mut String, is_program: &mut bool| {
        if !word.is_empty() {
            let text = std::mem::take(word);
            // An assignment comes before the program.
            let is_assignment = *is_program && text.contains('=');
            words.push(Word { text, is_program: *is_program && !is_assignment });
            *is_program = is_assignment;
        }
    };
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.push(c),
            (_, '\\') => word.extend(characters.next().filter(|next| *next != '\n')),
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => quote = Some(character),
            (None, '<' | '>') => {
                end(&mut word, &mut is_program);
                // A redirection is followed by a file, also before the program.
                is_program = false;
            }
            (None, ';' | '|' | '&' | '(' | ')' | '`' | '\n') => {
                end(&mut word, &mut is_program);
                is_program = true;
            }
            (None, c) if c.is_whitespace() => end(&mut word, &mut is_program),
            (None, c) => word.push(c),
        }
    }
    end(&mut word, &mut is_program);
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_are_words_whatever_they_contain() {
        let arguments = ["./it's server.sh", "a;b", "sh -c 'sub/run x'", "--config=conf/c.json", "-y"];
        let found = find_argument_paths(&arguments.map(str::to_owned), Path::new("/w"), Path::new("/w"));
        for path in ["a;b", "conf/c.json", "it's server.sh", "sub/run"] {
            assert!(found.contains(&Path::new("/w").join(path)), "{path}: {found:?}");
        }
        assert!(!found.contains(Path::new("/w/-y")), "{found:?}");
    }

    #[test]
    fn words_name_files_of_the_workspace() {
        for (line, expected) in [
            ("./check.sh", vec!["check.sh"]),
            ("check.sh", vec![]),
            ("python3 hooks/check.py --strict", vec!["hooks/check.py"]),
            ("python3 check.py", vec!["check.py"]),
            (
                "jq -e .x && scripts/a.sh|scripts/b.sh;(scripts/c.sh)",
                vec![".x", "scripts/a.sh", "scripts/b.sh", "scripts/c.sh"],
            ),
            ("\"$PINTLE_PROJECT_DIR\"/a.sh", vec!["a.sh"]),
            (
                "\"${CLAUDE_PROJECT_DIR}/.claude/hooks/a b.sh\"",
                vec![".claude/hooks/a b.sh", ".claude/hooks/a", "b.sh"],
            ),
            ("sh -c './a.sh && ./b.sh'", vec!["a.sh && ./b.sh", "a.sh", "b.sh"]),
            ("X=lib.py ./a.sh --config=b.toml", vec!["X=lib.py", "lib.py", "a.sh", "b.toml"]),
            ("a\\ b/c.sh 'd'", vec!["a b/c.sh", "b/c.sh", "d"]),
            ("cat < in.txt > out.txt", vec!["in.txt", "out.txt"]),
            ("/w/p/x.sh /w/p/../q/y.sh /w/p/./z/../v.sh", vec!["x.sh", "v.sh"]),
            ("/bin/sh ~/a.sh $HOME/b.sh ../c.sh /w/pq/d.sh", vec![]),
            ("", vec![]),
        ] {
            let expected: BTreeSet<PathBuf> =
                expected.iter().map(|name| Path::new("/w/p").join(name)).collect();
            assert_eq!(find_paths(line, Path::new("/w/p")), expected, "{line}");
        }
    }

    proptest! {
        /// Whatever a line says, its files are in the workspace.
        #[test]
        fn files_are_below_the_workspace(line in r#"[ab./=$"'\\ ;&-]{0,30}"#) {
            for path in find_paths(&line, Path::new("/w/p")) {
                prop_assert!(path.starts_with("/w/p") && path != Path::new("/w/p"), "{path:?}");
                prop_assert!(path.components().all(|part| part != Component::ParentDir), "{path:?}");
            }
        }
    }
}
