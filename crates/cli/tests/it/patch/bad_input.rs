//! Patches and trees that no sane person would give it.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Bench, is_refused, wrapped};
use crate::lab::{Said, pintle, say, say_with_input};

/// What the command may have of memory, all its threads and code included.
const ADDRESS_SPACE: u64 = 768 << 20;

/// Ten times what the slowest of these patches takes without optimisation.
const PATIENCE: Duration = Duration::from_secs(30);

/// `pintle patch ARGUMENTS` that cannot have more than [`ADDRESS_SPACE`].
fn bounded(arguments: &[&str]) -> Command {
    let plain = pintle(&["patch"]);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {} && exec \"$0\" \"$@\"", ADDRESS_SPACE >> 10)]);
    command.arg(plain.get_program()).args(plain.get_args()).args(arguments).env_clear().stdin(Stdio::null());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

impl Bench {
    fn bounded(&self, arguments: &[&str], patch: &Path) -> Said {
        say(bounded(arguments).arg("--dir").arg(self.path("")).arg(patch))
    }
}

/// Exit code, a short and clear sentence, no panic.
fn is_bad(said: &Said, code: i32, reason: &str) {
    assert_eq!((said.code, said.out.as_str()), (Some(code), ""), "{said:?}");
    assert!(said.err.starts_with("pintle: ") && said.err.contains(reason), "`{reason}` in {said:?}");
    assert!(said.err.len() < 2_000 && !said.err.contains("panicked"), "{said:?}");
}

/// Bytes without any order, always the same.
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
fn garbage_is_refused() {
    let bench = Bench::new();
    let patch = bench.folder.path().join("patch");
    std::fs::write(&patch, garbage(1 << 20)).unwrap();
    is_bad(&bench.bounded(&["apply"], &patch), 2, "is not UTF-8 text: its byte ");
    let text: Vec<u8> = garbage(1 << 20).into_iter().map(|byte| byte & 0x7F).collect();
    std::fs::write(&patch, &text).unwrap();
    is_bad(&bench.bounded(&["apply"], &patch), 1, "patch line 1: expected `*** Begin Patch`");
    let inside = [b"*** Begin Patch\n*** Update File: f\n@@\n-", text.as_slice()].concat();
    std::fs::write(&patch, inside).unwrap();
    is_bad(&bench.bounded(&["check"], &patch), 1, "patch line ");
    std::fs::write(&patch, "").unwrap();
    is_bad(&bench.bounded(&["apply"], &patch), 1, "*** Begin Patch");
    assert!(bench.snapshot().is_empty());
}

