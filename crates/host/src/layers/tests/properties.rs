//! No layer below the user widens a session, and a resumed session follows every later restriction.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pintle_agent::Limits;
use pintle_governance::{EffectCeiling, Grant, GrantId, Mode, NetworkScope, Pattern, ScopedLimits};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::{REMEMBERED, layer};
use crate::layers::{Layer, LayerSpec, RequestClient, StoredSpec, merge};
use crate::spec::{Breadth, CountLimit, NetworkAccess, PartialSpec, SandboxLevel, SessionSpec};

/// Number of grants that [`grant`] returns.
const GRANTS: u64 = 4;

/// Returns one of several grants. Each is within the next one, except for the last two, which differ in both directions.
fn grant(number: u64) -> Grant {
    let mut grant = Grant::none(GrantId::new(format!("g{number}")));
    grant.effect = if number == 0 { EffectCeiling::Read } else { EffectCeiling::Execute };
    grant.network = if number == 2 { NetworkScope::All } else { NetworkScope::None };
    let tools: &[&str] = if number == 3 { &["read", "shell", "other"] } else { &["read", "shell"] };
    grant.tools = tools.iter().map(|name| Pattern::new(*name)).collect();
    grant.budget.tokens = Some(1_000 * (number + 1));
    grant
}

/// Each of the lists has a host that the other does not have.
fn networks() -> Vec<NetworkAccess> {
    let texts = ["off", "on", r#"{"allow":["*.example"]}"#, r#"{"allow":["a.example","b.test"]}"#];
    texts.map(|text| text.parse().unwrap()).to_vec()
}

fn levels() -> impl Strategy<Value = SandboxLevel> {
    select(vec![SandboxLevel::Full, SandboxLevel::Auto, SandboxLevel::Writes, SandboxLevel::Off])
}

fn budgets() -> impl Strategy<Value = ScopedLimits> {
    let budget = || {
        (option::of(1..5_u64), option::of(1..5_u64)).prop_map(|(tokens, calls)| {
            let mut budget = Limits::default();
            (budget.tokens, budget.tool_calls) = (tokens, calls);
            budget
        })
    };
    (budget(), budget(), budget()).prop_map(|(run, session, day)| {
        ScopedLimits::default().with_run(run).with_session(session).with_day(day)
    })
}

fn rules() -> impl Strategy<Value = Vec<String>> {
    subsequence(vec!["shell".to_owned(), "@write".to_owned(), "web_fetch".to_owned()], 0..=3)
}

fn paths() -> impl Strategy<Value = BTreeSet<PathBuf>> {
    let paths = ["/a", "/a/b", "/a/c", "/d"].map(PathBuf::from).to_vec();
    subsequence(paths, 0..=4).prop_map(|paths| paths.into_iter().collect())
}

/// Settings of the fields that allow or restrict something. Boxed, since a test with several exceeds the stack otherwise.
fn specs() -> BoxedStrategy<PartialSpec> {
    let modes = || option::of(select(Mode::ALL.to_vec()));
    let counts = || option::of((0..4_u64).prop_map(CountLimit));
    let environment = (
        option::of(levels()),
        option::of(select(networks())),
        option::of(any::<bool>()),
        option::of(paths()),
    );
    let policy =
        (modes(), modes(), rules(), rules(), paths(), option::of(0..GRANTS), option::of(any::<bool>()));
    let limits = (counts(), counts(), option::of(budgets()));
    (environment, policy, limits)
        .prop_map(|(environment, policy, limits)| {
            let mut spec = PartialSpec::default();
            (
                spec.environment.sandbox,
                spec.environment.network,
                spec.environment.confine,
                spec.environment.roots,
            ) = environment;
            let (mode, after_plan, allow, deny, hidden, number, read_before_write) = policy;
            (spec.policy.mode, spec.policy.after_plan) = (mode, after_plan);
            (spec.policy.allow, spec.policy.deny) = (allow, deny);
            spec.policy.hidden = hidden.into_iter().collect();
            spec.policy.grant = number.map(grant);
            spec.policy.read_before_write = read_before_write;
            (spec.limits.max_turns, spec.limits.max_tool_rounds, spec.limits.budget) = limits;
            spec
        })
        .boxed()
}

/// Layers of the user.
fn user_layers() -> BoxedStrategy<Vec<LayerSpec>> {
    (specs(), specs(), specs(), specs())
        .prop_map(|(file, profile, variables, flags)| {
            let layers = [
                (Layer::User, file),
                (Layer::UserProfile, profile),
                (Layer::Variables, variables),
                (Layer::CommandLine, flags),
            ];
            layers.into_iter().map(|(kind, spec)| layer(kind, |empty| *empty = spec)).collect()
        })
        .boxed()
}

/// Returns the fields in which `narrow` allows more than `wide`.
fn exceeded(narrow: &SessionSpec, wide: &SessionSpec) -> Vec<&'static str> {
    fn is_within<T: Breadth>(narrow: &T, wide: &T) -> bool {
        narrow.is_within(wide)
    }
    fn is_limited<T: Breadth>(narrow: Option<&T>, wide: Option<&T>) -> bool {
        wide.is_none_or(|wide| narrow.is_some_and(|narrow| narrow.is_within(wide)))
    }
    fn contains<T: PartialEq>(narrow: &[T], wide: &[T]) -> bool {
        wide.iter().all(|value| narrow.contains(value))
    }
    let (a, b) = (narrow, wide);
    let checks = [
        ("environment.sandbox", is_within(&a.environment.sandbox, &b.environment.sandbox)),
        ("environment.network", !a.environment.has_network() || b.environment.has_network()),
        ("environment.confine", is_within(&a.environment.confine, &b.environment.confine)),
        ("environment.roots", is_limited(a.environment.roots.as_ref(), b.environment.roots.as_ref())),
        ("policy.mode", is_within(&a.policy.mode, &b.policy.mode)),
        ("policy.after_plan", is_within(&a.policy.after_plan, &b.policy.after_plan)),
        ("policy.ask", contains(&a.policy.ask, &b.policy.ask)),
        ("policy.deny", contains(&a.policy.deny, &b.policy.deny)),
        ("policy.hidden", contains(&a.policy.hidden, &b.policy.hidden)),
        ("policy.grant", is_limited(a.policy.grant.as_ref(), b.policy.grant.as_ref())),
        ("policy.read_before_write", is_within(&a.policy.read_before_write, &b.policy.read_before_write)),
        ("limits.max_turns", is_within(&a.limits.max_turns, &b.limits.max_turns)),
        ("limits.max_tool_rounds", is_within(&a.limits.max_tool_rounds, &b.limits.max_tool_rounds)),
        ("limits.budget", is_within(&a.limits.budget, &b.limits.budget)),
        // Rules that allow calls are in the narrower specification only if they are in the wider one as well.
        ("policy.allow", contains(&b.policy.allow, &a.policy.allow)),
    ];
    checks.into_iter().filter(|(_, is_kept)| !is_kept).map(|(path, _)| path).collect()
}

