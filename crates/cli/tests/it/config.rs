//! The configuration: files of the user and of a project, variables, profiles, and `pintle config`.

use std::process::Command;

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{CommandOutput, Harness, pintle, run};

const TURNS: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "touch made" }
    [[turn]]
    text = "So be it."
    [[turn]]
    text = "Still here."
    [[turn]]
    text = "Here as well."
    "#;

/// Project with its own state and configuration.
struct Fixture {
    harness: Harness,
    user: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { harness: Harness::new(Dialect::AnthropicMessages, TURNS), user: tempfile::tempdir().unwrap() }
    }

    fn with_user(self, text: &str) -> Self {
        std::fs::write(self.user.path().join("config.toml"), text).unwrap();
        self
    }

    fn with_project(self, text: &str) -> Self {
        std::fs::create_dir_all(self.harness.path(".pintle")).unwrap();
        std::fs::write(self.harness.path(".pintle/config.toml"), text).unwrap();
        self
    }

    fn at_home(&self, command: &mut Command) -> CommandOutput {
        command.current_dir(self.harness.path(""));
        command.env("PINTLE_CONFIG_DIR", self.user.path());
        command.env("PINTLE_STATE_DIR", self.user.path().join("state"));
        run(command)
    }

    fn pintle(&self, arguments: &[&str]) -> CommandOutput {
        self.at_home(&mut pintle(arguments))
    }

    /// Runs the task with flags, and returns the output and whether the command ran.
    fn run(&self, flags: &[&str]) -> (CommandOutput, bool) {
        let mut command = self.harness.command("run", &["Go"]);
        let output = self.at_home(command.args(flags));
        let made = self.harness.path("made").exists();
        let _ = std::fs::remove_file(self.harness.path("made"));
        (output, made)
    }

    /// Returns `pintle run` with a key, but no flags about the model.
    fn bare_run(&self, flags: &[&str]) -> Command {
        let mut command = pintle(&["run"]);
        command.args(flags).env("ANTHROPIC_API_KEY", crate::harness::KEY);
        command
    }

    fn url(&self) -> String {
        self.harness.server.base_url(self.harness.dialect)
    }

    /// Returns value and source of a key.
    fn value(&self, key: &str, flags: &[&str], variable: Option<(&str, &str)>) -> (Value, String) {
        let mut command = pintle(&["config", "--output", "json"]);
        let output = self.at_home(command.args(flags).envs(variable));
        assert_eq!(output.code, Some(0), "{output:?}");
        let rows: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        (row["value"].clone(), row["source"].as_str().unwrap().to_owned())
    }
}

#[test]
fn values_come_from_files_variables_and_flags() {
    let deny = "mode = \"ask\"";
    let allow = "mode = \"auto\"";
    let cases: [(Fixture, Option<&str>, &[&str], bool); 7] = [
        (Fixture::new(), None, &[], true),
        (Fixture::new().with_user(deny), None, &[], false),
        (Fixture::new().with_user(deny), Some("auto"), &[], true),
        (Fixture::new().with_user(deny), Some("ask"), &["--mode", "auto"], true),
        (Fixture::new().with_user(allow), None, &["--mode", "ask"], false),
        (Fixture::new().with_user("[profiles.careful]\nmode = \"ask\""), None, &[], true),
        (
            Fixture::new().with_user("[profiles.careful]\nmode = \"ask\""),
            None,
            &["--profile", "careful"],
            false,
        ),
    ];
    for (fixture, variable, flags, ran) in cases {
        let mut command = fixture.harness.command("run", &["Go"]);
        let output = fixture.at_home(command.args(flags).envs(variable.map(|mode| ("PINTLE_MODE", mode))));
        assert_eq!(fixture.harness.path("made").exists(), ran, "{variable:?} {flags:?}: {output:?}");
    }
}

