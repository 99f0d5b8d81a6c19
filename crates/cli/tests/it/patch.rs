//! `pintle patch` on real files.

mod bad_input;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{CommandOutput, pintle, run, run_with_input};

/// Directory with a tree, and a patch file next to it.
struct Harness {
    directory: TempDir,
}

impl Harness {
    fn new() -> Self {
        let harness = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(harness.path("")).unwrap();
        harness
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("tree").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns `pintle patch ARGUMENTS --dir TREE PATCH`.
    fn command(&self, arguments: &[&str], body: &str) -> Command {
        let patch = self.directory.path().join("patch");
        std::fs::write(&patch, wrapped(body)).unwrap();
        let mut command = pintle(&["patch"]);
        command.args(arguments).arg("--dir").arg(self.path("")).arg(patch);
        command
    }

    fn apply(&self, body: &str) -> CommandOutput {
        run(&mut self.command(&["apply"], body))
    }

    /// Lists every entry of the tree, including hidden ones, with mode and content.
    fn snapshot(&self) -> Vec<String> {
        let mut open = vec![self.path("")];
        let mut entries = Vec::new();
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                let mode = metadata.permissions().mode();
                let content = if metadata.is_file() {
                    String::from_utf8(std::fs::read(&path).unwrap()).unwrap()
                } else if metadata.is_symlink() {
                    path.read_link().unwrap().display().to_string()
                } else {
                    open.push(path.clone());
                    String::new()
                };
                entries.push(format!("{} {mode:o} {content:?}", path.display()));
            }
        }
        entries.sort();
        entries
    }
}

fn wrapped(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

/// Asserts exit code 1, the reason on standard error and nothing on standard output.
fn assert_rejected(output: &CommandOutput, reason: &str) {
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
    assert!(
        output.stderr.starts_with("pintle: ") && output.stderr.contains(reason),
        "`{reason}` in {output:?}"
    );
}

const ALL_OPERATIONS: &str = "\
*** Add File: docs/new.md
+# New
*** Update File: main.py
@@ def main():
-    return 0
+    return 1
*** Update File: old.txt
*** Move to: kept/new.txt
*** Delete File: gone.txt
";

fn sample_tree() -> Harness {
    let harness = Harness::new();
    harness.write("main.py", "def main():\n    return 0\n");
    harness.write("old.txt", "old\n");
    harness.write("gone.txt", "gone\n");
    harness
}

#[test]
fn every_operation_is_applied_and_listed() {
    let harness = sample_tree();
    let output = harness.apply(ALL_OPERATIONS);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert_eq!(output.stdout, "A docs/new.md\nM main.py\nR old.txt -> kept/new.txt\nD gone.txt\n");
    assert_eq!(harness.read("docs/new.md"), "# New\n");
    assert_eq!(harness.read("main.py"), "def main():\n    return 1\n");
    assert_eq!(harness.read("kept/new.txt"), "old\n");
    let left: Vec<String> = harness.snapshot().into_iter().filter(|entry| entry.contains(".txt")).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!harness.snapshot().iter().any(|entry| entry.contains(".pintle-")));
}

#[test]
fn check_lists_changes_without_applying() {
    let harness = sample_tree();
    let before = harness.snapshot();
    for arguments in [&["check"][..], &["apply", "--dry-run"]] {
        let output = run(&mut harness.command(arguments, ALL_OPERATIONS));
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(output.stdout, "A docs/new.md\nM main.py\nR old.txt -> kept/new.txt\nD gone.txt\n");
        assert_eq!(harness.snapshot(), before);
        let output = run(&mut harness.command(arguments, "*** Delete File: missing\n"));
        assert_rejected(&output, "missing (patch line 2): cannot delete: the file does not exist");
    }
}

#[test]
fn reference_mode_appends_additions() {
    let body = "*** Update File: f\n@@ one\n+new\n";
    for (arguments, expected) in
        [(&["apply"][..], "one\nnew\ntwo\n"), (&["apply", "--reference"], "one\ntwo\nnew\n")]
    {
        let harness = Harness::new();
        harness.write("f", "one\ntwo\n");
        let output = run(&mut harness.command(arguments, body));
        assert_eq!((output.code, harness.read("f").as_str()), (Some(0), expected), "{output:?}");
    }
}

