//! Ways of a command to reach beyond its task: by what the user runs later, by what serves others, and by Pintle's own files.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use pintle_testkit::Dialect;

use crate::harness::{Harness, run, sandbox_levels};

/// Lines that exit with 0 if they get what they want, with what that is. `$HOME` is the user's directory, `$STATE` and
/// `$CONFIG` are Pintle's.
const ATTACKS: [(&str, &str); 12] = [
    ("a poisoned cache of cargo", "echo x >$HOME/.cargo/registry/poison"),
    ("a poisoned cache of npm", "echo x >$HOME/.npm/poison"),
    ("settings of npm, which name a registry", "echo x >$HOME/.npmrc"),
    ("aliases of the user's git", "git config --file $HOME/.gitconfig alias.x '!id'"),
    ("what the user's shell runs next", "echo x >>$HOME/.bashrc"),
    ("a key of the attacker for the user's account", "echo x >>$HOME/.ssh/authorized_keys"),
    ("a program before others in the user's `PATH`", "echo x >$HOME/.local/bin/ls"),
    ("rules that the next run reads", "echo 'allow = [\"shell\"]' >$CONFIG/rules.toml"),
    ("trust in the project", "echo '{}' >$STATE/trust.json"),
    (
        "the record of the session itself",
        "find $STATE/sessions -type f | grep -q . && for file in $(find $STATE/sessions -type f); do echo x >>$file || exit 1; done",
    ),
    (
        "the record of the session, removed",
        "find $STATE/sessions -type f | grep -q . && rm -r $STATE/sessions/*",
    ),
    (
        "an agent for keys, or a daemon, that listens on a socket",
        "perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new($ENV{SOCKET})'",
    ),
];

/// Returns a directory that is not below `/tmp`. That is another one within the sandbox: what is written there gets nowhere.
fn outside_tmp() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let bases = [PathBuf::from(env!("CARGO_TARGET_TMPDIR"))].into_iter().chain(home);
    let mut outside = bases.filter(|base| !base.starts_with("/tmp") && !base.starts_with("/var/tmp"));
    outside.next().expect("a directory outside of /tmp")
}

/// Returns the numbers of the attacks that succeed in a run with these flags.
fn successful(flags: &[&str]) -> Vec<usize> {
    let home = tempfile::tempdir_in(outside_tmp()).unwrap();
    for name in [".cargo/registry", ".npm", ".ssh", ".local/bin", "config", "state"] {
        std::fs::create_dir_all(home.path().join(name)).unwrap();
    }
    let _agent = UnixListener::bind(home.path().join("agent.sock")).unwrap();
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"sh attacks.sh >seen 2>errors\" }\n\
                 [[turn]]\ntext = \"Done.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let at = |name: &str| home.path().join(name).display().to_string();
    let (state, config, socket) = (at("state"), at("config"), at("agent.sock"));
    let mut script = format!("STATE={state} CONFIG={config}\nexport SOCKET={socket}\n");
    for (number, (_, line)) in ATTACKS.iter().enumerate() {
        script.push_str(&format!("({line}) && echo {number}\n"));
    }
    std::fs::write(harness.path("attacks.sh"), script).unwrap();
    let mut command = harness.command("run", &["Go"]);
    command.args(flags).env("HOME", home.path());
    let output = run(command.env("PINTLE_STATE_DIR", state).env("PINTLE_CONFIG_DIR", config));
    let seen = harness.read("seen");
    assert!(output.stdout.contains("Done.") || flags == ["--no-sandbox"], "{output:?}");
    seen.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn commands_reach_nothing_that_others_use() {
    assert_eq!(
        successful(&["--no-sandbox"]),
        (0..ATTACKS.len()).collect::<Vec<_>>(),
        "without a sandbox all succeed"
    );
    for level in sandbox_levels() {
        let names: Vec<&str> =
            successful(&["--sandbox", level]).into_iter().map(|number| ATTACKS[number].0).collect();
        assert_eq!(names, <[&str; 0]>::default(), "{level}");
    }
}

/// The page on attacks lists these, and no others.
#[test]
fn the_page_on_attacks_has_those_of_the_command() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/project/attacks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |name: &str| format!("| {name} | both levels | `commands_reach_nothing_that_others_use` |");
    let missing: Vec<String> =
        ATTACKS.iter().map(|(name, _)| row(name)).filter(|row| !page.contains(row.as_str())).collect();
    let listed = page.lines().filter(|line| line.ends_with("`commands_reach_nothing_that_others_use` |"));
    assert!(missing.is_empty() && listed.count() == ATTACKS.len(), "{missing:#?}");
}
