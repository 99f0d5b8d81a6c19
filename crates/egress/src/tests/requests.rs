//! Requests of HTTP without a tunnel, and credentials.

use super::*;

async fn ask(client: &mut TcpStream, request: &str) -> (u16, String) {
    client.write_all(request.as_bytes()).await.unwrap();
    read_response(client).await
}

#[tokio::test]
async fn requests_are_forwarded_on_one_connection() {
    let mut fixture = Fixture::start(&["a.example:*", "127.0.0.1:*"], Limits::default()).await;
    let (port, connections) = fixture.http().await;
    let mut client = fixture.client().await;
    for _ in 0..3 {
        let request = format!(
            "GET http://a.example:{port}/x?y HTTP/1.1\r\nHost: a.example:{port}\r\nX-Kept: 1\r\nConnection: keep-alive, x-gone\r\nX-Gone: 1\r\n{}\r\n",
            fixture.credential(),
        );
        let (status, body) = ask(&mut client, &request).await;
        assert_eq!(status, 200, "{body}");
        assert!(body.starts_with("GET /x?y HTTP/1.1\r\n"), "{body}");
        assert!(body.contains("x-kept: 1\r\n"), "{body}");
        for absent in ["x-gone", "proxy-authorization", "connection"] {
            assert!(!body.contains(absent), "{absent}: {body}");
        }
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert_eq!(fixture.names.lookups.load(Ordering::Relaxed), 1);
    assert_eq!(fixture.traffic(), [format!("1 HTTP a.example:{port}: allowed")]);
    let entry = fixture.admission.traffic().entries.pop().unwrap();
    assert!(entry.sent > 100 && entry.received > 300, "{entry:?}");
}

#[tokio::test]
async fn refused_requests_name_the_reason() {
    let allow = ["a.example:*", "127.0.0.1:*", "private.example", "mixed.example:*", "missing.example"];
    let mut fixture = Fixture::start(&allow, Limits::default()).await;
    let (port, connections) = fixture.http().await;
    for (target, host, status, reason) in [
        ("http://b.example/", "b.example", 403, "b.example:80 is refused: no rule names it"),
        ("http://1.1.1.1/", "1.1.1.1", 403, "1.1.1.1:80 is refused: it is an address"),
        ("http://private.example/", "private.example", 403, "10.0.0.1 is a private address"),
        // No address is tried if one is refused.
        ("http://mixed.example:{port}/", "mixed.example", 403, "169.254.169.254 is a link-local address"),
        ("http://missing.example/", "missing.example", 502, "cannot be resolved"),
        ("http://a.example:{port}/", "b.example", 403, "the request names the host `b.example`"),
        ("http://a.example:{port}/", "a b", 403, "expected a valid `Host`"),
        ("https://a.example/", "a.example", 403, "expected a URL with http:"),
        ("/x", "a.example", 403, "expected a URL with http:"),
        ("http://127.1/", "127.1", 403, "expected a URL with a valid host"),
    ] {
        let target = target.replace("{port}", &port.to_string());
        let mut client = fixture.client().await;
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{}\r\n", fixture.credential());
        let (found, body) = ask(&mut client, &request).await;
        assert_eq!(found, status, "{target}: {body}");
        assert!(body.contains(reason), "{target}: {body}");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 0);
    let report = fixture.admission.traffic();
    assert!(report.refused().any(|(target, _)| target == "b.example:80"), "{report:?}");
    assert!(report.entries.iter().all(|entry| entry.sent == 0 && entry.received == 0), "{report:?}");
}

#[tokio::test]
async fn only_a_known_credential_is_served() {
    let mut fixture = Fixture::start(&["a.example:*", "127.0.0.1:*"], Limits::default()).await;
    let (port, connections) = fixture.http().await;
    let unknown = format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode("pintle:unknown"));
    let get = format!("GET http://a.example:{port}/ HTTP/1.1\r\nHost: a.example\r\n");
    let connect = format!("CONNECT a.example:{port} HTTP/1.1\r\nHost: a.example\r\n");
    for start in [&get, &connect] {
        for credential in ["", &unknown, "Proxy-Authorization: Bearer x\r\n"] {
            let mut client = fixture.client().await;
            let (status, _) = ask(&mut client, &format!("{start}{credential}\r\n")).await;
            assert_eq!(status, 407, "{start} {credential}");
        }
    }
    assert_eq!(connections.load(Ordering::Relaxed), 0);
    // The connection stays usable, and keeps its credential.
    let mut client = fixture.client().await;
    assert_eq!(ask(&mut client, &format!("{get}\r\n")).await.0, 407);
    assert_eq!(ask(&mut client, &format!("{get}{}\r\n", fixture.credential())).await.0, 200);
    let other = fixture.proxy.admit(HostRules::nothing()).unwrap();
    let encoded = STANDARD.encode(format!("pintle:{}", other.token()));
    let foreign = format!("{get}Proxy-Authorization: Basic {encoded}\r\n\r\n");
    assert_eq!(ask(&mut client, &foreign).await.0, 407);
    // Each credential has its own rules and its own record.
    let mut client = fixture.client().await;
    assert_eq!(ask(&mut client, &foreign).await.0, 403);
    assert_eq!(other.traffic().entries.len(), 1);
    assert_eq!(fixture.traffic(), [format!("1 HTTP a.example:{port}: allowed")]);
    assert!(!format!("{:?} {other:?}", fixture.proxy).contains(other.token()));
}

#[tokio::test]
async fn the_variables_name_the_proxy_and_the_credential() {
    let fixture = Fixture::start(&[], Limits::default()).await;
    let variables = fixture.admission.variables(fixture.address);
    let url = format!("http://pintle:{}@{}", fixture.admission.token(), fixture.address);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        assert!(variables.contains(&(name.to_owned(), url.clone())), "{name}");
    }
    let local = "localhost,127.0.0.1,::1".to_owned();
    assert!(variables.contains(&("no_proxy".to_owned(), local)));
    assert_eq!(variables.len(), 8);
}