#[test]
fn the_model_and_its_endpoint_are_configured() {
    let fixture = Fixture::new();
    let text = format!(
        "provider = \"anthropic\"\nmodel = \"claude-configured\"\nbase_url = \"{}\"\ntoolset = \"spec\"\n",
        fixture.url()
    );
    let fixture = fixture.with_user(&text);
    let output = fixture.at_home(&mut fixture.bare_run(&["Go"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = fixture.harness.server.requests();
    assert_eq!(requests[0].body["model"], "claude-configured");
    let mut ask = pintle(&["ask", "Well?"]);
    let output = fixture.at_home(ask.env("ANTHROPIC_API_KEY", crate::harness::KEY));
    assert_eq!(output.code, Some(0), "{output:?}");
    let asked = fixture.harness.server.requests();
    assert_eq!(asked.len(), requests.len() + 1);
    assert_eq!(asked.last().unwrap().body["model"], "claude-configured");
}

#[test]
fn a_variable_of_the_provider_overrides_the_url() {
    let fixture = Fixture::new().with_user("provider = \"anthropic\"\nbase_url = \"http://127.0.0.1:1\"");
    let (value, source) = fixture.value("base_url", &[], None);
    assert!(value == "http://127.0.0.1:1" && source.ends_with("config.toml:2"), "{value} {source}");
    let mut command = fixture.bare_run(&["--toolset", "spec", "Go"]);
    let output = fixture.at_home(command.env("ANTHROPIC_BASE_URL", fixture.url()));
    assert_eq!(output.code, Some(0), "{output:?}");
    let variable = ("ANTHROPIC_BASE_URL", "http://me:hunter2@h/v1?key=hunter3");
    let (value, source) = fixture.value("base_url", &[], Some(variable));
    assert_eq!((value, source.as_str()), ("http://h/v1".into(), "$ANTHROPIC_BASE_URL"));
}

#[test]
fn an_untrusted_project_sets_only_safe_keys() {
    let fixture = Fixture::new()
        .with_user("mode = \"ask\"\nmax_turns = 9")
        .with_project("mode = \"auto\"\ntimeout = \"7m\"\n[profiles.p]\nmax_turns = 0\ncompact_at = 7\n");
    let (output, made) = fixture.run(&[]);
    assert!(!made, "{output:?}");
    let left_out =
        "the project is not trusted, which leaves out `mode`, `profiles.p.max_turns` of .pintle/config.toml";
    assert_eq!(output.stderr.matches(left_out).count(), 1, "{output:?}");
    assert_eq!(fixture.value("timeout", &[], None), ("7m".into(), ".pintle/config.toml:2".to_owned()));
    assert_eq!(fixture.value("max_turns", &["--profile", "p"], None).0, 9);
    assert_eq!(
        fixture.value("compact_at", &["--profile", "p"], None),
        (7.into(), ".pintle/config.toml:5, profile p".to_owned())
    );

    let output = fixture.pintle(&["trust"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let (output, made) = fixture.run(&["--mode", "auto"]);
    assert!(made && !output.stderr.contains("not trusted"), "{output:?}");

    let fixture = fixture.with_project("mode = \"auto\"\n");
    let (output, made) = fixture.run(&[]);
    assert!(!made && output.stderr.contains("is no longer trusted"), "{output:?}");
}

#[test]
fn a_trusted_project_does_not_exceed_the_limits_of_the_user() {
    let fixture = Fixture::new()
        .with_user("mode = \"ask\"\nmax_turns = 9\n")
        .with_project("mode = \"auto\"\nmax_turns = 4\n[profiles.p]\nmax_turns = 0\n");
    assert_eq!(fixture.pintle(&["trust"]).code, Some(0));
    let user = fixture.user.path().join("config.toml").display().to_string();
    let notice = format!(".pintle/config.toml:1: `mode` allows more than {user}:1, which applies instead");
    let (output, made) = fixture.run(&[]);
    assert!(!made, "{output:?}");
    assert_eq!(output.stderr.matches(&notice).count(), 1, "{output:?}");
    let (output, made) = fixture.run(&["--mode", "auto"]);
    assert!(made && !output.stderr.contains("which applies instead"), "{output:?}");

    assert_eq!(fixture.value("mode", &[], None), ("ask".into(), format!("{user}:1")));
    assert_eq!(fixture.value("max_turns", &[], None).0, 4);
    assert_eq!(fixture.value("max_turns", &["--profile", "p"], None), (9.into(), format!("{user}:2")));
    let rules = fixture.pintle(&["rules", "list"]);
    assert!(rules.stdout.contains("mode ask for all other calls"), "{rules:?}");
    assert!(rules.stderr.contains(&notice), "{rules:?}");

    let fixture = fixture.with_user("");
    let (output, made) = fixture.run(&[]);
    assert!(made, "nothing limits the project: {output:?}");
}

#[test]
fn a_trusted_project_cannot_redirect_keys() {
    let project = "base_url = \"http://127.0.0.1:1\"\nprofile = \"./own.toml\"\ncatalog = \"c.json\"\n[key_command]\n\
                   anthropic = [\"touch\", \"made\"]\n";
    let fixture = Fixture::new().with_project(project);
    assert_eq!(fixture.pintle(&["trust"]).code, Some(0));
    let mut command = fixture.bare_run(&["--toolset", "spec", "--mode", "ask", "Go"]);
    let output = fixture.at_home(command.env("ANTHROPIC_BASE_URL", fixture.url()));
    let notice = "only your own configuration can set `base_url`, `profile`, `catalog`, `key_command`";
    assert!(output.stderr.contains(notice), "{output:?}");
    assert!(!fixture.harness.path("made").exists(), "{output:?}");
    assert!(!fixture.harness.server.requests().is_empty(), "{output:?}");
    for key in ["base_url", "profile", "catalog"] {
        assert_eq!(fixture.value(key, &[], None).1, "default", "{key}");
    }
}

#[test]
fn mistakes_stop_the_command_before_anything_is_sent() {
    let cases: [(&str, &str, &str); 5] = [
        ("modle = \"m\"", "", "config.toml: line 1, column 1: unknown key `modle`; did you mean `model`?"),
        ("", "mode = 1", ".pintle/config.toml: line 1, column 8: `mode`: found 1, expected one of plan, ask"),
        ("mode = \"ask\nx", "", "line 1"),
        ("profile = \"reviw\"\n[profiles.review]", "", "there is no profile `reviw`; did you mean `review`?"),
        ("x = 1\ny = 2", "", "the configuration has 2 mistakes"),
    ];
    for (user, project, message) in cases {
        let fixture = Fixture::new().with_user(user).with_project(project);
        let (output, made) = fixture.run(&[]);
        assert_eq!((output.code, made), (Some(2), false), "{message}: {output:?}");
        assert!(output.stderr.contains(message), "{message}: {output:?}");
        assert!(output.stderr.contains("--ignore-config-errors"), "{output:?}");
        assert!(fixture.harness.server.requests().is_empty(), "{output:?}");
        assert_eq!(fixture.pintle(&["models"]).code, Some(2), "{message}");
    }
    let fixture = Fixture::new().with_user("");
    let file = fixture.user.path().join("config.toml");
    std::fs::write(&file, b"model = \"\xFF\"\n").unwrap();
    let name_of = |output: &CommandOutput| output.stderr.matches(&*file.to_string_lossy()).count();
    let (output, _) = fixture.run(&[]);
    assert_eq!((output.code, name_of(&output)), (Some(2), 1), "{output:?}");
    assert!(output.stderr.contains("config.toml is not valid UTF-8 at byte 10"), "{output:?}");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let (output, _) = fixture.run(&[]);
    assert_eq!((output.code, name_of(&output)), (Some(2), 1), "{output:?}");
    let output = Fixture::new().at_home(pintle(&["models"]).env("PINTLE_TIMEOUT", "soon"));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("PINTLE_TIMEOUT: found `soon`, expected a time"), "{output:?}");
}

#[test]
fn the_rest_counts_if_mistakes_are_ignored() {
    let fixture = Fixture::new().with_user("mode = \"ask\"\nmodle = \"m\"\nmax_turns = \"many\"\n");
    let (output, made) = fixture.run(&["--ignore-config-errors"]);
    assert!(!made, "{output:?}");
    for mistake in ["ignored: ", "line 2, column 1: unknown key `modle`", "line 3, column 13: `max_turns`"] {
        assert!(output.stderr.contains(mistake), "{mistake}: {output:?}");
    }
    assert_eq!(fixture.value("mode", &["--ignore-config-errors"], None).0, "ask");
}

#[test]
fn a_session_remembers_no_values_of_the_configuration() {
    let fixture = Fixture::new();
    let model = format!("provider = \"anthropic\"\nbase_url = \"{}\"\n", fixture.url());
    let fixture = fixture.with_user(&format!("{model}toolset = \"spec\"\n"));
    assert_eq!(fixture.at_home(&mut fixture.bare_run(&["Go"])).code, Some(0));
    let tools_of_last = |fixture: &Fixture| {
        let requests = fixture.harness.server.requests();
        requests.last().unwrap().body["tools"].clone()
    };
    let tools = tools_of_last(&fixture);
    assert_eq!(fixture.at_home(&mut fixture.bare_run(&["--continue", "On"])).code, Some(0));
    assert_eq!(tools_of_last(&fixture), tools);
    let fixture = fixture.with_user(&model);
    assert_eq!(fixture.at_home(&mut fixture.bare_run(&["--continue", "On"])).code, Some(0));
    assert_ne!(tools_of_last(&fixture), tools);
}

#[test]
fn a_session_remembers_the_name_of_its_profile() {
    let fixture = Fixture::new().with_user("[profiles.short]\nmax_turns = 0\n");
    let (output, _) = fixture.run(&["--profile", "short"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let fixture = fixture.with_user("[profiles.short]\nmax_turns = 1\n");
    let output = fixture.at_home(&mut fixture.bare_run(&["--continue", "On"]));
    assert_eq!(output.code, Some(3), "the profile limits the turns: {output:?}");
    let fixture = fixture.with_user("");
    let output = fixture.at_home(&mut fixture.bare_run(&["--continue", "On"]));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("there is no profile `short`"), "{output:?}");
}

#[test]
fn remembered_flags_override_the_configuration() {
    let fixture = Fixture::new().with_user("toolset = \"native\"\nmodel = \"claude-a\"\n");
    let (output, made) = fixture.run(&["--model", "claude-b"]);
    assert!(made, "{output:?}");
    let mut command = pintle(&["run", "--continue", "On"]);
    let output = fixture.at_home(command.env("ANTHROPIC_API_KEY", crate::harness::KEY));
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = fixture.harness.server.requests();
    assert_eq!(requests.last().unwrap().body["model"], "claude-b");
}

#[test]
fn a_restriction_that_was_added_applies_to_a_kept_session() {
    let fixture = Fixture::new();
    let (output, made) = fixture.run(&["--after-plan", "auto"]);
    assert!(made, "{output:?}");
    let fixture = fixture.with_user("after_plan = \"ask\"\n");
    let output = fixture.at_home(&mut fixture.bare_run(&["--continue", "On"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let user = fixture.user.path().join("config.toml").display().to_string();
    let notice = format!("kept session: `after_plan` allows more than {user}:1, which applies instead");
    assert!(output.stderr.contains(&notice), "{output:?}");
    let output = fixture.at_home(&mut fixture.bare_run(&["--continue", "--after-plan", "auto", "On"]));
    assert!(output.code == Some(0) && !output.stderr.contains("which applies instead"), "{output:?}");
}

#[test]
fn a_flag_of_a_kept_session_stays_until_the_configuration_allows_less() {
    let fixture = Fixture::new().with_user("after_plan = \"edit\"\n");
    let (output, made) = fixture.run(&["--after-plan", "auto"]);
    assert!(made, "{output:?}");
    let output = fixture.at_home(&mut fixture.bare_run(&["--continue", "On"]));
    assert!(output.code == Some(0) && !output.stderr.contains("which applies instead"), "{output:?}");
    let fixture = fixture.with_user("after_plan = \"ask\"\n");
    let output = fixture.at_home(&mut fixture.bare_run(&["--continue", "On"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("kept session: `after_plan` allows more than"), "{output:?}");
}

#[test]
fn an_unknown_profile_is_neither_name_nor_file() {
    let fixture = Fixture::new().with_user("[profiles.review]\nmode = \"plan\"\n");
    let output = fixture.at_home(&mut fixture.bare_run(&["--profile", "reviw", "Go"]));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("there is no profile `reviw`; did you mean `review`?"), "{output:?}");
    assert!(output.stderr.contains("no such file"), "{output:?}");
}

#[test]
fn other_commands_take_keys_that_they_have_flags_for() {
    let fixture = Fixture::new().with_user(
        "provider = \"gemini\"\ntoolset = \"spec\"\nmode = \"ask\"\n[profiles.claude]\nprovider = \"anthropic\"\n",
    );
    let configured = fixture.pintle(&["prompt", "--output", "plain"]);
    let typed =
        Fixture::new().pintle(&["prompt", "--provider", "gemini", "--toolset", "spec", "--output", "plain"]);
    assert_eq!(configured.stdout.lines().next(), typed.stdout.lines().next());
    let named = fixture.pintle(&["prompt", "--profile", "claude", "--output", "json"]);
    assert_eq!(named.code, Some(0), "{named:?}");
    let configured = fixture.pintle(&["tools", "--output", "json"]);
    let typed =
        Fixture::new().pintle(&["tools", "--provider", "gemini", "--toolset", "spec", "--output", "json"]);
    assert_eq!((configured.code, configured.stdout), (Some(0), typed.stdout));
    let all = fixture.pintle(&["models"]).stdout;
    assert!(all.contains("\nopenai "), "the provider does not filter the list: {all}");
    let rules = fixture.pintle(&["rules", "list"]);
    assert!(rules.stdout.contains("mode ask for all other calls"), "{rules:?}");
    let verdict = fixture.pintle(&["rules", "check", "shell(ls)", "--mode", "auto"]);
    assert!(verdict.stdout.starts_with("allow"), "{verdict:?}");
}

#[test]
fn config_lists_values_with_their_sources() {
    let fixture = Fixture::new().with_user(
        "model = \"m\"\nconfine = true\n[key_command]\nopenai = [\"pass\", \"show\"]\n[profiles.p]\n",
    );
    let output = fixture.at_home(pintle(&["config", "list"]).env("PINTLE_MAX_TURNS", "3"));
    let line = |key: &str| {
        let line = output.stdout.lines().find(|line| line.split_whitespace().next() == Some(key));
        line.unwrap_or_else(|| panic!("{key}: {output:?}")).split_whitespace().skip(1).collect::<Vec<_>>()
    };
    let file = fixture.user.path().join("config.toml").display().to_string();
    assert_eq!(line("model"), ["m", &format!("{file}:1")]);
    assert_eq!(line("max_turns"), ["3", "$PINTLE_MAX_TURNS"]);
    assert_eq!(line("toolset"), ["native", "default"]);
    assert_eq!(line("key_command.openai"), ["pass", "show", &format!("{file}:4")]);
    assert_eq!(line("profiles"), ["p"]);
    assert_eq!(fixture.value("confine", &[], None).0, true);
    assert_eq!(fixture.value("profile", &["--profile", "p"], None), ("p".into(), "--profile".to_owned()));
    let paths = fixture.pintle(&["config", "path"]).stdout;
    assert!(paths.contains(&file) && paths.contains(".pintle/config.toml"), "{paths}");
    let schema: Value = serde_json::from_str(&fixture.pintle(&["config", "schema"]).stdout).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema), "{schema}");
}

#[test]
fn editing_creates_a_template_and_checks_the_result() {
    let fixture = Fixture::new();
    let edit = |editor: &str, flags: &[&str]| {
        fixture.at_home(pintle(&["config", "edit"]).args(flags).env("EDITOR", editor))
    };
    let output = edit("true", &[]);
    assert!(output.code == Some(0) && output.stdout.contains("has no mistakes"), "{output:?}");
    let file = fixture.user.path().join("config.toml");
    assert!(std::fs::read_to_string(&file).unwrap().contains("#mode = \"ask\""));

    let output = edit("echo 'modle = 1' >>", &[]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("did you mean `model`?"), "{output:?}");
    let output = edit("sed -i /modle/d", &[]);
    assert_eq!(output.code, Some(0), "a broken file can be edited: {output:?}");

    let output = edit("echo 'mode = \"edit\"' >>", &["--project"]);
    assert!(output.code == Some(0) && output.stdout.contains("pintle trust"), "{output:?}");
    assert!(fixture.harness.read(".pintle/config.toml").contains("mode = \"edit\""));

    assert_eq!(edit("false", &[]).code, Some(1));
    let output = fixture.pintle(&["config", "edit"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("expected one in VISUAL or EDITOR"), "{output:?}");
}
