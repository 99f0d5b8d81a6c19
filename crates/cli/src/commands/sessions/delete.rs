//! `pintle sessions delete` and `pintle sessions prune`.

use pintle_agent::{SessionId, Timestamp};
use pintle_host::env_spec::EnvironmentChoice;
use pintle_host::environment::{UnusedCaches, prune_caches};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_host::sessions::delete::{delete_empty, delete_unchecked, has_worktree, refuse_worktree};
use pintle_host::sessions::{SessionLocation, Sessions, now};
use pintle_store::{Page, PrunePolicy, PruneResult, Summary, prune};
use pintle_tui::console;
use pintle_tui::render;
use serde_json::json;

use super::list;
use crate::arguments::{DeleteArgs, ListFormat, PruneArgs};
use crate::exit::Exit;

pub(super) async fn delete(
    sessions: &Sessions,
    args: &DeleteArgs,
    process_env: &ProcessEnv,
) -> Result<Exit, Failure> {
    // All or nothing: a wrong id must not leave half of the work done.
    let mut ids = Vec::new();
    for prefix in &args.ids {
        let summary = sessions.find(prefix).await?;
        refuse_worktree(&summary, process_env)?;
        ids.push(summary.id);
    }
    for id in &ids {
        delete_unchecked(sessions, id).await?;
    }
    let text = match args.output {
        ListFormat::Json => {
            let ids: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
            json_line(&json!({"deleted": ids}))?
        }
        ListFormat::Text => ids.iter().map(|id| format!("deleted {id}\n")).collect(),
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

pub(super) async fn prune_old(
    sessions: &Sessions,
    args: &PruneArgs,
    process_env: &ProcessEnv,
) -> Result<Exit, Failure> {
    let mut policy = PrunePolicy::default();
    policy.older_than = args.older_than.map(|age| {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(now().as_millis().saturating_sub(age))
    });
    (policy.keep, policy.dry_run) = (args.keep, args.dry_run);
    let location = if args.all {
        None
    } else {
        Some(SessionLocation::from_choice(&EnvironmentChoice::here(), process_env)?)
    };
    policy.filter = location.as_ref().map(SessionLocation::filter).unwrap_or_default();
    // A worktree is never lost silently.
    let all = sessions.list(&policy.filter, &Page::default()).await?;
    let with_worktree = all.iter().filter(|summary| has_worktree(summary, process_env));
    policy.spared = with_worktree.map(|summary| summary.id.clone()).collect();
    let failed = "cannot delete old sessions";
    let mut pruned = prune(sessions.store(), &policy).await.or_failed(failed)?;
    policy.spared.extend(pruned.removed.iter().map(|summary| summary.id.clone()));
    let empty = delete_empty(sessions, &all, &policy).await.or_failed(failed)?;
    pruned.removed.extend(empty);
    let caches = prune_caches(args.dry_run, process_env)?;
    let caches: Vec<String> = caches.iter().map(caches_name).collect();
    let total = all.iter().filter(|summary| summary.is_session()).count();
    let text = match args.output {
        ListFormat::Json => {
            let ids = |summaries: &[Summary]| -> Vec<String> {
                summaries.iter().map(|summary| summary.id.to_string()).collect()
            };
            json_line(&json!({
                "dry_run": args.dry_run,
                "directory": location.as_ref().map(SessionLocation::directory),
                "sessions": total,
                "deleted": ids(&pruned.removed),
                "kept": ids(&pruned.kept),
                "swept": pruned.swept,
                "caches": caches,
            }))?
        }
        ListFormat::Text => {
            let verb = if args.dry_run { "would delete" } else { "deleted" };
            let scope = location.map_or_else(
                || "all directories".to_owned(),
                |location| sanitize(&location.to_string()).into_owned(),
            );
            let (count, total) = (pruned.removed.len(), render::plural(total as u64, "session"));
            lines(&pruned, &caches, verb) + &format!("{verb} {count} of {total} of {scope}\n")
        }
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Returns a line for each session and each cache.
fn lines(pruned: &PruneResult, caches: &[String], verb: &str) -> String {
    let mut text: String = pruned.removed.iter().map(|summary| line(verb, summary)).collect();
    text.extend(pruned.kept.iter().map(|summary| line("kept, since it is unfinished:", summary)));
    text.extend(caches.iter().map(|name| format!("{verb} the package caches of {}\n", sanitize(name))));
    text
}

/// Returns the workspace of caches, or their directory if it is not known.
fn caches_name(caches: &UnusedCaches) -> String {
    caches.workspace.as_ref().unwrap_or(&caches.directory).display().to_string()
}

fn line(what: &str, summary: &Summary) -> String {
    format!("{what} {}  {}\n", summary.id, sanitize(list::title_or_mark(&summary.title)))
}