#[test]
fn a_patch_of_a_hundred_megabytes_is_refused_in_little_memory() {
    let bench = Bench::new();
    let patch = bench.folder.path().join("patch");
    // With the same memory a usual patch is applied.
    std::fs::write(&patch, wrapped("*** Add File: f\n+x\n")).unwrap();
    assert_eq!(bench.bounded(&["apply"], &patch).code, Some(0));
    let started = Instant::now();
    File::create(&patch).unwrap().set_len(100 << 20).unwrap();
    is_bad(&bench.bounded(&["apply"], &patch), 2, "is larger than 64 MiB");

    let mut command = bounded(&["apply", "-", "--dir"]);
    command.arg(bench.path("")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut sent = 0;
    let block = "+a line of a file that is added, over and over again\n".repeat(10_000);
    input.write_all(b"*** Begin Patch\n*** Add File: big\n").unwrap();
    // It stops to read when it has seen enough, and then writing fails.
    while sent < 100 << 20 && input.write_all(block.as_bytes()).is_ok() {
        sent += block.len();
    }
    drop(input);
    is_bad(&child.wait_with_output().unwrap().into(), 2, "standard input is larger than 64 MiB");
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    assert!(sent >= 63 << 20, "{sent}");
    assert_eq!(bench.snapshot().len(), 1);
}

#[test]
fn a_million_headers_are_refused_or_reported_once() {
    let bench = Bench::new();
    bench.write("f", "one\n");
    let before = bench.snapshot();
    let patch = bench.folder.path().join("patch");
    let started = Instant::now();
    let check = |header: &str| {
        let body = format!("*** Update File: f\n{}-one\n+two\n", header.repeat(1_000_000));
        std::fs::write(&patch, wrapped(&body)).unwrap();
        bench.bounded(&["check"], &patch)
    };
    let said = check("@@ one\n");
    is_bad(&said, 1, "patch line 35: expected at most 32 `@@` lines before one hunk; found `@@ one`");
    // Those that say nothing count for nothing.
    for header in ["@@\n", "@@ -1,2 +1,2 @@\n"] {
        let said = check(header);
        assert_eq!((said.code, said.out.as_str()), (Some(0), "M f\n"), "{said:?}");
        assert!(said.err.contains("times") && said.err.lines().count() <= 2, "{said:?}");
    }
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    assert_eq!(bench.snapshot(), before);
}

#[test]
fn zero_bytes_are_content_and_no_part_of_a_path() {
    let bench = Bench::new();
    let said = bench.apply("*** Add File: f\n+a\0b\n");
    assert_eq!((said.code, bench.read("f").as_str()), (Some(0), "a\0b\n"), "{said:?}");
    let said = bench.apply("*** Update File: f\n@@\n-a\0b\n+a\0c\n");
    assert_eq!((said.code, bench.read("f").as_str()), (Some(0), "a\0c\n"), "{said:?}");
    for body in [
        "*** Add File: a\0b\n+x\n",
        "*** Delete File: f\0\n",
        "*** Update File: f\n*** Move to: g\0h\n",
        "*** Add File: bell\x07\n+x\n",
        "*** Add File: tab\there\n+x\n",
        "*** Add File: a\rb\n+x\n",
    ] {
        is_bad(&bench.apply(body), 1, "control character");
    }
    is_bad(&bench.apply("*** Add File: two\nlines\n+x\n"), 1, "patch line 3: ");
    assert_eq!(bench.snapshot().len(), 1);
}

#[test]
fn a_path_that_no_system_takes_is_refused() {
    let bench = everything_small();
    let before = bench.snapshot();
    let long = "x".repeat(300);
    for path in [long.clone(), format!("{long}/f"), format!("{}f", "d/".repeat(2_100)), "x".repeat(1 << 20)] {
        for body in [
            format!("*** Add File: {path}\n+x\n"),
            format!("*** Delete File: small\n*** Add File: {path}\n+x\n"),
            format!("*** Delete File: {path}\n"),
            format!("*** Update File: small\n*** Move to: {path}\n"),
        ] {
            let said = bench.apply(&body);
            is_refused(&said, "");
            let reasons = ["name too long", "bytes long: expected at most 4096"];
            assert!(reasons.iter().any(|reason| said.err.contains(reason)), "{said:?}");
            assert!(said.err.len() < 1_000, "{said:?}");
            assert_eq!(bench.snapshot(), before);
        }
    }
}

#[test]
fn a_file_at_the_end_of_a_long_way_leaves_no_directory_behind() {
    let bench = everything_small();
    let before = bench.snapshot();
    // The path itself would do, and that of a file that is written beside it would not.
    let free = 4_090 - bench.path("").canonicalize().unwrap().as_os_str().len();
    let long = format!("{}/", "d".repeat(199)).repeat(free / 200);
    let deep = format!("{long}{}f", "d/".repeat(free % 200 / 2));
    for body in
        [format!("*** Add File: {deep}\n+x\n"), format!("*** Delete File: small\n*** Add File: {deep}\n+x\n")]
    {
        is_refused(&bench.apply(&body), "no file is changed");
        assert_eq!(bench.snapshot(), before);
    }
}

fn everything_small() -> Bench {
    let bench = Bench::new();
    bench.write("small", "x\n");
    bench
}

#[test]
fn what_is_no_file_is_refused_and_not_waited_for() {
    let bench = everything_small();
    let pipe = bench.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for operation in [
        "*** Delete File: pipe\n",
        "*** Add File: pipe\n+x\n",
        "*** Update File: pipe\n@@\n-x\n+y\n",
        "*** Update File: small\n*** Move to: pipe\n",
    ] {
        is_bad(&bench.apply(operation), 1, "pipe is not a regular file");
    }
    assert_eq!(bench.read("small"), "x\n");
    assert!(!pipe.is_file() && pipe.exists());
}

#[test]
fn files_that_are_too_large_are_refused_in_little_memory() {
    let bench = Bench::new();
    for (name, size) in [("huge", 3 << 30), ("one", 150 << 20), ("two", 150 << 20)] {
        File::create(bench.path(name)).unwrap().set_len(size).unwrap();
    }
    let patch = bench.folder.path().join("patch");
    for (body, name) in [
        ("*** Delete File: huge\n", "huge"),
        ("*** Update File: huge\n@@\n-x\n+y\n", "huge"),
        ("*** Delete File: one\n*** Delete File: two\n", "two"),
    ] {
        std::fs::write(&patch, wrapped(body)).unwrap();
        let said = bench.bounded(&["apply"], &patch);
        is_bad(&said, 1, &format!("{name} is too large: the files of a patch may hold 256 MiB together"));
    }
    assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 3);
}

