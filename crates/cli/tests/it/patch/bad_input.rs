//! Malformed, oversized and hostile patches and trees.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Harness, assert_rejected, wrapped};
use crate::harness::{CommandOutput, pintle, run, run_with_input};

/// Address space available to the command, including threads and code.
const ADDRESS_SPACE: u64 = 768 << 20;

/// Ten times the duration of the slowest of these patches in a debug build.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns `pintle patch ARGUMENTS` with an address space limited to [`ADDRESS_SPACE`].
fn memory_limited(arguments: &[&str]) -> Command {
    let plain = pintle(&["patch"]);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {} && exec \"$0\" \"$@\"", ADDRESS_SPACE >> 10)]);
    command.arg(plain.get_program()).args(plain.get_args()).args(arguments).env_clear().stdin(Stdio::null());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

impl Harness {
    fn run_memory_limited(&self, arguments: &[&str], patch: &Path) -> CommandOutput {
        run(memory_limited(arguments).arg("--dir").arg(self.path("")).arg(patch))
    }
}

/// Asserts the exit code, a short message with the reason, and no panic.
fn assert_fails(output: &CommandOutput, code: i32, reason: &str) {
    assert_eq!((output.code, output.stdout.as_str()), (Some(code), ""), "{output:?}");
    assert!(
        output.stderr.starts_with("pintle: ") && output.stderr.contains(reason),
        "`{reason}` in {output:?}"
    );
    assert!(output.stderr.len() < 2_000 && !output.stderr.contains("panicked"), "{output:?}");
}

/// Returns deterministic pseudo-random bytes.
fn garbage(length: usize) -> Vec<u8> {
    let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(length)
    .collect()
}

#[test]
fn garbage_is_rejected() {
    let harness = Harness::new();
    let patch = harness.directory.path().join("patch");
    std::fs::write(&patch, garbage(1 << 20)).unwrap();
    assert_fails(&harness.run_memory_limited(&["apply"], &patch), 2, "is not valid UTF-8 at byte ");
    let text: Vec<u8> = garbage(1 << 20).into_iter().map(|byte| byte & 0x7F).collect();
    std::fs::write(&patch, &text).unwrap();
    assert_fails(
        &harness.run_memory_limited(&["apply"], &patch),
        1,
        "patch line 1: expected `*** Begin Patch`",
    );
    let inside = [b"*** Begin Patch\n*** Update File: f\n@@\n-", text.as_slice()].concat();
    std::fs::write(&patch, inside).unwrap();
    assert_fails(&harness.run_memory_limited(&["check"], &patch), 1, "patch line ");
    std::fs::write(&patch, "").unwrap();
    assert_fails(&harness.run_memory_limited(&["apply"], &patch), 1, "*** Begin Patch");
    assert!(harness.snapshot().is_empty());
}

#[test]
fn hundred_megabyte_patch_is_rejected_in_bounded_memory() {
    let harness = Harness::new();
    let patch = harness.directory.path().join("patch");
    // A normal patch works within the same limit.
    std::fs::write(&patch, wrapped("*** Add File: f\n+x\n")).unwrap();
    assert_eq!(harness.run_memory_limited(&["apply"], &patch).code, Some(0));
    let started = Instant::now();
    File::create(&patch).unwrap().set_len(100 << 20).unwrap();
    assert_fails(&harness.run_memory_limited(&["apply"], &patch), 2, "is larger than 64 MiB");

    let mut command = memory_limited(&["apply", "-", "--dir"]);
    command.arg(harness.path("")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut sent = 0;
    let block = "+a line of a file that is added, over and over again\n".repeat(10_000);
    input.write_all(b"*** Begin Patch\n*** Add File: big\n").unwrap();
    // Writing fails once the command stops reading.
    while sent < 100 << 20 && input.write_all(block.as_bytes()).is_ok() {
        sent += block.len();
    }
    drop(input);
    assert_fails(&child.wait_with_output().unwrap().into(), 2, "standard input is larger than 64 MiB");
    assert!(started.elapsed() < TIMEOUT, "{:?}", started.elapsed());
    assert!(sent >= 63 << 20, "{sent}");
    assert_eq!(harness.snapshot().len(), 1);
}

#[test]
fn million_headers_are_rejected_or_reported_once() {
    let harness = Harness::new();
    harness.write("f", "one\n");
    let before = harness.snapshot();
    let patch = harness.directory.path().join("patch");
    let started = Instant::now();
    let check = |header: &str| {
        let body = format!("*** Update File: f\n{}-one\n+two\n", header.repeat(1_000_000));
        std::fs::write(&patch, wrapped(&body)).unwrap();
        harness.run_memory_limited(&["check"], &patch)
    };
    let output = check("@@ one\n");
    assert_fails(&output, 1, "patch line 35: expected at most 32 `@@` lines before one hunk; found `@@ one`");
    // Headers without content are tolerated.
    for header in ["@@\n", "@@ -1,2 +1,2 @@\n"] {
        let output = check(header);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "M f\n"), "{output:?}");
        assert!(output.stderr.contains("times") && output.stderr.lines().count() <= 2, "{output:?}");
    }
    assert!(started.elapsed() < TIMEOUT, "{:?}", started.elapsed());
    assert_eq!(harness.snapshot(), before);
}

