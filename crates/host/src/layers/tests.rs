//! Rules of each layer and of each way to combine values.

mod each_field;
mod properties;

use std::path::PathBuf;
use std::time::Duration;

use pintle_agent::Limits;
use pintle_governance::{Grant, GrantId, Mode, ScopedLimits};
use serde_json::json;

use super::*;
use crate::spec::{BaseUrl, Combine, CountLimit, NetworkAccess, ProfileRef, SandboxLevel, ServerDeclaration};

const TRUSTED: Layer = Layer::Project { trusted: true };
const UNTRUSTED: Layer = Layer::Project { trusted: false };
const CLIENT: Layer = Layer::Request { client: RequestClient::Http, can_approve: false };
const APPROVER: Layer = Layer::Request { client: RequestClient::Http, can_approve: true };
const EDITOR: Layer = Layer::Request { client: RequestClient::Editor, can_approve: true };

/// Settings remembered from a version that did not store the configuration of the user.
const REMEMBERED: Layer = Layer::Remembered { user: None };

/// Returns a layer with the settings that a function sets.
fn layer(layer: Layer, set: impl FnOnce(&mut PartialSpec)) -> LayerSpec {
    let mut spec = PartialSpec::default();
    set(&mut spec);
    let name = format!("{layer:?}");
    LayerSpec::new(layer, spec, ValueOrigin::Flag(name))
}

fn mode(kind: Layer, mode: Mode) -> LayerSpec {
    layer(kind, |spec| spec.policy.mode = Some(mode))
}

#[test]
fn every_field_has_one_row() {
    let declared: Vec<(&str, Combine)> = SessionSpec::FIELDS.to_vec();
    let rows: Vec<(&str, Combine)> = FIELDS.iter().map(|row| (row.path, row.combine)).collect();
    assert_eq!(declared, rows);
}

#[test]
fn every_name_is_in_one_row() {
    let names = |of: fn(&FieldRow) -> Vec<String>| {
        let mut names: Vec<String> = FIELDS.iter().flat_map(of).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
        names
    };
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let keys = names(|row| row.key.map(str::to_owned).into_iter().collect());
    assert_eq!(
        keys,
        owned(&[
            "after_plan",
            "base_url",
            "catalog",
            "compact_at",
            "confine",
            "max_tool_rounds",
            "max_turns",
            "mode",
            "model",
            "network",
            "profile",
            "provider",
            "read_before_write",
            "reasoning_effort",
            "sandbox",
            "timeout",
            "toolset",
            "wait_approval",
        ])
    );
    let flags = names(|row| row.flags.iter().map(|flag| (*flag).to_owned()).collect());
    for key in &keys {
        assert!(flags.contains(&key.replace('_', "-")), "{key}");
    }
    let others = flags.into_iter().filter(|flag| !keys.contains(&flag.replace('-', "_")));
    assert_eq!(
        others.collect::<Vec<_>>(),
        owned(&[
            "allow",
            "at-limit",
            "budget",
            "deny",
            "dialect",
            "dir",
            "env",
            "grant",
            "max-calls",
            "max-cost",
            "max-time",
            "max-tokens",
            "mcp-config",
            "no-mcp",
            "no-sandbox",
            "no-session",
            "root",
            "script",
            "unknown-price",
            "worktree",
        ])
    );
    let http = names(|row| row.http.map(|field| field.name.to_owned()).into_iter().collect());
    let expected =
        ["directory", "effort", "environment", "grant", "mode", "model", "rules.allow", "rules.deny"];
    assert_eq!(http, expected);
    let acp = names(|row| row.acp.map(str::to_owned).into_iter().collect());
    assert_eq!(acp, ["cwd", "mcpServers", "mode", "model", "reasoning_effort"]);
    names(|row| row.sdk.iter().map(|option| (*option).to_owned()).collect());
    let variables = names(|row| {
        row.variable().into_iter().chain(row.variables.iter().map(|name| (*name).to_owned())).collect()
    });
    assert!(variables.contains(&"PINTLE_BASE_URL".to_owned()) && variables.len() == keys.len() + 3);
}

