//! Which calls rules are for, and what wrong ones are answered with.

use std::path::Path;

use super::*;

const WORKSPACE: &str = "/w";

fn rule(text: &str) -> Rule {
    Rule::parse(text, Path::new(WORKSPACE)).unwrap()
}

fn call(tool: &str, effect: Effect) -> CallFacts {
    CallFacts { tool: tool.to_owned(), kind: tool.to_owned(), ..CallFacts::new(effect) }
}

fn command(line: &str) -> CallFacts {
    CallFacts { command: Some(CommandLine::parse(line)), ..call("shell", Effect::Execute) }
}

fn writes(paths: &[&str]) -> CallFacts {
    CallFacts { writes: paths.iter().map(PathBuf::from).collect(), ..call("write_file", Effect::Write) }
}

fn fetches(host: &str) -> CallFacts {
    CallFacts { addresses: vec![Address::of_host(host)], ..call("web_fetch", Effect::Network) }
}

fn judged(permission: Permission, rules: &[&str], call: &CallFacts) -> bool {
    let mut set = Rules::new();
    rules.iter().for_each(|text| set.add(permission, rule(text), "test"));
    set.judge(call).is_some()
}

#[test]
fn rules_that_deny_match_any_part_and_rules_that_allow_match_all() {
    // The rule, a call, whether it denies it, whether it allows it.
    let cases = [
        ("shell", command("ls"), true, true),
        ("shell", writes(&["/w/a"]), false, false),
        ("sh*", command("ls"), true, true),
        ("@execute", command("ls"), true, true),
        ("@read", command("ls"), false, false),
        ("shell(cargo test *)", command("cargo test -p x"), true, true),
        ("shell(cargo test *)", command("cargo test && rm -r /"), true, false),
        ("shell(cargo test *)", command("sudo cargo test"), true, false),
        ("shell(cargo test *)", command("cargo test > /etc/passwd"), true, false),
        ("shell(cargo test *)", command("cargo build"), false, false),
        ("@execute(git push *)", command("sh -c 'git push'"), true, false),
        ("@write(src/**)", writes(&["/w/src/a/b.rs"]), true, true),
        ("@write(src/**)", writes(&["/w/src"]), true, true),
        ("@write(src/**)", writes(&["/w/src/a", "/w/b"]), true, false),
        ("@write(src/**)", writes(&["/w/src2/a"]), false, false),
        ("@write(./src/*.rs)", writes(&["/w/src/a.rs"]), true, true),
        ("@write(./src/*.rs)", writes(&["/w/src/a/b.rs"]), false, false),
        ("write_file(/etc/**)", writes(&["/etc/passwd"]), true, true),
        ("@write(**/.env)", writes(&["/w/.env"]), true, true),
        ("@write(**/.env)", writes(&["/w/a/.env"]), true, true),
        ("@write(/**/.env)", writes(&["/x/.env"]), true, true),
        ("@write(**/.env)", writes(&["/x/.env"]), false, false),
        ("@write(a)", CallFacts { undecided: Some("x".to_owned()), ..writes(&["/w/a"]) }, true, false),
        ("@write(a)", writes(&[]), false, false),
        ("web_fetch(docs.rs)", fetches("docs.rs"), true, true),
        ("web_fetch(docs.rs)", fetches("DOCS.rs."), true, true),
        ("web_fetch(docs.rs)", fetches("evil.org"), false, false),
        ("web_fetch(docs.rs)", fetches("docs.rs.evil.org"), false, false),
        ("@network(*.rust-lang.org)", fetches("doc.rust-lang.org"), true, true),
        ("@network(*.rust-lang.org)", fetches("rust-lang.org"), false, false),
        ("@network(docs.rs)", fetches(""), true, false),
        ("@network(docs.rs)", call("web_search", Effect::Network), false, false),
        ("Build(command:make *)", CallFacts { tool: "Build".to_owned(), ..command("make all") }, true, true),
    ];
    for (text, call, denies, allows) in cases {
        assert_eq!(judged(Permission::Deny, &[text], &call), denies, "deny {text}: {call:?}");
        assert_eq!(judged(Permission::Allow, &[text], &call), allows, "allow {text}: {call:?}");
    }
}

