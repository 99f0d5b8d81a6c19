//! Paths, searches and outputs as a model uses them.

use super::user::User;

/// Returns a script that makes these calls, each a tool and its arguments in TOML, in one response, and answers.
fn script(calls: &[(&str, &str)]) -> String {
    script_of(&[calls])
}

/// Returns a script with the calls of each response, and a final answer.
fn script_of(responses: &[&[(&str, &str)]]) -> String {
    let call = |(tool, arguments): &(&str, &str)| {
        format!("[[turn.call]]\ntool = \"{tool}\"\narguments = {{ {arguments} }}\n")
    };
    let turn = |calls: &&[(&str, &str)]| format!("[[turn]]\n{}", calls.iter().map(call).collect::<String>());
    let turns: String = responses.iter().map(turn).collect();
    format!("{turns}[[turn]]\ntext = \"Done.\"\n")
}

/// Returns the results that the model reads after the first response, in the order of the calls.
fn results(user: &User) -> Vec<String> {
    results_of(user, 1)
}

/// Returns the results in the request with this index.
fn results_of(user: &User, number: usize) -> Vec<String> {
    let request: serde_json::Value = serde_json::from_str(&user.request(number)).unwrap();
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let blocks = last["content"].as_array().unwrap().iter();
    blocks.filter(|block| block["type"] == "tool_result").map(|block| block["content"].to_string()).collect()
}

#[test]
fn a_tilde_is_the_home_and_judged_as_such() {
    let user = User::new(&script(&[
        ("Read", "file_path = '~/project/inside.txt'"),
        ("Grep", "pattern = 'inside', path = '~/project', output_mode = 'content'"),
        ("Glob", "pattern = '~/project/*.txt'"),
        ("Write", "file_path = '~/notes/todo.txt', content = 'outside'"),
    ]));
    std::fs::write(user.project().join("inside.txt"), "inside-the-project\n").unwrap();
    user.run_with_denials("Go");
    let results = results(&user);
    for (result, expected) in
        results.iter().zip(["inside-the-project", "inside-the-project", "inside.txt", "denied"])
    {
        assert!(result.contains(expected), "{expected}: {results:?}");
    }
    assert!(!user.project().join("~").exists() && !user.at("notes").exists(), "{results:?}");
}

