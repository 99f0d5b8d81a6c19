//! The contract of the proxy, over sockets on loopback.

mod bounds;
mod requests;
mod tunnels;

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{Admission, HostPattern, HostRules, Limits, Proxy, Resolver};

/// Addresses of names, and how often a name was resolved.
#[derive(Default)]
struct FixedNames {
    names: BTreeMap<String, Vec<IpAddr>>,
    lookups: AtomicUsize,
}

#[async_trait]
impl Resolver for FixedNames {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.names.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A proxy with one credential, which serves on loopback.
struct Fixture {
    proxy: Proxy,
    admission: Admission,
    address: SocketAddr,
    names: Arc<FixedNames>,
    /// The proxy and the servers.
    tasks: JoinSet<()>,
}

const NAMES: [(&str, &[&str]); 4] = [
    ("a.example", &["127.0.0.1"]),
    ("b.example", &["127.0.0.1"]),
    ("private.example", &["10.0.0.1"]),
    ("mixed.example", &["127.0.0.1", "169.254.169.254"]),
];

impl Fixture {
    async fn start(allow: &[&str], limits: Limits) -> Self {
        let address = |text: &&str| text.parse::<IpAddr>().unwrap();
        let names =
            NAMES.map(|(name, found)| (name.to_owned(), found.iter().map(address).collect::<Vec<IpAddr>>()));
        let names = Arc::new(FixedNames { names: names.into(), lookups: AtomicUsize::new(0) });
        let proxy = Proxy::new(Arc::clone(&names) as Arc<dyn Resolver>, limits);
        let patterns: Vec<HostPattern> = allow.iter().map(|text| text.parse().unwrap()).collect();
        let admission = proxy.admit(HostRules::new(patterns, [])).unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        let serving = proxy.clone();
        tasks.spawn(async move {
            serving.serve(listener).await;
        });
        Self { proxy, admission, address, names, tasks }
    }

    /// Starts a server that answers with the bytes that it gets. Returns its port.
    async fn echo(&mut self) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        self.tasks.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                clients.spawn(async move {
                    let (mut reader, mut writer) = stream.split();
                    tokio::io::copy(&mut reader, &mut writer).await.ok();
                });
            }
        });
        port
    }

    /// Starts a server that answers each request of HTTP with the text of its head, and counts its connections.
    async fn http(&mut self) -> (u16, Arc<AtomicUsize>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        self.tasks.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                clients.spawn(async move {
                    while let Some(head) = read_head(&mut stream).await {
                        let length = head.len();
                        let answer = format!(
                            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nkeep-alive: x\r\n\r\n{head}"
                        );
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        (port, connections)
    }

    async fn client(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    fn credential(&self) -> String {
        let encoded = STANDARD.encode(format!("pintle:{}", self.admission.token()));
        format!("Proxy-Authorization: Basic {encoded}\r\n")
    }

    /// Opens a tunnel by CONNECT. Returns the client and the status of the response.
    async fn connect(&self, target: &str) -> (TcpStream, u16) {
        let mut client = self.client().await;
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{}\r\n", self.credential());
        client.write_all(request.as_bytes()).await.unwrap();
        let head = read_head(&mut client).await.unwrap();
        let status = status(&head);
        (client, status)
    }

    /// Returns the entries as text.
    fn traffic(&self) -> Vec<String> {
        let report = self.admission.traffic();
        assert_eq!(report.omitted, 0);
        let entries = report.entries.into_iter().map(|entry| {
            let verdict = entry.refusal.map_or("allowed".to_owned(), |refusal| refusal.to_string());
            format!("{} {} {}: {verdict}", entry.connections, entry.protocol, entry.target)
        });
        entries.collect()
    }
}

/// Reads up to an empty line; `None` at the end.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Reads a response with a length. Returns its status and its body.
async fn read_response(stream: &mut TcpStream) -> (u16, String) {
    let head = read_head(stream).await.unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    (status(&head), String::from_utf8(body).unwrap())
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Waits until the connection ends. Returns the bytes up to then.
async fn read_rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // A reset is an end too.
    stream.read_to_end(&mut rest).await.ok();
    rest
}
