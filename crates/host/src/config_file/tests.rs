use super::*;

fn parse(text: &str) -> File {
    File::parse("config.toml", Path::new("/etc/pintle"), text)
}

fn values(settings: &[Setting]) -> Vec<(&str, &str, usize)> {
    settings.iter().map(|setting| (setting.key.name, setting.value.as_str(), setting.line)).collect()
}

#[test]
fn keys_profiles_and_key_commands_are_read() {
    let file = parse(
        r#"model = "m"
timeout = 90
compact_at = 0x20
confine = true
catalog = "models.json"
profile = "sub/own.toml"
tool_dirs = ["tools", "/opt/tools"]

[profiles.review]
mode = "plan"
timeout = "2m"

[key_command]
openai = ["pass", "show", "openai"]
"#,
    );
    assert_eq!(file.problems, []);
    assert_eq!(
        values(&file.settings),
        [
            ("model", "m", 1),
            ("timeout", "90", 2),
            ("compact_at", "32", 3),
            ("confine", "true", 4),
            ("catalog", "/etc/pintle/models.json", 5),
            ("profile", "/etc/pintle/sub/own.toml", 6),
        ]
    );
    assert_eq!(values(&file.profiles["review"]), [("mode", "plan", 10), ("timeout", "2m", 11)]);
    let words = ["pass", "show", "openai"].map(str::to_owned).to_vec();
    assert_eq!(file.key_commands, [KeyCommand { provider: "openai", words, line: 14 }]);
    let directory = |path: &str| ToolDirectoryPath { path: PathBuf::from(path), line: 7 };
    assert_eq!(file.tool_dirs, [directory("/etc/pintle/tools"), directory("/opt/tools")]);
}

#[test]
fn mistakes_name_position_value_and_expectation() {
    let cases = [
        ("modle = \"m\"", "line 1, column 1: unknown key `modle`; did you mean `model`?"),
        ("base-url = \"http://h\"", "line 1, column 1: unknown key `base-url`; did you mean `base_url`?"),
        ("xyz = 1", "line 1, column 1: unknown key `xyz`; `pintle config schema` has all keys"),
        (
            "\nmode = \"aut\"",
            "line 2, column 8: `mode`: found \"aut\", expected one of plan, ask, edit, auto; did you mean `auto`?",
        ),
        ("max_turns = -1", "line 1, column 13: `max_turns`: found -1, expected a whole number from 0"),
        ("max_turns = \"3\"", "line 1, column 13: `max_turns`: found \"3\", expected a whole number from 0"),
        (
            "compact_at = 101",
            "line 1, column 14: `compact_at`: found 101, expected a whole number from 0 to 100",
        ),
        (
            "timeout = \"1d\"",
            "line 1, column 11: `timeout`: found \"1d\", expected a time from 1ms to 24h, such as \"90s\" or \"15m\"",
        ),
        ("confine = \"yes\"", "line 1, column 11: `confine`: found \"yes\", expected true or false"),
        ("model = \"\"", "line 1, column 9: `model`: found \"\", expected a text that is not empty"),
        (
            "base_url = \"me:hunter2@host\"",
            "line 1, column 12: `base_url`: expected a URL that begins with https:// or http://",
        ),
        (
            "profiles = 1",
            "line 1, column 12: found a value of type integer, expected a table for each profile, such as \
             [profiles.review]",
        ),
        (
            "[profiles]\n\"a/b\" = {}",
            "line 2, column 1: found the profile `a/b`, expected a name without `/` and `.toml`",
        ),
        (
            "[profile.review]\nmode = \"plan\"",
            "line 1, column 2: `profile`: found a table, expected the name of a profile, or the path of a file; did you \
             mean `[profiles.review]`?",
        ),
        (
            "profile = { mode = \"plan\" }",
            "line 1, column 11: `profile`: found a table, expected the name of a profile, or the path of a file; did \
             you mean `[profiles.NAME]`?",
        ),
        ("model = {}", "line 1, column 9: `model`: found a table, expected a text that is not empty"),
        ("[profiles.a]\nmodle = 1", "line 2, column 1: unknown key `modle`; did you mean `model`?"),
        ("[profiles.a]\nprofile = \"b\"", "line 2, column 1: a profile cannot select another one"),
        (
            "tool_dirs = [7]",
            "line 1, column 14: `tool_dirs`: expected an array of directories, such as [\"tools\"]",
        ),
        ("[profiles.a.key_command]", "line 1, column 13: `key_command` cannot be part of a profile"),
        (
            "[key_command]\nopenapi = [\"x\"]",
            "line 2, column 1: unknown provider `openapi`, expected one of openai, anthropic, gemini, \
             openai-compatible; did you mean `openai`?",
        ),
    ];
    for (text, message) in cases {
        let problems = parse(text).problems;
        let [problem] = problems.as_slice() else { panic!("{text}: {problems:?}") };
        assert_eq!(problem.to_string(), format!("config.toml: {message}"), "{text}");
    }
}

#[test]
fn wrong_key_commands_are_rejected_without_their_words() {
    for value in ["\"sesame 1\"", "[]", "[\"\"]", "[\"sesame\", 1]"] {
        let file = parse(&format!("[key_command]\nopenai = {value}"));
        let [problem] = file.problems.as_slice() else { panic!("{value}: {file:?}") };
        assert!(problem.to_string().contains("line 2, column 10: `key_command.openai`"), "{problem}");
        assert!(!problem.to_string().contains("sesame"), "{problem}");
        assert_eq!(file.key_commands, []);
    }
}

#[test]
fn mistakes_are_in_the_order_of_the_file() {
    let problems = parse("mode = 1\nmodle = 2\n[profiles\n").problems;
    let lines: Vec<bool> = problems
        .iter()
        .zip(1..)
        .map(|(problem, line)| problem.origin.contains(&format!("line {line},")))
        .collect();
    assert_eq!(lines, [true; 3], "{problems:?}");
}

#[test]
fn settings_beside_a_mistake_count() {
    let file = parse("model = \"m\"\nmode = 1\n[profiles.a]\nmode = 2\nmax_turns = 3\n");
    assert_eq!(file.problems.len(), 2, "{file:?}");
    assert_eq!(values(&file.settings), [("model", "m", 1)]);
    assert_eq!(values(&file.profiles["a"]), [("max_turns", "3", 5)]);
}

/// A header with a mistake does not put the keys after it into another table.
#[test]
fn nothing_after_a_syntax_error_counts() {
    for broken in ["[profiles.a", "[profiles.a]]", "mode = \"plan", "= 3", "model = \"n\""] {
        let file = parse(&format!("model = \"m\"\n{broken}\nmode = \"auto\"\n[profiles.b]\nmax_turns = 1\n"));
        assert!(!file.problems.is_empty(), "{broken}");
        assert!(file.problems[0].to_string().contains("line 2"), "{broken}: {:?}", file.problems);
        assert_eq!(values(&file.settings), [("model", "m", 1)], "{broken}");
        assert!(file.profiles.values().all(Vec::is_empty), "{broken}: {file:?}");
    }
}
