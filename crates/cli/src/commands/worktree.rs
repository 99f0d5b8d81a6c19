//! `pintle worktree`.

use std::collections::BTreeSet;

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_host::sessions::Sessions;
use pintle_host::sessions::worktree::{Worktree, WorktreeChanges};
use pintle_store::{Filter, Page, Summary};
use pintle_tui::console;
use pintle_tui::render;
use serde_json::{Map, Value, json};

use super::sessions::files;
use crate::arguments::{ListFormat, WorktreeArgs, WorktreeCommand};
use crate::exit::Exit;

/// Runs `pintle worktree`.
pub(crate) async fn worktree(args: WorktreeArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let report = match args.command {
        WorktreeCommand::List => list(&sessions, process_env).await?,
        WorktreeCommand::Diff { id } => {
            let worktree = find(&sessions, &id, process_env).await?;
            let changes = worktree.changes(process_env).await?;
            return print_diff(&worktree, &changes, args.output).await;
        }
        WorktreeCommand::Merge { id } => {
            let worktree = find(&sessions, &id, process_env).await?;
            not_running(&sessions, &worktree).await?;
            merge(&worktree, process_env).await?
        }
        WorktreeCommand::Drop { id, force } => {
            let worktree = find(&sessions, &id, process_env).await?;
            not_running(&sessions, &worktree).await?;
            drop_worktree(&worktree, force, process_env).await?
        }
    };
    let text = match args.output {
        ListFormat::Json => json_line(&report.json)?,
        ListFormat::Text => report.text,
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Output of a subcommand, in both formats.
struct WorktreeOutput {
    text: String,
    json: Value,
}

/// Prints the changes, byte by byte unless standard output is a terminal.
async fn print_diff(
    worktree: &Worktree,
    changes: &WorktreeChanges,
    output: ListFormat,
) -> Result<Exit, Failure> {
    for name in &changes.repositories {
        files::notify_left_out(name);
    }
    match output {
        ListFormat::Json => {
            let json = json!({
                "id": worktree.session.as_str(),
                "files": changes.files,
                "not_in_patch": changes.repositories,
                "commits": changes.commits,
                "patch": String::from_utf8_lossy(&changes.patch),
            });
            console::print_patch(json_line(&json)?.as_bytes()).await?;
        }
        ListFormat::Text => console::print_patch(&changes.patch).await?,
    }
    Ok(Exit::Done)
}

async fn merge(worktree: &Worktree, process_env: &ProcessEnv) -> Result<WorktreeOutput, Failure> {
    let changes = worktree.changes(process_env).await?;
    let merged = worktree.merge(&changes, process_env).await?;
    let repository = merged.repository.display().to_string();
    let mut text: String = changes.files.iter().map(|file| format!("{file}\n")).collect();
    let files = render::plural(changes.files.len() as u64, "file");
    text.push_str(&format!("merged {files} into {repository}\n"));
    match &merged.branch {
        Some(branch) if changes.commits > 0 => {
            text.push_str(&format!(
                "branch {} has {} of the session\n",
                sanitize(branch),
                render::plural(changes.commits, "commit")
            ));
        }
        Some(branch) => text.push_str(&branch_stays(branch)),
        None => {}
    }
    text.push_str(&describe_removed_files(&changes.ignored));
    let json = json!({
        "id": worktree.session.as_str(),
        "files": changes.files,
        "commits": changes.commits,
        "repository": repository,
        "branch": merged.branch,
        "ignored_files": changes.ignored.len(),
    });
    Ok(WorktreeOutput { text, json })
}

/// Returns the notice about ignored files, which are not merged. It names the topmost directories, in order.
fn describe_removed_files(ignored: &[String]) -> String {
    const MAX_NAMES: usize = 5;
    if ignored.is_empty() {
        return String::new();
    }
    let tops: BTreeSet<String> = ignored
        .iter()
        .map(|name| name.split_once('/').map_or_else(|| name.clone(), |(top, _)| format!("{top}/")))
        .collect();
    let mut names: Vec<String> =
        tops.iter().take(MAX_NAMES).map(|name| sanitize(name).into_owned()).collect();
    if tops.len() > MAX_NAMES {
        names.push("…".to_owned());
    }
    let count = render::plural(ignored.len() as u64, "ignored file");
    format!("removed {count} with the worktree: {}\n", names.join(", "))
}

fn branch_stays(branch: &str) -> String {
    format!("the branch {}, which the session checked out, stays\n", sanitize(branch))
}

async fn drop_worktree(
    worktree: &Worktree,
    force: bool,
    process_env: &ProcessEnv,
) -> Result<WorktreeOutput, Failure> {
    let files = match worktree.changes(process_env).await {
        Ok(changes) if !changes.is_empty() && !force => {
            return Err(unmerged(worktree, &changes));
        }
        Ok(changes) => changes.files,
        // Whatever is in a worktree that git cannot read, it is to be removed.
        Err(_) if force => Vec::new(),
        Err(failure) => return Err(failure.with_hint("`drop --force` removes the worktree")),
    };
    let branch = worktree.other_branch(process_env).await.ok().flatten();
    worktree.remove(process_env).await?;
    let root = worktree.root.display().to_string();
    let json = json!({ "id": worktree.session.as_str(), "dropped": root, "files": files, "branch": branch });
    let branch = branch.as_deref().map(branch_stays).unwrap_or_default();
    Ok(WorktreeOutput { text: format!("dropped {root}\n{branch}"), json })
}

/// Returns the failure of a removal that would lose changes.
fn unmerged(worktree: &Worktree, changes: &WorktreeChanges) -> Failure {
    let mut what = render::plural(changes.files.len() as u64, "changed file");
    if changes.commits > 0 {
        what.push_str(&format!(" and {}", render::plural(changes.commits, "commit")));
    }
    let count = (changes.files.len() as u64).saturating_add(changes.commits);
    let were = if count == 1 { "was" } else { "were" };
    let message = format!("the worktree of session {} has {what} that {were} not merged", worktree.session);
    if changes.repositories.is_empty() {
        let hint = "`pintle worktree merge` merges all changes, and `drop --force` deletes them";
        return Failure::usage(message).with_hint(hint);
    }
    let names = changes.repositories.join(", ");
    Failure::usage(format!("{message}; not in the patch: {}", sanitize(&names)))
        .with_hint(&format!("to merge, {}", worktree.repositories_remedy()))
        .with_hint("`drop --force` deletes everything")
}

async fn find(sessions: &Sessions, id: &str, process_env: &ProcessEnv) -> Result<Worktree, Failure> {
    const HINT: &str = "`pintle worktree list` shows the sessions with a worktree";
    let summary = sessions.find(id).await.map_err(|failure| failure.with_hint(HINT))?;
    match Worktree::from_summary(&summary) {
        Some(worktree) if worktree.exists(process_env) => Ok(worktree),
        Some(worktree) => Err(worktree.missing_failure(process_env).with_hint(HINT)),
        None => Err(Failure::usage(format!("session {} has no worktree", summary.id)).with_hint(HINT)),
    }
}

async fn not_running(sessions: &Sessions, worktree: &Worktree) -> Result<(), Failure> {
    let holder = sessions.store().holder(&worktree.session).await.or_failed("cannot inspect the session")?;
    match holder {
        Some(holder) => Err(Failure::usage(format!("session {} is running ({holder})", worktree.session))),
        None => Ok(()),
    }
}

async fn list(sessions: &Sessions, process_env: &ProcessEnv) -> Result<WorktreeOutput, Failure> {
    let all = sessions.list(&Filter::default(), &Page::default()).await?;
    let with_worktree =
        all.iter().filter_map(|summary: &Summary| Some((summary, Worktree::from_summary(summary)?)));
    let mut rows = Vec::new();
    let mut text = String::new();
    for (summary, worktree) in with_worktree.filter(|(_, worktree)| worktree.exists(process_env)) {
        let (root, repository) =
            (worktree.root.display().to_string(), worktree.repository.display().to_string());
        let (found, mut row) = match worktree.changes(process_env).await {
            Ok(changes) => (
                format!(
                    "{:>10}  {:>11}",
                    render::plural(changes.files.len() as u64, "file"),
                    render::plural(changes.commits, "commit")
                ),
                Map::from_iter([
                    ("files".to_owned(), json!(changes.files)),
                    ("commits".to_owned(), json!(changes.commits)),
                ]),
            ),
            // The other worktrees are still listed.
            Err(failure) => (
                format!("cannot be read: {}", sanitize(&failure.message().replace('\n', " "))),
                Map::from_iter([("error".to_owned(), json!(failure.message()))]),
            ),
        };
        row.extend([
            ("id".to_owned(), json!(summary.id.as_str())),
            ("title".to_owned(), json!(summary.title)),
            ("directory".to_owned(), json!(root)),
            ("repository".to_owned(), json!(repository)),
        ]);
        text.push_str(&format!(
            "{}  {found}  {}  {}\n",
            summary.id,
            sanitize(&repository),
            sanitize(&summary.title)
        ));
        rows.push(Value::Object(row));
    }
    if rows.is_empty() {
        text.push_str("no worktrees\n");
    }
    Ok(WorktreeOutput { text, json: Value::Array(rows) })
}

#[cfg(test)]
mod tests {
    use super::describe_removed_files;

    #[test]
    fn ignored_files_are_named_by_their_topmost_directory() {
        for (names, expected) in [
            (&[][..], ""),
            (&["a.log"][..], "removed 1 ignored file with the worktree: a.log\n"),
            (
                &["target/a", "target/b/c", ".env"][..],
                "removed 3 ignored files with the worktree: .env, target/\n",
            ),
            (
                &["1", "2", "3", "4", "5", "6"][..],
                "removed 6 ignored files with the worktree: 1, 2, 3, 4, 5, …\n",
            ),
        ] {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(describe_removed_files(&names), expected);
        }
    }
}
