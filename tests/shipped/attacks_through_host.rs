//! The attacks on governed sessions, against sessions that `Host::open` opens with the default settings.

#[path = "../../crates/governance/src/governed/tests/models_by_task.rs"]
mod models_by_task;
#[path = "../../crates/governance/src/governed/tests/attacks/table.rs"]
mod table;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use pintle::host::SessionSpec;
use pintle_agent::Toolset;
use pintle_governance::audit::{Audit, CallOutcome};
use pintle_governance::{ArgumentScope, Delegation, EffectCeiling, Grant, GrantId, Mode, PathScope, Pattern};

use self::models_by_task::ModelsByTask;
use self::table::{Attack, Guard, Scene, all};
use super::host_home::{Home, init_repository};
use super::worktrees::is_confined;
use crate::host_sessions::{accepts, refuses};

/// Number of concurrent sessions.
const AT_ONCE: usize = 4;

fn new_scene(home: &Home) -> Scene {
    let scene = Scene::new(home.directory());
    init_repository(&scene.work());
    // Git adds settings.
    std::fs::write(scene.at(".git/config"), "[core]\n").unwrap();
    scene
}

/// Returns the default settings, with the guard on or off. The calls of the table have the names of the toolset of the
/// specification.
fn settings(scene: &Scene, guard: Guard, is_on: bool, provider: &str) -> SessionSpec {
    let mut spec = SessionSpec::default();
    spec.model.provider = Some(provider.to_owned());
    spec.environment.dir = Some(scene.work());
    spec.tools.toolset = Toolset::Spec;
    spec.policy.mode = guard.mode();
    let texts = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    spec.policy.allow = texts(guard.allow(is_on));
    if is_on {
        spec.policy.deny = texts(guard.deny());
        spec.policy.grant = scene.grant(guard);
        spec.policy.read_before_write = guard == Guard::Unread;
        spec.policy.hidden = (guard == Guard::Hidden).then(|| scene.at("keys")).into_iter().collect();
    }
    spec
}

/// Makes an attack with its guard on or off. Returns the results of all calls, and the steps that denied some.
async fn run(home: &Home, scene: &Scene, attack: &Attack, is_on: bool) -> (String, Vec<String>) {
    let calls = (attack.calls)(scene);
    let provider = table::provider(&calls);
    let spec = settings(scene, attack.guard, is_on, provider);
    let approver = if attack.guard.refuses(is_on) { refuses() } else { accepts() };
    let (outcome, audits) = home.run(spec, scene.models(provider, &calls), approver).await;
    let (mut results, mut denied) = (String::new(), Vec::new());
    for audit in &audits {
        table::collect(audit, &mut results, &mut denied);
    }
    if outcome.error.is_some_and(|error| error.message.contains("changed the protected file")) {
        denied.push("protected_path_watch".to_owned());
    }
    (results, denied)
}

/// Makes an attack with its guard on. Returns the failures of the guard.
async fn failures(home: &Home, attack: &Attack) -> Vec<String> {
    let scene = new_scene(home);
    let (results, denied) = run(home, &scene, attack, true).await;
    let mut failures = Vec::new();
    if (attack.got)(&scene, &results) {
        failures.push(format!("{}: it succeeds: {results}", attack.name));
    }
    // At the level full, the sandbox refuses the change that the watch finds otherwise.
    let is_refused = attack.guard == Guard::Watch && pintle_test_conditions::BUBBLEWRAP.is_present();
    if !is_refused && !denied.iter().any(|step| step == attack.guard.step()) {
        failures.push(format!("{}: held by {denied:?}: {results}", attack.name));
    }
    failures
}

#[tokio::test(flavor = "multi_thread")]
async fn default_sessions_of_the_host_hold_each_attack() {
    if !is_confined() {
        return;
    }
    let home = Home::new();
    let attempts = iter(all()).map(|attack| failures(&home, attack)).buffer_unordered(AT_ONCE);
    let failures = attempts.collect::<Vec<_>>().await.concat();
    assert!(failures.is_empty(), "{} attacks: {failures:#?}", all().len());
}

/// Each guard that is a setting, and an attack that succeeds without the setting.
const SUCCESSFUL: &[(Guard, &str)] = &[
    (Guard::Grant, "`write_file` by an absolute path"),
    (Guard::NoCommands, "a command, granted only changes of files"),
    (Guard::LsArguments, "`ls; rm x`, granted `ls*`"),
    (Guard::NoSubagents, "a subagent, granted none"),
    (Guard::OnlyLs, "`rm x`"),
    (Guard::Exception, "`grep` above what a grant excepts"),
    (Guard::DenyRule, "`apply_patch` against a rule that denies `@write(src/**)`"),
    (Guard::DenyRead, "`grep` above what a rule denies to read"),
    (Guard::DenyLinked, "`read_file` through a link that a rule denies to read"),
    (Guard::LinkedException, "`read_file` through a link that a grant excepts"),
    (Guard::Person, "a response whose text pretends to be the user's approval"),
    (Guard::Hidden, "`read_file` of a key"),
    (Guard::Unread, "`apply_patch` of a file that the session has not read"),
];

/// Guards that no setting turns off: protected paths, the watch, and the depth of subagents.
const ALWAYS_ON: &[Guard] = &[Guard::Protected, Guard::Watch, Guard::OneLevel];

#[tokio::test(flavor = "multi_thread")]
async fn an_attack_on_a_default_session_succeeds_without_each_setting_that_guards() {
    if !is_confined() {
        return;
    }
    let is_listed = |guard: Guard| SUCCESSFUL.iter().any(|(listed, _)| *listed == guard);
    let missing: Vec<Guard> = all().iter().map(|attack| attack.guard).collect();
    let missing = missing.into_iter().filter(|guard| !is_listed(*guard) && !ALWAYS_ON.contains(guard));
    assert_eq!(missing.collect::<Vec<_>>(), []);
    let home = Home::new();
    for (guard, name) in SUCCESSFUL {
        let attack = all().into_iter().find(|attack| attack.name == *name).unwrap();
        assert_eq!(attack.guard, *guard, "{name}");
        let scene = new_scene(&home);
        let (results, denied) = run(&home, &scene, attack, false).await;
        assert!((attack.got)(&scene, &results), "{name}: {denied:?}: {results}");
    }
}