#[test]
fn files_that_are_named_are_found() {
    let user = User::new(&script(&[
        ("Grep", "pattern = 'distinct', path = 'scripts', output_mode = 'content'"),
        ("Glob", "pattern = 'scripts/*.py'"),
        ("Glob", "pattern = 'a.log'"),
        ("Glob", "pattern = 'app/[id]/page.tsx'"),
        ("Glob", "pattern = 'app/[[...sign-in]]/*.tsx'"),
        ("Grep", "pattern = 'hello', glob = 'app/[id]/*.tsx'"),
        ("Grep", "pattern = 'distinct'"),
        ("Grep", "pattern = 'needle', path = 'long.js', output_mode = 'content'"),
    ]));
    let long = format!("{}needle{}", "x".repeat(100_000), "y".repeat(100_000));
    for (file, text) in [
        (".gitignore", "scripts/*\n*.log\n"),
        ("scripts/w.py", "distinct\n"),
        ("a.log", ""),
        ("app/[id]/page.tsx", "hello\n"),
        ("app/[[...sign-in]]/page.tsx", "hello\n"),
        ("long.js", long.as_str()),
    ] {
        let file = user.project().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    user.run("Go");
    let results = results(&user);
    let expected = [
        "scripts/w.py:1:distinct",
        "scripts/w.py",
        "a.log",
        "app/[id]/page.tsx",
        "app/[[...sign-in]]/page.tsx",
        "app/[id]/page.tsx",
        "not searched: 2",
        "xneedley",
    ];
    assert_eq!(results.len(), expected.len());
    for (result, expected) in results.iter().zip(expected) {
        assert!(result.contains(expected), "{expected}: {result}");
    }
}

#[test]
fn the_last_progress_frame_is_read() {
    let command = r"command = '''for i in 1 2 3; do printf '\rstep %d/3' $i; done; echo'''";
    let user = User::new(&script(&[("Bash", command)]));
    user.run("Go");
    let results = results(&user);
    assert!(results[0].contains("step 3/3") && !results[0].contains("step 1/3"), "{results:?}");
}

/// The second command runs in the background.
#[test]
fn colours_of_commands_are_not_read() {
    let command =
        r"command = '''printf '\033[31mred\033[0m \033]8;;https://a.b/\033\\link\033]8;;\007 end\n' '''";
    let user = User::new(&script_of(&[
        &[("Bash", command), ("Bash", &format!("{command}, run_in_background = true"))],
        &[("TaskOutput", "task_id = '1', block = true")],
    ]));
    user.run("Go");
    let results = [results(&user), results_of(&user, 2)].concat();
    let shown: Vec<_> = results.iter().filter(|result| result.contains("red")).collect();
    assert!(shown.len() >= 2, "{results:?}");
    for result in shown {
        assert!(result.contains("red link end") && !result.contains("u001b"), "{result}");
    }
}

#[test]
fn a_command_that_exceeds_one_argument_runs() {
    let command =
        format!("command = '''cat >long.txt <<'END'\n{}\nEND\nwc -c long.txt'''", "x".repeat(200_000));
    let user = User::new(&script(&[("Bash", &command)]));
    user.run("Go");
    let results = results(&user);
    assert!(results[0].contains("200001 long.txt"), "{results:?}");
    assert_eq!(std::fs::metadata(user.project().join("long.txt")).unwrap().len(), 200_001);
}

/// Everything in the outer project is ignored.
#[test]
fn a_project_in_an_ignored_directory_is_searched_by_its_own_rules() {
    let user = User::new(&script(&[
        ("Grep", "pattern = 'needle', path = 'sub', output_mode = 'content'"),
        ("Glob", "pattern = 'sub/**/*.js'"),
    ]));
    for (file, text) in [
        (".gitignore", "*\n"),
        ("sub/.gitignore", "node_modules/\n/target\n"),
        ("sub/own.js", "needle\n"),
        ("sub/node_modules/theirs.js", "needle\n"),
        ("sub/target/built.js", "needle\n"),
    ] {
        let file = user.project().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    user.run("Go");
    for result in results(&user) {
        assert!(result.contains("sub/own.js"), "{result}");
        assert!(!result.contains("theirs.js") && !result.contains("built.js"), "{result}");
    }
}

#[test]
fn commands_and_file_tools_see_the_same_temporary_files() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let name = format!("pintle-shared-{}", std::process::id());
    let (first, second) = (format!("/tmp/{name}.txt"), format!("/var/tmp/{name}/tool.txt"));
    for flags in [&[] as &[&str], &["--confine"]] {
        let user = User::new(&script_of(&[
            &[("Bash", &format!("command = 'echo of-a-command >{first}'"))],
            &[
                ("Read", &format!("file_path = '{first}'")),
                ("Glob", &format!("pattern = '/tmp/{name}*'")),
                ("Grep", &format!("pattern = 'of-a', path = '{first}', output_mode = 'content'")),
                ("Write", &format!("file_path = '{second}', content = 'of-a-tool'")),
            ],
            &[("Bash", &format!("command = 'cat {second}; ls /tmp'"))],
        ]));
        let output = user.run_command("Go").args(flags).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let found = results_of(&user, 2);
        for (result, expected) in found.iter().zip(["of-a-command", &name, "of-a-command"]) {
            assert!(result.contains(expected), "{expected}: {found:?}");
        }
        let last = results_of(&user, 3);
        assert!(last[0].contains("of-a-tool") && last[0].contains(&format!("{name}.txt")), "{last:?}");
        assert!(!std::path::Path::new(&first).exists() && !std::path::Path::new(&second).exists());
    }
}

#[test]
fn files_that_replacing_would_harm_are_written_in_place_or_refused() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let user = User::new(&script_of(&[
        &[
            ("Read", "file_path = 'linked.txt'"),
            ("Read", "file_path = 'shut.txt'"),
            ("Read", "file_path = 'marked.txt'"),
        ],
        &[
            ("Edit", "file_path = 'linked.txt', old_string = 'two', new_string = 'TWO'"),
            ("Edit", "file_path = 'shut.txt', old_string = 'two', new_string = 'TWO'"),
            ("Write", "file_path = 'marked.txt', content = \"three\\n\""),
        ],
    ]));
    let at = |name: &str| user.project().join(name);
    for (name, text) in
        [("linked.txt", "one\ntwo\n"), ("shut.txt", "two\n"), ("marked.txt", "\u{feff}one\r\n")]
    {
        std::fs::write(at(name), text).unwrap();
    }
    std::fs::hard_link(at("linked.txt"), at("second.txt")).unwrap();
    std::fs::set_permissions(at("shut.txt"), std::fs::Permissions::from_mode(0o444)).unwrap();
    user.run_with_denials("Go");
    let results = results_of(&user, 2);
    assert_eq!(std::fs::read_to_string(at("second.txt")).unwrap(), "one\nTWO\n", "{results:?}");
    assert_eq!(std::fs::metadata(at("linked.txt")).unwrap().nlink(), 2);
    assert!(results[1].contains("read-only") && results[1].contains("chmod u+w"), "{results:?}");
    assert_eq!(std::fs::read_to_string(at("shut.txt")).unwrap(), "two\n");
    assert_eq!(std::fs::read_to_string(at("marked.txt")).unwrap(), "\u{feff}three\r\n", "{results:?}");
}
