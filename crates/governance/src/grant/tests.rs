//! Grants: their form, and that attenuated ones only narrow.

use std::path::Path;
use std::time::Duration;

use pintle_agent::Money;
use pintle_egress::HostPattern;
use pintle_test_conditions::cases;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::network::HostScope;

fn id(text: &str) -> GrantId {
    GrantId::new(text)
}

/// A grant with something on every axis.
fn workspace() -> Grant {
    let mut grant = Grant::none(id("root"));
    grant.tools = [Pattern::new("*_file"), Pattern::new("shell")].into();
    grant.arguments = vec![ArgumentScope::new(Pattern::new("shell"), "/command", [Pattern::new("cargo *")])];
    grant.reads = PathScope::within(["/w", "/usr"]).except(["/w/secret"]);
    grant.writes = PathScope::within(["/w"]).except(["/w/secret", "/w/.git"]);
    grant.effect = EffectCeiling::Execute;
    grant.environments = [Pattern::new("docker:*")].into();
    grant.budget = Limits::default().with_tokens(1_000).with_tool_calls(10);
    grant.window = Window::new(Some(Timestamp::from_millis(10)), Some(Timestamp::from_millis(20)));
    grant.delegation = Delegation::new(2, 3);
    grant
}

/// The largest grant that `workspace` can give.
fn child() -> Grant {
    let mut child = workspace();
    child.id = id("child");
    child.delegation.depth = 1;
    child
}

#[test]
fn a_grant_comes_back_from_json() {
    for grant in [workspace(), Grant::none(id("a")), Grant::all(id("b"))] {
        assert_eq!(Grant::parse(&grant.to_json()).unwrap(), grant);
    }
}

#[test]
fn other_forms_are_refused_with_what_was_expected() {
    let with = |name: &str, value: serde_json::Value| {
        let mut grant: serde_json::Value = serde_json::from_str(&workspace().to_json()).unwrap();
        grant[name] = value;
        Grant::parse(&grant.to_string()).unwrap_err()
    };
    let source = |error: GrantError| std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(with("version", json!(2)).to_string(), "the grant has version 2, expected 1");
    assert!(
        source(with("colour", json!(1))).starts_with("unknown field `colour`, expected one of `version`")
    );
    assert!(
        source(with("budget", json!({"token": 1})))
            .starts_with("unknown field `token`, expected one of `tokens`")
    );
    assert!(
        source(with("effect", json!("all"))).starts_with("unknown variant `all`, expected one of `read`")
    );
    for path in ["w", "/w/..", "/w/../x", "./w", ""] {
        let error = with("writes", json!({"roots": [path]})).to_string();
        assert!(error.starts_with(&format!("`{path}` in `writes` is not a canonical path")), "{error}");
    }
    let scope = json!([{"tool": "*", "pointer": "url", "allowed": []}]);
    assert_eq!(
        with("arguments", scope).to_string(),
        "`url` is not a JSON pointer: expected one such as `/url`"
    );
    assert!(matches!(Grant::parse("no grant"), Err(GrantError::Form(_))));
    assert!(matches!(Grant::parse("{}"), Err(GrantError::Form(_))));
}

#[test]
fn paths_are_judged_by_their_components() {
    let scope = PathScope::within(["/w", "/usr/lib"]).except(["/w/secret"]);
    for (path, expected) in [
        ("/w", true),
        ("/w/a/b", true),
        ("/work", false),
        ("/", false),
        ("/usr", false),
        ("/usr/lib/x", true),
        ("/w/secret", false),
        ("/w/secret/x", false),
        ("/w/secrets", true),
        ("/w/a/../../etc", false),
        ("w", false),
        ("/W", false),
    ] {
        assert_eq!(scope.contains(Path::new(path)), expected, "{path}");
    }
    assert!(PathScope::all().contains(Path::new("/etc/passwd")));
    assert!(!PathScope::none().contains(Path::new("/")));
}

#[test]
fn paths_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let path = |bytes: &[u8]| std::path::PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
    let scope = PathScope::within(["/w"]).except(["/w/\u{fffd}"]);
    assert!(scope.contains(&path(b"/w/\xff")), "it is another name than the one that is excluded");
    assert!(!scope.contains(&path(b"/w\xff")));
}

