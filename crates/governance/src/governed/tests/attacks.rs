//! Ways to do what was not granted, against whole sessions with a real directory. With its guard off each succeeds. With
//! its guard on it does not, and the record contains the step that held it.
#![expect(clippy::disallowed_methods, reason = "fixtures and effects are files")]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most outcomes of calls and most guards are of no interest"
)]

// With the attribute, the modules of the table are beside it, as for the workspace tests.
#[path = "attacks/table.rs"]
mod table;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Decision, JsonLines, ProviderProfile, SessionConfig};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_tools::gate::ReadBeforeWrite;

use self::table::{Attack, Guard, Scene, all};
use super::models_by_task::ModelsByTask;
use super::*;
use crate::audit::{Audit, CallOutcome};
use crate::grant::{ArgumentScope, Delegation, EffectCeiling, GrantId};
use crate::mode::Mode;
use crate::rules::Rules;
use crate::{PathScope, Pattern};

/// An approver that refuses everything.
#[derive(Debug)]
struct Refuses;

#[async_trait]
impl Approver for Refuses {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        Decision::Deny { reason: None }
    }
}

fn new_scene() -> Scene {
    Scene::new(tempfile::tempdir().unwrap())
}

/// Returns the mode and the rules of an attack on `guard`, which is on or off.
fn policy(scene: &Scene, guard: Guard, is_on: bool) -> Policy {
    let deny: &[&str] = if is_on { guard.deny() } else { &[] };
    // TOML has the same form of lists.
    let rules = format!("allow = {:?}\ndeny = {deny:?}\n", guard.allow(is_on));
    let work = scene.work();
    Policy::new(guard.mode(), Rules::parse("rules.toml", &rules, &work).unwrap(), &work)
}

/// Runs the session of an attack with its guard on or off. Returns the results of all its calls, and the steps that denied
/// some.
async fn run(scene: &Scene, attack: &Attack, is_on: bool) -> (String, Vec<String>) {
    let without = match (attack.guard, is_on) {
        (Guard::Protected, false) => Some(GatePosition::Protected),
        (Guard::Watch, false) => Some(GatePosition::Watch),
        (_, _) => None,
    };
    run_without(scene, attack, is_on, without).await
}

/// Runs the session of an attack without the gates of a position.
async fn run_without(
    scene: &Scene,
    attack: &Attack,
    is_on: bool,
    without: Option<GatePosition>,
) -> (String, Vec<String>) {
    let calls = (attack.calls)(scene);
    let provider = table::provider(&calls);
    let profile = match provider {
        "openai" => ProviderProfile::openai("gpt-5.4"),
        "gemini" => ProviderProfile::gemini("gemini-3-pro-preview"),
        _ => ProviderProfile::anthropic("claude-opus-4-6"),
    };
    let client = Client::builder().provider(scene.models(provider, &calls)).build().unwrap();
    let variables = [("PATH", "/usr/bin:/bin")].map(|(name, value)| (name.into(), value.into()));
    let env = Arc::new(LocalEnvironment::with_host_env(scene.work(), variables).unwrap());
    let config = SessionConfig::default().with_max_subagent_depth(3);
    let session =
        Session::builder(client, profile, Arc::clone(&env) as Arc<dyn pintle_env::ExecutionEnvironment>)
            .with_config(config)
            .record(true);
    let grant = if is_on { scene.grant(attack.guard) } else { None };
    let journal = scene.at("../journal");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(journal).unwrap();
    let builder = GovernedSession::builder(session)
        .grant(grant.unwrap_or_else(|| Grant::all(GrantId::new("g"))), "local")
        .journal(JsonLines::new(file))
        .principal(Principal::new("jan"))
        .policy(policy(scene, attack.guard, is_on));
    let builder =
        if attack.guard.refuses(is_on) { builder.approver(Refuses) } else { builder.approver(Approves) };
    let hides = is_on && attack.guard == Guard::Hidden;
    let workspace = WorkspacePolicy::new().with_hidden(hides.then(|| scene.at("keys")));
    let mut builder = builder.workspace(workspace);
    if is_on && attack.guard == Guard::Unread {
        builder = builder.gate(GatePosition::ReadBeforeWrite, ReadBeforeWrite::new(env));
    }
    builder.without = without;
    let session = builder.start().await.unwrap();
    let outcome = session.submit("go").await.or_else(pintle_agent::RunError::into_outcome).unwrap();
    let mut text = results(&session);
    let mut denied = Vec::new();
    if outcome.error.is_some_and(|error| error.message.contains("changed the protected file")) {
        denied.push("protected_path_watch".to_owned());
    }
    for record in session.tree_records().unwrap() {
        table::collect(&Audit::of_record(&record).unwrap(), &mut text, &mut denied);
    }
    session.close().await;
    (text, denied)
}