#[test]
fn failed_patch_changes_nothing_and_reports_the_line() {
    let harness = sample_tree();
    let before = harness.snapshot();
    let body =
        format!("{ALL_OPERATIONS}*** Add File: last\n+x\n*** Update File: main.py\n@@\n-    return 2\n+\n");
    assert_rejected(&harness.apply(&body), "main.py, hunk 1 (patch line 14): ");
    assert_eq!(harness.snapshot(), before);
    let output = harness.apply("*** Update File: main.py\n@@\n def main():\n-    return 2\n+    return 3\n");
    assert_rejected(&output, "\n  expected: `    return 2`\n  found:    `    return 0`\n");
    assert_rejected(&harness.apply("return 1\n"), "patch line 2: ");
    assert_eq!(harness.snapshot(), before);
}

#[test]
fn paths_outside_the_root_are_rejected() {
    let harness = Harness::new();
    let outside = harness.directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f"), "old\n").unwrap();
    symlink("../outside", harness.path("directory")).unwrap();
    symlink("../outside/f", harness.path("file")).unwrap();
    symlink("../outside/new", harness.path("nothing")).unwrap();
    harness.write("in", "in\n");
    let before = harness.snapshot();
    let absolute = outside.join("f").display().to_string();
    for path in ["../outside/f", "sub/../../outside/f", &absolute, "directory/f", "file"] {
        for body in [
            format!("*** Update File: {path}\n@@\n-old\n+new\n"),
            format!("*** Delete File: {path}\n"),
            format!("*** Update File: in\n*** Move to: {path}.moved\n")
                .replace("file.moved", "directory/moved"),
        ] {
            assert_rejected(&harness.apply(&body), "expected a path inside");
        }
    }
    assert_rejected(&harness.apply("*** Add File: directory/deep/new\n+x\n"), "expected a path inside");
    assert_rejected(&harness.apply("*** Add File: nothing\n+x\n"), "nothing");
    assert_eq!(harness.snapshot(), before);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(outside.join("f")).unwrap(), "old\n");
}

#[test]
fn paths_inside_the_root_name_one_file() {
    let harness = Harness::new();
    harness.write("real/f", "1\n2\n3\n");
    symlink("real", harness.path("link")).unwrap();
    let absolute = harness.path("real/f").display().to_string();
    let output = harness.apply(&format!(
        "*** Update File: link/f\n@@\n-1\n+one\n*** Update File: real/f\n@@\n-2\n+two\n*** Update File: {absolute}\n@@\n-3\n+three\n"
    ));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "M real/f\n"), "{output:?}");
    assert_eq!(harness.read("real/f"), "one\ntwo\nthree\n");
}

#[test]
fn line_endings_modes_and_links_are_kept() {
    let harness = Harness::new();
    harness.write("dos.txt", "one\r\ntwo\r\n");
    harness.write("tool.sh", "one\n");
    harness.write("moved.sh", "one\n");
    for (name, mode) in [("tool.sh", 0o751), ("moved.sh", 0o700)] {
        std::fs::set_permissions(harness.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("tool.sh", harness.path("link")).unwrap();
    // The link is deleted while its target changes.
    symlink("dos.txt", harness.path("gone")).unwrap();
    let output = harness.apply(
        "*** Update File: dos.txt\n@@\n-two\n+2\n+3\n*** Update File: link\n@@\n-one\n+1\n*** Update File: moved.sh\n*** Move to: bin/moved.sh\n@@\n-one\n+1\n*** Delete File: gone\n",
    );
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(harness.read("dos.txt"), "one\r\n2\r\n3\r\n");
    assert_eq!((harness.read("tool.sh"), harness.read("bin/moved.sh")), ("1\n".to_owned(), "1\n".to_owned()));
    let mode = |name: &str| harness.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("tool.sh"), mode("bin/moved.sh")), (0o751, 0o700));
    assert_eq!(harness.path("link").read_link().unwrap(), PathBuf::from("tool.sh"));
    assert!(!harness.path("gone").is_symlink());
}

#[test]
fn json_has_files_diagnostics_and_diff() {
    let harness = sample_tree();
    let body = ALL_OPERATIONS.replace("@@ def main():\n-", "-").replace("old.txt", "./old.txt");
    let output = run(&mut harness.command(&["apply", "--output", "json"], &body));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        report["files"],
        json!([
            {"status": "A", "path": "docs/new.md"},
            {"status": "M", "path": "main.py"},
            {"status": "R", "path": "kept/new.txt", "from": "old.txt"},
            {"status": "D", "path": "gone.txt"},
        ])
    );
    let dots = json!({"message": "`.` segments of a path were dropped", "line": 7, "count": 1});
    assert!(report["diagnostics"].as_array().unwrap().contains(&dots), "{report}");
    let diff = report["diff"].as_str().unwrap();
    for part in ["+++ b/docs/new.md", "-    return 0\n+    return 1", "rename from old.txt"] {
        assert!(diff.contains(part), "{diff}");
    }
    let output = run(&mut harness.command(&["check", "--output", "json"], "*** Delete File: missing\n"));
    assert_rejected(&output, "missing");
}

