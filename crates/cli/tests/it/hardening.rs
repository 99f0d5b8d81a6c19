//! Commands of a model look for the keys of the process that runs them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use pintle_testkit::Dialect;

use crate::lab::{KEY, Model, say};

/// Runs one command of a model and returns its output.
fn output(command: &str, prepare: impl FnOnce(&Model, Command) -> Command) -> String {
    let turns = format!(
        "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = '({command}) >seen 2>&1' }}\n[[turn]]\ntext = \"Done.\"\n"
    );
    let model = Model::new(Dialect::AnthropicMessages, &turns);
    let mut run = model.command("run", &["Look"]);
    run.env("AWS_SECRET_ACCESS_KEY", KEY).env("DATABASE_URL", format!("postgres://me:{KEY}@db.example/app"));
    let said = say(&mut prepare(&model, run));
    assert_eq!(said.code, Some(0), "{said:?}");
    model.read("seen")
}

#[test]
fn no_key_is_left_in_the_environment() {
    let seen = output(r#"tr "\\0" "\\n" </proc/$PPID/environ; env"#, |_, run| run);
    assert_eq!(seen.matches("\nPATH=").count(), 2, "{seen}");
    assert!(!seen.contains(KEY), "{seen}");
}

/// The superuser may read all memory; anybody else may not read that of an undumpable process.
#[test]
fn another_user_than_root_reads_nothing_of_the_process() {
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let command = "cat /proc/$PPID/environ; cat /proc/$PPID/maps; ls /proc/$PPID/fd";
    let seen = output(command, |model, run| {
        if !is_root {
            return run;
        }
        fs::set_permissions(model.folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        other.arg(run.get_program()).args(run.get_args()).env_clear();
        other.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("HOME", "/");
        other
    });
    assert_eq!(seen.matches("Permission denied").count(), 3, "{seen}");
}
