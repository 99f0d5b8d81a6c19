mod certificate;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;

/// A server on loopback that answers each request by its path, until it is dropped.
struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                connections.spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        if stream.read(&mut byte).await.unwrap_or(0) == 0 {
                            return;
                        }
                        head.push(byte[0]);
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    // The client closes the connection when it has read enough.
                    let _ = stream.write_all(&response(&path, &head)).await;
                    match path.as_str() {
                        "/stall" => std::future::pending::<()>().await,
                        "/endless" => while stream.write_all(&[b'x'; 4096]).await.is_ok() {},
                        "/endless-headers" => while stream.write_all(b"X-More: x\r\n").await.is_ok() {},
                        "/endless-header" => while stream.write_all(&[b'x'; 4096]).await.is_ok() {},
                        _ => {}
                    }
                });
            }
        });
        Self { address, requests, _tasks: tasks }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn response(path: &str, head: &str) -> Vec<u8> {
    let complete = |status: &str, headers: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    let html = "Content-Type: text/html; charset=utf-8\r\n";
    let to = |location: &str| complete("302 Found", &format!("Location: {location}\r\n"), b"");
    match path {
        "/page" => complete("200 OK", html, "<h1>Grüße</h1><a href=/x>x</a>".as_bytes()),
        "/json" => complete("200 OK", "Content-Type: application/json\r\n", b"{\"a\": 1}"),
        "/latin" => complete("200 OK", "Content-Type: text/plain; charset=iso-8859-1\r\n", b"caf\xE9"),
        "/sjis" => complete(
            "200 OK",
            "Content-Type: text/html; charset=Shift_JIS\r\n",
            b"<p>\x93\xFA\x96\x7B\x8C\xEA",
        ),
        "/gbk" => complete("200 OK", "Content-Type: text/html\r\n", b"<meta charset=gbk><p>\xD6\xD0\xCE\xC4"),
        "/utf-16" => complete("200 OK", "Content-Type: text/plain\r\n", b"\xFF\xFEa\0"),
        "/unnamed" => complete("200 OK", "", b"plain"),
        "/zero" => complete("200 OK", "", b"a\0b"),
        "/pdf" => complete("200 OK", "Content-Type: application/pdf\r\n", b"%PDF-"),
        "/gone" => complete("410 Gone", html, b"<p>It is gone."),
        "/big" => complete("200 OK", "Content-Type: text/plain\r\n", &b"0123456789".repeat(10_000)),
        "/stall" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nhalf".to_vec(),
        "/endless" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec(),
        "/endless-headers" | "/endless-header" => b"HTTP/1.1 200 OK\r\nX-First: ".to_vec(),
        "/broken" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nhalf".to_vec(),
        "/head" => complete("200 OK", "Content-Type: text/plain\r\n", head.as_bytes()),
        "/to-page" => to("page"),
        "/loop" => to("/loop"),
        "/to-loopback" => to("http://127.0.0.2:1/secret"),
        "/to-name" => to("http://localhost:1/secret"),
        "/to-metadata" => to("//169.254.169.254/latest"),
        "/to-file" => to("file:///etc/passwd"),
        "/to-nowhere" => to("http://["),
        "/to-long" => to(&"x".repeat(MAX_URL)),
        "/packed" => complete("200 OK", "Content-Type: text/html\r\nContent-Encoding: gzip\r\n", b"\x1F\x8B"),
        "/as-it-is" => complete("200 OK", "Content-Type: text/plain\r\nContent-Encoding: identity\r\n", b"a"),
        "/not-modified" => complete("304 Not Modified", "", b""),
        other => complete("404 Not Found", html, other.as_bytes()),
    }
}

fn client() -> HttpWebClient {
    HttpWebClient::new(FetchLimits::default(), AddressRules::public_only().with_host("127.0.0.1"))
}

async fn fetch(client: &HttpWebClient, url: &str) -> Result<WebPage, (WebErrorKind, String)> {
    client.fetch(FetchRequest::new(url)).await.map_err(|error| (error.kind(), error.to_string()))
}