#[test]
fn a_child_has_its_ancestors() {
    let given = workspace().attenuate(child()).unwrap();
    assert_eq!(given.ancestors, [id("root")]);
    let mut below = given.clone();
    (below.id, below.delegation) = (id("below"), Delegation::default());
    let below = given.attenuate(below).unwrap();
    assert_eq!(below.ancestors, [id("root"), id("child")]);
    assert_eq!(workspace().exceeded_by(&below), None, "and is within all of them");
    // No grant is its own ancestor, and the last generation gives none.
    let mut again = child();
    again.id = id("root");
    assert_eq!(workspace().attenuate(again).unwrap_err().axis, Axis::Form);
    assert_eq!(below.attenuate(Grant::none(id("last"))).unwrap_err().axis, Axis::Arguments);
    let mut last = below.clone();
    last.id = id("last");
    assert_eq!(below.attenuate(last).unwrap_err().axis, Axis::Delegation);
}

#[test]
fn the_axis_that_widens_is_named() {
    type Change = fn(&mut Grant);
    let cases: [(Axis, Change); 22] = [
        (Axis::Form, |child| child.version = 2),
        (Axis::Form, |child| child.reads = PathScope::within(["/w/.."])),
        (Axis::Tools, |child| child.tools = [Pattern::any()].into()),
        (Axis::Arguments, |child| child.arguments.clear()),
        (Axis::Arguments, |child| child.arguments[0].tool = Pattern::new("shel")),
        (Axis::Arguments, |child| child.arguments[0].pointer = "/cmd".to_owned()),
        (Axis::Arguments, |child| child.arguments[0].allowed = [Pattern::new("cargo*")].into()),
        (Axis::Reads, |child| child.reads = PathScope::within(["/w", "/etc"]).except(["/w/secret"])),
        (Axis::Reads, |child| child.reads = PathScope::within(["/w"])),
        (Axis::Reads, |child| child.reads = PathScope::within(["/w/secret/x"])),
        (Axis::Reads, |child| child.reads = PathScope::within(["/"]).except(["/w/secret"])),
        (Axis::Writes, |child| child.writes = PathScope::within(["/w"]).except(["/w/secret", "/w/.git/x"])),
        (Axis::Network, |child| child.network = NetworkScope::All),
        (Axis::OutsideSandbox, |child| child.outside_sandbox = true),
        (Axis::Environments, |child| child.environments = [Pattern::new("local")].into()),
        (Axis::Budget, |child| child.budget.tokens = Some(1_001)),
        (Axis::Budget, |child| child.budget.tool_calls = None),
        (Axis::Window, |child| child.window.not_before = None),
        (Axis::Window, |child| child.window.not_after = Some(Timestamp::from_millis(21))),
        (Axis::Delegation, |child| child.delegation.depth = 2),
        (Axis::Delegation, |child| child.delegation.width = 4),
        (Axis::Session, |child| child.session = None),
    ];
    let mut parent = workspace();
    for (axis, change) in cases {
        let mut child = child();
        if axis == Axis::Session {
            parent.session = Some(SessionId::new("s"));
        }
        change(&mut child);
        assert_eq!(parent.attenuate(child).unwrap_err(), Attenuation { axis }, "{axis}");
    }
    parent.session = None;
    parent.effect = EffectCeiling::Write;
    assert_eq!(
        parent.attenuate(child()).unwrap_err().to_string(),
        "the grant exceeds its parent's grant: effect"
    );
    // The epoch is the parent's, whatever the child says; a grant that comes from elsewhere is compared.
    let mut other = workspace().attenuate(child()).unwrap();
    other.epoch = 1;
    assert_eq!(workspace().exceeded_by(&other), Some(Axis::Epoch));
}

#[test]
fn narrower_grants_are_given() {
    let changes: [fn(&mut Grant); 9] = [
        |_| {},
        |child| {
            let Grant { arguments, budget, window, .. } = workspace();
            *child = Grant { arguments, budget, window, ..Grant::none(GrantId::new("child")) };
        },
        |child| child.tools = [Pattern::new("read_file")].into(),
        |child| child.arguments[0].allowed = [Pattern::new("cargo test*")].into(),
        |child| child.arguments[0].tool = Pattern::any(),
        |child| child.writes = PathScope::within(["/w/src"]),
        |child| child.writes = PathScope::within(["/w"]).except(["/w/secret", "/w/.git", "/w/x"]),
        |child| child.budget.cost = Some(Money::from_micros(5)),
        |child| child.window.not_before = Some(Timestamp::from_millis(15)),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut child = child();
        change(&mut child);
        workspace().attenuate(child).unwrap_or_else(|error| panic!("{number}: {error}"));
    }
}