#[test]
fn tolerated_defects_are_reported_on_stderr() {
    let harness = sample_tree();
    let output = harness.apply("*** Delete File: ./gone.txt\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "D gone.txt\n"), "{output:?}");
    assert_eq!(output.stderr, "pintle: note: patch line 2: `.` segments of a path were dropped\n");
}

#[test]
fn stdin_and_current_directory_are_the_defaults() {
    for arguments in [&["patch", "apply"][..], &["patch", "apply", "-"]] {
        let harness = Harness::new();
        let mut command = pintle(arguments);
        let output = run_with_input(command.current_dir(harness.path("")), &wrapped("*** Add File: f\n+x\n"));
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "A f\n"), "{output:?}");
        assert_eq!(harness.read("f"), "x\n");
    }
}

#[test]
fn directory_instead_of_a_file_is_rejected() {
    let harness = sample_tree();
    harness.write("directory/f", "x\n");
    let before = harness.snapshot();
    for operation in [
        "*** Add File: directory\n+x\n",
        "*** Delete File: directory\n",
        "*** Update File: directory\n@@\n-x\n+y\n",
        "*** Update File: main.py\n*** Move to: directory\n",
    ] {
        assert_rejected(
            &harness.apply(&format!("*** Delete File: gone.txt\n{operation}")),
            "directory is a directory",
        );
    }
    assert_rejected(&harness.apply("*** Add File: directory/..\n+x\n"), "is the directory itself");
    assert_rejected(
        &harness.apply("*** Delete File: gone.txt\n*** Add File: main.py/f\n+x\n"),
        "not a directory",
    );
    assert_eq!(harness.snapshot(), before);
}

#[test]
fn full_disk_leaves_the_tree_unchanged() {
    if !pintle_test_conditions::MOUNTS.is_present() {
        return;
    }
    let harness = Harness::new();
    let size = 200 * 1024;
    let patch = harness.directory.path().join("patch");
    let body = format!(
        "*** Delete File: gone\n*** Add File: new/small\n+x\n*** Add File: new/a/big\n+{}\n",
        "x".repeat(size)
    );
    std::fs::write(&patch, wrapped(&body)).unwrap();
    // The file system disappears with the shell.
    let script = "mount -t tmpfs -o size=100k tmpfs \"$1\" && echo mounted
        cd \"$1\" && echo gone >gone && chmod 741 gone
        \"$2\" patch apply \"$3\"; echo \"code $?\"; find . -mindepth 1 -printf '%p %m\\n'; cat gone";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    let output = run(command.arg(harness.path("")).args([env!("CARGO_BIN_EXE_pintle")]).arg(&patch));
    assert_eq!(output.stdout, "mounted\ncode 1\n./gone 741\ngone\n", "{output:?}");
    assert!(
        output.stderr.contains("big cannot be written") && output.stderr.contains("no file is changed"),
        "{output:?}"
    );
}

#[test]
fn unreadable_input_is_a_usage_error() {
    let harness = Harness::new();
    let odd = harness.directory.path().join("odd");
    std::fs::write(&odd, b"\xFF").unwrap();
    let (odd, tree) = (odd.display().to_string(), harness.path("").display().to_string());
    let cases: [(&[&str], &str); 7] = [
        (&["patch"], "Usage"),
        (&["patch", "undo"], "undo"),
        (&["patch", "check", "--dry-run"], "--dry-run"),
        (&["patch", "apply", "--output", "stream-json"], "stream-json"),
        (&["patch", "apply", "/no/such/patch"], "/no/such/patch"),
        (&["patch", "apply", &tree], "directory"),
        (&["patch", "check", &odd], "UTF-8"),
    ];
    for (arguments, part) in cases {
        let output = run(&mut pintle(arguments));
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{output:?}");
        assert!(output.stderr.contains(part), "`{part}` in {output:?}");
    }
    let output = run(&mut pintle(&["patch", "apply", "--dir", "/no/such/place", &odd]));
    assert_eq!(output.code, Some(2), "{output:?}");
}
