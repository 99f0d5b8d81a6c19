//! Requests that are wrong, hostile, or somebody else's.

use pintle_agent::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::harness::{PATIENCE, Request, Setup, scripted};
use crate::{AccessToken, AccessTokens, ServerLimits, TokenScope};

#[tokio::test]
async fn wrong_requests_are_problems_that_say_what_was_expected() {
    let fixture = Setup::new(scripted()).start().await;
    let id = fixture.create().await;
    let submit = format!("/v1/sessions/{id}/submit");
    let nested = "[".repeat(10_000);
    let rows = [
        (Request::new("GET", "/v1/nothing"), 404, "/v1/openapi.json"),
        (Request::new("PUT", "/v1/sessions"), 405, "/v1/openapi.json"),
        (Request::new("GET", "/v1/sessions/none"), 404, "there is no session `none`"),
        (Request::new("GET", "/v1/sessions/..%2f..%2fetc"), 404, "there is no session"),
        (Request::new("GET", "/v1/sessions/%ff"), 400, "the path is wrong"),
        (Request::new("GET", "/v1/sessions?limit=0"), 400, "1 to 500"),
        (Request::new("GET", "/v1/sessions?limit=many"), 400, "the query is wrong"),
        (Request::new("GET", "/v1/sessions?sort=up"), 400, "the query is wrong: sort: unknown field `sort`"),
        (Request::new("GET", "/v1/streams"), 400, "the parameter `follow` is missing"),
        (Request::new("GET", "/v1/sessions?cursor=x"), 400, "`next` of an earlier page"),
        (Request::new("POST", &submit).body("text=hello"), 415, "application/json"),
        (
            Request::new("POST", &submit).header("content-type", "application/json").body("{"),
            400,
            "the body is wrong",
        ),
        (
            Request::new("POST", &submit).header("content-type", "application/json").body(nested),
            400,
            "the body is wrong",
        ),
        (Request::new("POST", &submit).json(&json!({"text": 1})), 400, "expected a string"),
        (Request::new("POST", &submit).json(&json!({"text": " "})), 400, "is empty"),
        (Request::new("POST", &submit).json(&json!({"txt": "x"})), 400, "unknown field `txt`"),
        (
            Request::new("POST", &submit)
                .json(&json!({"images": [{"data": "?", "media_type": "image/png"}]})),
            400,
            "invalid base64",
        ),
        (
            Request::new("POST", &submit)
                .json(&json!({"images": [{"path": "/etc/passwd", "media_type": "image/png"}]})),
            400,
            "unknown field `path`",
        ),
        (
            Request::new("POST", "/v1/sessions").json(&json!({"directory": "/nowhere"})),
            400,
            "there is no directory",
        ),
        (
            Request::new("POST", &submit).json(&json!({"text": "x"})).header("idempotency-key", ""),
            400,
            "1 to 200",
        ),
        (Request::new("GET", &format!("/v1/sessions/{id}/blobs/..%2fsecret")), 400, "is no hash"),
        (Request::new("GET", &format!("/v1/sessions/{id}/blobs/{}", "0".repeat(64))), 404, "no such value"),
    ];
    for (request, status, words) in rows {
        let answer = fixture.send(request.clone()).await;
        assert_eq!(answer.status, status, "{request:?}: {answer:?}");
        assert_eq!(answer.header("content-type"), "application/problem+json", "{request:?}");
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{request:?}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{request:?}: {problem}");
    }
    assert_eq!(
        fixture.get(&format!("/v1/sessions/{id}/history")).await.json(),
        json!({"turns": []}),
        "nothing was said"
    );
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let limits = ServerLimits { body: 1_000, ..ServerLimits::default() };
    let small = Setup::new(scripted()).with_limits(limits).start().await;
    let default = Setup::new(scripted()).start().await;
    let create = |length| ("/v1/sessions", json!({"message": {"text": "x".repeat(length)}}));
    let log_in = |length| ("/v1/login", json!({"token": "x".repeat(length)}));
    for (fixture, (path, body), limit) in [
        (&small, create(1_001), 1_000),
        (&small, log_in(1_001), 1_000),
        // A login needs no token, so its body is small in any case.
        (&default, log_in(4_096), 4_096),
    ] {
        let answer = fixture.post(path, &body).await;
        assert_eq!(answer.status, 413, "{path}: {answer:?}");
        assert!(answer.text().contains(&format!("at most {limit} bytes")), "{path}: {answer:?}");
    }
    let (path, body) = log_in(4_000);
    assert_eq!(default.post(path, &body).await.status, 204);
}

