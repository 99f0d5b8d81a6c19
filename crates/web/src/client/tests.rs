mod certificate;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;

/// Answers each request by its path, on loopback, until it is dropped.
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
                    // A client that has read enough hangs up.
                    let _ = stream.write_all(&answer(&path, &head)).await;
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

fn answer(path: &str, head: &str) -> Vec<u8> {
    let whole = |status: &str, headers: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    let html = "Content-Type: text/html; charset=utf-8\r\n";
    let to = |location: &str| whole("302 Found", &format!("Location: {location}\r\n"), b"");
    match path {
        "/page" => whole("200 OK", html, "<h1>Grüße</h1><a href=/x>x</a>".as_bytes()),
        "/json" => whole("200 OK", "Content-Type: application/json\r\n", b"{\"a\": 1}"),
        "/latin" => whole("200 OK", "Content-Type: text/plain; charset=iso-8859-1\r\n", b"caf\xE9"),
        "/unnamed" => whole("200 OK", "", b"plain"),
        "/zero" => whole("200 OK", "", b"a\0b"),
        "/pdf" => whole("200 OK", "Content-Type: application/pdf\r\n", b"%PDF-"),
        "/gone" => whole("410 Gone", html, b"<p>It is gone."),
        "/big" => whole("200 OK", "Content-Type: text/plain\r\n", &b"0123456789".repeat(10_000)),
        "/stall" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nhalf".to_vec(),
        "/endless" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec(),
        "/endless-headers" | "/endless-header" => b"HTTP/1.1 200 OK\r\nX-First: ".to_vec(),
        "/broken" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nhalf".to_vec(),
        "/head" => whole("200 OK", "Content-Type: text/plain\r\n", head.as_bytes()),
        "/to-page" => to("page"),
        "/loop" => to("/loop"),
        "/to-loopback" => to("http://127.0.0.2:1/secret"),
        "/to-name" => to("http://localhost:1/secret"),
        "/to-metadata" => to("//169.254.169.254/latest"),
        "/to-file" => to("file:///etc/passwd"),
        "/to-nowhere" => to("http://["),
        "/to-long" => to(&"x".repeat(MAX_URL)),
        "/packed" => whole("200 OK", "Content-Type: text/html\r\nContent-Encoding: gzip\r\n", b"\x1F\x8B"),
        "/as-it-is" => whole("200 OK", "Content-Type: text/plain\r\nContent-Encoding: identity\r\n", b"a"),
        "/not-modified" => whole("304 Not Modified", "", b""),
        other => whole("404 Not Found", html, other.as_bytes()),
    }
}

fn client() -> HttpWebClient {
    HttpWebClient::new(FetchLimits::default(), AddressRules::public_only().with_host("127.0.0.1"))
}

async fn fetch(client: &HttpWebClient, url: &str) -> Result<WebPage, (WebErrorKind, String)> {
    client.fetch(FetchRequest::new(url)).await.map_err(|error| (error.kind(), error.to_string()))
}

#[tokio::test]
async fn pages_come_as_text() {
    let server = Server::start().await;
    let client = client();
    let base = server.url("");
    let rows = [
        ("/page", 200, "text/html", format!("# Grüße\n\n[x]({base}/x)\n")),
        ("/json", 200, "application/json", "{\"a\": 1}".to_owned()),
        ("/latin", 200, "text/plain", "café".to_owned()),
        ("/unnamed", 200, "", "plain".to_owned()),
        ("/gone", 410, "text/html", "It is gone.\n".to_owned()),
        ("/missing", 404, "text/html", "/missing\n".to_owned()),
        ("/not-modified", 304, "", String::new()),
        ("/as-it-is", 200, "text/plain", "a".to_owned()),
    ];
    for (path, status, media_type, text) in rows {
        let page = fetch(&client, &server.url(path)).await.unwrap();
        assert_eq!(page, WebPage::new(server.url(path), status, media_type, text), "{path}");
    }
}

#[tokio::test]
async fn a_redirect_is_followed_and_the_last_address_named() {
    let server = Server::start().await;
    let page = fetch(&client(), &server.url("/to-page")).await.unwrap();
    assert_eq!((page.url, page.status), (server.url("/page"), 200));
    let (kind, message) = fetch(&client(), &server.url("/loop")).await.unwrap_err();
    assert_eq!(kind, WebErrorKind::TooManyRedirects);
    assert_eq!(message, format!("more than 5 redirects; the last one led to {}", server.url("/loop")));
    assert_eq!(server.requests(), 2 + 6);
}

#[tokio::test]
async fn no_redirect_leads_where_a_request_may_not() {
    let server = Server::start().await;
    let rows = [
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
            "file: is not spoken; the address must begin with https:// or http://",
        ),
    ];
    for (path, kind, message) in rows {
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
    assert!(message.contains("redirects to what is no address"), "{message}");
}

#[tokio::test]
async fn a_name_is_judged_by_every_address_that_it_has() {
    let server = Server::start().await;
    let lookups = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lookups);
    let lookup: Lookup = Arc::new(move |host| {
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
    assert_eq!(
        lookups.load(Ordering::SeqCst),
        1,
        "the address that is connected to is the one that was checked"
    );
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
    assert_eq!(error, (WebErrorKind::Timeout, "the page was not whole after 0.3 s".to_owned()));
}

#[tokio::test]
async fn what_is_no_text_or_no_whole_answer_is_said_so() {
    let server = Server::start().await;
    let rows = [
        ("/pdf", WebErrorKind::NotText, "is no text: application/pdf, 5 bytes."),
        ("/zero", WebErrorKind::NotText, "is no text: of no type, 3 bytes."),
        ("/packed", WebErrorKind::NotText, "came packed as gzip, although that was not asked for"),
        ("/to-long", WebErrorKind::Failed, "redirects to an address of 82"),
        ("/broken", WebErrorKind::Failed, "127.0.0.1 gave no whole answer: "),
    ];
    for (path, expected, part) in rows {
        let (kind, message) = fetch(&client(), &server.url(path)).await.unwrap_err();
        assert!(kind == expected && message.contains(part), "{path}: {kind:?} {message}");
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_before_anything_is_sent() {
    let long = format!("http://a/{}", "x".repeat(MAX_URL));
    let rows = [
        ("example.com", "it must begin with https:// or http://"),
        ("", "it must begin with https:// or http://"),
        ("ftp://example.com/", "ftp: is not spoken"),
        ("http://me@example.com/", "a user name or a password"),
        (&long, "the address has 8201 bytes; at most 8192 are taken"),
    ];
    for (url, part) in rows {
        let (kind, message) = fetch(&client(), url).await.unwrap_err();
        assert!(kind == WebErrorKind::InvalidUrl && message.contains(part), "{url}: {message}");
    }
}

#[tokio::test]
async fn a_request_says_who_asks_and_nothing_else() {
    let server = Server::start().await;
    let head = fetch(&client(), &server.url("/head")).await.unwrap().text;
    let names: Vec<String> =
        head.lines().filter_map(|line| Some(line.split_once(": ")?.0.to_ascii_lowercase())).collect();
    assert_eq!(names, ["accept", "user-agent", "host"]);
    assert!(head.contains("user-agent: pintle/"), "{head}");
}
