//! Models and the providers that serve them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use pintle_testkit::Dialect;

use super::user::User;

const ANSWER: &str = "[[turn]]\ntext = \"Done.\"\n";

const CLAUDE: &str = "claude-opus-4-6";

#[test]
fn the_catalog_decides_the_provider_of_a_model() {
    let user = User::new(ANSWER);
    let (openai, anthropic) =
        (user.model.base_url(Dialect::OpenAiResponses), user.model.base_url(Dialect::AnthropicMessages));
    let key = "sk-of-a-user";
    for command in ["run", "ask"] {
        let mut refused = user.command(&[command, "--model", CLAUDE, "Go"]);
        refused.env_remove("ANTHROPIC_API_KEY").env("OPENAI_API_KEY", key).env("OPENAI_BASE_URL", &openai);
        let output = refused.output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{command}: {printed}");
        assert!(printed.contains("ANTHROPIC_API_KEY") && printed.contains(CLAUDE), "{command}: {printed}");
        assert_eq!(user.model.requests().len(), 0, "{command}: no provider is asked");
    }
    let mut both = user.command(&["run", "--model", CLAUDE, "Go"]);
    both.env("OPENAI_API_KEY", key).env("OPENAI_BASE_URL", &openai).env("ANTHROPIC_BASE_URL", &anthropic);
    let output = both.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let requests = user.model.requests();
    assert!(
        !requests.is_empty()
            && requests.iter().all(|request| request.dialect == Some(Dialect::AnthropicMessages))
    );
    assert_eq!(requests[0].body["model"], CLAUDE);
}

#[test]
fn a_candidate_of_a_provider_without_a_key_is_refused_before_the_task_begins() {
    let user = User::new(ANSWER);
    let contract = "goal = \"Mend it\"\n[anchor]\nkind = \"none\"\nbecause = \"a test\"\n\
                    [[check]]\nname = \"check\"\ncommand = \"true\"\n\
                    [[candidate]]\n[[candidate]]\nmodel = \"gpt-5.2\"\n";
    std::fs::write(user.at("contract.toml"), contract).unwrap();
    let path = user.at("contract.toml").display().to_string();
    let mut command = user.command(&["task", "run", "--contract", &path]);
    command.env("ANTHROPIC_BASE_URL", user.model.base_url(Dialect::AnthropicMessages));
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{printed}");
    assert!(printed.contains("gpt-5.2") && printed.contains("OPENAI_API_KEY"), "{printed}");
    assert_eq!(user.model.requests().len(), 0);
}

/// A name that the catalog does not have, and the warning about it.
const UNKNOWN: &str = "claude-opus-4-66";

const WARNING: &str = "pintle: model `claude-opus-4-66` is not in the catalog and is sent to anthropic; `--provider NAME` selects \
     another provider, and `pintle models` lists the known models; did you mean `claude-opus-4-6`?\n";

#[test]
fn a_model_that_the_catalog_does_not_have_is_a_warning() {
    for (flags, config, is_warned) in [
        (&[][..], "", true),
        (&["--output", "json"], "", true),
        (&[], "model = \"claude-opus-4-66\"\n", true),
        (&["--provider", "anthropic"], "", false),
        (&["--base-url", "http://127.0.0.1:1"], "", false),
        (&[], "provider = \"anthropic\"\n", false),
    ] {
        let user = User::new(ANSWER);
        std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
        std::fs::write(user.at(".config/pintle/config.toml"), config).unwrap();
        // The file of the servers is read after the model is selected, and before a provider is asked.
        let mut started = user.command(&["run", "--mcp-config", "missing.json", "Go"]);
        started.args(flags);
        if !config.contains("model") {
            started.args(["--model", UNKNOWN]);
        }
        let output = started.output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{flags:?}: {printed}");
        assert_eq!(
            printed.matches(WARNING).count(),
            usize::from(is_warned),
            "{flags:?}: {config}: {printed}"
        );
    }
}

#[test]
fn a_candidate_with_a_model_that_the_catalog_does_not_have_is_a_warning() {
    let user = User::new(ANSWER);
    // The other candidate has no key, so that the task does not begin.
    let contract = format!(
        "goal = \"Mend it\"\n[anchor]\nkind = \"none\"\nbecause = \"a test\"\n\
         [[check]]\nname = \"check\"\ncommand = \"true\"\n\
         [[candidate]]\nmodel = \"{UNKNOWN}\"\n[[candidate]]\nmodel = \"gpt-5.2\"\n"
    );
    std::fs::write(user.at("contract.toml"), contract).unwrap();
    let path = user.at("contract.toml").display().to_string();
    let output = user.command(&["task", "run", "--contract", &path]).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{printed}");
    assert_eq!(printed.matches(WARNING).count(), 1, "{printed}");
}

#[test]
fn an_editor_starts_with_the_warning_about_its_model() {
    let user = User::new(ANSWER);
    let mut command = user.command(&["acp", "--model", UNKNOWN]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut agent = command.spawn().unwrap();
    let (mut input, mut output) = (agent.stdin.take().unwrap(), BufReader::new(agent.stdout.take().unwrap()));
    let directory = user.project();
    for (id, method, params) in [
        (1, "initialize", serde_json::json!({"protocolVersion": 1, "clientCapabilities": {}})),
        (2, "session/new", serde_json::json!({"cwd": directory, "mcpServers": []})),
    ] {
        let request = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{request}").unwrap();
        let mut line = String::new();
        while !line.contains(&format!("\"id\":{id}")) {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the agent has ended");
        }
        assert!(line.contains("\"result\""), "{line}");
    }
    drop(input);
    let ended = agent.wait_with_output().unwrap();
    let printed = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(printed.matches(WARNING).count(), 1, "{printed}");
}
