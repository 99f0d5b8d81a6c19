//! `pintle man`: manual pages.

use std::path::Path;

use clap::CommandFactory as _;
use clap_mangen::Man;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_tui::console::Console;

use crate::arguments::{Arguments, ManArgs};
use crate::exit::Exit;

/// Prints the manual page of the command or of a subcommand, or writes all pages to a directory.
pub(crate) async fn man(args: &ManArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let text = match &args.dir {
        Some(directory) => write_all(directory, process_env)?,
        None => page(&args.subcommand)?,
    };
    Console::new().write(&text).await?;
    Ok(Exit::Done)
}

/// Returns the definition of the command, in which each subcommand knows its whole name.
fn definition() -> clap::Command {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    command
}

/// Writes a page for the command and each of its subcommands, and returns a summary.
fn write_all(directory: &Path, process_env: &ProcessEnv) -> Result<String, Failure> {
    process_env.create_directory(directory)?;
    let failure = || format!("cannot write manual pages to {}", directory.display());
    let mut remaining = vec![definition()];
    let mut count = 0_usize;
    while let Some(command) = remaining.pop() {
        remaining.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
        Man::new(command).generate_to(directory).or_failed(&failure())?;
        count += 1;
    }
    Ok(format!("wrote {count} manual pages to {}\n", directory.display()))
}

/// Returns the page of a subcommand of a subcommand and so on, or of the command itself.
fn page(path: &[String]) -> Result<String, Failure> {
    let mut command = definition();
    for name in path {
        command = match command.find_subcommand(name) {
            Some(found) => found.clone(),
            None => return Err(unknown(&command, name)),
        };
    }
    let mut page = Vec::new();
    Man::new(command).render(&mut page).or_failed("cannot format the manual page")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn unknown(command: &clap::Command, name: &str) -> Failure {
    if cfg!(feature = "compat") && name == "exec" {
        return Failure::usage(
            "`pintle exec` has no manual page: it is for programs that start `codex exec`",
        )
        .with_hint("`pintle help exec` lists its options");
    }
    let parent = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let message = format!("`{parent}` has no subcommand `{name}`");
    if known.is_empty() {
        return Failure::usage(format!("{message}, and no others"));
    }
    Failure::usage(format!("{message}: expected one of {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use pintle_host::failure::FailureKind;

    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn each_subcommand_has_a_page() {
        for (line, title, flag) in [
            ("", ".TH pintle 1", "subcommands"),
            ("run", ".TH pintle-run 1", "max\\-turns"),
            ("sessions rewind", ".TH pintle-sessions-rewind 1", "dry\\-run"),
        ] {
            let page = page(&words(line)).unwrap();
            assert!(page.contains(title), "{line}: {page}");
            assert!(page.to_lowercase().contains(flag), "{line}: {page}");
        }
    }

    #[test]
    fn unknown_subcommand_is_a_usage_failure() {
        for (line, message) in [
            ("fly", "`pintle` has no subcommand `fly`: expected one of chat, run, "),
            ("sessions fly", "`pintle sessions` has no subcommand `fly`: expected one of "),
            ("run fly", "`pintle run` has no subcommand `fly`, and no others"),
        ] {
            let failure = page(&words(line)).unwrap_err();
            assert_eq!(failure.kind(), FailureKind::Usage);
            assert!(failure.message().starts_with(message), "{}", failure.message());
        }
    }

    #[test]
    fn all_pages_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let into = directory.path().join("man/man1");
        let said = write_all(&into, &ProcessEnv::from_variables([])).unwrap();
        let count = into.read_dir().unwrap().count();
        assert!(said.starts_with(&format!("wrote {count} manual pages to ")), "{said}");
        for name in ["pintle.1", "pintle-doctor.1", "pintle-login.1", "pintle-patch-apply.1"] {
            assert!(into.join(name).exists(), "{name}");
        }
    }
}