#[test]
fn the_strongest_layer_replaces() {
    let name = |kind: Layer, name: &str| {
        let name = name.to_owned();
        layer(kind, |spec| spec.model.reasoning_effort = Some(name))
    };
    let layers = [
        name(APPROVER, "request"),
        name(Layer::CommandLine, "flag"),
        name(REMEMBERED, "kept"),
        name(Layer::Variables, "variable"),
        name(Layer::ProjectProfile { trusted: true }, "project profile"),
        name(TRUSTED, "project"),
        name(Layer::UserProfile, "profile"),
        name(Layer::User, "user"),
        name(Layer::Default, "default"),
    ];
    for (position, strongest) in layers.iter().enumerate() {
        let merged = merge(layers[position..].to_vec()).unwrap();
        assert_eq!(merged.spec.model.reasoning_effort, strongest.spec.model.reasoning_effort);
        assert_eq!(*merged.origin("model.reasoning_effort"), strongest.origin);
    }
    let merged = merge([]).unwrap();
    assert_eq!((merged.spec, merged.origins.len()), (SessionSpec::default(), 0));
}

#[test]
fn lists_of_all_layers_are_appended() {
    let deny = |kind: Layer, rules: &[&str]| {
        let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        layer(kind, |spec| spec.policy.deny = rules)
    };
    let layers = [
        deny(CLIENT, &["c", "b"]),
        deny(Layer::CommandLine, &["f"]),
        deny(REMEMBERED, &["r"]),
        deny(UNTRUSTED, &["b", "p"]),
        deny(Layer::User, &["a", "b"]),
    ];
    let merged = merge(layers.clone()).unwrap();
    assert_eq!(merged.spec.policy.deny, ["a", "b", "p", "r", "f", "c"]);
    let origins = [4, 4, 3, 2, 1, 0].map(|index: usize| layers[index].origin.clone());
    assert_eq!(merged.origins["policy.deny"], origins);
}

#[test]
fn layers_below_the_user_are_bounded_by_the_user() {
    use Mode::{Ask, Auto, Edit, Plan};
    for (layers, expected, is_bounded) in [
        (vec![mode(Layer::User, Plan)], Plan, false),
        (vec![mode(Layer::User, Auto), mode(TRUSTED, Ask)], Ask, false),
        (vec![mode(Layer::User, Ask), mode(TRUSTED, Auto)], Ask, true),
        (vec![mode(TRUSTED, Edit)], Edit, false),
        (vec![mode(Layer::Default, Edit), mode(TRUSTED, Auto)], Auto, false),
        // Stronger layers of the user override the project in both directions.
        (vec![mode(TRUSTED, Plan), mode(Layer::Variables, Edit)], Edit, false),
        (vec![mode(TRUSTED, Plan), mode(Layer::CommandLine, Auto)], Auto, false),
        (vec![mode(Layer::User, Plan), mode(TRUSTED, Auto), mode(Layer::CommandLine, Edit)], Edit, true),
        (vec![mode(Layer::User, Edit), mode(REMEMBERED, Auto)], Edit, true),
        (vec![mode(Layer::User, Edit), mode(REMEMBERED, Plan)], Plan, false),
        (vec![mode(Layer::Variables, Ask), mode(REMEMBERED, Auto)], Ask, true),
        (vec![mode(REMEMBERED, Ask), mode(Layer::CommandLine, Auto)], Auto, false),
        // A client that may approve is not bounded.
        (vec![mode(Layer::User, Ask), mode(APPROVER, Auto)], Auto, false),
        (vec![mode(Layer::User, Edit), mode(CLIENT, Plan)], Plan, false),
        (vec![mode(Layer::User, Edit), mode(EDITOR, Auto)], Auto, false),
    ] {
        let merged = merge(layers.clone()).unwrap();
        assert_eq!(merged.spec.policy.mode, expected, "{layers:?}");
        assert_eq!(merged.bounded.len(), usize::from(is_bounded), "{layers:?}");
    }
    let merged = merge([mode(Layer::User, Plan), mode(TRUSTED, Auto)]).unwrap();
    assert_eq!(*merged.origin("policy.mode"), ValueOrigin::Flag("User".to_owned()));
    assert_eq!(
        merged.bounded[0].to_string(),
        "Project { trusted: true }: `mode` allows more than User, which applies instead"
    );
}