fn results(session: &Session) -> String {
    let history = session.history();
    history.iter().flat_map(|turn| turn.item.results()).map(|result| result.text() + "\n").collect()
}

#[tokio::test]
async fn whole_sessions_hold_what_was_not_granted() {
    let mut wrong = Vec::new();
    for attack in all() {
        let scene = new_scene();
        let (results, _) = run(&scene, attack, false).await;
        if !(attack.got)(&scene, &results) {
            wrong.push(format!("{}: without the guard it does not succeed: {results}", attack.name));
        }
        let scene = new_scene();
        let (results, denied) = run(&scene, attack, true).await;
        if (attack.got)(&scene, &results) {
            wrong.push(format!("{}: it succeeds: {results}", attack.name));
        }
        if !denied.iter().any(|step| step == attack.guard.step()) {
            wrong.push(format!("{}: held by {denied:?}: {results}", attack.name));
        }
    }
    assert!(wrong.is_empty(), "{} attacks: {wrong:#?}", all().len());
}

/// An attack that the gate of each position holds.
const HELD_BY_POSITION: &[(GatePosition, &str)] = &[
    (GatePosition::Grant, "`write_file` by an absolute path"),
    (GatePosition::Hidden, "`read_file` of a key"),
    (GatePosition::Protected, "`write_file` of a hook of git"),
    (GatePosition::ReadBeforeWrite, "`apply_patch` of a file that the session has not read"),
    (GatePosition::Policy, "`rm x`"),
    (GatePosition::Watch, "a command that sets a program of git, and another that runs it"),
];

#[tokio::test]
async fn an_attack_succeeds_without_the_gate_of_any_position() {
    let positions: Vec<GatePosition> = HELD_BY_POSITION.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, GatePosition::ORDER);
    for (position, name) in HELD_BY_POSITION {
        let attack = all().into_iter().find(|attack| attack.name == *name).unwrap();
        for (without, succeeds) in [(Some(*position), true), (None, false)] {
            let scene = new_scene();
            let (results, denied) = run_without(&scene, attack, true, without).await;
            let got = (attack.got)(&scene, &results);
            assert_eq!(got, succeeds, "{name} without {without:?}: {denied:?}: {results}");
        }
    }
}

/// The page on attacks lists these, with the step that holds each, and no others.
#[test]
fn the_page_on_attacks_has_those_on_sessions() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/project/attacks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |attack: &&Attack| {
        let name = attack.name.replace('|', "\\|");
        format!("| {name} | {} | `whole_sessions_hold_what_was_not_granted` |", attack.guard.step())
    };
    let rows: Vec<String> = all().iter().map(row).collect();
    let missing: Vec<&String> =
        rows.iter().filter(|row| !page.lines().any(|line| line == row.as_str())).collect();
    let listed = page.lines().filter(|line| line.ends_with("| `whole_sessions_hold_what_was_not_granted` |"));
    assert!(missing.is_empty() && listed.count() == rows.len(), "{missing:#?}");
}
