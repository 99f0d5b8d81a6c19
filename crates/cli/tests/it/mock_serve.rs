//! `mock serve`: a scripted model for other programs.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::lab::{KEY, pintle, say};

#[test]
fn it_prints_a_base_url_per_dialect_and_answers_there_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.toml");
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
            say(pintle(&arguments).env(variable, key))
        };
        let answer = ask(KEY);
        assert_eq!((answer.code, answer.out.trim()), (Some(0), "Served."), "{dialect}: {answer:?}");
        assert_eq!(ask("sk-wrong").code, Some(4), "{dialect}: the key that was asked for counts");
    }

    let stopped = Command::new("kill").args(["-INT", &server.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