#[test]
fn each_bounded_field_has_a_direction() {
    /// Sets the narrow or the wide value of a field.
    type Set = fn(&mut PartialSpec, bool);
    let cases: [(&str, Set); 8] = [
        ("environment.sandbox", |spec, is_wide| {
            spec.environment.sandbox = Some(if is_wide { SandboxLevel::Off } else { SandboxLevel::Full });
        }),
        ("environment.network", |spec, is_wide| {
            spec.environment.network = Some(if is_wide { NetworkAccess::On } else { NetworkAccess::Off });
        }),
        ("environment.confine", |spec, is_wide| spec.environment.confine = Some(!is_wide)),
        ("policy.mode", |spec, is_wide| {
            spec.policy.mode = Some(if is_wide { Mode::Auto } else { Mode::Ask })
        }),
        ("policy.after_plan", |spec, is_wide| {
            spec.policy.after_plan = Some(if is_wide { Mode::Auto } else { Mode::Ask });
        }),
        ("policy.read_before_write", |spec, is_wide| spec.policy.read_before_write = Some(!is_wide)),
        ("limits.max_turns", |spec, is_wide| {
            spec.limits.max_turns = Some(CountLimit(if is_wide { 0 } else { 3 }));
        }),
        ("limits.max_tool_rounds", |spec, is_wide| {
            spec.limits.max_tool_rounds = Some(CountLimit(if is_wide { 9 } else { 3 }));
        }),
    ];
    let declared = SessionSpec::FIELDS.iter().filter(|(_, combine)| *combine == Combine::Bounded);
    assert_eq!(declared.map(|(path, _)| *path).collect::<Vec<_>>(), cases.map(|(path, _)| path));
    for (path, set) in cases {
        for (user, project) in [(false, true), (true, false)] {
            let layers =
                [layer(Layer::User, |spec| set(spec, user)), layer(TRUSTED, |spec| set(spec, project))];
            let merged = merge(layers).unwrap();
            let mut narrow = PartialSpec::default();
            set(&mut narrow, false);
            assert_eq!(merged.spec, narrow.resolve(), "{path}");
        }
    }
}

#[test]
fn budgets_of_all_layers_are_lowered() {
    let budget = |kind: Layer, tokens: Option<u64>, calls: Option<u64>| {
        layer(kind, |spec| {
            let mut session = Limits::default();
            (session.tokens, session.tool_calls) = (tokens, calls);
            spec.limits.budget = Some(ScopedLimits::default().with_session(session));
        })
    };
    let user = budget(Layer::User, Some(5), Some(7));
    for (layers, expected) in [
        (vec![user.clone()], (Some(5), Some(7))),
        // A flag replaces a limit of the user's file.
        (vec![user.clone(), budget(Layer::CommandLine, Some(9), None)], (Some(9), Some(7))),
        // A project lowers also the limit of a flag.
        (
            vec![
                user.clone(),
                budget(UNTRUSTED, Some(8), Some(9)),
                budget(Layer::CommandLine, Some(9), None),
            ],
            (Some(8), Some(7)),
        ),
        (vec![budget(UNTRUSTED, None, Some(3))], (None, Some(3))),
        (vec![user.clone(), budget(REMEMBERED, Some(9), Some(1))], (Some(5), Some(1))),
    ] {
        let merged = merge(layers.clone()).unwrap();
        let Limits { tokens, tool_calls, .. } = merged.spec.limits.budget.session;
        assert_eq!((tokens, tool_calls), expected, "{layers:?}");
    }
    let merged = merge([user.clone(), budget(UNTRUSTED, Some(2), None)]).unwrap();
    let project = ValueOrigin::Flag(format!("{UNTRUSTED:?}"));
    assert_eq!(merged.origins["limits.budget"], [user.origin.clone(), project]);
}