#[tokio::test]
async fn pages_elsewhere_cannot_ask() {
    let fixture = Setup::new(scripted()).start().await;
    let port = fixture.address.port();
    let create = || Request::new("POST", "/v1/sessions").json(&json!({}));
    for request in [
        create().header("origin", "http://evil.example"),
        create().header("origin", "null"),
        create().header("sec-fetch-site", "cross-site"),
        Request::new("GET", "/v1/sessions").header("host", &format!("evil.example:{port}")),
        Request::new("GET", "/v1/events").header("origin", "http://evil.example"),
    ] {
        let answer = fixture.send(request.clone()).await;
        assert_eq!(answer.status, 403, "{request:?}: {answer:?}");
    }
    let form = Request::new("POST", "/v1/sessions").header("content-type", "text/plain").body("{}");
    assert_eq!(fixture.send(form).await.status, 415);
    let own = create().header("origin", &format!("http://127.0.0.1:{port}"));
    assert_eq!(fixture.send(own).await.status, 201);
    let page = fixture.get("/v1/sessions").await;
    assert!(page.header("content-security-policy").starts_with("default-src 'self'"));
    assert_eq!(
        (page.header("x-content-type-options"), page.header("cache-control")),
        ("nosniff", "no-store")
    );
}

#[tokio::test]
async fn tokens_say_who_may_do_what() {
    let (reader, read) = AccessToken::generate("ann", [TokenScope::Read]).unwrap();
    let (runner, run) = AccessToken::generate("ben", [TokenScope::Read, TokenScope::Run]).unwrap();
    let (expired, old) = AccessToken::generate("old", TokenScope::ALL).unwrap();
    let tokens = AccessTokens::new([reader, runner.clone(), expired.with_expiry(Timestamp::from_millis(1))]);
    let fixture = Setup::new(scripted().answer("Hello.")).with_tokens(tokens.clone()).start().await;
    let with = |request: Request, token: &str| request.header("authorization", &format!("Bearer {token}"));
    let list = || Request::new("GET", "/v1/sessions");
    let create = || Request::new("POST", "/v1/sessions").json(&json!({"message": {"text": "Hello"}}));
    for (request, status) in [
        (list(), 401),
        (with(list(), "pintle_0"), 401),
        (with(list(), &old), 401),
        (with(list(), &read), 200),
        (with(create(), &read), 403),
        (with(create(), &run), 201),
        (with(Request::new("DELETE", "/v1/sessions/x"), &run), 403),
        (Request::new("GET", "/v1/health"), 200),
        (Request::new("GET", "/v1/openapi.json"), 401),
    ] {
        let answer = fixture.send(request.clone()).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(!answer.text().contains(&read) && !answer.text().contains(&run), "{answer:?}");
    }
    let id = fixture.send(with(list(), &read)).await.json()["sessions"][0]["id"].as_str().unwrap().to_owned();
    let follow = with(Request::new("GET", &format!("/v1/sessions/{id}/events")), &read);
    fixture.stream_of(follow).await.until_kind("PROCESSING_END").await;
    let journal =
        fixture.send(with(Request::new("GET", &format!("/v1/sessions/{id}/journal")), &read)).await.text();
    let is_signed = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["input"] == "submit" && line["author"] == "ben"
    };
    assert!(journal.lines().any(is_signed), "{journal}");

    let token = fixture.send(with(Request::new("GET", "/v1/token"), &run)).await.json();
    assert_eq!(token, json!({"name": "ben", "scopes": ["read", "run"]}));
    let login = fixture.post("/v1/login", &json!({"token": read})).await;
    assert_eq!(login.status, 204, "{login:?}");
    let cookie = login.header("set-cookie").to_owned();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    assert_eq!(fixture.send(list().header("cookie", &cookie)).await.status, 200);
    assert_eq!(fixture.post("/v1/login", &json!({"token": "x\r\ny"})).await.status, 401);
    tokens.set([runner]);
    assert_eq!(fixture.send(list().header("cookie", &cookie)).await.status, 401, "it was revoked");
}

