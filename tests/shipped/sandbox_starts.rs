//! The sandboxes that a run starts, counted by a program in place of bubblewrap.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::user::User;

const ANSWER: &str = "[[turn]]\ntext = \"Done.\"\n";

/// Creates a directory with a program `bwrap` that records the purpose of each start, and starts the real one.
fn install_counting_bubblewrap(user: &User) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut programs = std::env::split_paths(&path).map(|directory| directory.join("bwrap"));
    let real = programs.find(|program| program.is_file()).unwrap();
    let (directory, log) = (user.at("bin"), user.at("starts"));
    std::fs::create_dir(&directory).unwrap();
    let (real, log) = (real.display(), log.display());
    let text = format!(
        "#!/bin/sh\nfor last; do :; done\ncase $last in\n:) echo trial >>'{log}' ;;\n--version) echo version >>'{log}' ;;\n\
         *) echo command >>'{log}' ;;\nesac\nexec '{real}' \"$@\"\n"
    );
    std::fs::write(directory.join("bwrap"), text).unwrap();
    std::fs::set_permissions(directory.join("bwrap"), std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn a_known_machine_is_tried_once_in_a_run() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(&ANSWER.repeat(2));
    let directory = install_counting_bubblewrap(&user);
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    let mut starts = Vec::new();
    for _ in ["an unknown machine", "a known one"] {
        let output = user.run_command("Go").env("PATH", &path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        starts.push(std::fs::read_to_string(user.at("starts")).unwrap());
        std::fs::remove_file(user.at("starts")).unwrap();
    }
    // The facts about the repository need the other one.
    let of_known: Vec<&str> = starts[1].lines().collect();
    assert_eq!(of_known, ["trial", "command"], "{starts:?}");
    // The probe of the machine tries a sandbox as well.
    let trials = starts[0].lines().filter(|start| *start == "trial").count();
    assert_eq!(trials, 2, "{starts:?}");
}
