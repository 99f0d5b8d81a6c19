//! Contracts of many tasks, from a directory or from a file of JSON lines.

use std::path::Path;

use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_host::failure::{Failure, FailureKind};
use pintle_host::process_env::{absolute, read_text};
use pintle_workflow::contract::{Contract, ModelPlans};

use crate::arguments::ContractArgs;
use crate::commands::task::new_task::{apply_terms, read_models};

/// Maximum number of problems in a message.
const MAX_PROBLEMS: usize = 20;

/// A contract as text, with its file and line for messages.
#[derive(Debug, PartialEq, Eq)]
struct ContractText {
    place: String,
    /// The text, or why it cannot be read.
    text: Result<String, String>,
    format: ContractFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContractFormat {
    /// A goal alone.
    Goal,
    Toml,
    Json,
}

/// Reads the contracts of a directory, in the order of its file names, or of a file of JSON lines. Other files of the
/// directory are ignored.
///
/// # Errors
///
/// All problems, each with its file and line. No task must be queued then.
pub(super) async fn read_contracts(
    source: &Path,
    terms: &ContractArgs,
    machine: &dyn ExecutionEnvironment,
) -> Result<Vec<Contract>, Failure> {
    let shown = source.display();
    let texts = match machine.list(&absolute(source)?).await {
        Ok(entries) => {
            let names = entries.iter().filter(|entry| !entry.is_dir).map(|entry| entry.name.as_path());
            read_directory(source, names)
        }
        Err(EnvError::NotADirectory { .. }) => {
            json_lines(&shown.to_string(), &read_text("file of tasks", source)?)
        }
        Err(error) => return Err(Failure::usage(format!("--from {shown} cannot be read")).caused_by(&error)),
    };
    if texts.is_empty() {
        let expected = "expected files `*.md` and `*.toml` in a directory, or lines of JSON";
        return Err(Failure::usage(format!("--from {shown} has no tasks: {expected}")));
    }
    parse_all(&texts, terms, &read_models(terms)?)
}

fn read_directory<'a>(directory: &Path, names: impl Iterator<Item = &'a Path>) -> Vec<ContractText> {
    let mut texts = Vec::new();
    for name in names {
        let format = match name.extension().and_then(|extension| extension.to_str()) {
            Some("md") => ContractFormat::Goal,
            Some("toml") => ContractFormat::Toml,
            Some(_) | None => continue,
        };
        let path = directory.join(name);
        let text = read_text("file of a task", &path).map_err(|failure| failure.message());
        texts.push(ContractText { place: path.display().to_string(), text, format });
    }
    texts
}

fn json_lines(file: &str, text: &str) -> Vec<ContractText> {
    let numbered = (1_usize..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let lines = numbered.map(|(number, line)| ContractText {
        place: format!("{file}, line {number}"),
        text: Ok(line.to_owned()),
        format: ContractFormat::Json,
    });
    lines.collect()
}

fn parse_all(
    texts: &[ContractText],
    terms: &ContractArgs,
    models: &ModelPlans,
) -> Result<Vec<Contract>, Failure> {
    let (mut contracts, mut problems) = (Vec::new(), Vec::new());
    for ContractText { place, text, format } in texts {
        let text = match text {
            Ok(text) => text,
            // It names the file.
            Err(problem) => {
                problems.push(problem.clone());
                continue;
            }
        };
        let parsed = match format {
            ContractFormat::Goal => Ok(Contract::new(text.trim())),
            ContractFormat::Toml => Contract::parse(text),
            ContractFormat::Json => Contract::parse_json(text),
        };
        let checked = parsed.and_then(|contract| {
            let contract = apply_terms(contract, terms, models);
            contract.check().map(|()| contract)
        });
        match checked {
            Ok(contract) => contracts.push(contract),
            Err(error) => problems.push(format!("{place}: {error}")),
        }
    }
    if problems.is_empty() {
        return Ok(contracts);
    }
    let (count, all) = (problems.len(), texts.len());
    if count > MAX_PROBLEMS {
        problems.truncate(MAX_PROBLEMS);
        problems.push(format!("and {} more", count - MAX_PROBLEMS));
    }
    let text = format!("no task is queued: {count} of {all} cannot be read\n{}", problems.join("\n"));
    Err(Failure::multi_line(FailureKind::Usage, &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(check: &[&str], candidates: Option<u8>) -> ContractArgs {
        let check = check.iter().map(|command| (*command).to_owned()).collect();
        ContractArgs { contract: None, check, candidates, models: None, changes: false }
    }

    #[test]
    fn lines_are_contracts_and_flags_fill_their_gaps() {
        let text = "{\"goal\": \"a\"}\n\n{\"goal\": \"b\", \"check\": [{\"name\": \"own\", \"command\": \"true\"}], \"attempts\": 3}\n";
        let texts = json_lines("t.jsonl", text);
        assert_eq!(
            texts.iter().map(|text| text.place.as_str()).collect::<Vec<_>>(),
            ["t.jsonl, line 1", "t.jsonl, line 3"]
        );
        let contracts = parse_all(&texts, &terms(&["make test"], Some(2)), &ModelPlans::default()).unwrap();
        let seen: Vec<_> = contracts
            .iter()
            .map(|contract| {
                let checks: Vec<&str> = contract.checks.iter().map(|check| check.command.as_str()).collect();
                (contract.goal.as_str(), checks, contract.candidates.len(), contract.attempts)
            })
            .collect();
        assert_eq!(seen, [("a", vec!["make test"], 2, 2), ("b", vec!["true"], 2, 3)]);
    }

    #[test]
    fn all_problems_have_their_places() {
        let mut texts = json_lines("t.jsonl", "{\"goal\": \"a\"}\n{\"goal\": 1}\n{\"goal\": \"\"}\n");
        texts.push(ContractText {
            place: "d/a.toml".to_owned(),
            text: Ok("goal = \"a\"\nbudgets = 1\n".to_owned()),
            format: ContractFormat::Toml,
        });
        let unreadable = "the file of a task d/b.md is not valid UTF-8 at byte 1";
        texts.push(ContractText {
            place: "d/b.md".to_owned(),
            text: Err(unreadable.to_owned()),
            format: ContractFormat::Goal,
        });
        let failure = parse_all(&texts, &terms(&[], None), &ModelPlans::default()).unwrap_err();
        assert_eq!(failure.message(), "no task is queued: 4 of 5 cannot be read");
        let details = failure.details();
        for expected in [
            "t.jsonl, line 2: ",
            "t.jsonl, line 3: the contract is wrong: goal",
            "d/a.toml: ",
            "line 2",
            unreadable,
        ] {
            assert!(details.contains(expected), "{expected}: {details}");
        }
        let many = json_lines("t", &"{}\n".repeat(MAX_PROBLEMS + 3));
        assert!(
            parse_all(&many, &terms(&[], None), &ModelPlans::default())
                .unwrap_err()
                .details()
                .ends_with("and 3 more\n")
        );
    }
}