#[test]
fn roots_and_tools_are_intersected() {
    let roots = |kind: Layer, paths: &[&str]| {
        let paths = paths.iter().map(PathBuf::from).collect();
        layer(kind, |spec| spec.environment.roots = Some(paths))
    };
    let merged = merge([
        roots(Layer::CommandLine, &["/srv", "/data/ann"]),
        roots(REMEMBERED, &["/srv/project", "/data", "/etc"]),
    ]);
    let expected = ["/data/ann", "/srv/project"].map(PathBuf::from);
    assert_eq!(merged.unwrap().spec.environment.roots, Some(expected.into_iter().collect()));
    let tools = |kind: Layer, names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        layer(kind, |spec| spec.tools.only = Some(names))
    };
    let merged = merge([tools(Layer::CommandLine, &["a", "b"]), tools(REMEMBERED, &["b", "c"])]).unwrap();
    assert_eq!(merged.spec.tools.only, Some(["b".to_owned()].into()));
}

#[test]
fn a_client_can_only_narrow_the_grant() {
    let grant = |kind: Layer, grant: &Grant| {
        let grant = grant.clone();
        layer(kind, |spec| spec.policy.grant = Some(grant))
    };
    let (all, none) = (Grant::all(GrantId::new("all")), Grant::none(GrantId::new("none")));
    let merged = merge([grant(CLIENT, &all)]).unwrap();
    assert_eq!(merged.spec.policy.grant.as_ref(), Some(&all));
    let merged = merge([grant(Layer::CommandLine, &all), grant(CLIENT, &none)]).unwrap();
    // A revocation of the limit applies to the narrower grant as well.
    let mut narrower = none.clone();
    narrower.ancestors = vec![GrantId::new("all")];
    assert_eq!(merged.spec.policy.grant.as_ref(), Some(&narrower));
    let (mut limit, mut newer) = (all.clone(), none.clone());
    (limit.ancestors, newer.epoch) = (vec![GrantId::new("root")], 7);
    let merged = merge([grant(Layer::CommandLine, &limit), grant(CLIENT, &newer)]).unwrap();
    narrower.ancestors = vec![GrantId::new("root"), GrantId::new("all")];
    assert_eq!(merged.spec.policy.grant.as_ref(), Some(&narrower), "the limit has an older epoch");
    for client in [CLIENT, APPROVER] {
        let problems = merge([grant(Layer::CommandLine, &none), grant(client, &all)]).unwrap_err();
        assert_eq!((problems.len(), problems[0].kind), (1, ProblemKind::Wider));
        assert!(problems[0].expected.starts_with("a value within the limit of CommandLine"), "{problems:?}");
    }
}

#[test]
fn a_project_sets_only_what_its_trust_allows() {
    let project = |trusted| {
        let mut project = layer(Layer::Project { trusted }, |spec| {
            spec.model.name = Some("m".to_owned());
            spec.model.base_url = Some(BaseUrl::new("https://h"));
            spec.model.profile = Some(ProfileRef::File(PathBuf::from("/p.toml")));
            spec.model.timeout = Some(Duration::from_secs(9));
            spec.environment.kind = Some("ssh:h".to_owned());
            spec.policy.allow = vec!["shell".to_owned()];
            spec.policy.deny = vec!["shell(rm *)".to_owned()];
            spec.tools.servers = vec![ServerDeclaration::new("s", json!({}))];
            spec.persistence.keep = Some(false);
        });
        project.origin = ValueOrigin::File { name: ".pintle/config.toml".to_owned(), line: 3, profile: None };
        project
    };
    let found = |trusted: bool, kind: ProblemKind| {
        let merged = merge([project(trusted)]).unwrap();
        let left_out = merged.left_out.iter().filter(|problem| problem.kind == kind);
        left_out.map(|problem| problem.path).collect::<Vec<_>>()
    };
    let never = ["model.base_url", "model.profile", "environment.kind", "persistence.keep"];
    assert_eq!(found(true, ProblemKind::NotAllowed), never);
    assert_eq!(found(false, ProblemKind::NotAllowed), never);
    assert_eq!(found(true, ProblemKind::Untrusted), [""; 0]);
    assert_eq!(found(false, ProblemKind::Untrusted), ["model.name", "policy.allow", "tools.servers"]);
    let merged = merge([project(false)]).unwrap();
    assert_eq!(merged.spec.policy.deny, ["shell(rm *)"]);
    assert_eq!(
        (merged.spec.policy.allow.len(), merged.spec.model.timeout),
        (0, Some(Duration::from_secs(9)))
    );
    assert_eq!(
        merged.left_out[0].to_string(),
        ".pintle/config.toml:3: `model.name`: expected no value, because the project is not trusted"
    );
    let named = layer(TRUSTED, |spec| spec.model.profile = Some(ProfileRef::Name("p".to_owned())));
    assert_eq!(merge([named]).unwrap().left_out, []);
}

