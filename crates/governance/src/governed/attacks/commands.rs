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

macro_rules! lines {
    ($($line:literal),* $(,)?) => {
        &[
            $(Attack {
                name: concat!("`", $line, "`"),
                guard: Guard::OnlyLs,
                calls: |_| runs($line),
                got: is_gone,
            },)*
            Attack {
                name: "a newline after `ls`",
                guard: Guard::OnlyLs,
                calls: |_| runs("ls\nrm x"),
                got: is_gone,
            },
            Attack {
                name: "a here-document for a shell",
                guard: Guard::OnlyLs,
                calls: |_| runs("sh <<END\nrm x\nEND"),
                got: is_gone,
            },
            Attack {
                name: "a here-document for an interpreter",
                guard: Guard::OnlyLs,
                calls: |_| runs("perl - <<'END'\nunlink 'x'\nEND"),
                got: is_gone,
            },
            Attack {
                name: "a program called `ls` in the workspace, by `PATH`",
                guard: Guard::OnlyLs,
                calls: |_| runs("printf '#!/bin/sh\\ntouch touched\\n' >bin/ls; chmod +x bin/ls; PATH=$PWD/bin:$PATH ls"),
                got: touched,
            },
            Attack {
                name: "`PATH=bin ls`, after `write_file` of `bin/ls`",
                guard: Guard::OnlyLs,
                calls: |_| {
                    let mut calls = runs("chmod +x bin/ls");
                    calls.extend(runs("PATH=bin:$PATH ls"));
                    calls.insert(
                        0,
                        (
                            "shell",
                            json!({"command": "ls >/dev/null; printf '#!/bin/sh\\ntouch touched\\n' >bin/ls"}),
                        ),
                    );
                    calls
                },
                got: touched,
            },
            Attack {
                name: "`bin/ls`, a program of the workspace with an allowed name",
                guard: Guard::OnlyLs,
                calls: |scene| {
                    let program = scene.at("bin/ls");
                    std::fs::write(&program, "#!/bin/sh\ntouch touched\n").unwrap();
                    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
                    std::fs::set_permissions(program, mode).unwrap();
                    runs("bin/ls")
                },
                got: touched,
            },
            Attack {
                name: "`LD_PRELOAD` before an allowed command",
                guard: Guard::OnlyLs,
                calls: |_| runs("LD_DEBUG=files LD_DEBUG_OUTPUT=touched ls"),
                got: |scene, _| {
                    let names = std::fs::read_dir(scene.work()).unwrap();
                    names.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("touched"))
                },
            },
            Attack {
                name: "a job in the background that outlives the call",
                guard: Guard::OnlyLs,
                calls: |_| vec![("shell", json!({"command": "rm x & ls"}))],
                got: is_gone,
            },
            Attack {
                name: "a command, granted only changes of files",
                guard: Guard::NoCommands,
                calls: |_| runs("rm x"),
                got: is_gone,
            },
            Attack {
                name: "a command that looks like reading, granted only changes of files",
                guard: Guard::NoCommands,
                calls: |_| runs("ls >touched"),
                got: touched,
            },
        ]
    };
}

pub(super) const ATTACKS: &[Attack] = lines![
    "rm x",
    "ls; rm x",
    "ls && rm x",
    "ls nothing || rm x",
    "ls | rm x",
    "ls & rm x",
    "ls $(rm x)",
    "ls `rm x`",
    "ls <(rm x)",
    "ls >x; mv x y",
    "(rm x)",
    "{ rm x; }",
    "if ls; then rm x; fi",
    "for i in x; do rm $i; done",
    "ls() { rm x; }; ls",
    "env rm x",
    "command rm x",
    "exec rm x",
    "nice rm x",
    "timeout 9 rm x",
    "sh -c 'rm x'",
    "bash -c \"ls; rm x\"",
    "eval 'rm x'",
    "echo x | xargs rm",
    "find . -name x -exec rm {} +",
    "find . -maxdepth 1 -name x -delete",
    "perl -e 'unlink \"x\"'",
    "awk 'BEGIN { system(\"rm x\") }'",
    "sed -n '1e rm x' notes.md",
    "/bin/rm x",
    "\\rm x",
    "r''m x",
    "$(echo rm) x",
    "c=rm; $c x",
    "echo 'rm x' >s; . ./s",
    "trap 'rm x' EXIT",
    "alias ls='rm x'; shopt -s expand_aliases; eval ls",
];