#[tokio::test]
async fn pages_are_converted_to_text() {
    let server = Server::start().await;
    let client = client();
    let base = server.url("");
    let cases = [
        ("/page", 200, "text/html", format!("# Grüße\n\n[x]({base}/x)\n")),
        ("/json", 200, "application/json", "{\"a\": 1}".to_owned()),
        ("/latin", 200, "text/plain", "café".to_owned()),
        ("/sjis", 200, "text/html", "日本語\n".to_owned()),
        ("/gbk", 200, "text/html", "中文\n".to_owned()),
        ("/utf-16", 200, "text/plain", "a".to_owned()),
        ("/unnamed", 200, "", "plain".to_owned()),
        ("/gone", 410, "text/html", "It is gone.\n".to_owned()),
        ("/missing", 404, "text/html", "/missing\n".to_owned()),
        ("/not-modified", 304, "", String::new()),
        ("/as-it-is", 200, "text/plain", "a".to_owned()),
    ];
    for (path, status, media_type, text) in cases {
        let page = fetch(&client, &server.url(path)).await.unwrap();
        assert_eq!(page, WebPage::new(server.url(path), status, media_type, text), "{path}");
    }
}

#[tokio::test]
async fn redirects_are_followed_up_to_a_limit() {
    let server = Server::start().await;
    let page = fetch(&client(), &server.url("/to-page")).await.unwrap();
    assert_eq!((page.url, page.status), (server.url("/page"), 200));
    let (kind, message) = fetch(&client(), &server.url("/loop")).await.unwrap_err();
    assert_eq!(kind, WebErrorKind::TooManyRedirects);
    assert_eq!(message, format!("more than 5 redirects; the last one led to {}", server.url("/loop")));
    assert_eq!(server.requests(), 2 + 6);
}

#[tokio::test]
async fn a_client_can_be_held_to_the_host_of_a_call() {
    let server = Server::start().await;
    let held = client().staying_on_host();
    assert_eq!(fetch(&held, &server.url("/to-page")).await.unwrap().url, server.url("/page"));
    let (kind, message) = fetch(&held, &server.url("/to-loopback")).await.unwrap_err();
    assert_eq!(kind, WebErrorKind::Refused);
    assert!(message.contains("leads to another host") && message.contains("127.0.0.2"), "{message}");
    let hosts = ["https://Docs.RS/a", "http://user@docs.rs:8080/", "docs.rs"].map(|url| held.host(url));
    let host = |host: &str| Some(host.to_owned());
    assert_eq!(hosts, [host("docs.rs"), host("docs.rs"), None]);
}

#[test]
fn names_of_hosts_have_one_form() {
    let host = |url: &str| client().host(url);
    for url in [
        "https://xn--bcher-kva.example/",
        "https://b\u{fc}cher.example/",
        "https://BU\u{308}CHER\u{3002}example/",
    ] {
        assert_eq!(host(url).as_deref(), Some("xn--bcher-kva.example"), "{url}");
    }
    // Digits of full width are an address, which the rules of addresses judge.
    assert_eq!(host("http://\u{ff11}27.0.0.1/").as_deref(), Some("127.0.0.1"));
    for url in ["https://a\u{202e}b.example/", "https://xn--a.example/", "https://a%00b.example/"] {
        assert_eq!(host(url), None, "{url:?}");
    }
}

