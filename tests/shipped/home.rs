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