#[test]
fn values_that_are_left_out_replace_nothing() {
    let user = layer(Layer::User, |spec| spec.model.base_url = Some(BaseUrl::new("https://h")));
    let project =
        |trusted| layer(Layer::Project { trusted }, |spec| spec.model.provider = Some("openai".to_owned()));
    let merged = merge([user.clone(), project(false)]).unwrap();
    assert_eq!(merged.spec.model.base_url, Some(BaseUrl::new("https://h")));
    let merged = merge([user, project(true)]).unwrap();
    assert_eq!(merged.spec.model.base_url, None);
}

#[test]
fn a_client_sets_only_the_fields_of_its_scopes() {
    use ProblemKind::{MissingScope, NotAllowed};
    type Set = fn(&mut PartialSpec);
    let allow: Set = |spec| spec.policy.allow = vec!["shell".to_owned()];
    let deny: Set = |spec| spec.policy.deny = vec!["shell".to_owned()];
    let auto: Set = |spec| spec.policy.mode = Some(Mode::Auto);
    let plan: Set = |spec| spec.policy.mode = Some(Mode::Plan);
    let container: Set = |spec| spec.environment.kind = Some("docker:c".to_owned());
    let directory: Set = |spec| spec.environment.dir = Some(PathBuf::from("/w"));
    let sandbox: Set = |spec| spec.environment.sandbox = Some(SandboxLevel::Off);
    let servers: Set = |spec| spec.tools.servers = vec![ServerDeclaration::new("s", json!({}))];
    for (kind, set, problem) in [
        (CLIENT, allow, Some(MissingScope)),
        (APPROVER, allow, None),
        (CLIENT, deny, None),
        (CLIENT, auto, Some(MissingScope)),
        (APPROVER, auto, None),
        (CLIENT, plan, None),
        (CLIENT, container, Some(MissingScope)),
        (APPROVER, container, None),
        (CLIENT, directory, None),
        (APPROVER, sandbox, Some(NotAllowed)),
        (APPROVER, servers, Some(NotAllowed)),
        (EDITOR, servers, None),
        (EDITOR, directory, None),
        (EDITOR, auto, None),
        (EDITOR, allow, Some(NotAllowed)),
    ] {
        let request = layer(kind, set);
        let merged = merge([mode(Layer::Default, Mode::Edit), request.clone()]);
        let found =
            merged.err().map(|problems| problems.iter().map(|problem| problem.kind).collect::<Vec<_>>());
        assert_eq!(found, problem.map(|kind| vec![kind]), "{request:?}");
    }
}

#[test]
fn a_flag_of_the_server_fixes_the_environment() {
    let environment = |kind: Layer, name: &str| {
        let name = name.to_owned();
        layer(kind, |spec| spec.environment.kind = Some(name))
    };
    let flag = environment(Layer::CommandLine, "docker:a");
    assert!(merge([flag.clone(), environment(APPROVER, "docker:a")]).is_ok());
    let problems = merge([flag, environment(APPROVER, "docker:b")]).unwrap_err();
    assert_eq!((problems.len(), problems[0].kind), (1, ProblemKind::Fixed));
}

