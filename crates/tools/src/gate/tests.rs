use std::sync::Mutex;

use pintle_env::MemoryEnvironment;
use pintle_llm::ToolCall;
use serde_json::json;

use super::*;
use crate::pipeline::{JudgedCall, prepare};
use crate::registry::ToolRegistry;
use crate::tests::probe::{Probe, call, denies, probe};
use crate::tool::Effect;

/// A gate with a fixed verdict that counts how often it is asked.
#[derive(Debug)]
struct Fixed {
    verdict: Verdict,
    asked: Mutex<usize>,
}

#[async_trait]
impl Gate for Fixed {
    async fn check(&self, _call: &PreparedCall) -> Verdict {
        *self.asked.lock().unwrap() += 1;
        self.verdict.clone()
    }
}

fn asks(reason: &str) -> Verdict {
    Verdict::ask(reason)
}

#[tokio::test]
async fn a_denial_wins_and_questions_are_joined() {
    let (allow, no) = (Verdict::ALLOW, denies("no"));
    let cases: [(Vec<Verdict>, Verdict, usize); 7] = [
        (vec![], allow.clone(), 0),
        (vec![allow.clone(), allow.clone()], allow.clone(), 2),
        (vec![asks("a"), no.clone()], no.clone(), 2),
        (vec![no.clone(), asks("a")], no.clone(), 1),
        (vec![asks("a"), allow.clone(), asks("b")], asks("a; b"), 3),
        (vec![asks("a"), asks("a")], asks("a"), 2),
        (vec![allow, asks("a")], asks("a"), 2),
    ];
    let call = call(probe(Effect::Write), json!({})).await;
    for (verdicts, expected, asked_gates) in cases {
        let fixed: Vec<Arc<Fixed>> = verdicts
            .iter()
            .map(|verdict| Arc::new(Fixed { verdict: verdict.clone(), asked: Mutex::new(0) }))
            .collect();
        let gates: Vec<Arc<dyn Gate>> = fixed.iter().map(|gate| Arc::clone(gate) as Arc<dyn Gate>).collect();
        let judgement = judge(&gates, &call).await;
        assert_eq!(
            (judgement.permission(), judgement.reason().as_str()),
            (expected.permission(), expected.reason()),
            "{verdicts:?}"
        );
        assert_eq!(judgement.steps().len(), asked_gates);
        let asked: usize = fixed.iter().map(|gate| *gate.asked.lock().unwrap()).sum();
        assert_eq!(asked, asked_gates, "{verdicts:?}");
    }
}

#[tokio::test]
async fn a_fingerprint_identifies_one_exact_call() {
    let of = async |name: &'static str, arguments: serde_json::Value| {
        call(Probe::new(name, Effect::Read), arguments).await.fingerprint()
    };
    let this = of("probe", json!({"a": 1})).await;
    assert_eq!(this, of("probe", json!({"a": 1})).await);
    assert_ne!(this, of("probe", json!({"a": 2})).await);
    assert_ne!(this, of("other", json!({"a": 1})).await);
}

/// An invalid patch writes nothing, and the model needs to know its mistake.
#[tokio::test]
async fn an_invalid_patch_is_refused_before_gates_judge_it() {
    let env = MemoryEnvironment::new("/project").with_file("file", "");
    let gates: [Arc<dyn Gate>; 1] = [Arc::new(Fixed { verdict: denies("no"), asked: Mutex::new(0) })];
    let broken = "*** Begin Patch\n*** Update File: file\nno hunk\n*** End Patch";
    let valid = "*** Begin Patch\n*** Add File: x\n+x\n*** End Patch";
    let cases = [
        (broken, ToolErrorKind::InvalidArguments, "patch line 3"),
        (valid, ToolErrorKind::Denied, "was denied: no"),
    ];
    for (patch, kind, reason) in cases {
        for native in [false, true] {
            let mut registry = ToolRegistry::new();
            let key = if native { "input" } else { "patch" };
            if native {
                registry.register(crate::native::openai::ApplyPatch::new()).unwrap();
            } else {
                registry.register(crate::builtin::ApplyPatch::new()).unwrap();
            }
            let call = ToolCall::from_raw("c", "apply_patch", json!({ key: patch }).to_string());
            let JudgedCall::Refused { error, .. } = prepare(&registry, &gates, &env, &call).await else {
                panic!("{patch}");
            };
            assert_eq!(error.kind(), kind, "{}", error.for_model());
            assert!(error.for_model().contains(reason), "{}", error.for_model());
        }
    }
}
