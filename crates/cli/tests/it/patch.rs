//! `patch apply` and `patch check` on a real tree.

mod bad_input;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::lab::{Said, pintle, say, say_with_input};

/// A directory with a tree in it, and a patch beside the tree.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(bench.path("")).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("tree").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// `pintle patch ARGUMENTS --dir TREE PATCH`.
    fn command(&self, arguments: &[&str], body: &str) -> Command {
        let patch = self.folder.path().join("patch");
        std::fs::write(&patch, wrapped(body)).unwrap();
        let mut command = pintle(&["patch"]);
        command.args(arguments).arg("--dir").arg(self.path("")).arg(patch);
        command
    }

    fn apply(&self, body: &str) -> Said {
        say(&mut self.command(&["apply"], body))
    }

    /// Every entry below the tree with its kind, its mode and its content, hidden ones included.
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

/// Refused with exit code 1 and this reason, with nothing on standard output.
fn is_refused(said: &Said, reason: &str) {
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.err.starts_with("pintle: ") && said.err.contains(reason), "`{reason}` in {said:?}");
}

const EVERYTHING: &str = "\
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

fn everything() -> Bench {
    let bench = Bench::new();
    bench.write("main.py", "def main():\n    return 0\n");
    bench.write("old.txt", "old\n");
    bench.write("gone.txt", "gone\n");
    bench
}

#[test]
fn every_operation_is_applied_and_listed() {
    let bench = everything();
    let said = bench.apply(EVERYTHING);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert_eq!(said.out, "A docs/new.md\nM main.py\nR old.txt -> kept/new.txt\nD gone.txt\n");
    assert_eq!(bench.read("docs/new.md"), "# New\n");
    assert_eq!(bench.read("main.py"), "def main():\n    return 1\n");
    assert_eq!(bench.read("kept/new.txt"), "old\n");
    let left: Vec<String> = bench.snapshot().into_iter().filter(|entry| entry.contains(".txt")).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!bench.snapshot().iter().any(|entry| entry.contains(".pintle-")));
}

#[test]
fn what_is_only_checked_is_listed_and_stays() {
    let bench = everything();
    let before = bench.snapshot();
    for arguments in [&["check"][..], &["apply", "--dry-run"]] {
        let said = say(&mut bench.command(arguments, EVERYTHING));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(said.out, "A docs/new.md\nM main.py\nR old.txt -> kept/new.txt\nD gone.txt\n");
        assert_eq!(bench.snapshot(), before);
        let said = say(&mut bench.command(arguments, "*** Delete File: missing\n"));
        is_refused(&said, "missing (patch line 2): cannot delete: the file does not exist");
    }
}

#[test]
fn the_reference_puts_additions_at_the_end() {
    let body = "*** Update File: f\n@@ one\n+new\n";
    for (arguments, expected) in
        [(&["apply"][..], "one\nnew\ntwo\n"), (&["apply", "--reference"], "one\ntwo\nnew\n")]
    {
        let bench = Bench::new();
        bench.write("f", "one\ntwo\n");
        let said = say(&mut bench.command(arguments, body));
        assert_eq!((said.code, bench.read("f").as_str()), (Some(0), expected), "{said:?}");
    }
}

#[test]
fn a_patch_that_does_not_fit_touches_nothing_and_says_where() {
    let bench = everything();
    let before = bench.snapshot();
    let body =
        format!("{EVERYTHING}*** Add File: last\n+x\n*** Update File: main.py\n@@\n-    return 2\n+\n");
    is_refused(&bench.apply(&body), "main.py, hunk 1 (patch line 14): ");
    assert_eq!(bench.snapshot(), before);
    let said = bench.apply("*** Update File: main.py\n@@\n def main():\n-    return 2\n+    return 3\n");
    is_refused(&said, "\n  expected: `    return 2`\n  found:    `    return 0`\n");
    is_refused(&bench.apply("return 1\n"), "patch line 2: ");
    assert_eq!(bench.snapshot(), before);
}