/// Each part may be allowed by another rule.
#[test]
fn rules_that_allow_add_up() {
    let both = ["shell(cargo *)", "shell(git status)"];
    assert!(judged(Permission::Allow, &both, &command("git status && cargo test")));
    assert!(!judged(Permission::Allow, &both, &command("git status && cargo test && ls")));
    assert!(judged(Permission::Allow, &["@write(a)", "write_file(b)"], &writes(&["/w/a", "/w/b"])));
    assert!(!judged(Permission::Allow, &["@write(a)", "edit_file(b)"], &writes(&["/w/a", "/w/b"])));
}

/// A tool that reaches a host and changes a file.
fn downloads() -> CallFacts {
    CallFacts {
        addresses: vec![Address::of_host("docs.rs")],
        writes: vec![PathBuf::from("/w/out/a")],
        ..call("Download", Effect::Network)
    }
}

#[test]
fn rules_that_allow_cover_every_kind_of_target() {
    let edits = || CallFacts { reads: vec![PathBuf::from("/w/a")], ..writes(&["/w/a"]) };
    let host = "Download(host:docs.rs)";
    let cases: [(&[&str], CallFacts, bool); 12] = [
        (&[host], downloads(), false),
        (&["Download(path:out/**)"], downloads(), false),
        (&["@network(docs.rs)"], downloads(), false),
        (&[host, "Download(path:out/**)"], downloads(), true),
        (&[host, "Download(path:src/**)"], downloads(), false),
        (&["Download"], downloads(), true),
        (&[host], CallFacts { writes: Vec::new(), ..downloads() }, true),
        (&[host], CallFacts { writes: Vec::new(), effect: Effect::Write, ..downloads() }, false),
        (&["Save(path:out/**)"], CallFacts { tool: "Save".to_owned(), ..command("rm x") }, false),
        (&["@read(a)"], edits(), false),
        (&["@write(a)"], edits(), true),
        (&["@write(a)"], CallFacts { reads: vec![PathBuf::from("/w/b")], ..edits() }, false),
    ];
    for (rules, call, allows) in cases {
        assert_eq!(judged(Permission::Allow, rules, &call), allows, "{rules:?}: {call:?}");
    }
}

#[test]
fn rules_on_an_effect_judge_that_part_of_every_call() {
    let moves = || CallFacts { reads: vec![PathBuf::from("/w/a")], ..writes(&["/w/b"]) };
    let cases = [
        ("@read(a)", moves(), true),
        ("@read(b)", moves(), false),
        ("@read", moves(), true),
        ("@read", writes(&["/w/b"]), false),
        ("@write(out/**)", downloads(), true),
        ("@write(src/**)", downloads(), false),
        ("@network(docs.rs)", CallFacts { effect: Effect::Write, ..downloads() }, true),
        ("@read(a)", CallFacts { undecided: Some("x".to_owned()), ..moves() }, true),
        ("@write(a)", CallFacts { undecided: Some("x".to_owned()), ..call("grep", Effect::Read) }, false),
    ];
    for (rule, call, denies) in cases {
        assert_eq!(judged(Permission::Deny, &[rule], &call), denies, "{rule}: {call:?}");
    }
}

