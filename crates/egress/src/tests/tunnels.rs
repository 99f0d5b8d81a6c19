//! Tunnels by CONNECT and SOCKS5.

use super::*;
use crate::{Refusal, client_hello::tests::hello};

const ALLOW: [&str; 3] = ["a.example:*", "127.0.0.1:*", "private.example:*"];

/// Opens a tunnel by SOCKS5. Returns the client and the code of the reply.
async fn socks(fixture: &Fixture, command: u8, host: &[u8], port: u16) -> (TcpStream, u8) {
    let mut client = fixture.client().await;
    let token = fixture.admission.token().as_bytes();
    client.write_all(&[5, 2, 0, 2]).await.unwrap();
    assert_eq!((client.read_u8().await.unwrap(), client.read_u8().await.unwrap()), (5, 2));
    let user = [&[1, 1, b'u', u8::try_from(token.len()).unwrap()][..], token].concat();
    client.write_all(&user).await.unwrap();
    assert_eq!((client.read_u8().await.unwrap(), client.read_u8().await.unwrap()), (1, 0));
    let request = [&[5, command, 0][..], host, &port.to_be_bytes()].concat();
    client.write_all(&request).await.unwrap();
    let mut reply = [0; 10];
    client.read_exact(&mut reply).await.unwrap();
    (client, reply[1])
}

fn name(name: &str) -> Vec<u8> {
    [&[3, u8::try_from(name.len()).unwrap()][..], name.as_bytes()].concat()
}

async fn echoes(client: &mut TcpStream, bytes: &[u8]) -> bool {
    client.write_all(bytes).await.unwrap();
    let mut found = vec![0; bytes.len()];
    client.read_exact(&mut found).await.is_ok() && found == bytes
}

#[tokio::test]
async fn tunnels_pass_bytes_and_count_them() {
    let mut fixture = Fixture::start(&ALLOW, Limits::default()).await;
    let port = fixture.echo().await;
    let (mut client, status) = fixture.connect(&format!("A.example.:{port}")).await;
    assert_eq!(status, 200);
    assert!(echoes(&mut client, b"SSH-2.0").await);
    assert!(echoes(&mut client, &vec![7; 100_000]).await);
    drop(client);
    let (mut client, code) = socks(&fixture, 1, &name("a.example"), port).await;
    assert_eq!(code, 0);
    assert!(echoes(&mut client, b"SSH-2.0").await);
    drop(client);
    let (mut client, code) = socks(&fixture, 1, &[1, 127, 0, 0, 1], port).await;
    assert_eq!(code, 0);
    assert!(echoes(&mut client, &hello_without_name()).await);
    assert_eq!(
        fixture.traffic(),
        [
            format!("1 SOCKS5 127.0.0.1:{port}: allowed"),
            format!("1 CONNECT a.example:{port}: allowed"),
            format!("1 SOCKS5 a.example:{port}: allowed"),
        ]
    );
    let entry = &fixture.admission.traffic().entries[1];
    assert_eq!((entry.sent, entry.received), (100_007, 100_007));
}

fn hello_without_name() -> Vec<u8> {
    let start = [22, 3, 1, 0, 47, 1, 0, 0, 43, 3, 3];
    [&start[..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0, 0, 0]].concat()
}

#[tokio::test]
async fn a_server_may_speak_first() {
    let mut fixture = Fixture::start(&ALLOW, Limits::default()).await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    fixture.tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 ready\r\n").await.unwrap();
        read_rest(&mut stream).await;
    });
    let (mut client, status) = fixture.connect(&format!("a.example:{port}")).await;
    assert_eq!(status, 200);
    let mut greeting = [0; 11];
    client.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"220 ready\r\n");
}

