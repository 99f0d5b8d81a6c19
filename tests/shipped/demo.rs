//! `pintle demo`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::user::User;

/// Fake cargo: prints the test results that the script expects with the bug and without it.
const CARGO: &str = include_str!("../../crates/cli/tests/it/demo/cargo.sh");

#[test]
fn the_demo_ends_with_the_fixed_bug_in_each_output_format() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let programs = user.at("programs");
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(programs.join("cargo"), CARGO).unwrap();
    std::fs::set_permissions(programs.join("cargo"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for format in ["text", "json", "stream-json"] {
        let copy = user.at(format);
        let mut command = user.command(&["demo", "--output", format, "--dir"]);
        let output = command.arg(&copy).env("PATH", &path).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{format}: {output:?}");
        let fixed = std::fs::read_to_string(copy.join("src/symbol.rs")).unwrap();
        assert!(fixed.contains("<= 10"), "{format}: {fixed}");
        let printed = String::from_utf8(output.stdout).unwrap();
        if format == "text" {
            assert!(printed.contains("test result: ok. 9 passed"), "{printed}");
            continue;
        }
        let objects: Vec<Value> =
            printed.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        assert_eq!(objects.len() == 1, format == "json", "{printed}");
        let result = &objects.last().unwrap()["demonstration"];
        assert_eq!(result["tests_passed"], true, "{format}: {printed}");
        assert!(result["diff"].as_str().unwrap().contains("<= 10"), "{format}: {printed}");
    }
    let kept = std::fs::read_dir(user.at(".local/state/pintle/sessions/sessions"));
    assert_eq!(kept.map_or(0, Iterator::count), 0, "the demo is not kept");
}
