//! Build files without a data format. Their lines are compared without dependencies and names of sources.

/// Extensions of sources.
const SOURCES: [&str; 24] = [
    "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "m", "mm", "o", "s", "rs", "go", "java", "kt", "scala",
    "swift", "py", "js", "ts", "hs", "ml", "mli",
];

/// Lines that may change. All other lines judge.
pub(super) struct LineRules {
    /// Starts of comments.
    comments: &'static [&'static str],
    /// Starts of lines that may change.
    starts: &'static [&'static str],
    /// Starts of lines that open a bracket, whose contents may change.
    blocks: &'static [&'static str],
    /// First characters of lines in such a block. Empty if a block may have any lines. A language with strings of several lines
    /// needs them, because the start of a block in a string opens none.
    entries: &'static [char],
    /// Texts that make such a line judge nevertheless, for example a local dependency.
    except: &'static [&'static str],
    /// Whether names of sources may be added.
    has_sources: bool,
}

pub(super) const FROZEN: LineRules =
    LineRules { comments: &[], starts: &[], blocks: &[], entries: &[], except: &[], has_sources: false };

pub(super) const MAKE: LineRules = LineRules { comments: &["#"], has_sources: true, ..FROZEN };

pub(super) const CMAKE: LineRules =
    LineRules { comments: &["#"], starts: &["find_package(", "find_package ("], has_sources: true, ..FROZEN };

pub(super) const MESON: LineRules = LineRules { comments: &["#"], has_sources: true, ..FROZEN };

pub(super) const BAZEL: LineRules =
    LineRules { comments: &["#"], starts: &["bazel_dep("], except: &[";"], has_sources: true, ..FROZEN };

pub(super) const SETUP_PY: LineRules = LineRules {
    comments: &["#"],
    starts: &["version=", "description=", "author=", "license=", "url="],
    blocks: &["install_requires=[", "install_requires = ["],
    entries: &['"', '\'', ']'],
    except: &[
        "@",
        "file:",
        "(",
        ";",
        "cmdclass",
        "entry_points",
        "ext_modules",
        "package_dir",
        "packages=",
        "packages =",
        "py_modules",
        "scripts=",
        "scripts =",
        "test_suite",
    ],
    ..FROZEN
};

pub(super) const REQUIREMENTS: LineRules = LineRules {
    comments: &["#"],
    starts: &[""],
    except: &["-e ", "-r ", "-c ", "-f ", "-i ", "--", "/", "@"],
    ..FROZEN
};

pub(super) const GO_MOD: LineRules =
    LineRules { comments: &["//"], starts: &["require "], blocks: &["require ("], ..FROZEN };

pub(super) const GRADLE: LineRules = LineRules {
    comments: &["//"],
    starts: &[
        "implementation",
        "api ",
        "api(",
        "compileOnly",
        "runtimeOnly",
        "annotationProcessor",
        "kapt",
        "testImplementation",
        "testRuntimeOnly",
        "version ",
        "description ",
    ],
    except: &["files(", "fileTree(", "project(", "{", "}", ";"],
    ..FROZEN
};

pub(super) const GEMFILE: LineRules = LineRules {
    comments: &["#"],
    starts: &["gem \"", "gem '"],
    except: &["path:", ":path", "git:", ":git", ";"],
    ..FROZEN
};

pub(super) const MIX: LineRules = LineRules {
    comments: &["#"],
    starts: &["{:", "version:", "description:"],
    except: &["path:", "git:", "override:", ";", "paths:", "aliases:", "compilers:"],
    ..FROZEN
};

pub(super) const REBAR: LineRules =
    LineRules { comments: &["%"], blocks: &["{deps, ["], except: &["file"], ..FROZEN };

pub(super) const STACK: LineRules =
    LineRules { comments: &["#"], starts: &["resolver:", "snapshot:"], ..FROZEN };

pub(super) const DUNE: LineRules = LineRules {
    comments: &[";"],
    starts: &["(version ", "(synopsis ", "(description "],
    blocks: &["(depends"],
    ..FROZEN
};

pub(super) const LEININGEN: LineRules = LineRules {
    comments: &[";"],
    starts: &[":description "],
    blocks: &[":dependencies ["],
    entries: &['[', ']'],
    ..FROZEN
};

pub(super) const SBT: LineRules = LineRules {
    comments: &["//"],
    starts: &["libraryDependencies += ", "version := ", "description := "],
    blocks: &["libraryDependencies ++= Seq("],
    entries: &['"', ')'],
    except: &["from ", "file("],
    ..FROZEN
};

pub(super) const SWIFT: LineRules = LineRules {
    comments: &["//"],
    starts: &[".package(url:", ".product("],
    except: &["path:", ";"],
    ..FROZEN
};

/// A line that judges, with the sources that it names. Following lines with nothing but sources belong to it.
#[derive(Debug, PartialEq, Eq)]
struct JudgingLine {
    text: String,
    sources: Vec<String>,
}