#[test]
fn nul_bytes_are_allowed_in_content_only() {
    let harness = Harness::new();
    let output = harness.apply("*** Add File: f\n+a\0b\n");
    assert_eq!((output.code, harness.read("f").as_str()), (Some(0), "a\0b\n"), "{output:?}");
    let output = harness.apply("*** Update File: f\n@@\n-a\0b\n+a\0c\n");
    assert_eq!((output.code, harness.read("f").as_str()), (Some(0), "a\0c\n"), "{output:?}");
    for body in [
        "*** Add File: a\0b\n+x\n",
        "*** Delete File: f\0\n",
        "*** Update File: f\n*** Move to: g\0h\n",
        "*** Add File: bell\x07\n+x\n",
        "*** Add File: tab\there\n+x\n",
        "*** Add File: a\rb\n+x\n",
    ] {
        assert_fails(&harness.apply(body), 1, "control character");
    }
    assert_fails(&harness.apply("*** Add File: two\nlines\n+x\n"), 1, "patch line 3: ");
    assert_eq!(harness.snapshot().len(), 1);
}

#[test]
fn overlong_paths_are_rejected() {
    let harness = small_tree();
    let before = harness.snapshot();
    let long = "x".repeat(300);
    for path in [long.clone(), format!("{long}/f"), format!("{}f", "d/".repeat(2_100)), "x".repeat(1 << 20)] {
        for body in [
            format!("*** Add File: {path}\n+x\n"),
            format!("*** Delete File: small\n*** Add File: {path}\n+x\n"),
            format!("*** Delete File: {path}\n"),
            format!("*** Update File: small\n*** Move to: {path}\n"),
        ] {
            let output = harness.apply(&body);
            assert_rejected(&output, "");
            let reasons = ["name too long", "bytes long: expected at most 4096"];
            assert!(reasons.iter().any(|reason| output.stderr.contains(reason)), "{output:?}");
            assert!(output.stderr.len() < 1_000, "{output:?}");
            assert_eq!(harness.snapshot(), before);
        }
    }
}

#[test]
fn failed_deep_file_leaves_no_directory() {
    let harness = small_tree();
    // The path itself is short enough, but that of a temporary file next to it is not. A file that is new needs none.
    let free = 4_090 - harness.path("").canonicalize().unwrap().as_os_str().len();
    let long = format!("{}/", "d".repeat(199)).repeat(free / 200);
    let deep = format!("{long}{}f", "d/".repeat(free % 200 / 2));
    let output = harness.apply(&format!("*** Add File: {deep}\n+x\n"));
    assert_eq!(output.code, Some(0), "{output:?}");
    let before = harness.snapshot();
    let update = format!("*** Add File: new/directory/f\n+x\n*** Update File: {deep}\n@@\n-x\n+y\n");
    for body in [update.clone(), format!("*** Delete File: small\n{update}")] {
        assert_rejected(&harness.apply(&body), "no file is changed");
        assert_eq!(harness.snapshot(), before);
    }
}

fn small_tree() -> Harness {
    let harness = Harness::new();
    harness.write("small", "x\n");
    harness
}

