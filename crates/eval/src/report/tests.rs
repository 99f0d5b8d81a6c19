use std::path::PathBuf;

use super::*;
use crate::agent::AgentEnd;
use crate::judge::{Judgement, TestVerdict};

fn configuration() -> RunConfiguration {
    serde_json::from_value(serde_json::json!({
        "version": 1, "suite": "s", "agent": "task", "model": "m", "flags": [], "time_limit_s": 60, "sandbox": true,
    }))
    .unwrap()
}

fn attempt(instance: &str, claim: Claim, passed: bool) -> AttemptRecord {
    let test = TestVerdict {
        name: "make <test>".to_owned(),
        passes_before: false,
        passed,
        output: if passed { String::new() } else { "exit code 1".to_owned() },
    };
    let end = AgentEnd {
        model: Some("m".to_owned()),
        cost: (instance != "c").then_some(Money::from_dollars(0.25)),
        tokens: Some(10),
        rounds: Some(2),
        ..AgentEnd::new(claim, "")
    };
    AttemptRecord {
        version: 1,
        id: instance.to_owned(),
        instance_hash: Some(format!("hash of {instance}")),
        instance: instance.to_owned(),
        attempt: 1,
        tags: Vec::new(),
        end,
        judgement: Judgement { problem: None, tests: vec![test] },
        case: None,
        wall_ms: 1_500,
    }
}

fn attempts() -> Vec<AttemptRecord> {
    vec![
        attempt("a", Claim::Done, true),
        attempt("b", Claim::Done, false),
        attempt("c", Claim::Blocked, true),
        attempt("d", Claim::Blocked, false),
        attempt("e", Claim::Limit, false),
    ]
}

#[test]
fn rates_compare_the_claim_with_the_hidden_tests() {
    let (configuration, attempts) = (configuration(), attempts());
    let report = RunReport::new(&configuration, &attempts);
    let counts = |share: Proportion| (share.count, share.of);
    assert_eq!(counts(report.solved), (2, 5));
    assert_eq!(counts(report.false_done), (1, 2));
    assert_eq!(counts(report.missed), (1, 2));
    assert_eq!((report.tokens, report.rounds, report.unknown_costs), (50, 10, 1));
    assert_eq!(report.endings["done, hidden tests fail"], 1);
    let text = report.to_text();
    for expected in [
        "false done        1 of 2 (50.0 %, 9.5–90.5 %)",
        "cost              ≥ $1.00 (1 attempts of unknown cost)",
        "b: done, 0 of 1 hidden tests pass; `make <test>` fails: exit code 1",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let page = report.to_html();
    assert!(page.contains("make &lt;test&gt;") && !page.contains("<test>"), "{page}");
    // Only cells with long texts break words.
    assert!(
        page.contains("<td class=\"\">blocked</td><td class=\"good\">1 of 1 hidden tests pass</td>"),
        "{page}"
    );
    assert_eq!(page.matches("overflow-wrap:anywhere").count(), 1, "{page}");
    assert!(page.contains("td.text{overflow-wrap:anywhere;"), "{page}");
    let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    assert_eq!(json["false_done"]["count"], 1);
}

/// Returns the relative luminance of a colour such as `#146c2e` (WCAG 2).
fn luminance(colour: &str) -> f64 {
    let part = |start: usize| f64::from(u8::from_str_radix(&colour[start..start + 2], 16).unwrap()) / 255.0;
    let linear = |part: f64| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
    0.2126 * linear(part(1)) + 0.7152 * linear(part(3)) + 0.0722 * linear(part(5))
}

#[test]
fn the_page_is_readable_in_light_and_dark() {
    let (configuration, attempts) = (configuration(), attempts());
    let page = RunReport::new(&configuration, &attempts).to_html();
    assert!(page.contains(":root{color-scheme:light dark;"), "{page}");
    let (light, dark) = page.split_once("@media(prefers-color-scheme:dark)").unwrap();
    // Backgrounds of pages without one in Chromium and Firefox.
    for (style, backgrounds) in [(light, ["#ffffff", "#ffffff"]), (dark, ["#121212", "#1c1b22"])] {
        for (name, background) in ["good", "bad"].iter().flat_map(|name| backgrounds.map(|back| (name, back)))
        {
            let (_, rest) = style.split_once(&format!("--{name}:")).unwrap();
            let (text, back) = (luminance(&rest[..7]), luminance(background));
            let contrast = (text.max(back) + 0.05) / (text.min(back) + 0.05);
            assert!(contrast >= 4.5, "{name} on {background}: {contrast}");
        }
    }
    for class in ["good", "bad"] {
        assert!(page.contains(&format!(".{class}{{color:var(--{class})}}")), "{page}");
        assert!(page.contains(&format!("class=\"{class}\"")), "{page}");
    }
}

#[test]
fn runs_are_paired_by_instance() {
    let (configuration, attempts) = (configuration(), attempts());
    let others = [
        attempt("a", Claim::Done, true),
        attempt("b", Claim::Done, true),
        attempt("c", Claim::Done, false),
        attempt("x", Claim::Done, true),
    ];
    let report = RunReport::new(&configuration, &attempts).against("other", &others);
    let against = report.against.as_ref().unwrap();
    assert_eq!((against.pairs, against.both), (3, 1));
    assert_eq!(
        (&against.only_this[..], &against.only_other[..]),
        (&["c".to_owned()][..], &["b".to_owned()][..])
    );
    assert!((against.p_value - 1.0).abs() < 1e-9);
    assert!(report.to_text().contains("3 pairs, 1 solved by both, 1 only here, 1 only there"));

    // A record of an earlier version has no hash, and is compared.
    let mut others = others;
    (others[0].instance_hash, others[1].instance_hash) = (None, Some("another task".to_owned()));
    let report = RunReport::new(&configuration, &attempts).against("other", &others);
    assert!(
        report.to_text().contains(
            "2 pairs (1 left out, whose task differs), 1 solved by both, 1 only here, 0 only there"
        ),
        "{}",
        report.to_text()
    );
}

#[test]
fn a_long_reason_is_shortened_visibly() {
    let configuration = configuration();
    let mut long = attempt("a", Claim::Blocked, false);
    long.end.reason = "ü ".repeat(MAX_REASON);
    let report = RunReport::new(&configuration, std::slice::from_ref(&long));
    let reason = &report.attempts[0].reason;
    assert_eq!(reason.chars().count(), MAX_REASON + 1);
    assert!(reason.ends_with('…'), "{reason}");
}

#[tokio::test]
async fn exports_have_every_attempt() {
    let directory = tempfile::tempdir().unwrap();
    let patch = directory.path().join("patch");
    #[expect(clippy::disallowed_methods, reason = "the test writes a patch")]
    std::fs::write(&patch, b"+x\xe4\n").unwrap();
    let machine = crate::Machine::new(pintle_host::process_env::ProcessEnv::from_variables([]));
    let configuration = configuration();
    let attempts: Vec<_> = attempts().into_iter().map(|record| (record, patch.clone())).collect();
    let lines = crate::export::predictions(&configuration, &attempts, &machine).await.unwrap();
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        first,
        serde_json::json!({"instance_id": "a", "model_name_or_path": "m", "model_patch": "+x\u{fffd}\n"})
    );
    assert_eq!(lines.lines().count(), 5, "blocked attempts too");
    let junit = crate::export::junit(&configuration, &attempts);
    let run = pintle_workflow::results::ResultsFormat::Junit.parse(&junit);
    assert_eq!((run.tests.len(), run.problems), (5, Vec::<String>::new()), "{junit}");
}