/// Returns the lines that judge and differ.
pub(super) fn changed_lines(
    rules: &LineRules,
    before: &str,
    after: &str,
    is_test: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let (before, after) = (judging_lines(rules, before, is_test), judging_lines(rules, after, is_test));
    let shown = |line: &JudgingLine| line.text.chars().take(60).collect::<String>();
    let mut changed = Vec::new();
    for (one, other) in before.iter().zip(&after) {
        if one.text != other.text {
            // The first line that differs. Later lines may only have moved.
            return vec![shown(if other.text.is_empty() { one } else { other })];
        }
        if !one.sources.iter().all(|source| other.sources.contains(source)) {
            changed.push(shown(one));
        }
    }
    let common = before.len().min(after.len());
    changed.extend(before.get(common..).into_iter().chain(after.get(common..)).flatten().map(shown).take(1));
    changed
}

fn judging_lines(rules: &LineRules, text: &str, is_test: &dyn Fn(&str) -> bool) -> Vec<JudgingLine> {
    let mut lines: Vec<JudgingLine> = Vec::new();
    // Open brackets of a block that may change.
    let mut depth = 0_i64;
    for line in text.lines() {
        let is_recipe = line.starts_with('\t');
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.is_empty() || rules.comments.iter().any(|comment| line.starts_with(comment)) {
            continue;
        }
        let is_excepted = rules.except.iter().any(|text| line.contains(text));
        if depth > 0 || rules.blocks.iter().any(|start| line.starts_with(start)) && !is_excepted {
            let is_entry = depth == 0 || rules.entries.is_empty() || line.starts_with(rules.entries);
            let rest = after_block(&line, depth);
            depth = (depth + open_brackets(&line, rules.comments)).max(0);
            // Text after the end of a block is no part of it.
            let is_end =
                depth == 0 && rest.is_none_or(|rest| rest.contains(|next: char| !")]},;. ".contains(next)));
            if is_excepted || is_end || !is_entry {
                lines.push(JudgingLine { text: line, sources: Vec::new() });
            }
            continue;
        }
        if !is_excepted && rules.starts.iter().any(|start| line.starts_with(start)) {
            continue;
        }
        let (text, sources) =
            if rules.has_sources && !is_recipe { split_sources(&line, is_test) } else { (line, Vec::new()) };
        let is_continued = rules.has_sources && text.chars().all(|character| ")] ".contains(character));
        match lines.last_mut() {
            Some(last) if is_continued => {
                text.split_whitespace().for_each(|bracket| last.text.extend([" ", bracket]));
                last.sources.extend(sources);
            }
            _ => lines.push(JudgingLine { text, sources }),
        }
    }
    lines
}

/// Returns the number of brackets that a line leaves open. Brackets in comments and strings count only if they close a block, so
/// that no text of them hides the lines after it.
fn open_brackets(line: &str, comments: &[&str]) -> i64 {
    let count = |text: &str| text.chars().map(bracket_depth).sum::<i64>();
    let end = comments.iter().filter_map(|comment| line.find(*comment)).min().unwrap_or(line.len());
    let code = line.get(..end).unwrap_or(line);
    let unquoted: String = code.split(['"', '\'']).step_by(2).collect();
    count(line).min(count(code)).min(count(&unquoted))
}

/// Returns the rest of a line after the bracket that closes the block, or `None` if no bracket of the line does.
fn after_block(line: &str, mut depth: i64) -> Option<&str> {
    let end = line.char_indices().find(|(_, character)| {
        let change = bracket_depth(*character);
        depth += change;
        change < 0 && depth <= 0
    });
    line.get(end?.0 + 1..)
}

/// Returns the change of the depth of brackets at a character.
fn bracket_depth(character: char) -> i64 {
    match character {
        '(' | '[' | '{' => 1,
        ')' | ']' | '}' => -1,
        _ => 0,
    }
}