#[test]
fn names_of_other_toolsets_are_found() {
    let offered = ["Bash", "Read", "WebFetch", "own"].map(str::to_owned);
    for (tools, expected) in [
        (&["shell"][..], vec![("shell", "Bash")]),
        (
            &["exec_command", "read_file", "web_fetch"],
            vec![("exec_command", "Bash"), ("read_file", "Read"), ("web_fetch", "WebFetch")],
        ),
        (&["Bash", "Read"], vec![]),
        (&["shell", "Bash"], vec![]),
        (&["shell", "*"], vec![]),
        (&["sh*", "write_file", "other"], vec![]),
    ] {
        let mut grant = Grant::none(id("a"));
        grant.tools = tools.iter().map(|tool| Pattern::new(*tool)).collect();
        assert_eq!(grant.misnamed_tools(&offered).collect::<Vec<_>>(), expected, "{tools:?}");
    }
}

/// Properties of a call that a grant limits.
#[derive(Clone, Debug)]
struct Facts {
    tool: String,
    kind: String,
    value: String,
    path: String,
    effect: Effect,
    leaves_sandbox: bool,
    environment: String,
    at: i64,
    spent: u64,
}

/// Says independently of `attenuate` whether a grant allows something.
fn allows(grant: &Grant, facts: &Facts) -> bool {
    grant.allows_tool(&facts.tool)
        && grant.argument_objection((&facts.tool, &facts.kind), &json!({"v": facts.value}), false).is_none()
        && grant.effect.contains(facts.effect)
        && (facts.effect != Effect::Network || grant.network.is_any())
        && (!facts.leaves_sandbox || grant.outside_sandbox)
        && (facts.effect != Effect::Read || grant.reads.contains(Path::new(&facts.path)))
        && (facts.effect != Effect::Write || grant.writes.contains(Path::new(&facts.path)))
        && grant.allows_environment(&facts.environment)
        && grant.window.contains(Timestamp::from_millis(facts.at))
        && grant.budget.tokens.is_none_or(|limit| facts.spent <= limit)
        && grant.budget.wall_time.is_none_or(|limit| Duration::from_millis(facts.spent) <= limit)
}

/// Returns texts that match a regular expression. It is parsed once, unlike a literal, which is parsed for each value.
fn texts(regex: &str) -> impl Strategy<Value = String> + use<> {
    proptest::string::string_regex(regex).unwrap()
}

fn patterns() -> impl Strategy<Value = BTreeSet<Pattern>> {
    proptest::collection::btree_set(texts("[ab*]{0,3}").prop_map(Pattern::new), 0..4)
}

fn scopes() -> impl Strategy<Value = PathScope> {
    let path = || texts("(/[ab]){0,3}").prop_map(|path| if path.is_empty() { "/".to_owned() } else { path });
    let paths = move || proptest::collection::btree_set(path(), 0..3);
    (paths(), paths()).prop_map(|(roots, except)| PathScope { roots, except })
}

fn networks() -> impl Strategy<Value = NetworkScope> {
    let pattern =
        texts(r"(\*\.)?[ab]\.example(:443)?").prop_map(|pattern| pattern.parse::<HostPattern>().unwrap());
    let hosts = (proptest::collection::btree_set(pattern, 0..3))
        .prop_map(|allow| NetworkScope::Hosts(HostScope { allow, deny: BTreeSet::new() }));
    prop_oneof![Just(NetworkScope::None), hosts, Just(NetworkScope::All)]
}

fn moments() -> impl Strategy<Value = Option<Timestamp>> {
    proptest::option::of((0..6i64).prop_map(Timestamp::from_millis))
}

fn limits(tokens: Option<u64>, wall_time_ms: Option<u64>) -> Limits {
    let mut limits = Limits::default();
    (limits.tokens, limits.wall_time) = (tokens, wall_time_ms.map(Duration::from_millis));
    limits
}

prop_compose! {
    fn argument_scopes()(tool in texts("[ab*]{0,2}"), other in proptest::bool::ANY, allowed in patterns()) -> ArgumentScope {
        ArgumentScope::new(Pattern::new(tool), if other { "/w" } else { "/v" }, allowed)
    }
}

prop_compose! {
    fn grants(name: &'static str)(
        (tools, environments) in (patterns(), patterns()),
        arguments in proptest::collection::vec(argument_scopes(), 0..2),
        (reads, writes) in (scopes(), scopes()),
        effect in prop_oneof![Just(EffectCeiling::Read), Just(EffectCeiling::Write), Just(EffectCeiling::Execute)],
        (network, outside_sandbox) in (networks(), proptest::bool::ANY),
        (tokens, wall_time_ms) in (proptest::option::of(0..5u64), proptest::option::of(0..5u64)),
        window in (moments(), moments()).prop_map(|(start, end)| Window::new(start, end)),
        delegation in (0..4u32, 0..4u32).prop_map(|(depth, width)| Delegation::new(depth, width)),
    ) -> Grant {
        Grant {
            tools, environments, arguments, reads, writes, effect, network, outside_sandbox, window, delegation,
            budget: limits(tokens, wall_time_ms),
            ..Grant::none(id(name))
        }
    }
}