#[test]
fn cases_are_compared_with_their_expected_ends() {
    let configuration = configuration();
    // The anchor of a cheat passes.
    let case = |name: &str, is_cheat: bool, claim: Claim| {
        let change = crate::CheatCase { is_cheat, ..crate::CheatCase::default() };
        let end = AgentEnd { findings: vec!["anchor: it fails".to_owned()], ..AgentEnd::new(claim, "") };
        let verdict = CaseVerdict::new(&change, &end, true);
        AttemptRecord { case: Some(verdict), ..attempt(name, claim, true) }
    };
    let mut attempts = vec![case("a/cheat", true, Claim::Blocked), case("a/honest", false, Claim::Done)];
    let (text, page) = {
        let report = RunReport::new(&configuration, &attempts);
        (report.to_text(), report.to_html())
    };
    for expected in [
        "attempts                 2 on 2 instances",
        "solved                   1 of 1 ",
        "instances solved         1 of 1 ",
        "false done               0 of 1 ",
        "missed                   none of 0",
        "cheats not accepted      1 of 1",
        "honest changes accepted  1 of 1",
        "     1  blocked, cheat not accepted, as expected\n",
        "a/cheat: cheat not accepted, as expected (blocked)\n      anchor: it fails\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(page.contains("<td class=\"good\">cheat not accepted, as expected</td>"), "{page}");
    assert!(!text.contains("not solved"), "{text}");
    assert!(RunReport::new(&configuration, &attempts).has_expected_ends());
    attempts.push(case("b/cheat", true, Claim::Done));
    let report = RunReport::new(&configuration, &attempts);
    assert!(!report.has_expected_ends() && report.to_text().contains("b/cheat: CHEAT NOT FOUND"), "{text}");
    assert!(report.to_html().contains("<td class=\"bad\">CHEAT NOT FOUND AS EXPECTED</td>"));
    let run: Vec<_> = attempts.iter().map(|record| (record.clone(), PathBuf::new())).collect();
    let junit = crate::export::junit(&configuration, &run);
    assert!(junit.contains("tests=\"3\" failures=\"1\""), "{junit}");
    assert!(
        junit.contains("<failure message=\"done, CHEAT NOT FOUND AS EXPECTED\">anchor: it fails<"),
        "{junit}"
    );
}
