//! Typed answers and failures of runs, in a session that an application opens through the library.

use std::ffi::OsStr;
use std::sync::Arc;

use pintle::agent::RunError;
use pintle::host::attendant::ClientAttendant;
use pintle::host::process_env::ProcessEnv;
use pintle::host::{GivenSettings, Host, PartialSpec, SettingSources, Surface};
use pintle::llm::ErrorKind;
use pintle_testkit::Dialect;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::runtime::Runtime;

use super::user::{KEY, User};

/// An answer that is repaired, and a refused key.
const TURNS: &str = r#"
[[turn]]
text = "All is well."

[[turn]]
text = '''{"passed": true, "tests": 12}'''

[[turn]]
failure = [{ status = 401, body = '{"type":"error","error":{"type":"authentication_error","message":"no such key"}}' }]
text = "never"
"#;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct TestReport {
    /// Whether all tests pass.
    passed: bool,
    tests: u32,
}

#[test]
fn an_application_gets_a_typed_answer_and_the_error_of_a_run() {
    let user = User::new(TURNS);
    let url = user.model.base_url(Dialect::AnthropicMessages);
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    let text = format!("provider = \"anthropic\"\nbase_url = \"{url}\"\nmodel = \"claude-opus-5\"\n");
    std::fs::write(user.at(".config/pintle/config.toml"), text).unwrap();
    let (home, path) = (user.at(""), std::env::var_os("PATH").unwrap());
    let variables: [(&str, &OsStr); 3] =
        [("HOME", home.as_os_str()), ("PATH", path.as_os_str()), ("ANTHROPIC_API_KEY", OsStr::new(KEY))];
    let host = Host::new(ProcessEnv::from_variables(variables));
    let mut given = PartialSpec::default();
    given.environment.dir = Some(user.project());
    let (answered, failed) = Runtime::new().unwrap().block_on(async {
        let resolved = host.resolve(SettingSources::from(GivenSettings::from(given))).await.unwrap();
        let attendant = ClientAttendant::without_approver(Some(host.process_env().principal()));
        let opened = host.open(resolved, Surface::new(Arc::new(attendant))).await.unwrap();
        let answered = opened.session.run_typed::<TestReport>("Run the tests.").await.unwrap();
        let failed = opened.session.submit("Once more.").await;
        opened.close().await.unwrap();
        (answered, failed)
    });
    assert_eq!(answered.value, TestReport { passed: true, tests: 12 });
    assert_eq!(answered.outcome.model_calls, 2);
    let Err(RunError::Failed { source, outcome }) = failed else { panic!("{failed:?}") };
    assert_eq!((source.kind(), outcome.model_calls), (ErrorKind::Authentication, 1));

    let requests = user.model.requests();
    let formats: Vec<bool> =
        requests.iter().map(|request| !request.body["output_config"]["format"].is_null()).collect();
    assert_eq!(formats, [true, true, false], "only the typed run has a schema");
    let schema = &requests[0].body["output_config"]["format"]["schema"];
    assert_eq!(schema["required"], serde_json::json!(["passed", "tests"]));
    assert_eq!(schema["properties"]["tests"]["minimum"], serde_json::Value::Null, "{schema}");
}
