//! `pintle models`, `--catalog` and `pintle completions`.

use std::path::PathBuf;
use std::process::Command;

use pintle_testkit::Dialect;
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::harness::{Harness, pintle, run};

const CATALOG: &str = r#"[
  {"id": "house-1", "provider": "openai", "context_window": 9000, "supports_tools": true,
   "input_cost_per_million": 1000, "output_cost_per_million": 2000, "cache_read_cost_per_million": 100,
   "cache_write_cost_per_million": 1000},
  {"id": "local", "provider": "openai-compatible", "context_window": 4096},
  {"id": "gpt-5.2", "provider": "openai", "input_cost_per_million": null}
]"#;

fn catalog_file(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("models.json");
    std::fs::write(&file, text).unwrap();
    (directory, file)
}

fn list(command: &mut Command) -> Vec<Value> {
    let output = run(command);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

fn ids(models: &[Value]) -> Vec<&str> {
    models.iter().map(|model| model["id"].as_str().unwrap()).collect()
}

#[test]
fn built_in_models_are_listed_as_a_table() {
    let output = run(&mut pintle(&["models"]));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let head = output.stdout.lines().next().unwrap();
    assert!(head.starts_with("PROVIDER") && head.contains("WINDOW"), "{head}");
    for id in ["claude-opus-4-6", "gpt-5.2", "gemini-3.1-pro-preview"] {
        let lines: Vec<&str> =
            output.stdout.lines().filter(|line| line.split_whitespace().nth(1) == Some(id)).collect();
        assert_eq!(lines.len(), 1, "{id} in {}", output.stdout);
    }
    let gpt = output.stdout.lines().find(|line| line.contains(" gpt-5.2 ")).unwrap();
    let cells: Vec<&str> = gpt.split_whitespace().collect();
    assert_eq!(cells[..9], ["openai", "gpt-5.2", "400000", "128000", "1.75", "14", "0.175", "-", "tvr"]);
}

#[test]
fn json_has_every_field_of_one_provider() {
    let models = list(&mut pintle(&["models", "--provider", "anthropic", "--output", "json"]));
    assert!(models.len() >= 10 && models.iter().all(|model| model["provider"] == "anthropic"));
    let opus = models.iter().find(|model| model["id"] == "claude-opus-4-6").unwrap();
    assert_eq!((&opus["context_window"], &opus["input_cost_per_million"]), (&1_000_000.into(), &5.0.into()));
    assert!(opus["sources"]["prices"].is_string());
}

#[test]
fn provider_without_models_is_rejected() {
    for provider in ["acme", "openai-compatible"] {
        let output = run(&mut pintle(&["models", "--provider", provider]));
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{output:?}");
        for word in [provider, "anthropic", "openai", "gemini"] {
            assert!(output.stderr.contains(word), "{output:?}");
        }
    }
}

#[test]
fn catalog_file_overrides_the_built_in_catalog() {
    let (_directory, file) = catalog_file(CATALOG);
    let (_other, empty) = catalog_file("[]");
    let json = ["models", "--output", "json"];
    let by_flag = list(pintle(&json).arg("--catalog").arg(&file));
    let by_variable = list(pintle(&json).env("PINTLE_CATALOG", &file));
    assert_eq!(by_flag, by_variable);
    assert_eq!(ids(&by_flag)[..2], ["house-1", "local"], "new models come first");
    let changed = by_flag.iter().find(|model| model["id"] == "gpt-5.2").unwrap();
    assert!(changed.get("input_cost_per_million").is_none() && changed["output_cost_per_million"] == 14.0);

    let built_in = list(&mut pintle(&json));
    assert_eq!(by_flag.len(), built_in.len() + 2);
    let flag_wins = list(pintle(&json).env("PINTLE_CATALOG", &file).arg("--catalog").arg(&empty));
    assert_eq!(flag_wins, built_in);
    assert_eq!(list(pintle(&json).env("PINTLE_CATALOG", "")), built_in, "an empty variable counts as unset");
    let local = list(
        pintle(&["models", "--provider", "openai-compatible", "--output", "json"])
            .arg("--catalog")
            .arg(&file),
    );
    assert_eq!(ids(&local), ["local"]);
}

#[test]
fn catalog_errors_have_a_line_number() {
    let (_directory, file) =
        catalog_file("[\n {\"id\": \"a\", \"provider\": \"b\",\n  \"context_window\": \"wide\"}]");
    let missing = file.with_file_name("missing.json");
    let cases = [
        (pintle(&["models"]).arg("--catalog").arg(&file), "--catalog"),
        (pintle(&["models"]).env("PINTLE_CATALOG", &file), "PINTLE_CATALOG"),
        (pintle(&["ask", "Hello", "--catalog"]).arg(&file).env("OPENAI_API_KEY", "sk-x"), "--catalog"),
    ]
    .map(|(command, source)| (run(command), source));
    for (output, source) in cases {
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{output:?}");
        for part in [source, "models.json", "line 3", "`context_window`", "\"wide\""] {
            assert!(output.stderr.contains(part), "{part} in {output:?}");
        }
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    }
    let output = run(pintle(&["models"]).arg("--catalog").arg(&missing));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("missing.json") && output.stderr.contains("No such file"), "{output:?}");
}

