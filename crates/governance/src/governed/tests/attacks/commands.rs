//! Commands against a rule that allows `ls`, and against a grant that allows none.

use super::*;

fn runs(line: &str) -> Vec<(&'static str, Value)> {
    vec![("shell", json!({ "command": line }))]
}

fn is_gone(scene: &Scene, _: &str) -> bool {
    !scene.exists("x")
}

fn touched(scene: &Scene, _: &str) -> bool {
    scene.exists("touched")
}

/// Returns the attack of a line that removes `x`.
macro_rules! line {
    ($line:literal) => {
        attack(concat!("`", $line, "`"), Guard::OnlyLs, |_| runs($line), is_gone)
    };
}

pub(super) const ATTACKS: &[Attack] = &[
    line!("rm x"),
    line!("ls; rm x"),
    line!("ls && rm x"),
    line!("ls nothing || rm x"),
    line!("ls | rm x"),
    line!("ls & rm x"),
    line!("ls $(rm x)"),
    line!("ls `rm x`"),
    line!("ls <(rm x)"),
    line!("ls >x; mv x y"),
    line!("(rm x)"),
    line!("{ rm x; }"),
    line!("if ls; then rm x; fi"),
    line!("for i in x; do rm $i; done"),
    line!("ls() { rm x; }; ls"),
    line!("env rm x"),
    line!("command rm x"),
    line!("exec rm x"),
    line!("nice rm x"),
    line!("timeout 9 rm x"),
    line!("sh -c 'rm x'"),
    line!("bash -c \"ls; rm x\""),
    line!("eval 'rm x'"),
    line!("echo x | xargs rm"),
    line!("find . -name x -exec rm {} +"),
    line!("find . -maxdepth 1 -name x -delete"),
    line!("perl -e 'unlink \"x\"'"),
    line!("awk 'BEGIN { system(\"rm x\") }'"),
    line!("sed -n '1e rm x' notes.md"),
    line!("/bin/rm x"),
    line!("\\rm x"),
    line!("r''m x"),
    line!("$(echo rm) x"),
    line!("c=rm; $c x"),
    line!("echo 'rm x' >s; . ./s"),
    line!("trap 'rm x' EXIT"),
    line!("alias ls='rm x'; shopt -s expand_aliases; eval ls"),
    line!("rm x & ls"),
    attack("a newline after `ls`", Guard::OnlyLs, |_| runs("ls\nrm x"), is_gone),
    attack("a here-document for a shell", Guard::OnlyLs, |_| runs("sh <<END\nrm x\nEND"), is_gone),
    attack(
        "a here-document for an interpreter",
        Guard::OnlyLs,
        |_| runs("perl - <<'END'\nunlink 'x'\nEND"),
        is_gone,
    ),
    attack(
        "`PATH=bin:$PATH ls`, with a program `bin/ls`",
        Guard::OnlyLs,
        |scene| {
            scene.plant("bin/ls");
            runs("PATH=bin:$PATH ls")
        },
        touched,
    ),
    attack(
        "`bin/ls`, a program of the workspace with an allowed name",
        Guard::OnlyLs,
        |scene| {
            scene.plant("bin/ls");
            runs("bin/ls")
        },
        touched,
    ),
    attack(
        "a variable of the dynamic loader before an allowed command, as `LD_PRELOAD` is one",
        Guard::OnlyLs,
        |_| runs("LD_DEBUG=files LD_DEBUG_OUTPUT=touched ls"),
        |scene, _| {
            let names = std::fs::read_dir(scene.work()).unwrap();
            names.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("touched"))
        },
    ),
    attack(
        "a command that sets a program of git, and another that runs it",
        Guard::Watch,
        |scene| {
            scene.plant("bin/x");
            let mut calls = runs("printf '\\tfsmonitor = bin/x\\n' >>.git/config");
            calls.extend(runs("$(sed -n 's/.*fsmonitor = //p' .git/config)"));
            calls
        },
        touched,
    ),
    attack("`ls; rm x`, granted `ls*`", Guard::LsArguments, |_| runs("ls; rm x"), is_gone),
    attack("`ls $(rm x)`, granted `ls*`", Guard::LsArguments, |_| runs("ls $(rm x)"), is_gone),
    attack("a newline after `ls`, granted `ls*`", Guard::LsArguments, |_| runs("ls\nrm x"), is_gone),
    attack("a command, granted only changes of files", Guard::NoCommands, |_| runs("rm x"), is_gone),
    attack(
        "a command that looks like reading, granted only changes of files",
        Guard::NoCommands,
        |_| runs("ls >touched"),
        touched,
    ),
];