#[tokio::test]
async fn redirects_obey_the_address_rules() {
    let server = Server::start().await;
    let cases = [
        (
            "/to-loopback",
            WebErrorKind::Refused,
            "127.0.0.2 may not be reached: 127.0.0.2 is a loopback address",
        ),
        (
            "/to-metadata",
            WebErrorKind::Refused,
            "169.254.169.254 may not be reached: 169.254.169.254 is a link-local address",
        ),
        (
            "/to-file",
            WebErrorKind::InvalidUrl,
            "the scheme file: is not supported; the URL must begin with https:// or http://",
        ),
    ];
    for (path, kind, message) in cases {
        let refused = fetch(&client(), &server.url(path)).await.unwrap_err();
        assert_eq!(refused, (kind, message.to_owned()), "{path}");
    }
    let (kind, message) = fetch(&client(), &server.url("/to-name")).await.unwrap_err();
    assert_eq!(kind, WebErrorKind::Refused);
    assert!(
        message.starts_with("localhost may not be reached: ") && message.ends_with("is a loopback address"),
        "{message}"
    );
    let (kind, message) = fetch(&client(), &server.url("/to-nowhere")).await.unwrap_err();
    assert_eq!(kind, WebErrorKind::Failed);
    assert!(message.contains("redirects to an invalid URL"), "{message}");
}

#[tokio::test]
async fn every_address_of_a_name_is_checked() {
    let server = Server::start().await;
    let lookups = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lookups);
    let lookup: HostLookup = Arc::new(move |host| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let loopback = IpAddr::from([127, 0, 0, 1]);
            Ok(match host.as_str() {
                "inside.test" => vec![loopback],
                "both.test" => vec![IpAddr::from([1, 1, 1, 1]), loopback],
                _ => return Err(std::io::Error::other("no such name")),
            })
        })
    });
    let port = server.address.port();
    let url = |host: &str| format!("http://{host}:{port}/json");
    let strict =
        HttpWebClient::with_lookup(FetchLimits::default(), AddressRules::public_only(), Arc::clone(&lookup));
    for host in ["inside.test", "both.test"] {
        let expected = format!("{host} may not be reached: 127.0.0.1 is a loopback address");
        assert_eq!(fetch(&strict, &url(host)).await.unwrap_err(), (WebErrorKind::Refused, expected));
    }
    let (kind, message) = fetch(&strict, &url("unknown.test")).await.unwrap_err();
    assert_eq!(
        (kind, message.as_str()),
        (WebErrorKind::Failed, "cannot connect to unknown.test: no such name")
    );
    assert_eq!(server.requests(), 0);
    let rules = AddressRules::public_only().with_host("Inside.test");
    let open = HttpWebClient::with_lookup(FetchLimits::default(), rules, lookup);
    lookups.store(0, Ordering::SeqCst);
    assert_eq!(fetch(&open, &url("inside.test")).await.unwrap().text, "{\"a\": 1}");
    assert_eq!(lookups.load(Ordering::SeqCst), 1, "connects to the address that was checked");
}

#[tokio::test]
async fn only_hosts_of_the_rules_are_reached() {
    let server = Server::start().await;
    let port = server.address.port();
    let lookup: HostLookup = Arc::new(|_| Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) }));
    let patterns = |texts: &[String]| {
        texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<pintle_egress::HostPattern>>()
    };
    let limited = |allow: &[String], deny: &[String]| {
        HttpWebClient::with_lookup(FetchLimits::default(), AddressRules::any(), Arc::clone(&lookup))
            .with_hosts(HostRules::new(patterns(allow), patterns(deny)))
    };
    let allowed = [format!("*.test:{port}"), format!("127.0.0.1:{port}")];
    let client = limited(&allowed, &["denied.test".to_owned()]);
    assert!(fetch(&client, &format!("http://a.test:{port}/json")).await.is_ok());
    assert!(fetch(&client, &server.url("/json")).await.is_ok());
    assert_eq!(server.requests(), 2);
    for (url, reason) in [
        ("http://other.example/".to_owned(), "other.example may not be reached: no rule names it"),
        ("http://a.test/".to_owned(), "a.test may not be reached: no rule names it"),
        (
            format!("http://denied.test:{port}/"),
            "denied.test may not be reached: the rule `denied.test` denies it",
        ),
        (
            "http://127.0.0.1:9/".to_owned(),
            "127.0.0.1 may not be reached: it is an address, and no rule names the address",
        ),
    ] {
        let expected = (WebErrorKind::Refused, reason.to_owned());
        assert_eq!(fetch(&client, &url).await.unwrap_err(), expected, "{url}");
    }
    assert_eq!(server.requests(), 2);
    // A redirect is a request of its target.
    let (kind, message) = fetch(&client, &server.url("/to-name")).await.unwrap_err();
    assert_eq!(
        (kind, message.as_str()),
        (WebErrorKind::Refused, "localhost may not be reached: no rule names it")
    );
    let denied = limited(&[format!("*.test:{port}")], &["127.0.0.0/8".to_owned()]);
    let expected = "a.test may not be reached: the rule `127.0.0.0/8` denies its address".to_owned();
    let found = fetch(&denied, &format!("http://a.test:{port}/json")).await.unwrap_err();
    assert_eq!(found, (WebErrorKind::Refused, expected));
    assert_eq!(server.requests(), 3);
}

