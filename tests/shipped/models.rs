//! Models and the providers that serve them.

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