#[tokio::test]
async fn refused_targets_are_not_reached() {
    let mut fixture = Fixture::start(&ALLOW, Limits::default()).await;
    let port = fixture.echo().await;
    for (target, expected) in [
        ("b.example:443", 403),
        ("1.1.1.1:443", 403),
        ("[::1]:443", 403),
        ("[::ffff:10.0.0.1]:443", 403),
        ("private.example:443", 403),
        ("a.example:1", 502),
    ] {
        assert_eq!(fixture.connect(target).await.1, expected, "{target}");
    }
    for (command, host, expected) in [
        (1, name("b.example"), 2),
        (1, name("private.example"), 2),
        (1, name("a b"), 2),
        (1, vec![1, 169, 254, 169, 254], 2),
        (1, [&[4][..], &[0; 15], &[1]].concat(), 2),
        // A listener, and UDP.
        (2, name("a.example"), 7),
        (3, name("a.example"), 7),
    ] {
        assert_eq!(socks(&fixture, command, &host, port).await.1, expected, "{command} {host:?}");
    }
    let report = fixture.admission.traffic();
    assert!(report.entries.iter().all(|entry| entry.refusal.is_some() && entry.sent == 0), "{report:?}");
    assert!(report.refused().any(|(target, refusal)| {
        target == "private.example:443" && matches!(refusal, Refusal::SpecialAddress { .. })
    }));
}

#[tokio::test]
async fn clients_of_socks_need_the_credential() {
    let fixture = Fixture::start(&ALLOW, Limits::default()).await;
    let mut client = fixture.client().await;
    client.write_all(&[5, 1, 0]).await.unwrap();
    assert_eq!(read_rest(&mut client).await, [5, 0xff]);
    let mut client = fixture.client().await;
    client.write_all(&[5, 1, 2, 1, 1, b'u', 1, b'x']).await.unwrap();
    assert_eq!(read_rest(&mut client).await, [5, 2, 1, 1]);
    // SOCKS4 has no credentials.
    let mut client = fixture.client().await;
    client.write_all(&[4, 1, 0, 80, 127, 0, 0, 1, 0]).await.unwrap();
    let rest = String::from_utf8_lossy(&read_rest(&mut client).await).into_owned();
    assert!(!rest.contains("200"), "{rest}");
    assert_eq!(fixture.traffic(), Vec::<String>::new());
}

#[tokio::test]
async fn tls_for_another_host_ends_the_tunnel() {
    let mut fixture = Fixture::start(&ALLOW, Limits::default()).await;
    let port = fixture.echo().await;
    let target = format!("a.example:{port}");
    // In pieces, and in many records.
    let (mut client, _) = fixture.connect(&target).await;
    let message = hello("a.example", 30);
    for part in message.chunks(7) {
        client.write_all(part).await.unwrap();
        client.flush().await.unwrap();
    }
    let mut echoed = vec![0; message.len()];
    client.read_exact(&mut echoed).await.unwrap();
    assert_eq!(echoed, message);
    for first in [hello("b.example", 30), hello_without_name(), vec![22, 9, 9, 9, 9, 9]] {
        let (mut client, status) = fixture.connect(&target).await;
        assert_eq!(status, 200);
        client.write_all(&first).await.unwrap();
        assert_eq!(read_rest(&mut client).await, [21, 3, 1, 0, 2, 2, 112]);
    }
    assert_eq!(
        fixture.traffic(),
        [
            format!("1 CONNECT {target}: allowed"),
            format!("1 CONNECT {target}: the request names the host `b.example`"),
            format!("1 CONNECT {target}: the TLS handshake names no host"),
            format!("1 CONNECT {target}: invalid request: expected a valid TLS handshake"),
        ]
    );
}

#[tokio::test]
async fn each_request_in_a_tunnel_names_its_host() {
    let mut fixture = Fixture::start(&ALLOW, Limits::default()).await;
    let (port, connections) = fixture.http().await;
    let (mut client, _) = fixture.connect(&format!("a.example:{port}")).await;
    for (line, host, expected) in [
        ("GET /x HTTP/1.1", "a.example", 200),
        ("GET /x HTTP/1.1", "b.example", 403),
        ("GET http://b.example/ HTTP/1.1", "a.example", 403),
        ("GET /y HTTP/1.1", "a.example", 200),
    ] {
        let request = format!("{line}\r\nHost: {host}\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(read_response(&mut client).await.0, expected, "{line} {host}");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert_eq!(
        fixture.traffic(),
        [
            format!("1 CONNECT a.example:{port}: allowed"),
            format!("2 CONNECT a.example:{port}: the request names the host `b.example`"),
        ]
    );
}
