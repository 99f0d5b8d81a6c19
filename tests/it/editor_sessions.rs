//! Sessions that an application serves to an editor, with the settings of the application and the rules of the user.

use std::ffi::OsStr;

use pintle::acp::{AcpAgent, EditorHost};
use pintle::host::process_env::ProcessEnv;
use pintle::host::{BaseUrl, Host, PartialSpec};
use pintle_governance::Mode;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

/// An editor at the other end of a pipe.
struct Editor {
    stream: BufReader<DuplexStream>,
    number: u64,
    /// Text of the messages since the newest request.
    text: String,
}

impl Editor {
    /// Sends a request and returns its answer.
    async fn request(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        self.text.clear();
        let message = json!({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params});
        self.stream.get_mut().write_all(format!("{message}\n").as_bytes()).await.unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.stream.read_line(&mut line).await.unwrap(), 0, "the agent has ended");
            let received: Value = serde_json::from_str(&line).unwrap();
            let text = received.pointer("/params/update/content/text").and_then(Value::as_str);
            self.text.push_str(text.unwrap_or_default());
            if received.get("method").is_none() && received["id"] == json!(self.number) {
                assert!(received.get("error").is_none(), "{method}: {received}");
                return received["result"].clone();
            }
        }
    }

    async fn prompt(&mut self, id: &Value, text: &str) -> Value {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", &json!({"sessionId": id, "prompt": prompt})).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_serves_the_sessions_of_its_user() {
    let script = Script::parse("name = \"editor\"\n[[turn]]\ntext = \"Done.\"\n").unwrap();
    let server = ScriptedServer::start(script, ServerOptions::new()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (home, project) = (directory.path().join("home"), directory.path().join("project"));
    std::fs::create_dir_all(home.join(".config/pintle")).unwrap();
    std::fs::write(home.join(".config/pintle/rules.toml"), "deny = [\"shell(rm *)\"]\n").unwrap();
    std::fs::create_dir(&project).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let variables: [(&str, &OsStr); 2] = [("HOME", home.as_os_str()), ("PATH", path.as_os_str())];

    let mut settings = PartialSpec::default();
    settings.model.provider = Some("openai-compatible".to_owned());
    settings.model.name = Some("local-model".to_owned());
    settings.model.base_url = Some(BaseUrl::new(server.base_url(Dialect::ChatCompletions)));
    settings.policy.mode = Some(Mode::Ask);
    let host = EditorHost::new(Host::new(ProcessEnv::from_variables(variables))).with_settings(settings);
    let agent = AcpAgent::new(host);

    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(far);
    let editing = async {
        let mut editor = Editor { stream: BufReader::new(near), number: 0, text: String::new() };
        editor.request("initialize", &json!({"protocolVersion": 1})).await;
        let opened = editor.request("session/new", &json!({"cwd": project, "mcpServers": []})).await;
        assert_eq!(opened.pointer("/modes/currentModeId"), Some(&json!("ask")), "{opened}");
        let id = &opened["sessionId"];
        assert_eq!(editor.prompt(id, "Go").await["stopReason"], "end_turn");
        assert!(editor.text.contains("Done."), "{}", editor.text);
        editor.prompt(id, "/permissions").await;
        assert!(editor.text.contains("deny: shell(rm *)"), "{}", editor.text);
        let listed = editor.request("session/list", &json!({"cwd": project})).await;
        assert_eq!(listed.pointer("/sessions/0/sessionId"), Some(id), "{listed}");
        editor.stream.get_mut().shutdown().await.unwrap();
        editor
    };
    let (served, _editor) = tokio::join!(agent.serve(reader, writer), editing);
    served.unwrap();
    server.shutdown().await;
}
