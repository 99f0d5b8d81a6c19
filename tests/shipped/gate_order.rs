//! The order of gates in runs, in `pintle mcp serve` and in `pintle rules check`.

use serde_json::json;

use super::grants::grant;
use super::rules::results;
use super::servers::served_calls;
use super::user::User;
use super::worktrees::is_confined;

#[test]
fn the_first_gate_that_denies_a_call_gives_the_reason_everywhere() {
    if !is_confined() {
        return;
    }
    let mut user = User::new("[[turn]]\ntext = \"Done.\"\n");
    // Hidden and protected, protected, and neither.
    let files = [".ssh/.pintle/file", "project/.pintle/file", "project/file"].map(|name| {
        let file = user.at(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "old").unwrap();
        file.display().to_string()
    });
    let write = |file: &String| {
        let arguments = format!("{{ file_path = '{file}', content = 'new' }}");
        format!("[[turn.call]]\ntool = \"Write\"\narguments = {arguments}\n")
    };
    let turns = format!("[[turn]]\n{}[[turn]]\ntext = \"Done.\"\n", files.each_ref().map(write).concat());
    let calls = files.each_ref().map(|file| ("write_file", json!({"file_path": file, "content": "new"})));
    let elsewhere = grant(&user, "g.json", &user.at("project/src").to_string_lossy(), true);
    let elsewhere = elsewhere.display().to_string();

    let granted = "grant g.json does not allow changing";
    let hidden = format!("{} is hidden from this session", files[0]);
    let protected = format!("{} is protected", files[1]);
    let unread = format!("{} has not been read in this session; read it first", files[2]);
    let (rule, mode) = ("the rule `write_file` of --deny names it", "no files are changed in mode plan");
    let cases: [(&[&str], [&str; 3]); 4] = [
        (&["--grant", &elsewhere, "--read-before-write", "--deny", "write_file"], [granted; 3]),
        (&["--read-before-write", "--deny", "write_file"], [&hidden, &protected, &unread]),
        (&["--deny", "write_file", "--mode", "plan"], [&hidden, &protected, rule]),
        (&["--mode", "plan"], [&hidden, &protected, mode]),
    ];
    for (flags, reasons) in cases {
        user = user.with_turns(&turns);
        let output = user.run_command("Write").args(flags).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{flags:?}: {output:?}");
        let (served, _) = served_calls(&user, flags, &calls);
        for (surface, results) in [("run", results(&user)), ("mcp serve", served)] {
            assert_eq!(results.len(), reasons.len(), "{surface} {flags:?}: {results:?}");
            for (result, reason) in results.iter().zip(reasons) {
                assert!(result.contains(reason), "{surface} {flags:?}: {reason}: {result}");
            }
        }
        // A check has no grant and no session that could have read a file.
        if flags.contains(&"--read-before-write") {
            continue;
        }
        for (file, reason) in files.iter().zip(reasons) {
            let call = format!("write_file({file})");
            let checked = user.pintle(&[&["rules", "check", &call][..], flags].concat());
            assert!(
                checked.starts_with("deny: ") && checked.contains(reason),
                "{flags:?}: {reason}: {checked}"
            );
        }
    }
    for file in files {
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old", "{file}");
    }
}
