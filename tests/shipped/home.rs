//! Hidden keys below the home directory, for each value of `HOME`.

use std::ffi::OsStr;
use std::path::Path;

use super::user::User;

/// Returns the output of `pintle rules check` for reading a key, with this value of `HOME`.
fn judged(user: &User, home: Option<&OsStr>, key: &Path) -> String {
    let call = format!("@read({})", key.display());
    let mut check = user.command(&["rules", "check", &call]);
    check.env("PINTLE_STATE_DIR", user.at("state")).env("PINTLE_CONFIG_DIR", user.at("configuration"));
    check.env_remove("HOME").envs(home.map(|home| ("HOME", home)));
    let output = check.output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

/// A run reads no key below the home of the user database.
#[test]
fn a_run_hides_keys_without_a_home_in_the_variables() {
    let of_database = nix::unistd::User::from_uid(nix::unistd::Uid::current()).unwrap().unwrap().dir;
    let key = of_database.join(".ssh/id_red");
    let call = format!("tool = \"Read\"\narguments = {{ file_path = '{}' }}\n", key.display());
    for home in [None, Some("")] {
        let user = User::new(&format!("[[turn]]\n[[turn.call]]\n{call}[[turn]]\ntext = \"Done.\"\n"));
        let mut command = user.run_command("Go");
        command.env("PINTLE_STATE_DIR", user.at("state")).env("PINTLE_CONFIG_DIR", user.at("configuration"));
        command.env_remove("HOME").envs(home.map(|home| ("HOME", home)));
        let output = command.output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{home:?}: {output:?}");
        let result = user.request(1);
        assert!(result.contains("is hidden"), "{home:?}: {result}");
    }
}

#[test]
fn variables_that_name_no_usable_directory_are_refused() {
    let user = User::new("[[turn]]\ntext = \"Done.\"");
    let file = user.at("file");
    std::fs::write(&file, "").unwrap();
    let relative = Path::new("relative");
    for (name, value, expected) in [
        ("PINTLE_STATE_DIR", relative, "PINTLE_STATE_DIR is relative: expected an absolute path"),
        ("PINTLE_CONFIG_DIR", relative, "PINTLE_CONFIG_DIR is relative: expected an absolute path"),
        ("PINTLE_CONFIG_DIR", file.as_path(), "a file: expected a directory"),
    ] {
        let output = user.command(&["sessions", "list"]).env(name, value).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(expected), "{name}: {error}");
        assert!(!user.project().join(relative).exists(), "{name}");
    }
}

#[test]
fn keys_are_hidden_below_each_home_of_the_user() {
    let user = User::new("[[turn]]\ntext = \"Done.\"");
    let of_database = nix::unistd::User::from_uid(nix::unistd::Uid::current()).unwrap().unwrap().dir;
    for (home, directory) in [
        (Some(user.at("").into_os_string()), user.at("")),
        (Some(user.at("").into_os_string()), of_database.clone()),
        (None, of_database.clone()),
        (Some("".into()), of_database.clone()),
        (Some("relative".into()), of_database),
    ] {
        let said = judged(&user, home.as_deref(), &directory.join(".ssh/id_red"));
        assert!(said.contains("is hidden"), "{home:?}: {said}");
    }
}
