//! Commands of a model cannot read the keys of the process that runs them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use pintle_testkit::Dialect;

use crate::harness::{Harness, KEY, run};

/// Runs one shell command of a model and returns its output.
fn shell_output(line: &str, prepare: impl FnOnce(&Harness, Command) -> Command) -> String {
    let turns = format!(
        "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = '({line}) >seen 2>&1' }}\n[[turn]]\ntext = \"Done.\"\n"
    );
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut command = harness.command("run", &["--no-sandbox", "Look"]);
    command
        .env("AWS_SECRET_ACCESS_KEY", KEY)
        .env("DATABASE_URL", format!("postgres://me:{KEY}@db.example/app"));
    let output = run(&mut prepare(&harness, command));
    assert_eq!(output.code, Some(0), "{output:?}");
    harness.read("seen")
}

#[test]
fn no_key_is_left_in_the_environment() {
    let seen = shell_output(r#"tr "\\0" "\\n" </proc/$PPID/environ; env"#, |_, command| command);
    assert_eq!(seen.matches("\nPATH=").count(), 2, "{seen}");
    assert!(!seen.contains(KEY), "{seen}");
}

/// Root may read all memory; other users may not read that of an undumpable process.
#[test]
fn unprivileged_commands_cannot_read_process_memory() {
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let line = "cat /proc/$PPID/environ; cat /proc/$PPID/maps; ls /proc/$PPID/fd";
    let seen = shell_output(line, |harness, command| {
        if !is_root {
            return command;
        }
        fs::set_permissions(harness.directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut unprivileged = Command::new("setpriv");
        unprivileged.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        unprivileged.arg(command.get_program()).args(command.get_args()).env_clear();
        unprivileged
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("HOME", "/");
        unprivileged
    });
    assert_eq!(seen.matches("Permission denied").count(), 3, "{seen}");
}