#[test]
fn what_was_begun_leaves_no_directory_behind() {
    let bench = super::everything();
    bench.write("wall", "x\n");
    let before = bench.snapshot();
    for last in ["wall/below", "main.py/below"] {
        let body = format!("{}*** Add File: a/b/c/d\n+x\n*** Add File: {last}\n+x\n", super::EVERYTHING);
        is_refused(&bench.apply(&body), &format!("{last} cannot be written, and no file is changed"));
        assert_eq!(bench.snapshot(), before);
    }
}

#[test]
fn a_directory_without_files_stays() {
    let bench = Bench::new();
    bench.write("folder/f", "x\n");
    let said = bench.apply("*** Delete File: folder/f\n");
    assert_eq!((said.code, said.out.as_str()), (Some(0), "D folder/f\n"), "{said:?}");
    assert!(bench.path("folder").is_dir());
}

#[test]
fn two_thousand_files_are_added_at_once() {
    let bench = Bench::new();
    let body: String = (0..2_000)
        .flat_map(|number| {
            ["*** Add File: folder", &format!("{}/{number}\n", number % 50), "+x\n"].map(str::to_owned)
        })
        .collect();
    let started = Instant::now();
    let said =
        say_with_input(pintle(&["patch", "apply", "--dir"]).arg(bench.path("")).arg("-"), &wrapped(&body));
    assert_eq!((said.code, said.out.lines().count()), (Some(0), 2_000), "{}", said.err);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    assert_eq!(bench.snapshot().len(), 2_050);
}

/// Runs a `pintle` that files and directories with the wrong mode refuse. For the superuser they do only without the
/// capability that overrides them.
fn without_privileges(command: &Command, probe: &Path) -> Command {
    let is_refused = OpenOptions::new().append(true).open(probe).is_err();
    let mut plain = if is_refused { Command::new("env") } else { Command::new("setpriv") };
    if !is_refused {
        let lost = "-dac_override,-dac_read_search";
        plain.args([&format!("--bounding-set={lost}"), &format!("--inh-caps={lost}")]);
    }
    plain.arg(command.get_program()).args(command.get_args());
    plain
}