#[test]
fn special_files_are_rejected_without_blocking() {
    let harness = small_tree();
    let pipe = harness.path("pipe");
    let status = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(status.success());
    for operation in [
        "*** Delete File: pipe\n",
        "*** Add File: pipe\n+x\n",
        "*** Update File: pipe\n@@\n-x\n+y\n",
        "*** Update File: small\n*** Move to: pipe\n",
    ] {
        assert_fails(&harness.apply(operation), 1, "pipe is not a regular file");
    }
    assert_eq!(harness.read("small"), "x\n");
    assert!(!pipe.is_file() && pipe.exists());
}

#[test]
fn oversized_files_are_rejected_in_bounded_memory() {
    let harness = Harness::new();
    for (name, size) in [("huge", 3 << 30), ("one", 150 << 20), ("two", 150 << 20)] {
        File::create(harness.path(name)).unwrap().set_len(size).unwrap();
    }
    let patch = harness.directory.path().join("patch");
    for (body, name) in [
        ("*** Delete File: huge\n", "huge"),
        ("*** Update File: huge\n@@\n-x\n+y\n", "huge"),
        ("*** Delete File: one\n*** Delete File: two\n", "two"),
    ] {
        std::fs::write(&patch, wrapped(body)).unwrap();
        let output = harness.run_memory_limited(&["apply"], &patch);
        assert_fails(
            &output,
            1,
            &format!("{name} is too large: the files of a patch may hold 256 MiB together"),
        );
    }
    assert_eq!(std::fs::read_dir(harness.path("")).unwrap().count(), 3);
}

#[test]
fn failed_patch_leaves_no_directory() {
    let harness = super::sample_tree();
    harness.write("wall", "x\n");
    let before = harness.snapshot();
    for last in ["wall/below", "main.py/below"] {
        let body = format!("{}*** Add File: a/b/c/d\n+x\n*** Add File: {last}\n+x\n", super::ALL_OPERATIONS);
        assert_rejected(&harness.apply(&body), &format!("{last} cannot be written, and no file is changed"));
        assert_eq!(harness.snapshot(), before);
    }
}

#[test]
fn empty_directory_is_kept() {
    let harness = Harness::new();
    harness.write("directory/f", "x\n");
    let output = harness.apply("*** Delete File: directory/f\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "D directory/f\n"), "{output:?}");
    assert!(harness.path("directory").is_dir());
}

#[test]
fn two_thousand_files_are_added() {
    let harness = Harness::new();
    let body: String = (0..2_000)
        .flat_map(|number| {
            ["*** Add File: directory", &format!("{}/{number}\n", number % 50), "+x\n"].map(str::to_owned)
        })
        .collect();
    let started = Instant::now();
    let output =
        run_with_input(pintle(&["patch", "apply", "--dir"]).arg(harness.path("")).arg("-"), &wrapped(&body));
    assert_eq!((output.code, output.stdout.lines().count()), (Some(0), 2_000), "{}", output.stderr);
    assert!(started.elapsed() < TIMEOUT, "{:?}", started.elapsed());
    assert_eq!(harness.snapshot().len(), 2_050);
}

/// Returns the command subject to file modes, which requires root to drop the capability that overrides them.
fn without_privileges(command: &Command, probe: &Path) -> Command {
    let is_denied = OpenOptions::new().append(true).open(probe).is_err();
    let mut plain = if is_denied { Command::new("env") } else { Command::new("setpriv") };
    if !is_denied {
        let dropped = "-dac_override,-dac_read_search";
        plain.args([&format!("--bounding-set={dropped}"), &format!("--inh-caps={dropped}")]);
    }
    plain.arg(command.get_program()).args(command.get_args());
    plain
}

#[test]
fn read_only_directory_is_unchanged() {
    let harness = super::sample_tree();
    harness.write("closed/f", "x\n");
    harness.write("probe", "");
    let mode = |name: &str, mode| {
        std::fs::set_permissions(harness.path(name), Permissions::from_mode(mode)).unwrap()
    };
    mode("closed", 0o555);
    mode("probe", 0o444);
    let before = harness.snapshot();
    for operation in [
        "*** Add File: closed/new\n+x\n",
        "*** Add File: closed/new/deep\n+x\n",
        "*** Delete File: closed/f\n",
        "*** Update File: closed/f\n*** Move to: f\n",
        "*** Update File: probe\n*** Move to: closed/probe\n",
    ] {
        for body in [operation.to_owned(), format!("{}{operation}", super::ALL_OPERATIONS)] {
            let command = harness.command(&["apply"], &body);
            let output = run(&mut without_privileges(&command, &harness.path("probe")));
            assert_fails(&output, 1, "permission denied");
            assert!(output.stderr.contains("no file is changed"), "{output:?}");
            assert_eq!(harness.snapshot(), before, "{operation}");
        }
    }
    // The file itself is writable.
    let command = harness.command(&["apply"], "*** Update File: closed/f\n@@\n-x\n+y\n");
    let output = run(&mut without_privileges(&command, &harness.path("probe")));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(std::fs::read(harness.path("closed/f")).unwrap(), b"y\n");
    assert_eq!(std::fs::read_dir(harness.path("closed")).unwrap().count(), 1);
    mode("closed", 0o755);
}

#[test]
fn unreadable_file_is_named() {
    let harness = small_tree();
    harness.write("secret", "x\n");
    harness.write("probe", "");
    for name in ["secret", "probe"] {
        std::fs::set_permissions(harness.path(name), Permissions::from_mode(0o000)).unwrap();
    }
    let command = harness.command(&["check"], "*** Delete File: small\n*** Delete File: secret\n");
    let output = run(&mut without_privileges(&command, &harness.path("probe")));
    assert_fails(&output, 1, "permission denied for ");
    assert!(output.stderr.contains("secret") && !output.stderr.contains("small"), "{output:?}");
}

/// Runs a shell script in a tree on a new file system with these mount options, where `$2 patch apply $3` applies the
/// patch. Returns `None` if mounting is not allowed.
fn mounted(options: &str, body: &str, script: &str) -> Option<CommandOutput> {
    if !pintle_test_conditions::MOUNTS.is_present() {
        return None;
    }
    let harness = Harness::new();
    let patch = harness.directory.path().join("patch");
    std::fs::write(&patch, wrapped(body)).unwrap();
    let script = format!("mount -t tmpfs -o {options} tmpfs \"$1\" && echo mounted; cd \"$1\"\n{script}");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]).arg(harness.path(""));
    Some(run(command.args([env!("CARGO_BIN_EXE_pintle")]).arg(&patch)))
}