#[tokio::test]
async fn size_and_time_are_limited() {
    let server = Server::start().await;
    let rules = AddressRules::any();
    let small = HttpWebClient::new(FetchLimits::default().with_bytes(25), rules.clone());
    let page = fetch(&small, &server.url("/big")).await.unwrap();
    assert_eq!((page.text.as_str(), page.cut_at), ("0123456789012345678901234", Some(25)));
    let page = fetch(&small, &server.url("/endless")).await.unwrap();
    assert_eq!((page.text.len(), page.cut_at), (25, Some(25)));
    for path in ["/endless-headers", "/endless-header"] {
        let (kind, message) = fetch(&small, &server.url(path)).await.unwrap_err();
        assert_eq!(kind, WebErrorKind::Failed, "{message}");
    }
    let exact = HttpWebClient::new(FetchLimits::default().with_bytes(100_000), rules.clone());
    assert_eq!(fetch(&exact, &server.url("/big")).await.unwrap().cut_at, None);
    let quick = HttpWebClient::new(FetchLimits::default().with_time(Duration::from_millis(300)), rules);
    let error = fetch(&quick, &server.url("/stall")).await.unwrap_err();
    assert_eq!(error, (WebErrorKind::Timeout, "the page was not complete after 0.3 s".to_owned()));
}

#[tokio::test]
async fn binary_and_incomplete_responses_are_errors() {
    let server = Server::start().await;
    let cases = [
        ("/pdf", WebErrorKind::NotText, "is not text: application/pdf, 5 bytes."),
        ("/zero", WebErrorKind::NotText, "is not text: no media type, 3 bytes."),
        ("/packed", WebErrorKind::NotText, "was compressed with gzip, although that was not requested"),
        ("/to-long", WebErrorKind::Failed, "redirects to a URL of 82"),
        ("/broken", WebErrorKind::Failed, "127.0.0.1 sent no complete response: "),
    ];
    for (path, expected, part) in cases {
        let (kind, message) = fetch(&client(), &server.url(path)).await.unwrap_err();
        assert!(kind == expected && message.contains(part), "{path}: {kind:?} {message}");
    }
}

#[tokio::test]
async fn invalid_urls_are_refused_before_connecting() {
    let long = format!("http://a/{}", "x".repeat(MAX_URL));
    let cases = [
        ("example.com", "it must begin with https:// or http://"),
        ("", "it must begin with https:// or http://"),
        ("ftp://example.com/", "the scheme ftp: is not supported"),
        ("http://me@example.com/", "a user name or password"),
        (&long, "the URL has 8201 bytes; at most 8192 are allowed"),
    ];
    for (url, part) in cases {
        let (kind, message) = fetch(&client(), url).await.unwrap_err();
        assert!(kind == WebErrorKind::InvalidUrl && message.contains(part), "{url}: {message}");
    }
}

#[tokio::test]
async fn requests_send_three_headers_only() {
    let server = Server::start().await;
    let head = fetch(&client(), &server.url("/head")).await.unwrap().text;
    let names: Vec<String> =
        head.lines().filter_map(|line| Some(line.split_once(": ")?.0.to_ascii_lowercase())).collect();
    assert_eq!(names, ["accept", "user-agent", "host"]);
    assert!(head.contains("user-agent: pintle/"), "{head}");
}