#[test]
fn a_directory_that_must_not_be_written_is_left_alone() {
    let bench = super::everything();
    bench.write("closed/f", "x\n");
    bench.write("probe", "");
    let mode =
        |name: &str, mode| std::fs::set_permissions(bench.path(name), Permissions::from_mode(mode)).unwrap();
    mode("closed", 0o555);
    mode("probe", 0o444);
    let before = bench.snapshot();
    for operation in [
        "*** Add File: closed/new\n+x\n",
        "*** Add File: closed/new/deep\n+x\n",
        "*** Update File: closed/f\n@@\n-x\n+y\n",
        "*** Delete File: closed/f\n",
        "*** Update File: closed/f\n*** Move to: f\n",
        "*** Update File: probe\n*** Move to: closed/probe\n",
    ] {
        for body in [operation.to_owned(), format!("{}{operation}", super::EVERYTHING)] {
            let command = bench.command(&["apply"], &body);
            let said = say(&mut without_privileges(&command, &bench.path("probe")));
            is_bad(&said, 1, "permission denied");
            assert!(said.err.contains("no file is changed"), "{said:?}");
            assert_eq!(bench.snapshot(), before, "{operation}");
        }
    }
    mode("closed", 0o755);
}

#[test]
fn a_file_that_must_not_be_read_is_named() {
    let bench = everything_small();
    bench.write("secret", "x\n");
    bench.write("probe", "");
    for name in ["secret", "probe"] {
        std::fs::set_permissions(bench.path(name), Permissions::from_mode(0o000)).unwrap();
    }
    let command = bench.command(&["check"], "*** Delete File: small\n*** Delete File: secret\n");
    let said = say(&mut without_privileges(&command, &bench.path("probe")));
    is_bad(&said, 1, "permission denied for ");
    assert!(said.err.contains("secret") && !said.err.contains("small"), "{said:?}");
}

/// Runs a shell script in a tree of its own file system with these mount options, where `$2 patch apply $3` applies
/// the patch; `None` where nobody may mount anything.
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was not tested")]
fn mounted(options: &str, body: &str, script: &str) -> Option<Said> {
    let bench = Bench::new();
    let patch = bench.folder.path().join("patch");
    std::fs::write(&patch, wrapped(body)).unwrap();
    let script = format!(
        "mount -t tmpfs -o {options} tmpfs \"$1\" 2>/dev/null || exit; echo mounted; cd \"$1\"\n{script}"
    );
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]).arg(bench.path(""));
    let output = command.args([env!("CARGO_BIN_EXE_pintle")]).arg(&patch).output();
    let said = output.map(Said::from);
    match said {
        Ok(said) if said.out.starts_with("mounted\n") => Some(said),
        said => {
            assert!(std::env::var_os("CI").is_none(), "the gate runs where mounting is allowed: {said:?}");
            eprintln!("SKIPPED: no file system can be mounted here: {said:?}");
            None
        }
    }
}

const LIST: &str = "find . -printf '%P %y %m %s %l\\n' | sort";

#[test]
fn a_disk_that_fills_half_way_leaves_the_tree_as_it_was() {
    // There is room for every byte and not for every file: that shows only when files are made.
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
    let Some(said) = mounted("size=10m,nr_inodes=100", &body, &script) else { return };
    assert_eq!(said.out, "mounted\ncode 1\nsame\nx\ngone\nmoved\n203\ny\n", "{said:?}");
    assert!(said.err.contains("cannot be written, and no file is changed"), "{said:?}");
    assert!(said.err.contains("no storage space") || said.err.contains("No space left"), "{said:?}");
}

#[test]
fn a_part_of_the_tree_that_is_read_only_is_left_alone() {
    let body = "*** Update File: f\n@@\n-x\n+y\n*** Add File: deep/er/new\n+x\n*** Update File: closed/f\n@@\n-x\n+y\n";
    let script = format!(
        "mkdir closed && echo x >f && echo x >closed/f && mount --bind closed closed && mount -o remount,ro,bind closed
         {LIST} >\"$3.before\"; \"$2\" patch apply \"$3\"; echo \"code $?\"
         {LIST} | diff \"$3.before\" - && echo same"
    );
    let Some(said) = mounted("size=1m", body, &script) else { return };
    assert_eq!(said.out, "mounted\ncode 1\nsame\n", "{said:?}");
    assert!(said.err.contains("Read-only") && said.err.contains("no file is changed"), "{said:?}");
}