#[test]
fn deny_comes_before_ask_and_ask_before_allow() {
    let mut rules = Rules::parse(
        "rules.toml",
        "allow = [\"shell\"]\nask = [\"shell(git *)\"]\n\ndeny = [\n  \"shell(git push *)\",\n]\n",
        Path::new(WORKSPACE),
    )
    .unwrap();
    rules.add(Permission::Allow, rule("shell(git push *)"), "--allow");
    for (line, permission, source) in [
        ("ls", Permission::Allow, "rules.toml:1"),
        ("git log", Permission::Ask, "rules.toml:2"),
        ("git push", Permission::Deny, "rules.toml:5"),
    ] {
        let ruling = rules.judge(&command(line)).unwrap();
        assert_eq!((ruling.permission, ruling.source.as_str()), (permission, source), "{line}");
    }
    assert_eq!(rules.judge(&writes(&["/w/a"])), None);
}

#[test]
fn a_server_may_be_named_as_it_is_declared() {
    for text in ["mcp__my-server__delete_*", "mcp__my.server__delete_all", "mcp__my_server__*"] {
        let facts = call("mcp__my_server__delete_all", Effect::Execute);
        assert!(judged(Permission::Deny, &[text], &facts), "{text}");
    }
}

/// A model of another provider has other names for the same tools.
#[test]
fn names_of_other_toolsets_are_names_of_kinds() {
    for (rules, tool, kind, effect) in [
        (["Bash", "Bash(git push *)"], "exec_command", "shell", Effect::Execute),
        (["run_shell_command", "exec_command(git push *)"], "Bash", "shell", Effect::Execute),
        (["Read", "Read(.env)"], "read_file", "read_file", Effect::Read),
        (["Read", "Read(.env)"], "read_many_files", "read_many_files", Effect::Read),
        (["Edit", "replace(.env)"], "edit_file", "edit_file", Effect::Write),
        (["Edit", "Write(.env)"], "apply_patch", "apply_patch", Effect::Write),
        (["WebFetch", "WebFetch(docs.rs)"], "web_fetch", "web_fetch", Effect::Network),
    ] {
        let facts = CallFacts {
            tool: tool.to_owned(),
            kind: kind.to_owned(),
            command: (kind == "shell").then(|| CommandLine::parse("git push")),
            reads: vec![PathBuf::from("/w/.env")],
            writes: if effect == Effect::Write { vec![PathBuf::from("/w/.env")] } else { Vec::new() },
            addresses: vec![Address::of_host("docs.rs")],
            ..CallFacts::new(effect)
        };
        for text in rules {
            assert!(judged(Permission::Deny, &[text], &facts), "{text}: {tool}");
            assert!(!judged(Permission::Deny, &[text], &call("other", effect)), "{text}");
            // A tool that can do more is not allowed with it.
            let is_other = ["read_many_files", "apply_patch"].contains(&kind);
            assert!(!is_other || !judged(Permission::Allow, &[text], &facts), "{text}: {tool}");
        }
    }
}

