//! Defaults of the code, in sessions that configure nothing: output limits (sections 5.1 to 5.3) and variables of
//! commands (section 4.2). The default time-out of commands is tested in `pintle-agent`, with a paused clock.

use std::ffi::OsString;
use std::sync::Arc;

use pintle_env::{CommandScript, LocalEnvironment, MemoryEnvironment, Program};
use pintle_testkit::Dialect;

use crate::harness::{Harness, in_each_dialect, outputs, profile};
use crate::test_profile::results;

in_each_dialect![every_tool_has_its_default_output_limits, commands_do_not_inherit_secrets];

/// The part of an output that is kept.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    HeadTail,
    Tail,
}

use Kept::{HeadTail, Tail};

/// A tool with its limit on characters, the part kept, and its limit on lines. Then arguments with which the tool exceeds
/// only the limit on characters, and arguments with which its output has many lines.
type LimitRow = (&'static str, usize, Kept, Option<usize>, &'static str, Option<&'static str>);

/// The tables of sections 5.2 and 5.3.
const LIMITS: [LimitRow; 9] = [
    ("read_file", 50_000, HeadTail, None, "file_path = 'wide.txt'", Some("file_path = 'long.txt'")),
    ("read_many_files", 50_000, HeadTail, None, "paths = ['wide.txt']", Some("paths = ['long.txt']")),
    ("list_dir", 30_000, HeadTail, None, "path = 'wide'", Some("path = 'long'")),
    ("shell", 30_000, HeadTail, Some(256), "command = 'wide'", Some("command = 'long'")),
    (
        "grep",
        20_000,
        Tail,
        Some(200),
        "pattern = 'x', path = 'wide.txt'",
        Some("pattern = '^line', path = 'long.txt', max_results = 900"),
    ),
    ("glob", 20_000, Tail, Some(500), "pattern = 'wide/*'", Some("pattern = 'long/*'")),
    ("write_file", 1_000, Tail, None, "file_path = 'NAME', content = 'x'", None),
    ("edit_file", 10_000, Tail, None, "file_path = 'NAME', old_string = 'x', new_string = 'y'", None),
    ("apply_patch", 10_000, Tail, None, "patch = \"PATCH\"", None),
];

/// The function `truncate_output` of section 5.1.
fn cut_by_characters(output: &str, limit: usize, kept: Kept) -> String {
    let output: Vec<char> = output.chars().collect();
    let Some(removed) = output.len().checked_sub(limit).filter(|removed| *removed > 0) else {
        return output.into_iter().collect();
    };
    let text = |part: &[char]| part.iter().collect::<String>();
    match kept {
        HeadTail => format!(
            "{}\n\n[WARNING: Tool output was truncated. {removed} characters were removed from the middle. The full \
             output is available in the event stream. If you need to see specific parts, re-run the tool with more \
             targeted parameters.]\n\n{}",
            text(&output[..limit / 2]),
            text(&output[output.len() - limit / 2..])
        ),
        Tail => format!(
            "[WARNING: Tool output was truncated. First {removed} characters were removed. The full output is \
             available in the event stream.]\n\n{}",
            text(&output[output.len() - limit..])
        ),
    }
}

/// The function `truncate_lines` of section 5.3.
fn cut_by_lines(output: &str, limit: Option<usize>) -> String {
    let lines: Vec<&str> = output.split('\n').collect();
    let Some(limit) = limit.filter(|limit| lines.len() > *limit) else { return output.to_owned() };
    let (head, tail) = (limit / 2, limit - limit / 2);
    format!(
        "{}\n[... {} lines omitted ...]\n{}",
        lines[..head].join("\n"),
        lines.len() - limit,
        lines[lines.len() - tail..].join("\n")
    )
}

/// An environment in which every tool has a large output: few wide lines, or many short ones.
fn large_project(name: &str) -> MemoryEnvironment {
    // Fewer lines than any limit on lines, and more characters than any limit on characters.
    let wide = format!("{}\n", "x".repeat(900)).repeat(90);
    // More lines than any limit, and fewer characters than any.
    let long: String = (0..800).map(|number| format!("line {number}\n")).collect();
    let mut env = MemoryEnvironment::new("/project")
        .with_file("wide.txt", wide.clone())
        .with_file("long.txt", long.clone())
        .with_file(name, "x");
    for number in 0..150 {
        env = env.with_file(format!("wide/{number:0>250}"), "");
    }
    for number in 0..800 {
        env = env.with_file(format!("long/{number}"), "");
    }
    env.with_commands(move |command| match &command.program {
        Program::Shell(line) if line == "wide" => CommandScript::exit(0).stdout(wide.clone()),
        Program::Shell(line) if line == "long" => CommandScript::exit(0).stdout(long.clone()),
        Program::Shell(_) | Program::Argv { .. } => CommandScript::exit(1),
    })
}

/// Checks each tool of a profile: the request contains the output of the event, cut by the functions of the
/// specification.
async fn every_tool_has_its_default_output_limits(dialect: Dialect) {
    // The results of tools that change files contain little more than the name.
    let name = "n".repeat(12_000);
    let added: String = (0..50).map(|number| format!("*** Add File: {number:0>300}\\n+x\\n")).collect();
    let patch = format!("*** Begin Patch\\n{added}*** End Patch\\n");
    let tools: Vec<String> = profile(dialect).tools().iter().map(|tool| tool.name.clone()).collect();
    let rows: Vec<_> = LIMITS.iter().filter(|row| tools.iter().any(|tool| tool == row.0)).collect();
    assert_eq!(rows.len(), tools.len(), "a row for each of {tools:?}");
    let mut turns = String::new();
    let mut calls = Vec::new();
    for (tool, chars, kept, lines, wide, long) in rows {
        for arguments in [Some(wide), long.as_ref()].into_iter().flatten() {
            let arguments = arguments.replace("NAME", &name).replace("PATCH", &patch);
            turns += &format!("[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{ {arguments} }}\n");
            calls.push((*tool, *chars, *kept, *lines));
        }
    }
    let harness = Harness::in_env(dialect, &format!("{turns}[[turn]]\ntext = \"Done.\"\n"), |_| {
        Arc::new(large_project(&name))
    })
    .await;
    // An unknown model behind Chat Completions is assumed to have a small window, which has lower limits.
    let mut wide_window = profile(dialect);
    wide_window.context_window_size = wide_window.context_window_size.max(200_000);
    harness.session.handle().set_profile(wide_window).unwrap();
    let (events, _) = harness.run("Look at everything").await;
    let (whole, sent) = (outputs(&events), results(harness.requests().last().unwrap()));
    assert_eq!((whole.len(), sent.len()), (calls.len(), calls.len()));
    for (((tool, chars, kept, lines), whole), sent) in calls.into_iter().zip(&whole).zip(&sent) {
        let count = (whole.chars().count(), whole.split('\n').count());
        assert!(count.0 > chars || count.1 > lines.unwrap_or(500), "{tool} has only {count:?}: {whole}");
        let expected = cut_by_lines(&cut_by_characters(whole, chars, kept), lines);
        assert!(*sent == expected, "{tool}, {count:?}:\n{sent}\n=== instead of ===\n{expected}");
    }
    harness.finish().await;
}

/// Uses the default policy. Only the names identify the secrets; their values have no known format.
async fn commands_do_not_inherit_secrets(dialect: Dialect) {
    const SECRET: [&str; 9] = [
        "OPENAI_API_KEY",
        "my_api_key",
        "App_Secret",
        "GH_TOKEN",
        "db_password",
        "X_CREDENTIAL",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "PGPASSWORD",
    ];
    const SHOWN: [&str; 4] = ["GOPATH", "CARGO_HOME", "EDITOR", "TOKENIZER"];
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"env\" }\n\
                 [[turn]]\ntext = \"Done.\"\n[[turn.expect]]\ncall = 0\nis_error = false\nnot_contains = \"hush\"\n";
    let harness = Harness::in_env(dialect, turns, |directory| {
        let path = std::env::var_os("PATH").expect("a path");
        let variables = SECRET.iter().map(|name| (OsString::from(name), OsString::from("hush")));
        let shown = SHOWN.iter().map(|name| (OsString::from(name), OsString::from("shown")));
        let variables = variables.chain(shown).chain([("PATH".into(), path)]);
        Arc::new(LocalEnvironment::with_host_env(directory, variables).unwrap())
    })
    .await;
    let (events, _) = harness.run("Which variables are there?").await;
    let listed = outputs(&events).concat();
    for name in SHOWN {
        assert!(listed.contains(&format!("{name}=shown\n")), "{name} in {listed}");
    }
    for name in SECRET {
        assert!(!listed.contains(&format!("{name}=")), "{name} in {listed}");
    }
    harness.finish().await;
}