#[test]
fn a_stronger_value_discards_the_weaker_values_of_its_group() {
    let user = layer(Layer::User, |spec| {
        spec.model.provider = Some("openai".to_owned());
        spec.model.name = Some("m".to_owned());
        spec.model.base_url = Some(BaseUrl::new("https://h"));
        spec.environment.dir = Some(PathBuf::from("/w"));
        spec.policy.wait_approval = Some(true);
        spec.tools.server_files = vec![PathBuf::from("/s.json")];
    });
    type Set = fn(&mut PartialSpec);
    let cases: [(Set, &[&str]); 9] = [
        (|spec| spec.model.name = Some("n".to_owned()), &[]),
        (|spec| spec.model.provider = Some("gemini".to_owned()), &["model.name", "model.base_url"]),
        (
            |spec| spec.model.profile = Some(ProfileRef::File(PathBuf::from("/p.toml"))),
            &["model.provider", "model.name", "model.base_url"],
        ),
        (|spec| spec.model.profile = Some(ProfileRef::Name("p".to_owned())), &[]),
        (|spec| spec.environment.kind = Some("docker:c".to_owned()), &["environment.dir"]),
        (|spec| spec.persistence.keep = Some(false), &["policy.wait_approval"]),
        (|spec| spec.persistence.keep = Some(true), &[]),
        (|spec| spec.tools.use_servers = Some(false), &["tools.server_files"]),
        (|spec| spec.environment.dir = Some(PathBuf::from("/v")), &[]),
    ];
    for (set, discarded) in cases {
        let flags = layer(Layer::CommandLine, set);
        let merged = merge([user.clone(), flags.clone()]).unwrap();
        let mut expected = user.spec.clone();
        discarded.iter().for_each(|path| expected.clear(path));
        expected.overlay(&flags.spec);
        assert_eq!(merged.spec, expected.resolve(), "{flags:?}");
    }
    let none = layer(REMEMBERED, |spec| spec.tools.use_servers = Some(false));
    let files = layer(Layer::CommandLine, |spec| spec.tools.server_files = vec![PathBuf::from("/t.json")]);
    assert!(merge([none, files]).unwrap().spec.tools.use_servers);
}

#[test]
fn the_strongest_profile_is_the_only_one() {
    let profile = |kind: Layer, profile: ProfileRef| layer(kind, |spec| spec.model.profile = Some(profile));
    let name = || ProfileRef::Name("p".to_owned());
    let file = || ProfileRef::File(PathBuf::from("/p.toml"));
    let model = |kind: Layer| layer(kind, |spec| spec.model.name = Some("m".to_owned()));
    for (layers, expected, has_model) in [
        (vec![profile(Layer::User, file()), profile(TRUSTED, name())], name(), false),
        // A weaker profile that does not apply discards nothing.
        (
            vec![model(Layer::User), profile(Layer::UserProfile, file()), profile(TRUSTED, name())],
            name(),
            true,
        ),
        (
            vec![model(Layer::User), profile(TRUSTED, name()), profile(Layer::Variables, file())],
            file(),
            false,
        ),
        // A profile that is typed by name replaces the model of a kept session, and not the values of the configuration.
        (vec![model(Layer::UserProfile), profile(Layer::CommandLine, name())], name(), true),
        (vec![model(REMEMBERED), profile(Layer::CommandLine, name())], name(), false),
    ] {
        let merged = merge(layers.clone()).unwrap();
        assert_eq!(merged.spec.model.profile, Some(expected), "{layers:?}");
        assert_eq!(merged.spec.model.name.is_some(), has_model, "{layers:?}");
    }
}