#[test]
fn wrong_rules_say_what_was_expected() {
    for (text, expected) in [
        ("", "names no tool, expected one such as `shell`, `shell(git log *)` or `@write(src/**)`"),
        ("shell(ls", "has no `)` at its end"),
        ("shell)", "has no `(`"),
        ("shell()", "has nothing in its parentheses; without them it names all calls"),
        ("@run", "names no effect with `@run`, expected `@read`, `@write`, `@execute` or `@network`"),
        ("a b", "names no tool, expected one such as `shell`, `shell(git log *)` or `@write(src/**)`"),
        (
            "query(example.org)",
            "does not say what `example.org` is, expected `command:example.org`, `path:example.org` or `host:example.org`",
        ),
        (
            "web_fetch(https://docs.rs/x)",
            "names no host with `https://docs.rs/x`, expected one such as `docs.rs` or `*.rust-lang.org`",
        ),
        ("@write(../x)", "names a path with `..`, expected one below the workspace, or from `/`"),
        ("@write(a[)", "is wrong: unclosed character class; missing ']'"),
        (
            "@read(~/x)",
            "has a path with `~`, which is not expanded; expected a path below the workspace, or one from `/`",
        ),
        (
            "@read($HOME/x)",
            "has a path with a variable, which is not expanded; expected a path below the workspace, or one from `/`",
        ),
        (
            "@read(!a)",
            "has a path with `!`: a rule has no exceptions; expected a path below the workspace, or one from `/`",
        ),
        ("@read(//a)", "has a path with `//`; expected a path below the workspace, or one from `/`"),
        ("@read(./)", "has the path of the workspace itself; expected `**` for all files in it"),
        (
            "shel(cat *)",
            "does not say what `cat *` is, expected `command:cat *`, `path:cat *` or `host:cat *`; did you mean `shell(cat *)`?",
        ),
        ("Bash(git push:*)", "ends with `:*`, expected `git push *` for the command with any arguments"),
        ("WebFetch(domain:docs.rs)", "has `domain:`, expected only the host, as in `docs.rs`"),
        ("Ba.*", "has `.*` in `Ba.*`; `*` matches any characters"),
        ("my-tool", "names no tool with `my-tool`: '-' is in no name of a tool"),
        ("@read(host:.env)", "names a host where calls have a path"),
        ("shell(path:x)", "names a path where calls have a command"),
    ] {
        let error = Rule::parse(text, Path::new(WORKSPACE)).unwrap_err().to_string();
        assert_eq!(error, format!("the rule `{text}` {expected}"));
    }
    let error = Rule::parse("shell(git $X)", Path::new(WORKSPACE)).unwrap_err().to_string();
    assert!(error.contains("contains '$'"), "{error}");
}

#[test]
fn wrong_files_name_the_line_and_the_nearest_word() {
    let failed = |text: &str| Rules::parse("r.toml", text, Path::new(WORKSPACE)).unwrap_err().to_string();
    assert_eq!(
        failed("allow = []\nalow = [\"shell\"]\n"),
        "r.toml: line 2: unknown field `alow`, expected one of `allow`, `ask`, `deny`, `network`; did you mean `allow`?"
    );
    assert_eq!(
        failed("\n\ndeny = [\"shell\", \"@x\"]"),
        "r.toml: line 3: the rule `@x` names no effect with `@x`, expected `@read`, `@write`, `@execute` or `@network`"
    );
    assert!(failed("deny = \"shell\"").starts_with("r.toml: line 1: invalid type: string"));
    assert!(failed("deny = [").starts_with("r.toml: line 1: "));
}

#[test]
fn tools_that_nobody_knows_are_found() {
    let rules =
        Rules::parse("r.toml", "deny = [\"shel(command:ls)\", \"x*\", \"@write\"]", Path::new(WORKSPACE))
            .unwrap();
    let found =
        rules.unknown_tool(|name| name == "shell").map(|(tool, rule, _)| (tool.to_owned(), rule.to_string()));
    assert_eq!(found, Some(("shel".to_owned(), "shel(command:ls)".to_owned())));
    assert!(rules.unknown_tool(|_| true).is_none());
}

#[test]
fn limits_on_hosts_only_narrow() {
    let parse = |text: &str| Rules::parse("r.toml", text, Path::new("/w"));
    let mut rules = parse("network = { allow = [\"*.example\"], deny = [\"b.example\"] }").unwrap();
    assert!(rules.is_empty());
    rules.extend(Rules::new());
    rules.extend(parse("network = { allow = [\"a.example\", \"other\"] }").unwrap());
    let expected = HostScope::parse(["a.example"], ["b.example"]).unwrap();
    assert_eq!(rules.network(), Some(&expected));
    let (narrowing, widening) = rules.split_widening();
    assert_eq!((narrowing.network(), widening.len()), (Some(&expected), 0));
    assert_eq!(Rules::new().network(), None);
    for (text, problem) in [
        ("ask = []\nnetwork = { allow = [\"https://a\"] }", "r.toml: line 2: invalid host `https://a`"),
        ("network = true", "r.toml: line 1: "),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{error}");
    }
}