const LIST: &str = "find . -printf '%P %y %m %s %l\\n' | sort";

#[test]
fn disk_filling_up_leaves_the_tree_unchanged() {
    // There is space for the content but not enough inodes, which only shows when files are created.
    let added: String = (0..200).map(|number| format!("*** Add File: new/{number}/f\n+x\n")).collect();
    let body = format!(
        "*** Update File: f\n@@\n-x\n+y\n*** Delete File: gone\n*** Update File: moved\n*** Move to: to/moved\n{added}"
    );
    let script = format!(
        "echo x >f && chmod 741 f && echo gone >gone && echo moved >moved && ln -s f link
         {LIST} >\"$3.before\"; \"$2\" patch apply \"$3\"; echo \"code $?\"
         {LIST} | diff \"$3.before\" - && echo same; cat f gone moved
         mount -o remount,nr_inodes=1000 . && \"$2\" patch apply \"$3\" | wc -l; cat f"
    );
    let Some(output) = mounted("size=10m,nr_inodes=100", &body, &script) else { return };
    assert_eq!(output.stdout, "mounted\ncode 1\nsame\nx\ngone\nmoved\n203\ny\n", "{output:?}");
    assert!(output.stderr.contains("cannot be written, and no file is changed"), "{output:?}");
    assert!(
        output.stderr.contains("no storage space") || output.stderr.contains("No space left"),
        "{output:?}"
    );
}

#[test]
fn read_only_mount_is_unchanged() {
    let body = "*** Update File: f\n@@\n-x\n+y\n*** Add File: deep/er/new\n+x\n*** Update File: closed/f\n@@\n-x\n+y\n";
    let script = format!(
        "mkdir closed && echo x >f && echo x >closed/f && mount --bind closed closed && mount -o remount,ro,bind closed
         {LIST} >\"$3.before\"; \"$2\" patch apply \"$3\"; echo \"code $?\"
         {LIST} | diff \"$3.before\" - && echo same"
    );
    let Some(output) = mounted("size=1m", body, &script) else { return };
    assert_eq!(output.stdout, "mounted\ncode 1\nsame\n", "{output:?}");
    assert!(
        output.stderr.contains("Read-only") && output.stderr.contains("no file is changed"),
        "{output:?}"
    );
}