#[test]
fn a_kept_session_follows_a_configuration_that_became_tighter() {
    use Mode::{Ask, Auto, Edit, Plan};
    let user = |value: Option<Mode>| layer(Layer::User, |spec| spec.policy.mode = value);
    for (then, flag, now, expected) in [
        // A flag that exceeds the configuration stays.
        (Some(Edit), Auto, Some(Edit), Auto),
        (None, Auto, None, Auto),
        (Some(Ask), Auto, Some(Edit), Auto),
        (Some(Edit), Auto, None, Auto),
        // The configuration became tighter.
        (Some(Edit), Auto, Some(Ask), Ask),
        (None, Auto, Some(Plan), Plan),
        (Some(Auto), Edit, Some(Ask), Ask),
        (Some(Auto), Plan, Some(Edit), Plan),
    ] {
        let kept = StoredSpec::from_layers(&[user(then), mode(Layer::CommandLine, flag)]);
        let merged = merge([user(now), kept.into_layer()]).unwrap();
        assert_eq!(merged.spec.policy.mode, expected, "{then:?} {flag:?} {now:?}");
    }
    // A fork keeps the value that its origin had last.
    let kept = StoredSpec::from_layers(&[user(None), mode(Layer::CommandLine, Auto)]);
    let fork = StoredSpec::from_layers(&[user(Some(Plan)), kept.into_layer()]);
    assert_eq!(merge([user(Some(Plan)), fork.into_layer()]).unwrap().spec.policy.mode, Plan);
}

#[test]
fn a_kept_session_stores_what_was_given() {
    let layers = [
        layer(Layer::User, |spec| {
            spec.model.name = Some("of the user".to_owned());
            spec.environment.network = Some(NetworkAccess::Off);
        }),
        layer(TRUSTED, |spec| spec.environment.confine = Some(true)),
        layer(Layer::CommandLine, |spec| {
            spec.model.base_url = Some(BaseUrl::new("https://ann:secret@h/v1?key=secret"));
            spec.environment.dir = Some(PathBuf::from("/w"));
            spec.environment.network = Some(NetworkAccess::On);
            spec.policy.allow = vec!["shell".to_owned()];
            spec.policy.deny = vec!["@write".to_owned()];
            spec.limits.max_turns = Some(CountLimit(3));
            spec.tools.servers = vec![ServerDeclaration::new("s", json!({"env": {"KEY": "secret"}}))];
        })
        .with_origin("environment.network", ValueOrigin::Flag("--network".to_owned())),
        layer(APPROVER, |spec| {
            spec.policy.allow = vec!["shell(ls)".to_owned()];
            spec.policy.deny = vec!["shell(rm *)".to_owned()];
        }),
    ];
    let kept = StoredSpec::from_layers(&layers);
    let text = serde_json::to_string(&kept).unwrap();
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(serde_json::from_str::<StoredSpec>(&text).unwrap(), kept);
    let paths = ["model.base_url", "environment.network", "policy.allow", "policy.deny"];
    assert_eq!(kept.given.set_paths(), paths);
    assert_eq!(
        (kept.given.policy.allow.join(" "), kept.given.policy.deny.join(" ")),
        ("shell(ls)".to_owned(), "shell(rm *)".to_owned())
    );
    assert_eq!(kept.user.as_ref().unwrap().set_paths(), ["environment.network"]);
    let resumed = merge([kept.into_layer()]).unwrap();
    assert_eq!(resumed.origin("environment.network").to_string(), "kept session, --network");
}

#[test]
fn stored_flags_are_a_layer() {
    let flags = BTreeMap::from([("mode".to_owned(), vec!["auto".to_owned()])]);
    let kept = StoredSpec::from_flags(&flags, Some("/w")).unwrap();
    let merged = merge([kept.clone().into_layer()]).unwrap();
    assert_eq!(
        (merged.spec.policy.mode, merged.spec.environment.dir),
        (Mode::Auto, Some(PathBuf::from("/w")))
    );
    assert_eq!(merged.origins["policy.mode"], [ValueOrigin::Remembered(None)]);
    // The configuration of that time is unknown.
    let merged = merge([mode(Layer::User, Mode::Ask), kept.into_layer()]).unwrap();
    assert_eq!(merged.spec.policy.mode, Mode::Ask);
    let flags = BTreeMap::from([("denny".to_owned(), Vec::new())]);
    assert!(StoredSpec::from_flags(&flags, None).is_err());
}