/// Scopes that each field of a request takes besides those of its operation, which is `run` unless it says otherwise. A field
/// that is missing here fails the test.
const FIELDS: &[(&str, &str, &str, &[TokenScope])] = &[
    ("createSession", "directory", r#""/project""#, &[]),
    ("createSession", "environment", r#""ssh:other""#, &[TokenScope::Approve]),
    ("createSession", "rules", r#"{"allow": ["shell"]}"#, &[TokenScope::Approve]),
    ("createSession", "rules", r#"{"deny": ["shell"]}"#, &[]),
    ("createSession", "grant", "{}", &[]),
    ("createSession", "model", r#""m""#, &[]),
    ("createSession", "mode", r#""auto""#, &[TokenScope::Approve]),
    ("createSession", "effort", r#""low""#, &[]),
    ("createSession", "message", r#"{"text": "hello"}"#, &[]),
    ("changeSession", "model", r#""m""#, &[]),
    ("changeSession", "mode", r#""auto""#, &[TokenScope::Approve]),
    ("changeSession", "effort", r#""low""#, &[]),
    ("forkSession", "turns", "0", &[]),
    ("submit", "text", r#""hello""#, &[]),
    ("submit", "images", "[]", &[]),
    ("followUp", "text", r#""hello""#, &[]),
    ("followUp", "images", "[]", &[]),
    ("say", "text", r#""hello""#, &[]),
    ("say", "images", "[]", &[]),
    ("steer", "text", r#""hello""#, &[]),
    ("steer", "images", "[]", &[]),
    ("rewind", "turns", "0", &[]),
    ("decide", "fingerprint", r#""x""#, &[]),
    ("decide", "decision", r#""approve""#, &[]),
    ("decide", "reason", r#""no""#, &[]),
    ("decide", "arguments", "{}", &[TokenScope::Run]),
    ("steerTask", "text", r#""hello""#, &[]),
    ("steerTask", "candidate", "0", &[]),
    ("decideTask", "gate", r#""result""#, &[]),
    ("decideTask", "place", "0", &[]),
    ("decideTask", "decision", r#""approve""#, &[]),
    ("decideTask", "words", r#""no""#, &[]),
    ("cancelTask", "reason", r#""enough""#, &[]),
];

/// Fields without which no body of an operation is valid, and the scope of the operation.
fn basis(operation: &str) -> (serde_json::Value, TokenScope) {
    match operation {
        "decide" => (json!({"fingerprint": "x", "decision": "change"}), TokenScope::Approve),
        "steerTask" => (json!({"text": "hello"}), TokenScope::Run),
        "decideTask" => (json!({"gate": "result", "decision": "refuse"}), TokenScope::Approve),
        _ => (json!({}), TokenScope::Run),
    }
}

/// Operations whose fields all take only their own scope, or none.
const PLAIN: [&str; 2] = ["restore", "logIn"];

#[tokio::test]
async fn each_field_takes_its_scopes() {
    let every = |scopes: &[TokenScope]| AccessToken::generate("all", scopes).unwrap();
    let (all, of_all) = every(&TokenScope::ALL);
    let lacking = TokenScope::ALL.map(|scope| {
        let others: Vec<TokenScope> = TokenScope::ALL.into_iter().filter(|other| *other != scope).collect();
        (scope, every(&others))
    });
    let tokens: Vec<AccessToken> = lacking.iter().map(|(_, (token, _))| token.clone()).chain([all]).collect();
    let fixture = Setup::new(scripted()).with_tokens(AccessTokens::new(tokens)).start().await;
    let bearer = |secret: &str| format!("Bearer {secret}");
    let send =
        |request: Request, secret: &str| fixture.send(request.header("authorization", &bearer(secret)));
    let description = send(Request::new("GET", "/v1/openapi.json"), &of_all).await.json();
    let created = send(Request::new("POST", "/v1/sessions").json(&json!({})), &of_all).await.json();
    let id = created["id"].as_str().unwrap();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap_or_default();
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let schema = match schema["$ref"].as_str() {
                Some(reference) => description.pointer(&reference[1..]).unwrap(),
                None => schema,
            };
            let Some(fields) = schema["properties"].as_object() else { continue };
            if PLAIN.contains(&name) {
                continue;
            }
            for field in fields.keys() {
                let rows = FIELDS.iter().filter(|row| row.0 == name && row.1 == field);
                let mut is_known = false;
                for (_, _, value, scopes) in rows {
                    is_known = true;
                    let value: serde_json::Value = serde_json::from_str(value).unwrap();
                    let method = if method == "patch" { "PATCH" } else { "POST" };
                    let path = path.replace("{id}", id).replace("{call_id}", "c");
                    let (mut body, own) = basis(name);
                    body[field] = value;
                    for (scope, (_, secret)) in &lacking {
                        let answer = send(Request::new(method, &path).json(&body), secret).await;
                        let is_needed = scopes.contains(scope) || *scope == own;
                        assert_eq!(
                            answer.status == 403,
                            is_needed,
                            "{name} {body} without {scope:?}: {answer:?}"
                        );
                    }
                }
                assert!(is_known, "{name}: the field `{field}` has no row");
            }
        }
    }
    // A fork inherits the fields of its origin.
    let allowing = Request::new("POST", "/v1/sessions").json(&json!({"rules": {"allow": ["shell"]}}));
    let allowing = send(allowing, &of_all).await.json();
    let path = format!("/v1/sessions/{}/fork", allowing["id"].as_str().unwrap());
    for (scope, (_, secret)) in &lacking {
        let answer = send(Request::new("POST", &path).json(&json!({"turns": 0})), secret).await;
        let is_needed = matches!(scope, TokenScope::Run | TokenScope::Approve);
        assert_eq!(answer.status == 403, is_needed, "without {scope:?}: {answer:?}");
    }
}

#[tokio::test]
async fn unknown_fields_of_rules_are_refused() {
    let fixture = Setup::new(scripted()).start().await;
    let answer = fixture.post("/v1/sessions", &json!({"rules": {"permit": ["shell"]}})).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let (a, of_a) = AccessToken::generate("ann", TokenScope::ALL).unwrap();
    let (b, of_b) = AccessToken::generate("ben", TokenScope::ALL).unwrap();
    let tokens = AccessTokens::new([a.with_tenant("a"), b.with_tenant("b")]);
    let fixture = Setup::new(scripted()).with_tokens(tokens).start().await;
    let with = |request: Request, token: &str| request.header("authorization", &format!("Bearer {token}"));
    let create = || Request::new("POST", "/v1/sessions").json(&json!({})).header("idempotency-key", "same");
    let id = fixture.send(with(create(), &of_a)).await.json()["id"].as_str().unwrap().to_owned();
    let other = fixture.send(with(create(), &of_b)).await;
    assert_eq!(other.status, 201, "the key of another tenant is another key: {other:?}");
    assert_ne!(other.json()["id"], json!(id));
    let missing = fixture.send(with(Request::new("GET", "/v1/sessions/none"), &of_b)).await.json();
    let not_found = |path: &str| {
        let mut problem = missing.clone();
        problem["detail"] = json!(format!("there is no session `{path}`"));
        problem
    };
    for (method, path) in [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/events"),
        ("GET", "/journal"),
        ("GET", "/approvals"),
        ("GET", "/history"),
        ("POST", "/interrupt"),
        ("POST", "/abort"),
    ] {
        let request = with(Request::new(method, &format!("/v1/sessions/{id}{path}")), &of_b);
        let answer = fixture.send(request).await;
        assert_eq!((answer.status, answer.json()), (404, not_found(&id)), "{method} {path}");
    }
    let listed = fixture.send(with(Request::new("GET", "/v1/sessions"), &of_b)).await.json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test]
async fn a_head_that_never_ends_is_given_up() {
    let limits = ServerLimits::default().with_head_time(std::time::Duration::from_millis(100));
    let fixture = Setup::new(scripted()).with_limits(limits).start().await;
    let mut slow = tokio::net::TcpStream::connect(fixture.address).await.unwrap();
    slow.write_all(b"GET /v1/health HTTP/1.1\r\nhost: localhost\r\nx-slow: ").await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(PATIENCE, slow.read_to_end(&mut rest)).await;
    assert!(read.is_ok(), "the server closes the connection");
    let mut flood = tokio::net::TcpStream::connect(fixture.address).await.unwrap();
    let head: String = (0..200).map(|number| format!("x-{number}: y\r\n")).collect();
    flood
        .write_all(format!("GET /v1/health HTTP/1.1\r\nhost: localhost\r\n{head}\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    let _ = tokio::time::timeout(PATIENCE, flood.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(fixture.get("/v1/health").await.status, 200);
}

#[tokio::test]
async fn the_description_names_every_operation() {
    let fixture = Setup::new(scripted()).start().await;
    let description = fixture.get("/v1/openapi.json").await.json();
    assert_eq!(description["openapi"], "3.1.0");
    let mut ids: Vec<&str> = description["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|path| path.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "ids are used once");
    assert!(count >= 20, "{ids:?}");
    let text = description.to_string();
    for reference in text.split("\"$ref\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(description.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn the_description_bounds_what_is_refused() {
    let fixture = Setup::new(scripted()).start().await;
    let description = fixture.get("/v1/openapi.json").await.json();
    let schema = |name: &str| {
        let reference =
            json!({"$ref": format!("#/components/schemas/{name}"), "components": description["components"]});
        jsonschema::validator_for(&reference).unwrap()
    };
    let mut rows = vec![
        ("MessageBody", json!({"text": "x"}), true),
        ("MessageBody", json!({"text": "", "images": [{"data": "AA==", "media_type": "image/png"}]}), true),
        ("MessageBody", json!({"images": [{"data": "AB==", "media_type": "image/png"}]}), false),
        ("MessageBody", json!({}), false),
        ("MessageBody", json!({"text": " \u{85}"}), false),
        ("MessageBody", json!({"text": "", "images": []}), false),
        ("RewindBody", json!({"turns": -1}), false),
        ("RewindBody", json!({"turns": 1e30}), false),
        ("RestoreBody", json!({"turns": 1, "conversation": true}), true),
        ("RestoreBody", json!({"checkpoint": "c"}), true),
        ("RestoreBody", json!({"turns": null}), false),
        ("RestoreBody", json!({"turns": 1, "checkpoint": "c"}), false),
        ("RestoreBody", json!({"checkpoint": "c", "conversation": true}), false),
        ("DecisionBody", json!({"fingerprint": "0", "decision": "approve"}), true),
        ("DecisionBody", json!({"fingerprint": "0", "decision": "deny", "reason": "no"}), true),
        ("DecisionBody", json!({"fingerprint": "0", "decision": "change", "arguments": {}}), true),
        ("DecisionBody", json!({"fingerprint": "0", "decision": "change"}), false),
        ("DecisionBody", json!({"fingerprint": "0", "decision": "approve", "reason": "no"}), false),
        ("DecisionBody", json!({"fingerprint": "0", "decision": "deny", "arguments": {}}), false),
        ("DecisionBody", json!({"fingerprint": "x", "decision": "deny"}), false),
    ];
    if cfg!(feature = "tasks") {
        rows.extend([
            ("DecideBody", json!({"gate": "result", "decision": "refuse", "words": "more"}), true),
            ("DecideBody", json!({"gate": "result", "decision": "refuse", "words": " "}), false),
            ("DecideBody", json!({"gate": "result", "decision": "approve", "words": "more"}), false),
            ("SteerBody", json!({"text": " "}), false),
            ("CancelBody", json!({"reason": ""}), false),
        ]);
    }
    for (name, body, is_valid) in rows {
        assert_eq!(schema(name).is_valid(&body), is_valid, "{name} {body}");
    }
    let parameter = |path: &str, name: &str| {
        let parameters = description["paths"][path]["get"]["parameters"].as_array().unwrap();
        parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"].clone()
    };
    for (path, query, is_valid) in [
        ("/v1/sessions", "limit=500", true),
        ("/v1/sessions", "limit=501", false),
        ("/v1/sessions", "cursor=1.s", true),
        ("/v1/sessions", "cursor=x", false),
        ("/v1/costs", "days=366", true),
        ("/v1/costs", "days=367", false),
        ("/v1/streams", "follow=1:sessions,2:session:s@1-2", true),
        ("/v1/streams", "follow=1:sessions,", false),
    ] {
        let (name, value) = query.split_once('=').unwrap();
        let schema = parameter(path, name);
        let value =
            if schema["type"] == "integer" { json!(value.parse::<u64>().unwrap()) } else { json!(value) };
        assert_eq!(jsonschema::is_valid(&schema, &value), is_valid, "{path} {query}");
        if !is_valid {
            assert_eq!(fixture.get(&format!("{path}?{query}")).await.status, 400, "{path} {query}");
        }
    }
    for (path, method) in
        [("/v1/login", "post"), ("/v1/login", "delete"), ("/v1/health", "get"), ("/v1/ready", "get")]
    {
        assert_eq!(description["paths"][path][method]["security"], json!([]), "{method} {path}");
    }
}

#[tokio::test]
async fn slow_senders_without_a_token_keep_nobody_out() {
    use tokio::io::AsyncWriteExt as _;
    let (token, secret) = AccessToken::generate("ann", TokenScope::ALL).unwrap();
    let limits = ServerLimits::default().with_connections(40, 8);
    let setup = Setup::new(scripted()).with_tokens(AccessTokens::new([token])).with_limits(limits);
    let fixture = setup.start().await;
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = tokio::net::TcpStream::connect(fixture.address).await.unwrap();
        let head = format!(
            "POST /v1/login HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{",
            fixture.address
        );
        // One that had to make way is closed.
        let _ = stream.write_all(head.as_bytes()).await;
        slow.push(stream);
    }
    assert_eq!(fixture.send(Request::new("GET", "/v1/health")).await.status, 200);
    let list = Request::new("GET", "/v1/sessions").header("authorization", &format!("Bearer {secret}"));
    assert_eq!(fixture.send(list).await.status, 200);
}
