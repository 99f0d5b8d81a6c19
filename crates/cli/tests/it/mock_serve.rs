//! `pintle mock serve`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::harness::{KEY, pintle, run};

#[test]
fn serves_every_dialect_until_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.toml");
    std::fs::write(&script, "name = \"s\"\n[[turn]]\ntext = \"Served.\"\n").unwrap();
    let mut server = pintle(&["mock", "serve", "--api-key", KEY, "--script"])
        .arg(&script)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let lines: Vec<String> =
        BufReader::new(server.stdout.take().unwrap()).lines().take(4).map(Result::unwrap).collect();

    for (line, variable) in
        lines.iter().zip(["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"])
    {
        let (dialect, url) = line.split_once(' ').expect("a name and a URL");
        let url = url.trim();
        assert!(url.starts_with("http://127.0.0.1:"), "loopback only: {line}");
        let ask = |key: &str| {
            let arguments = ["ask", "--provider", dialect, "--base-url", url, "--model", "any", "Hi"];
            run(pintle(&arguments).env(variable, key))
        };
        let output = ask(KEY);
        assert_eq!((output.code, output.stdout.trim()), (Some(0), "Served."), "{dialect}: {output:?}");
        assert_eq!(ask("sk-wrong").code, Some(4), "{dialect}: other keys are rejected");
    }

    let stopped = Command::new("kill").args(["-INT", &server.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
