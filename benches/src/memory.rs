//! Memory of sessions, each measured in a separate process.
#![expect(clippy::disallowed_methods, reason = "runs this program again, to start with little memory")]

use std::{io, path::Path, process::Command, sync::Arc};

use pintle_agent::{ProviderProfile, Session};
use pintle_llm::Client;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::dialect::Dialect;
use crate::model::{Endpoint, ModelServer};
use crate::plan::Plan;
use crate::report::{Bound, Fact, Report};
use crate::sessions;
use crate::status::{memory, reset_peak};

/// Argument with which this program holds sessions and prints their memory.
pub(crate) const HOLD: &str = "hold";

const SESSIONS: usize = 1_000;
const SESSION_AIM: f64 = 200.0;
const HISTORY: usize = 20_000_000;
const HISTORY_AIM: f64 = 2.0;

const IDLE: &str = "1,000 idle sessions of one profile, prompted one after the other";
const AT_ONCE: &str = "1,000 idle sessions of one profile, all prompted at once";
const APART: &str = "1,000 idle sessions, each with its own profile";
const HELD: &str = "a history of 20 MB: resident memory relative to its size";
const PEAK: &str = "a history of 20 MB: peak while a request is sent";

/// Bytes of a long patch.
const PATCH: usize = 10_000_000;
const PATCH_AIM: f64 = 6.0;

/// Forms of a patch: the dialect, and whether the call is free-form.
const PATCHES: [(Dialect, bool); 5] = [
    (Dialect::Responses, true),
    (Dialect::Responses, false),
    (Dialect::Messages, false),
    (Dialect::Gemini, false),
    (Dialect::Chat, false),
];

pub(crate) fn run(wanted: &str) -> Report {
    let model = ModelServer::start(None);
    let hold = |what: &str, number: usize| hold(&model, what, number);
    let mut report = Report::default();
    for (name, how) in [(IDLE, "in-turn"), (AT_ONCE, "at-once"), (APART, "apart")] {
        if name.contains(wanted) {
            let each = (0..3).filter_map(|_| hold(how, SESSIONS).first().copied());
            let each = each.map(|bytes| bytes / 1_000.0 / count(SESSIONS)).collect();
            report.facts.push(Fact::new(name, "KB each", Bound::AtMost(SESSION_AIM), each));
        }
    }
    if HELD.contains(wanted) || PEAK.contains(wanted) {
        let runs: Vec<Vec<f64>> = (0..3).map(|_| hold("history", HISTORY)).collect();
        let ratios = |index: usize| {
            let bytes = runs.iter().filter_map(move |run| run.get(index).copied());
            bytes.map(|bytes| bytes / count(HISTORY)).collect()
        };
        report.facts.push(Fact::new(HELD, "×", Bound::AtMost(HISTORY_AIM), ratios(0)));
        report.facts.push(Fact::new(PEAK, "×", Bound::None, ratios(1)));
    }
    for (dialect, is_custom) in PATCHES {
        let form = if is_custom { ", free-form" } else { "" };
        let name = format!("{}: apply_patch of 10 MB{form}: peak relative to the patch size", dialect.name());
        if name.contains(wanted) {
            let what = format!("{}~{is_custom}", dialect.name());
            let peaks = (0..3).filter_map(|_| hold(&what, PATCH).get(1).copied());
            let ratios = peaks.map(|bytes| bytes / count(PATCH)).collect();
            report.facts.push(Fact::new(name, "×", Bound::AtMost(PATCH_AIM), ratios));
        }
    }
    report
}

/// Returns the numbers that the other process prints, in bytes.
fn hold(model: &ModelServer, what: &str, number: usize) -> Vec<f64> {
    let output = Command::new(std::env::current_exe().expect("this program has a file"))
        .args([HOLD, what, &number.to_string(), model.address()])
        .output()
        .expect("this program runs");
    assert!(output.status.success(), "holding fails: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| line.parse().ok()).collect()
}

/// Runs in the other process: prints the growth of resident memory.
pub(crate) fn print_growth(arguments: &[String]) -> io::Result<()> {
    let [what, number, address] = arguments else { return Err(io::ErrorKind::InvalidInput.into()) };
    let number: usize = number.parse().map_err(io::Error::other)?;
    let (name, directory) = (format!("hold-{}", std::process::id()), TempDir::new()?);
    let endpoint = Endpoint::at(address, &Plan::text(), &name);
    let runtime = crate::runtime();
    let mut factory = SessionFactory {
        client: sessions::client(&endpoint),
        profile: sessions::profile(),
        directory: directory.path().into(),
    };
    let patch = what.split_once('~').and_then(|(name, form)| Some((Dialect::of_name(name)?, form == "true")));
    if let Some((dialect, is_custom)) = patch {
        factory.profile = sessions::patching_profile(dialect, is_custom);
        // A short patch first, to initialize everything that is created once.
        let plan = |bytes: usize| Plan::Patch { dialect, bytes, is_custom };
        factory.client =
            sessions::client_of(dialect, &Endpoint::at(address, &plan(1), &format!("{name}-short")));
        drop(runtime.block_on(factory.clone().ask(0)));
        std::fs::remove_file(directory.path().join("long.txt"))?;
        factory.client = sessions::client_of(dialect, &Endpoint::at(address, &plan(number), &name));
    } else {
        // Initializes everything that the sessions share.
        drop(runtime.block_on(factory.clone().ask(0)));
    }
    let before = memory("VmRSS");
    let _ = reset_peak();
    let sessions = runtime.block_on(async {
        let mut sessions = Vec::new();
        match what.as_str() {
            _ if patch.is_some() => sessions.push(factory.ask(0).await),
            "history" => sessions.push(factory.ask(number).await),
            "at-once" => {
                let asking: JoinSet<Session> = (0..number).map(|_| factory.clone().ask(0)).collect();
                sessions = asking.join_all().await;
            }
            _ => {
                for _ in 0..number {
                    let mut factory = factory.clone();
                    if what == "apart" {
                        factory.profile = sessions::profile();
                    }
                    sessions.push(factory.ask(0).await);
                }
            }
        }
        sessions
    });
    let (after, peak) = (memory("VmRSS"), memory("VmHWM"));
    if patch.is_some() {
        let written = std::fs::metadata(directory.path().join("long.txt"))?.len();
        assert!(written > 9_000_000, "the patch was applied: {written}");
    }
    println!("{}\n{}", after.saturating_sub(before), peak.saturating_sub(before));
    drop(sessions);
    Ok(())
}

/// Creates sessions that share a client and a profile.
#[derive(Clone)]
struct SessionFactory {
    client: Client,
    profile: ProviderProfile,
    directory: Arc<Path>,
}

impl SessionFactory {
    /// Returns a session with `history` bytes of history that has completed one input.
    async fn ask(self, history: usize) -> Session {
        let environment = sessions::environment(&self.directory);
        let builder =
            Session::builder(self.client, self.profile, environment).with_config(sessions::config());
        let builder = if history > 0 { builder.start(sessions::history(history)) } else { builder };
        let session = builder.build().expect("it is complete");
        sessions::submit(&session, "Say hello.").await;
        session
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