#[test]
fn runs_are_priced_by_the_catalog_file() {
    let (_directory, file) = catalog_file(CATALOG);
    let turns = "[[turn]]\ntext = \"Looking.\"\n[[turn.call]]\ntool = \"glob\"\narguments = { pattern = \"*\" }\n\
                 [[turn]]\ntext = \"Done.\"\n";
    let outcome = |arguments: &[&str]| -> Value {
        let harness = Harness::new(Dialect::OpenAiResponses, turns);
        let mut command = harness.command("run", &["--output", "json", "Look"]);
        let output = run(command.args(arguments));
        assert_eq!(output.code, Some(0), "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    };
    let priced = outcome(&["--model", "house-1", "--catalog", file.to_str().unwrap()]);
    let count = |name: &str| priced["usage"][name].as_f64().unwrap_or(0.0);
    let (input, cached) = (count("input_tokens"), count("cache_read_tokens"));
    let expected = ((input - cached) * 1000.0 + cached * 100.0 + count("output_tokens") * 2000.0) / 1e6;
    let cost = priced["cost_usd"].as_f64().unwrap();
    assert!(input > 0.0 && (cost - expected).abs() < 1e-9, "{cost} instead of {expected}: {priced}");

    assert_eq!(outcome(&["--model", "house-1"]).get("cost_usd"), None, "no price without the file");
}

#[test]
fn completions_cover_every_shell_and_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = run(&mut pintle(&["completions", shell]));
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
        for word in ["models", "completions", "catalog", "openai-compatible"] {
            assert!(output.stdout.contains(word), "{shell}: {word}");
        }
    }
    let output = run(&mut pintle(&["completions", "tcsh"]));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("tcsh") && output.stderr.contains("bash"), "{output:?}");
}

#[test]
fn bash_completions_work() {
    let script = run(&mut pintle(&["completions", "bash"])).stdout;
    let ask = "COMP_WORDS=(pintle mo); COMP_CWORD=1; _pintle pintle mo pintle; echo \"${COMPREPLY[@]}\"\n\
               COMP_WORDS=(pintle models --out); COMP_CWORD=2; _pintle pintle --out models; echo \"${COMPREPLY[@]}\"\n";
    // As users source it; an argument of a command has at most 128 KiB.
    let file = NamedTempFile::new().unwrap();
    std::fs::write(&file, format!("{script}\n{ask}")).unwrap();
    let output = Command::new("bash").arg("--norc").arg(file.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "models mock\n--output\n");
}