#[test]
fn a_path_that_leaves_the_directory_is_refused() {
    let bench = Bench::new();
    let outside = bench.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f"), "old\n").unwrap();
    symlink("../outside", bench.path("folder")).unwrap();
    symlink("../outside/f", bench.path("file")).unwrap();
    symlink("../outside/new", bench.path("nothing")).unwrap();
    bench.write("in", "in\n");
    let before = bench.snapshot();
    let absolute = outside.join("f").display().to_string();
    for path in ["../outside/f", "sub/../../outside/f", &absolute, "folder/f", "file"] {
        for body in [
            format!("*** Update File: {path}\n@@\n-old\n+new\n"),
            format!("*** Delete File: {path}\n"),
            format!("*** Update File: in\n*** Move to: {path}.moved\n").replace("file.moved", "folder/moved"),
        ] {
            is_refused(&bench.apply(&body), "expected a path inside");
        }
    }
    is_refused(&bench.apply("*** Add File: folder/deep/new\n+x\n"), "expected a path inside");
    is_refused(&bench.apply("*** Add File: nothing\n+x\n"), "nothing");
    assert_eq!(bench.snapshot(), before);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(outside.join("f")).unwrap(), "old\n");
}

#[test]
fn absolute_paths_and_links_inside_are_fine_and_name_one_file() {
    let bench = Bench::new();
    bench.write("real/f", "1\n2\n3\n");
    symlink("real", bench.path("link")).unwrap();
    let absolute = bench.path("real/f").display().to_string();
    let said = bench.apply(&format!(
        "*** Update File: link/f\n@@\n-1\n+one\n*** Update File: real/f\n@@\n-2\n+two\n*** Update File: {absolute}\n@@\n-3\n+three\n"
    ));
    assert_eq!((said.code, said.out.as_str()), (Some(0), "M real/f\n"), "{said:?}");
    assert_eq!(bench.read("real/f"), "one\ntwo\nthree\n");
}