prop_compose! {
    fn facts()(
        (tool, kind) in (texts("[ab]{0,3}"), texts("[ab]{0,3}")),
        (value, environment) in (texts("[ab]{0,3}"), texts("[ab]{0,3}")),
        path in texts("(/[abc]){1,4}"),
        effect in prop_oneof![Just(Effect::Read), Just(Effect::Write), Just(Effect::Execute), Just(Effect::Network)],
        leaves_sandbox in proptest::bool::ANY,
        (at, spent) in (0..7i64, 0..6u64),
    ) -> Facts {
        Facts { tool, kind, value, path, effect, leaves_sandbox, environment, at, spent }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(500, 2_000)))]

    /// An accepted child allows nothing that its parent does not. Children of one field taken from another grant are
    /// accepted often enough to be judged.
    #[test]
    fn an_accepted_child_is_within_its_parent(
        parent in grants("parent"),
        other in grants("other"),
        field in 0..11usize,
        calls in proptest::collection::vec(facts(), 1..40),
    ) {
        let mut child = Grant { id: id("child"), ..parent.clone() };
        child.delegation.depth = parent.delegation.depth.saturating_sub(1);
        match field {
            0 => child.tools = other.tools,
            1 => child.arguments = other.arguments,
            2 => child.reads = other.reads,
            3 => child.writes = other.writes,
            4 => child.effect = other.effect,
            5 => child.network = other.network,
            6 => child.environments = other.environments,
            7 => child.budget = other.budget,
            8 => child.window = other.window,
            9 => child.outside_sandbox = other.outside_sandbox,
            _ => child = Grant { id: id("child"), ..other },
        }
        if let Ok(child) = parent.attenuate(child) {
            for call in calls {
                prop_assert!(!allows(&child, &call) || allows(&parent, &call), "{call:?} of {child:?}");
            }
            prop_assert!(child.delegation.depth < parent.delegation.depth);
        }
    }

    #[test]
    fn any_text_is_a_grant_or_is_refused(text in ".{0,200}") {
        let _ = Grant::parse(&text);
    }

    #[test]
    fn any_grant_comes_back(grant in grants("g")) {
        prop_assert_eq!(Grant::parse(&grant.to_json()).unwrap(), grant);
    }
}

/// A grant of a version without the field does not let commands leave the sandbox, and one without the permission can be
/// read by that version.
#[test]
fn commands_outside_of_the_sandbox_have_to_be_granted() {
    let without = Grant::none(id("g"));
    assert!(!without.outside_sandbox);
    assert!(!without.to_json().contains("outside_sandbox"));
    assert_eq!(Grant::parse(&without.to_json()).unwrap(), without);
    let all = Grant::all(id("g"));
    assert!(all.outside_sandbox && Grant::parse(&all.to_json()).unwrap().outside_sandbox);
}

/// A line is more than a pattern that it matches as text, if it is several commands.
#[test]
fn scopes_of_commands_are_not_widened_by_lines() {
    let with = |id: &str, pointer: &str, pattern: &str| {
        let mut grant = Grant::all(GrantId::new(id));
        grant.delegation = Delegation::new(if id == "g" { 1 } else { 0 }, 1);
        grant.arguments = vec![ArgumentScope::new(Pattern::new("shell"), pointer, [Pattern::new(pattern)])];
        grant
    };
    for (pointer, wide, narrow, is_within) in [
        ("/command", "ls*", "ls -l", true),
        ("/command", "ls*", "ls -*", true),
        ("/command", "ls*", "ls; rm x", false),
        ("/command", "ls*", "ls $(rm x)", false),
        ("/command", "ls*", "*", false),
        ("/command", "ls; rm x", "ls; rm x", true),
        ("/command", "*", "ls; rm x", true),
        ("/url", "ls*", "ls; rm x", true),
    ] {
        let found = with("g", pointer, wide).attenuate(with("child", pointer, narrow));
        let axis = found.err().map(|error| error.axis);
        assert_eq!(axis, (!is_within).then_some(Axis::Arguments), "{pointer} {wide} {narrow}");
    }
}
