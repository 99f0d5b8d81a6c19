//! Rules of the user, of the project and of the command line.

use super::user::User;

/// Prints files that rules deny to read, with a command.
const READING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "cat .env sub/.env keys/one flagged kept; ls keys; mv .env moved; cat moved; true" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_file_that_a_rule_denies_to_read_is_hidden_from_commands() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(READING);
    let project = user.project();
    for (file, text) in [
        (".env", "token-of-the-root"),
        ("sub/.env", "token-below"),
        ("keys/one", "token-of-keys"),
        ("flagged", "token-of-the-flag"),
        ("kept", "not-denied"),
        (".gitignore", ".env"),
        (".pintle/rules.toml", "deny = [\"@read(keys/**)\"]"),
    ] {
        std::fs::create_dir_all(project.join(file).parent().unwrap()).unwrap();
        std::fs::write(project.join(file), text).unwrap();
    }
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    std::fs::write(user.at(".config/pintle/rules.toml"), "deny = [\"@read(**/.env)\"]").unwrap();
    let run = |more: &[&str]| {
        let mut command = user.run_command("Print the files");
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        user.request(1)
    };
    let result = run(&["--deny", "read_file(flagged)"]);
    assert!(result.contains("not-denied"), "{result}");
    for token in ["token-of-the-root", "token-below", "token-of-keys", "token-of-the-flag"] {
        assert!(!result.contains(token), "{token}: {result}");
    }
    for file in [".env", "sub/.env", "keys/one", "flagged"] {
        assert!(project.join(file).exists(), "{file} is still there");
    }
}
