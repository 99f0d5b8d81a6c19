//! Audit lines, metrics and rate limits of a server.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::harness::{Request, Setup, runs, scripted};
use crate::{AccessToken, AccessTokens, AuditLine, AuditLog, ServerLimits, TokenScope};

#[derive(Debug, Default)]
struct Lines(Mutex<Vec<AuditLine>>);

impl AuditLog for Lines {
    fn write(&self, line: &AuditLine) {
        self.0.lock().unwrap().push(line.clone());
    }
}

#[tokio::test]
async fn each_change_leaves_a_line() {
    let (ann, secret) = AccessToken::generate("ann", [TokenScope::Read, TokenScope::Run]).unwrap();
    let lines = Arc::new(Lines::default());
    let fixture = Setup::new(scripted())
        .with_tokens(AccessTokens::new([ann.with_tenant("blue")]))
        .with_audit(Arc::<Lines>::clone(&lines))
        .start()
        .await;
    let bearer = format!("Bearer {secret}");
    let by_ann = |request: Request| request.header("authorization", &bearer);
    let created =
        by_ann(Request::new("POST", "/v1/sessions").json(&json!({}))).header("idempotency-key", "k");
    let id = fixture.send(created).await.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/sessions/{id}");
    fixture.send(by_ann(Request::new("GET", &path))).await;
    fixture.send(by_ann(Request::new("DELETE", &path))).await;
    fixture.post("/v1/login", &json!({"token": "pintle_x"})).await;
    fixture
        .send(Request::new("GET", &format!("{path}?secret=1")).header("authorization", "Bearer pintle_x"))
        .await;
    let lines = lines.0.lock().unwrap();
    let shown: Vec<_> = lines
        .iter()
        .map(|line| {
            let by = (line.name.as_deref(), line.tenant.as_deref());
            (by, line.method.as_str(), line.path.as_str(), line.key.as_deref(), line.status)
        })
        .collect();
    let ann = (Some("ann"), Some("blue"));
    assert_eq!(
        shown,
        [(ann, "POST", "/v1/sessions", Some("k"), 201), (ann, "DELETE", path.as_str(), None, 403),],
        "those without a token could fill the disk"
    );
    assert!(lines.iter().all(|line| line.address.is_some_and(|address| address.is_loopback())));
    assert!(!format!("{lines:?}").contains(&secret));
}

#[tokio::test]
async fn whoever_asks_too_often_has_to_wait() {
    let (ann, secret) = AccessToken::generate("ann", [TokenScope::Read]).unwrap();
    let (ben, other) = AccessToken::generate("ben", [TokenScope::Read]).unwrap();
    let limits = ServerLimits::default().with_rate(1);
    let fixture =
        Setup::new(scripted()).with_tokens(AccessTokens::new([ann, ben])).with_limits(limits).start().await;
    let ask = |secret: &str| {
        let request = Request::new("GET", "/v1/models").header("authorization", &format!("Bearer {secret}"));
        fixture.send(request)
    };
    let mut refused = None;
    for _ in 0..20 {
        let answer = ask(&secret).await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a rate of one is exceeded by twenty");
    assert_eq!(refused.json()["type"], "/problems/rate");
    assert_eq!(refused.header("retry-after"), "1");
    let login = async |token: &str| fixture.post("/v1/login", &json!({"token": token})).await.status;
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(login("pintle_x").await);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(login(&other).await, 204, "logins are not kept out by others");
    assert_eq!(ask(&other).await.status, 200, "others are served");
    assert_eq!(fixture.get("/v1/health").await.status, 200);
}

#[tokio::test]
async fn measurements_are_those_of_the_server() {
    let adapter = scripted().message(runs("c1", "make")).answer("Made.").message(runs("c2", "make"));
    let fixture = Setup::new(adapter).start().await;
    let id = fixture.create_with("Make it").await;
    let mut stream = fixture.follow(&id, None).await;
    stream.until_kind("PROCESSING_END").await;
    fixture.get("/v1/nothing").await;
    fixture.get("/v1/sessions/nobody").await;
    let answer = fixture.get("/v1/metrics").await;
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"), "{answer:?}");
    let text = answer.text();
    for line in [
        "pintle_sessions_open 1",
        "pintle_sessions_working 0",
        "pintle_approvals_pending 0",
        "pintle_streams_open 1",
        "pintle_http_responses_total{class=\"4xx\"} 1",
        "pintle_runs_total 1",
        "pintle_model_responses_total 2",
        "pintle_tool_calls_total 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    // Each measurement is described once, before its values.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        assert_eq!(text.matches(&format!("# TYPE {name} ")).count(), 1, "{name}");
    }
}