/// Returns whether one of the layers sets a field.
fn is_set(layers: &[LayerSpec], path: &str) -> bool {
    layers.iter().any(|layer| layer.spec.is_set(path))
}

proptest! {
    /// A project that the user does not trust widens nothing, and neither does a client without the scope for approvals.
    #[test]
    fn untrusted_layers_widen_nothing(
        users in user_layers(),
        project in specs(),
        profile in specs(),
        request in specs(),
    ) {
        let alone = merge(users.clone()).unwrap();
        let untrusted = [
            layer(Layer::Project { trusted: false }, |empty| *empty = project),
            layer(Layer::ProjectProfile { trusted: false }, |empty| *empty = profile),
        ];
        let with_project = merge(users.iter().chain(&untrusted).cloned()).unwrap();
        prop_assert_eq!(exceeded(&with_project.spec, &alone.spec), Vec::<&str>::new());
        let client = Layer::Request { client: RequestClient::Http, can_approve: false };
        let client = layer(client, |empty| *empty = request);
        // Otherwise no session starts.
        if let Ok(merged) = merge(users.iter().chain(&untrusted).chain([&client]).cloned()) {
            prop_assert_eq!(exceeded(&merged.spec, &with_project.spec), Vec::<&str>::new());
        }
    }

    /// The values that a client may request apply, and the session is never wider than without the request.
    #[test]
    fn allowed_requests_are_applied(users in user_layers(), request in specs()) {
        let alone = merge(users.clone()).unwrap();
        let request = layer(Layer::Request { client: RequestClient::Http, can_approve: false }, |spec| {
            spec.policy.mode = request.policy.mode;
            spec.policy.deny = request.policy.deny;
            spec.policy.grant = request.policy.grant;
        });
        let mode = request.spec.policy.mode;
        match merge(users.iter().chain([&request]).cloned()) {
            Ok(merged) => {
                prop_assert_eq!(exceeded(&merged.spec, &alone.spec), Vec::<&str>::new());
                prop_assert_eq!(merged.spec.policy.mode, mode.unwrap_or(alone.spec.policy.mode));
            }
            Err(problems) => {
                let is_wider_mode = mode.is_some_and(|mode| mode.is_wider_than(alone.spec.policy.mode));
                let grant = (request.spec.policy.grant.as_ref(), alone.spec.policy.grant.as_ref());
                let is_wider_grant =
                    matches!(grant, (Some(requested), Some(own)) if !requested.is_within(own));
                prop_assert_eq!(problems.len(), usize::from(is_wider_mode) + usize::from(is_wider_grant));
            }
        }
    }

    /// A project that the user trusts, and a kept session, exceed no value that the user set. They may decide about the
    /// fields that the user left open.
    #[test]
    fn trusted_layers_exceed_no_value_of_the_user(
        users in user_layers(),
        project in specs(),
        profile in specs(),
        remembered in specs(),
    ) {
        let alone = merge(users.clone()).unwrap();
        let lower = [
            layer(Layer::Project { trusted: true }, |empty| *empty = project),
            layer(Layer::ProjectProfile { trusted: true }, |empty| *empty = profile),
            layer(REMEMBERED, |empty| {
                *empty = remembered;
                // A grant that is wider than the user's own one is refused.
                empty.policy.grant = None;
            }),
        ];
        for layers in [&lower[..], &lower[..2], &lower[2..]] {
            let merged = merge(users.iter().chain(layers).cloned()).unwrap();
            let exceeded = exceeded(&merged.spec, &alone.spec);
            let exceeded = exceeded.into_iter().filter(|path| *path != "policy.allow" && is_set(&users, path));
            prop_assert_eq!(exceeded.collect::<Vec<_>>(), Vec::<&str>::new());
        }
    }

    /// A session that is resumed follows the configuration of the user in every field that became tighter, and keeps the
    /// others. So does a fork of it.
    #[test]
    fn later_restrictions_apply_on_resume(then in specs(), flags in specs(), now in specs(), later in specs()) {
        let user = |spec: &PartialSpec| layer(Layer::User, |empty| *empty = spec.clone());
        let flags = layer(Layer::CommandLine, |empty| *empty = flags);
        let kept = StoredSpec::from_layers(&[user(&then), flags.clone()]);
        let resumed = merge([user(&now), kept.clone().into_layer()]).unwrap();
        prop_assert_eq!(unfollowed(&resumed.spec, &then, &now), Vec::<&str>::new());
        let fork = StoredSpec::from_layers(&[user(&now), kept.into_layer()]);
        let resumed = merge([user(&later), fork.into_layer()]).unwrap();
        prop_assert_eq!(unfollowed(&resumed.spec, &now, &later), Vec::<&str>::new());
    }

    /// Without a change of the configuration, a session resumes with the settings that it was started with.
    #[test]
    fn a_session_resumes_with_its_settings(user in specs(), flags in specs()) {
        let user = layer(Layer::User, |empty| *empty = user);
        let flags = layer(Layer::CommandLine, |empty| {
            *empty = flags;
            // These flags apply to one run.
            (empty.policy.allow, empty.policy.deny) = (Vec::new(), Vec::new());
            empty.policy.grant = None;
            (empty.environment.roots, empty.limits) = (None, Default::default());
        });
        let started = merge([user.clone(), flags.clone()]).unwrap();
        let kept = StoredSpec::from_layers(&[user.clone(), flags]);
        let resumed = merge([user, kept.into_layer()]).unwrap();
        prop_assert_eq!(resumed.spec, started.spec);
    }

    /// A session of a version that did not store the configuration exceeds no value of the current one.
    #[test]
    fn sessions_of_older_versions_exceed_nothing(remembered in specs(), now in specs()) {
        let user = layer(Layer::User, |empty| *empty = now.clone());
        let remembered = layer(REMEMBERED, |empty| {
            *empty = remembered;
            (empty.policy.allow, empty.policy.grant) = (Vec::new(), None);
        });
        let alone = merge([user.clone()]).unwrap();
        let resumed = merge([user, remembered]).unwrap();
        let exceeded = exceeded(&resumed.spec, &alone.spec);
        let exceeded = exceeded.into_iter().filter(|path| now.is_set(path));
        prop_assert_eq!(exceeded.collect::<Vec<_>>(), Vec::<&str>::new());
    }

    /// The order in which the layers are given has no influence.
    #[test]
    fn layers_have_one_order(users in user_layers(), project in specs()) {
        let project = layer(Layer::Project { trusted: true }, |empty| *empty = project);
        let layers: Vec<LayerSpec> = users.into_iter().chain([project]).collect();
        let reversed = layers.iter().rev().cloned().collect::<Vec<_>>();
        prop_assert_eq!(merge(layers), merge(reversed));
    }
}

/// Returns the fields of a resumed session that exceed the current configuration although it became tighter.
fn unfollowed(resumed: &SessionSpec, then: &PartialSpec, now: &PartialSpec) -> Vec<&'static str> {
    let (before, after) = (then.clone().resolve(), now.clone().resolve());
    let became_tighter = exceeded(&before, &after);
    let is_restriction = |path: &&'static str| {
        let is_new = !then.is_set(path);
        now.is_set(path) && (is_new || became_tighter.contains(path))
    };
    exceeded(resumed, &after)
        .into_iter()
        .filter(|path| *path != "policy.allow")
        .filter(is_restriction)
        .collect()
}
