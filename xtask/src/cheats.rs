//! `cargo xtask cheats`: cheats and their honest twins, as tasks of the built command with its default sandbox and with scripted
//! sessions.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process, test_homes,
};

/// Cases of the repository, from the root.
const OWN: &str = "tests/cheats";

/// Variable with further directories of cases, in the form of `PATH`.
const OTHERS: &str = "PINTLE_CHEATS";

/// Builds the command, and runs the cases of the repository and of the given directories.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let mut build = process::cargo(&metadata.workspace_root);
    process::run(build.args(["build", "--quiet", "--package", "pintle-cli", "--features", "full"]))?;
    let given: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    run_cases(metadata, &given)
}

/// Runs the cases of the repository, and those of the directories of the variable, with the built command.
pub(crate) fn run_with_built_program(metadata: &Metadata) -> Result<(), Failure> {
    run_cases(metadata, &[])
}

fn run_cases(metadata: &Metadata, given: &[PathBuf]) -> Result<(), Failure> {
    let home = test_homes::create(metadata)?.join(format!("cheats-{}", std::process::id()));
    let programs = home.join("bin");
    fs::create_dir_all(&programs).with_context(|| format!("cannot create `{}`", programs.display()))?;
    let outcome = run_in(metadata, given, &home, &programs);
    let removed = fs::remove_dir_all(&home).with_context(|| format!("cannot remove `{}`", home.display()));
    outcome.and(removed)
}

fn run_in(metadata: &Metadata, given: &[PathBuf], home: &Path, programs: &Path) -> Result<(), Failure> {
    let python = Path::new("/usr/bin/python3");
    if python.exists() {
        // Cases use the name without a number, which distributions leave out.
        std::os::unix::fs::symlink(python, programs.join("python")).context("cannot link `python`")?;
    }
    let others = std::env::var_os(OTHERS).unwrap_or_default();
    let others = std::env::split_paths(&others).filter(|path| !path.as_os_str().is_empty());
    let own = metadata.workspace_root.join(OWN);
    let path = search_path(programs)?;
    let mut failed = Vec::new();
    for (number, cases) in [own].into_iter().chain(given.iter().cloned()).chain(others).enumerate() {
        println!("cases of {}", cases.display());
        let mut command = Command::new(metadata.target_directory.join("debug/pintle"));
        command.args(["eval", "run"]).arg(&cases).args([
            "--agent",
            "task",
            "--jobs",
            "2",
            "--time-limit",
            "10m",
        ]);
        command.arg("--out").arg(home.join(format!("run-{number}")));
        command.current_dir(&metadata.workspace_root).env_clear().env("HOME", home).env("PATH", &path);
        if process::run(&mut command).is_err() {
            failed.push(cases.display().to_string());
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        _ => Err(Failure::new(format!("cases of {} have other ends than expected", failed.join(", ")))),
    }
}

/// Returns the search path of the user: the toolchain that runs this program, the programs of the system, which start faster than
/// those of version managers, and all others.
fn search_path(programs: &Path) -> Result<OsString, Failure> {
    let cargo = std::env::var_os("CARGO").map(PathBuf::from);
    let toolchain = cargo.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let system = ["/usr/bin", "/bin"].map(PathBuf::from);
    let all = std::env::var_os("PATH").unwrap_or_default();
    let directories = toolchain.into_iter().chain(system).chain([programs.to_path_buf()]);
    std::env::join_paths(directories.chain(std::env::split_paths(&all))).context("the search path is invalid")
}
