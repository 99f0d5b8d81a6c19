use serde_json::json;

use super::*;
use crate::gate::harness::{call, probe};

fn gate() -> CommandGate {
    let rules = [
        ("git status", Permission::Allow),
        ("git log *", Permission::Allow),
        ("cargo *", Permission::Allow),
        ("npm run test:*", Permission::Allow),
        ("rm *", Permission::Deny),
        ("git push *", Permission::Deny),
        ("cargo publish *", Permission::Ask),
    ];
    rules
        .into_iter()
        .fold(CommandGate::new(), |gate, (pattern, permission)| gate.with(pattern, permission).unwrap())
}

/// Returns `ok`, `deny RULE`, `ask RULE`, or `ask` if no rule matches.
async fn verdict(gate: &CommandGate, arguments: Value) -> String {
    let verdict = gate.check(&call(probe(Effect::Execute), arguments).await).await;
    let rule = verdict.rule().map(|rule| format!(" {rule}")).unwrap_or_default();
    match verdict.permission() {
        Permission::Allow => "ok".to_owned(),
        Permission::Deny => format!("deny{rule}"),
        Permission::Ask => format!("ask{rule}"),
    }
}

#[tokio::test]
async fn the_strictest_rule_that_matches_decides() {
    let cases = [
        ("git status", "ok"),
        ("git status -s", "ask"),
        ("git log", "ok"),
        ("git log --oneline -5", "ok"),
        ("cargo test && git status; git log | cargo fmt", "ok"),
        ("cargo test 2>&1", "ok"),
        ("npm run test:unit", "ok"),
        ("npm run tests", "ask"),
        ("ls", "ask"),
        ("cargo test; ls", "ask"),
        // A rule does not allow what the shell would interpret.
        ("cargo test > /etc/passwd", "ask"),
        ("cargo test $(ls)", "ask"),
        ("cargo `ls`", "ask"),
        ("cargo $X", "ask"),
        ("PATH=. cargo test", "ask"),
        ("cargo test & ls", "ask"),
        ("/evil/cargo test", "ask"),
        ("", "ask"),
        ("git log # it's\nls # it's", "ask"),
        ("git log # the last ones", "ok"),
        ("cargo run ~/x", "ask"),
        ("cat <<'E' | git log\n$(ls)\nE", "ask"),
        ("! git status", "ask"),
        ("time git status", "ask"),
        ("git() { ls; }; git log", "ask"),
        // A denial matches anywhere.
        ("rm -rf /", "deny rm *"),
        ("rm", "deny rm *"),
        ("/bin/rm x", "deny rm *"),
        ("cargo test && rm x", "deny rm *"),
        ("sudo -n rm x", "deny rm *"),
        ("find . | xargs rm", "deny rm *"),
        ("echo $(rm x)", "deny rm *"),
        ("echo `rm x`", "deny rm *"),
        ("(rm x)", "deny rm *"),
        ("X=1 rm x", "deny rm *"),
        ("if true; then rm x; fi", "deny rm *"),
        ("bash -c 'cd /; rm x'", "deny rm *"),
        ("bash -c \"sh -c 'rm x'\"", "deny rm *"),
        ("r\\m x", "deny rm *"),
        ("'rm' x", "deny rm *"),
        ("cargo test\nrm x", "deny rm *"),
        ("git push origin main", "deny git push *"),
        ("cargo publish", "ask cargo publish *"),
        ("cargo publish; rm x", "deny rm *"),
        ("rmdir x", "ask"),
        ("git log # it's\nrm x # it's", "deny rm *"),
        ("bash <<E\nrm x\nE", "deny rm *"),
        ("env X=1 rm x", "deny rm *"),
        ("eval 'rm x'", "deny rm *"),
        ("echo \"a $(rm x)\"", "deny rm *"),
        ("git status |& rm x", "deny rm *"),
        ("r''m x", "deny rm *"),
        ("git log \\\n; rm x", "deny rm *"),
    ];
    let gate = gate();
    for (line, expected) in cases {
        assert_eq!(verdict(&gate, json!({"command": line})).await, expected, "{line}");
        assert_eq!(verdict(&gate, json!({"cmd": line})).await, expected, "{line}");
        assert_eq!(verdict(&gate, json!({"command": ["bash", "-lc", line]})).await, expected, "{line}");
    }
}

#[tokio::test]
async fn a_command_without_a_rule_has_the_default() {
    let cases = [
        (json!({"command": "ls"}), "ok"),
        (json!({"command": "rm x"}), "deny rm *"),
        (json!({"command": ["ls", "a;rm"]}), "deny rm *"),
        (json!({"command": ["rm", "x"]}), "deny rm *"),
        (json!({"command": 1}), "ok"),
        (json!({"command": "ls", "cmd": "rm x"}), "deny rm *"),
        (json!({"session": 1, "chars": "rm x\n"}), "deny rm *"),
        (json!({}), "ok"),
    ];
    let open = gate().otherwise(Permission::Allow);
    let closed = CommandGate::new().with("*", Permission::Allow).unwrap().otherwise(Permission::Deny);
    for (arguments, expected) in cases {
        assert_eq!(verdict(&open, arguments.clone()).await, expected, "{arguments}");
    }
    assert_eq!(verdict(&closed, json!({"command": "anything at all"})).await, "ok");
    assert_eq!(verdict(&closed, json!({"command": "ls", "cmd": "ls"})).await, "deny", "which one runs?");
    assert_eq!(verdict(&closed, json!({"command": ["/tmp/bash", "-c", "ls"]})).await, "deny");
    assert_eq!(verdict(&closed, json!({"chars": "ls\n"})).await, "deny", "not a known command");
    assert_eq!(verdict(&closed, json!({"command": "echo $X"})).await, "deny");
}

#[tokio::test]
async fn only_commands_are_judged() {
    for effect in [Effect::Read, Effect::Write, Effect::Network] {
        let call = call(probe(effect), json!({"command": "rm x"})).await;
        assert_eq!(gate().check(&call).await, Verdict::ALLOW, "{effect:?}");
    }
}