/// Splits the names of sources off a line. The rest has no quotes and commas, which separate such names.
fn split_sources(line: &str, is_test: &dyn Fn(&str) -> bool) -> (String, Vec<String>) {
    let is_separator = |character: char| character.is_whitespace() || "'\",".contains(character);
    let mut sources = Vec::new();
    let mut rest = Vec::new();
    for word in line.split(is_separator).filter(|word| !word.is_empty()) {
        let start = word.rfind(['(', '[']).map_or(0, |index| index + 1);
        let (opening, word) = word.split_at(start);
        let name = word.trim_end_matches([')', ']', '\\']);
        let closing = word.get(name.len()..).unwrap_or_default();
        let is_source = name.rsplit_once('.').is_some_and(|(_, extension)| SOURCES.contains(&extension))
            && !name.starts_with('-')
            && !name.contains(['=', '$', '%', ':', '*'])
            && !is_test(name);
        if is_source {
            sources.push(name.to_owned());
            rest.extend([opening, closing].into_iter().filter(|text| !text.is_empty() && *text != "\\"));
        } else if !(opening.is_empty() && name.is_empty() && closing == "\\") {
            rest.extend([opening, name, closing].into_iter().filter(|text| !text.is_empty()));
        }
    }
    (rest.join(" "), sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rules: &LineRules, before: &str, after: &str) -> String {
        changed_lines(rules, before, after, &|path| path.contains("test")).join("; ")
    }

    #[test]
    fn sources_may_be_added() {
        let cmake = "project(sums)\nadd_library(sums src/a.c\n  src/b.c)\nadd_test(NAME t COMMAND t)\n";
        for (from, to, expected) in [
            ("src/b.c)", "src/b.c src/d.c)", ""),
            ("src/b.c)", "src/b.c\n  src/d.c)", ""),
            ("add_test(", "# Tests\nfind_package(Threads)\nadd_test(", ""),
            ("src/b.c)", "src/fake.c)", "add_library( sums )"),
            ("COMMAND t)", "COMMAND true)", "add_test( NAME t COMMAND true )"),
            ("add_test(NAME t COMMAND t)\n", "", "add_test( NAME t COMMAND t )"),
            ("project(sums)", "project(sums)\nset(CMAKE_C_FLAGS -DNDEBUG)", "set( CMAKE_C_FLAGS -DNDEBUG )"),
        ] {
            assert_eq!(found(&CMAKE, cmake, &cmake.replace(from, to)), expected, "{to}");
        }
        let make = "OBJS = a.o \\\n  b.o\ntest: $(OBJS)\n\tcc -o t a.c\n\t./t\n";
        for (from, to, expected) in [
            ("b.o\n", "b.o \\\n  d.o\n", ""),
            ("a.o \\", "a.o d.o \\", ""),
            ("\t./t\n", "\ttrue\n", "true"),
            ("-o t a.c", "-o t fake.c", "cc -o t fake.c"),
            ("OBJS =", "CFLAGS = -DNDEBUG\nOBJS =", "CFLAGS = -DNDEBUG"),
        ] {
            assert_eq!(found(&MAKE, make, &make.replace(from, to)), expected, "{to}");
        }
    }

    #[test]
    fn dependencies_may_change() {
        for (rules, before, after, expected) in [
            (&GO_MOD, "module a\n", "module a\nrequire b v1\nrequire (\n\tc v1\n)\n", ""),
            (&GO_MOD, "module a\n", "module a\nreplace b => ./fake\n", "replace b => ./fake"),
            (&REQUIREMENTS, "a==1\n", "a==2\nb-c\n", ""),
            (&REQUIREMENTS, "pytest\n", "./fake/pytest\n", "./fake/pytest"),
            (&GEMFILE, "gem \"a\"\n", "gem \"a\"\ngem \"b\"\n", ""),
            (&GEMFILE, "gem \"rspec\"\n", "gem \"rspec\", path: \"x\"\n", "gem \"rspec\", path: \"x\""),
            (&GRADLE, "dependencies {\n}\n", "dependencies {\n  implementation 'a:b:1'\n}\n", ""),
            (&GRADLE, "test { }\n", "test { enabled = false }\n", "test { enabled = false }"),
            (&SETUP_PY, "setup(\n)\n", "setup(\n  install_requires=[\n    'a>=1',\n  ],\n)\n", ""),
            (&SETUP_PY, "setup(\n)\n", "setup(\n  entry_points={},\n)\n", "entry_points={},"),
            (&SETUP_PY, "setup(\n)\n", "setup(\n  install_requires=['a[x]', 'b'],\n  version='1',\n)\n", ""),
            (
                &SETUP_PY,
                "setup(\n)\n",
                "setup(\n  version='1', entry_points={},\n)\n",
                "version='1', entry_points={},",
            ),
            (
                &SETUP_PY,
                "setup(\n)\n",
                "setup(\n  install_requires=[\n    'a'], test_suite='fake',\n)\n",
                "'a'], test_suite='fake',",
            ),
            (&SETUP_PY, "setup(\n)\n", "setup(\n  install_requires=[  # [\n  ],\n  ext={},\n)\n", "ext={},"),
            (
                &GO_MOD,
                "module a\n",
                "module a\nrequire ( // (\n\tc v1\n)\nreplace b => ./x\n",
                "replace b => ./x",
            ),
            (
                &SETUP_PY,
                "\"\"\"\n\"\"\"\nx = 1\n",
                "\"\"\"\ninstall_requires=[\n\"\"\"\nevil = 1\ny = 2 #]\n\"\"\"\nx = 1\n",
                "evil = 1",
            ),
            (&SBT, "a := 1\n", "libraryDependencies ++= Seq(\nb := 2,\n)\na := 1\n", "b := 2,"),
            (&GO_MOD, "module a\n", "module a\nrequire (\n\tc v1 // indirect\n)\n", ""),
            (&MIX, "[\n]\n", "[\n  {:a, \"~> 1.0\"}\n]\n", ""),
            (&MIX, "[\n]\n", "[\n  version: \"1\", test_paths: []\n]\n", "version: \"1\", test_paths: []"),
            (&FROZEN, "a\n", "a\nb\n", "b"),
        ] {
            assert_eq!(found(rules, before, after), expected, "{after}");
        }
    }
}
