use pintle_agent::{Limits, Money};
use pintle_governance::{AtLimit, Mode, UnknownPrice};
use pintle_host::env_spec::EnvironmentChoice;
use pintle_host::policy::PolicyChoice;
use pintle_host::route::ModelChoice;
use pintle_host::{Layer, LayerSpec, SandboxLevel, WorktreeBase, merge};

use super::*;
use crate::arguments::command_line::session_of;

fn layer(flags: &str) -> LayerSpec {
    session_of(&format!("pintle run {flags} x")).given().unwrap().into_layer()
}

/// Flags with values, and the field that each of them sets.
const FLAGS: &[(&str, &str)] = &[
    ("--provider=openai", "model.provider"),
    ("--model=m", "model.name"),
    ("--base-url=https://h/v1", "model.base_url"),
    ("--script=s.toml", "model.script"),
    ("--dialect=gemini", "model.dialect"),
    ("--profile=review", "model.profile"),
    ("--reasoning-effort=low", "model.reasoning_effort"),
    ("--timeout=9s", "model.timeout"),
    ("--catalog=c.json", "model.catalog"),
    ("--env=local", "environment.kind"),
    ("--dir=/w", "environment.dir"),
    ("--sandbox=auto", "environment.sandbox"),
    ("--no-sandbox", "environment.sandbox"),
    ("--network=off", "environment.network"),
    ("--confine", "environment.confine"),
    ("--mode=plan", "policy.mode"),
    ("--after-plan=ask", "policy.after_plan"),
    ("--allow=shell(ls)", "policy.allow"),
    ("--deny=shell", "policy.deny"),
    ("--wait-approval", "policy.wait_approval"),
    ("--read-before-write", "policy.read_before_write"),
    ("--max-turns=0", "limits.max_turns"),
    ("--max-tool-rounds=0", "limits.max_tool_rounds"),
    ("--compact-at=70", "limits.compact_at"),
    ("--max-tokens=5", "limits.budget"),
    ("--max-cost=2", "limits.budget"),
    ("--max-calls=7", "limits.budget"),
    ("--max-time=90s", "limits.budget"),
    ("--budget=day.cost=3", "limits.budget"),
    ("--at-limit=ask", "limits.at_limit"),
    ("--unknown-price=ask", "limits.unknown_price"),
    ("--toolset=native", "tools.toolset"),
    #[cfg(feature = "mcp")]
    ("--mcp-config=m.json", "tools.server_files"),
    #[cfg(feature = "mcp")]
    ("--no-mcp", "tools.use_servers"),
    ("--no-session", "persistence.keep"),
    ("--worktree=changes", "persistence.worktree"),
];

#[test]
fn each_flag_sets_one_field_with_its_origin() {
    for (flag, path) in FLAGS {
        let layer = layer(flag);
        let name = flag.split('=').next().unwrap();
        assert_eq!(layer.spec.set_paths(), [*path], "{flag}");
        let origins: Vec<(&str, String)> =
            layer.origins.iter().map(|(path, origin)| (path.as_str(), origin.to_string())).collect();
        assert_eq!(origins, [(*path, name.to_owned())], "{flag}");
    }
    assert_eq!(layer("").spec, PartialSpec::default());
}

#[test]
fn each_flag_of_a_field_is_in_the_test() {
    // The grant is a file, the directories are a flag of the server, and MCP servers are optional.
    let others = ["grant", "root", "mcp-config", "no-mcp"];
    for flag in FIELDS.iter().flat_map(|row| row.flags).filter(|flag| !others.contains(*flag)) {
        let is_tested =
            |(tested, _): &(&str, &str)| tested.split('=').next() == Some(format!("--{flag}").as_str());
        assert!(FLAGS.iter().any(is_tested), "--{flag}");
    }
}

#[test]
fn values_are_those_of_the_flags() {
    let spec = layer(
        "--provider scripted --dialect gemini --env ssh:me@box --no-sandbox --network on --mode edit --after-plan auto \
         --max-turns 3 --max-tokens 5 --max-time 90s --budget day.cost=3 --at-limit ask --unknown-price ask \
         --toolset spec --worktree",
    )
    .spec;
    assert_eq!(
        (spec.model.provider.as_deref(), spec.model.dialect.as_deref()),
        (Some("scripted"), Some("gemini"))
    );
    assert_eq!(spec.environment.kind.as_deref(), Some("ssh:me@box"));
    assert_eq!(
        (spec.environment.sandbox, spec.environment.network),
        (Some(SandboxLevel::Off), Some(NetworkAccess::On))
    );
    assert_eq!((spec.policy.mode, spec.policy.after_plan), (Some(Mode::Edit), Some(Mode::Auto)));
    assert_eq!(spec.limits.max_turns, Some(CountLimit(3)));
    let budget = spec.limits.budget.unwrap();
    assert_eq!(budget.session, Limits::default().with_tokens(5));
    assert_eq!(budget.run, Limits::default().with_wall_time(std::time::Duration::from_secs(90)));
    assert_eq!(budget.day, Limits::default().with_cost(Money::from_micros(3_000_000)));
    assert_eq!(
        (spec.limits.at_limit, spec.limits.unknown_price),
        (Some(AtLimit::Ask), Some(UnknownPrice::Ask))
    );
    assert_eq!(spec.tools.toolset, Some(Toolset::Spec));
    assert_eq!(spec.persistence.worktree, Some(WorktreeBase::Head));
}

#[test]
fn choices_of_the_settings_are_those_of_the_flags() {
    for (flag, _) in FLAGS {
        let typed = session_of(&format!("pintle run {flag} x"));
        let spec = merge([typed.given().unwrap().into_layer()]).unwrap().spec;
        assert_eq!(ModelChoice::try_from(&spec).unwrap(), ModelChoice::from(&typed.model), "{flag}");
        assert_eq!(
            EnvironmentChoice::try_from(&spec).unwrap(),
            EnvironmentChoice::from(&typed.environment),
            "{flag}"
        );
        assert_eq!(Confinement::from(&spec), Confinement::from(&typed.confinement), "{flag}");
        let policy = PolicyChoice {
            mode: typed.policy.mode.or(Some(Mode::Auto)),
            ..PolicyChoice::from(&typed.policy)
        };
        assert_eq!(PolicyChoice::from(&spec), policy, "{flag}");
    }
}

#[test]
fn a_wrong_setting_of_a_kept_session_is_reported() {
    let mut spec = PartialSpec::default();
    spec.model.provider = Some("acme".to_owned());
    let layer = LayerSpec::new(Layer::Remembered { user: None }, spec, ValueOrigin::Remembered(None));
    let failure = ModelChoice::try_from(&merge([layer]).unwrap().spec).unwrap_err();
    assert!(failure.message().contains("found `acme`, expected one of openai"), "{failure:?}");
}

#[test]
fn given_settings_have_the_grant_the_remembered_flags_and_the_treatment_of_mistakes() {
    let given = |flags: &str| session_of(&format!("pintle run {flags} x")).given().unwrap();
    let some = given("--grant g.json --ignore-config-errors --mode plan --max-turns 3 --profile review");
    assert_eq!(some.grant, Some(PathBuf::from("g.json")));
    assert!(some.ignore_config_errors);
    assert_eq!(some.flags["mode"], ["plan"]);
    assert!(!some.flags.contains_key("max-turns"), "{:?}", some.flags);
    assert_eq!(some.spec.model.profile, Some(ProfileRef::File("review".into())));
    let none = given("");
    assert_eq!((none.grant, none.ignore_config_errors, none.flags.len()), (None, false, 0));
}