#[test]
fn line_ends_modes_and_links_stay() {
    let bench = Bench::new();
    bench.write("dos.txt", "one\r\ntwo\r\n");
    bench.write("tool.sh", "one\n");
    bench.write("moved.sh", "one\n");
    for (name, mode) in [("tool.sh", 0o751), ("moved.sh", 0o700)] {
        std::fs::set_permissions(bench.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("tool.sh", bench.path("link")).unwrap();
    // It goes while what it leads to changes.
    symlink("dos.txt", bench.path("gone")).unwrap();
    let said = bench.apply(
        "*** Update File: dos.txt\n@@\n-two\n+2\n+3\n*** Update File: link\n@@\n-one\n+1\n*** Update File: moved.sh\n*** Move to: bin/moved.sh\n@@\n-one\n+1\n*** Delete File: gone\n",
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(bench.read("dos.txt"), "one\r\n2\r\n3\r\n");
    assert_eq!((bench.read("tool.sh"), bench.read("bin/moved.sh")), ("1\n".to_owned(), "1\n".to_owned()));
    let mode = |name: &str| bench.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("tool.sh"), mode("bin/moved.sh")), (0o751, 0o700));
    assert_eq!(bench.path("link").read_link().unwrap(), PathBuf::from("tool.sh"));
    assert!(!bench.path("gone").is_symlink());
}

#[test]
fn json_has_files_diagnostics_and_the_diff() {
    let bench = everything();
    let body = EVERYTHING.replace("@@ def main():\n-", "-").replace("old.txt", "./old.txt");
    let said = say(&mut bench.command(&["apply", "--output", "json"], &body));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
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
    let said = say(&mut bench.command(&["check", "--output", "json"], "*** Delete File: missing\n"));
    is_refused(&said, "missing");
}

#[test]
fn what_was_tolerated_is_noted_on_standard_error() {
    let bench = everything();
    let said = bench.apply("*** Delete File: ./gone.txt\n");
    assert_eq!((said.code, said.out.as_str()), (Some(0), "D gone.txt\n"), "{said:?}");
    assert_eq!(said.err, "pintle: note: patch line 2: `.` segments of a path were dropped\n");
}

#[test]
fn a_patch_comes_from_standard_input_and_the_current_directory_is_the_default() {
    for arguments in [&["patch", "apply"][..], &["patch", "apply", "-"]] {
        let bench = Bench::new();
        let mut command = pintle(arguments);
        let said = say_with_input(command.current_dir(bench.path("")), &wrapped("*** Add File: f\n+x\n"));
        assert_eq!((said.code, said.out.as_str()), (Some(0), "A f\n"), "{said:?}");
        assert_eq!(bench.read("f"), "x\n");
    }
}

#[test]
fn a_directory_in_place_of_a_file_is_refused() {
    let bench = everything();
    bench.write("folder/f", "x\n");
    let before = bench.snapshot();
    for operation in [
        "*** Add File: folder\n+x\n",
        "*** Delete File: folder\n",
        "*** Update File: folder\n@@\n-x\n+y\n",
        "*** Update File: main.py\n*** Move to: folder\n",
    ] {
        is_refused(&bench.apply(&format!("*** Delete File: gone.txt\n{operation}")), "folder is a directory");
    }
    is_refused(&bench.apply("*** Add File: folder/..\n+x\n"), "is the directory itself");
    is_refused(&bench.apply("*** Delete File: gone.txt\n*** Add File: main.py/f\n+x\n"), "not a directory");
    assert_eq!(bench.snapshot(), before);
}

#[test]
fn a_full_disk_leaves_the_tree_as_it_was() {
    let bench = Bench::new();
    let size = 200 * 1024;
    let patch = bench.folder.path().join("patch");
    let body = format!(
        "*** Delete File: gone\n*** Add File: new/small\n+x\n*** Add File: new/a/big\n+{}\n",
        "x".repeat(size)
    );
    std::fs::write(&patch, wrapped(&body)).unwrap();
    // A file system of its own, which is gone with the shell.
    let script = "mount -t tmpfs -o size=100k tmpfs \"$1\" 2>/dev/null || exit; echo mounted
        cd \"$1\" && echo gone >gone && chmod 741 gone
        \"$2\" patch apply \"$3\"; echo \"code $?\"; find . -mindepth 1 -printf '%p %m\\n'; cat gone";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    let output = command.arg(bench.path("")).args([env!("CARGO_BIN_EXE_pintle")]).arg(&patch).output();
    let said = output.map(Said::from);
    if !said.as_ref().is_ok_and(|said| said.out.starts_with("mounted\n")) {
        // Not everybody may mount something; then there is no full disk to be had.
        assert!(std::env::var_os("CI").is_none(), "the gate runs where mounting is allowed: {said:?}");
        eprintln!("SKIPPED: no file system can be mounted here: {said:?}");
        return;
    }
    let said = said.unwrap();
    assert_eq!(said.out, "mounted\ncode 1\n./gone 741\ngone\n", "{said:?}");
    assert!(
        said.err.contains("big cannot be written") && said.err.contains("no file is changed"),
        "{said:?}"
    );
}

#[test]
fn what_cannot_be_read_is_bad_usage() {
    let bench = Bench::new();
    let odd = bench.folder.path().join("odd");
    std::fs::write(&odd, b"\xFF").unwrap();
    let (odd, tree) = (odd.display().to_string(), bench.path("").display().to_string());
    let rows: [(&[&str], &str); 7] = [
        (&["patch"], "Usage"),
        (&["patch", "undo"], "undo"),
        (&["patch", "check", "--dry-run"], "--dry-run"),
        (&["patch", "apply", "--output", "stream-json"], "stream-json"),
        (&["patch", "apply", "/no/such/patch"], "/no/such/patch"),
        (&["patch", "apply", &tree], "directory"),
        (&["patch", "check", &odd], "UTF-8"),
    ];
    for (arguments, part) in rows {
        let said = say(&mut pintle(arguments));
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains(part), "`{part}` in {said:?}");
    }
    let said = say(&mut pintle(&["patch", "apply", "--dir", "/no/such/place", &odd]));
    assert_eq!(said.code, Some(2), "{said:?}");
}
