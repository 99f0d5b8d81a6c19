//! `pintle models` and `pintle completions`, and a catalog file of a person's own.

use std::path::PathBuf;
use std::process::Command;

use pintle_testkit::Dialect;
use serde_json::Value;
use tempfile::TempDir;

use crate::lab::{Model, pintle, say};

const OWN: &str = r#"[
  {"id": "house-1", "provider": "openai", "context_window": 9000, "supports_tools": true,
   "input_cost_per_million": 1000, "output_cost_per_million": 2000, "cache_read_cost_per_million": 100,
   "cache_write_cost_per_million": 1000},
  {"id": "local", "provider": "openai-compatible", "context_window": 4096},
  {"id": "gpt-5.2", "provider": "openai", "input_cost_per_million": null}
]"#;

fn own(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("models.json");
    std::fs::write(&file, text).unwrap();
    (folder, file)
}

fn listed(command: &mut Command) -> Vec<Value> {
    let said = say(command);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    serde_json::from_str(&said.out).unwrap()
}

fn ids(models: &[Value]) -> Vec<&str> {
    models.iter().map(|model| model["id"].as_str().unwrap()).collect()
}

#[test]
fn the_shipped_models_are_listed_for_people() {
    let said = say(&mut pintle(&["models"]));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let head = said.out.lines().next().unwrap();
    assert!(head.starts_with("PROVIDER") && head.contains("WINDOW"), "{head}");
    for id in ["claude-opus-4-6", "gpt-5.2", "gemini-3.1-pro-preview"] {
        let lines: Vec<&str> =
            said.out.lines().filter(|line| line.split_whitespace().nth(1) == Some(id)).collect();
        assert_eq!(lines.len(), 1, "{id} in {}", said.out);
    }
    let gpt = said.out.lines().find(|line| line.contains(" gpt-5.2 ")).unwrap();
    let cells: Vec<&str> = gpt.split_whitespace().collect();
    assert_eq!(cells[..9], ["openai", "gpt-5.2", "400000", "128000", "1.75", "14", "0.175", "-", "tvr"]);
}

#[test]
fn json_has_every_field_of_one_provider() {
    let models = listed(&mut pintle(&["models", "--provider", "anthropic", "--output", "json"]));
    assert!(models.len() >= 10 && models.iter().all(|model| model["provider"] == "anthropic"));
    let opus = models.iter().find(|model| model["id"] == "claude-opus-4-6").unwrap();
    assert_eq!((&opus["context_window"], &opus["input_cost_per_million"]), (&1_000_000.into(), &5.0.into()));
    assert!(opus["sources"]["prices"].is_string());
}

#[test]
fn a_provider_without_models_is_refused_with_those_that_have_some() {
    for provider in ["acme", "openai-compatible"] {
        let said = say(&mut pintle(&["models", "--provider", provider]));
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        for word in [provider, "anthropic", "openai", "gemini"] {
            assert!(said.err.contains(word), "{said:?}");
        }
    }
}

#[test]
fn a_file_lies_over_the_catalog_by_flag_or_by_variable() {
    let (_folder, file) = own(OWN);
    let (_other, empty) = own("[]");
    let json = ["models", "--output", "json"];
    let by_flag = listed(pintle(&json).arg("--catalog").arg(&file));
    let by_variable = listed(pintle(&json).env("PINTLE_CATALOG", &file));
    assert_eq!(by_flag, by_variable);
    assert_eq!(ids(&by_flag)[..2], ["house-1", "local"], "new models come first");
    let changed = by_flag.iter().find(|model| model["id"] == "gpt-5.2").unwrap();
    assert!(changed.get("input_cost_per_million").is_none() && changed["output_cost_per_million"] == 14.0);

    let shipped = listed(&mut pintle(&json));
    assert_eq!(by_flag.len(), shipped.len() + 2);
    let flag_wins = listed(pintle(&json).env("PINTLE_CATALOG", &file).arg("--catalog").arg(&empty));
    assert_eq!(flag_wins, shipped);
    assert_eq!(listed(pintle(&json).env("PINTLE_CATALOG", "")), shipped, "an empty variable is an unset one");
    let local = listed(
        pintle(&["models", "--provider", "openai-compatible", "--output", "json"])
            .arg("--catalog")
            .arg(&file),
    );
    assert_eq!(ids(&local), ["local"]);
}

#[test]
fn a_file_that_cannot_be_used_is_told_with_its_line() {
    let (_folder, file) = own("[\n {\"id\": \"a\", \"provider\": \"b\",\n  \"context_window\": \"wide\"}]");
    let missing = file.with_file_name("missing.json");
    let rows = [
        (pintle(&["models"]).arg("--catalog").arg(&file), "--catalog"),
        (pintle(&["models"]).env("PINTLE_CATALOG", &file), "PINTLE_CATALOG"),
        (pintle(&["ask", "Hello", "--catalog"]).arg(&file).env("OPENAI_API_KEY", "sk-x"), "--catalog"),
    ]
    .map(|(command, given_by)| (say(command), given_by));
    for (said, given_by) in rows {
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        for part in [given_by, "models.json", "line 3", "`context_window`", "\"wide\""] {
            assert!(said.err.contains(part), "{part} in {said:?}");
        }
        assert_eq!(said.err.lines().count(), 1, "{said:?}");
    }
    let said = say(pintle(&["models"]).arg("--catalog").arg(&missing));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("missing.json") && said.err.contains("No such file"), "{said:?}");
}

#[test]
fn a_run_is_priced_by_the_file() {
    let (_folder, file) = own(OWN);
    let turns = "[[turn]]\ntext = \"Looking.\"\n[[turn.call]]\ntool = \"glob\"\narguments = { pattern = \"*\" }\n\
                 [[turn]]\ntext = \"Done.\"\n";
    let outcome = |arguments: &[&str]| -> Value {
        let model = Model::new(Dialect::OpenAiResponses, turns);
        let mut command = model.command("run", &["--output", "json", "Look"]);
        let said = say(command.args(arguments));
        assert_eq!(said.code, Some(0), "{said:?}");
        serde_json::from_str(&said.out).unwrap()
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
fn each_shell_gets_a_script_of_all_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = say(&mut pintle(&["completions", shell]));
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
        for word in ["models", "completions", "catalog", "openai-compatible"] {
            assert!(said.out.contains(word), "{shell}: {word}");
        }
    }
    let said = say(&mut pintle(&["completions", "tcsh"]));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("tcsh") && said.err.contains("bash"), "{said:?}");
}

#[test]
fn bash_completes_with_it() {
    let script = say(&mut pintle(&["completions", "bash"])).out;
    let ask = "COMP_WORDS=(pintle mo); COMP_CWORD=1; _pintle pintle mo pintle; echo \"${COMPREPLY[@]}\"\n\
               COMP_WORDS=(pintle models --out); COMP_CWORD=2; _pintle pintle --out models; echo \"${COMPREPLY[@]}\"\n";
    let output = Command::new("bash").args(["--norc", "-c", &format!("{script}\n{ask}")]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "models mock\n--output\n");
}
