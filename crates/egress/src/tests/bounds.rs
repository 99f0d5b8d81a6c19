//! Limits, and the end of everything.

use std::time::Duration;

use super::*;

const ALLOW: [&str; 2] = ["a.example:*", "127.0.0.1:*"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_connections_are_served_in_bounds() {
    const CONNECTIONS: usize = 10_000;
    const CLIENTS: usize = 100;
    let limits = Limits { connections: 40, listener_connections: 16, ..Limits::default() };
    let mut fixture = Fixture::start(&ALLOW, limits).await;
    let (port, reached) = fixture.http().await;
    let request = format!(
        "GET http://a.example:{port}/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n{}\r\n",
        fixture.credential()
    );
    let (address, request) = (fixture.address, Arc::<str>::from(request));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let request = Arc::clone(&request);
        clients.spawn(async move {
            for _ in 0..CONNECTIONS / CLIENTS {
                let mut client = TcpStream::connect(address).await.unwrap();
                client.write_all(request.as_bytes()).await.unwrap();
                assert_eq!(read_response(&mut client).await.0, 200);
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
        assert!(fixture.proxy.free_connections() >= 40 - 16);
    }
    assert_eq!(reached.load(Ordering::Relaxed), CONNECTIONS);
    let entry = fixture.admission.traffic().entries.pop().unwrap();
    assert_eq!(entry.connections, CONNECTIONS as u64);
}

#[tokio::test]
async fn waiting_clients_are_served_when_others_end() {
    let limits = Limits { listener_connections: 2, ..Limits::default() };
    let mut fixture = Fixture::start(&ALLOW, limits).await;
    let port = fixture.echo().await;
    let target = format!("a.example:{port}");
    let first = fixture.connect(&target).await;
    let _second = fixture.connect(&target).await;
    let third = fixture.connect(&target);
    tokio::pin!(third);
    // The kernel has accepted the connection, the proxy has not.
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut third).await.is_err());
    drop(first);
    assert_eq!(third.await.1, 200);
}

#[tokio::test]
async fn slow_idle_and_large_clients_are_ended() {
    let limits = Limits {
        head_time: Duration::from_millis(100),
        idle_time: Duration::from_millis(400),
        head_bytes: 8 << 10,
        ..Limits::default()
    };
    let mut fixture = Fixture::start(&ALLOW, limits).await;
    let port = fixture.echo().await;
    for start in [&b""[..], b"GET http://a.example/ HT", &[5, 1]] {
        let mut client = fixture.client().await;
        client.write_all(start).await.unwrap();
        let rest = String::from_utf8_lossy(&read_rest(&mut client).await).into_owned();
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{rest}");
    }
    // A tunnel without bytes.
    let (mut client, _) = fixture.connect(&format!("a.example:{port}")).await;
    client.write_all(b"SSH").await.unwrap();
    assert_eq!(read_rest(&mut client).await, b"SSH");
    let mut client = fixture.client().await;
    let large = format!("GET http://a.example/ HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    client.write_all(large.as_bytes()).await.ok();
    let rest = String::from_utf8_lossy(&read_rest(&mut client).await).into_owned();
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 431"), "{rest}");
}

#[tokio::test]
async fn the_end_of_a_credential_ends_its_connections() {
    let mut fixture = Fixture::start(&ALLOW, Limits::default()).await;
    let port = fixture.echo().await;
    let (mut tunnel, _) = fixture.connect(&format!("a.example:{port}")).await;
    tunnel.write_all(b"SSH").await.unwrap();
    let mut echoed = [0; 3];
    tunnel.read_exact(&mut echoed).await.unwrap();
    let credential = fixture.credential();
    let next = fixture.proxy.admit(HostRules::nothing()).unwrap();
    drop(std::mem::replace(&mut fixture.admission, next));
    assert_eq!(read_rest(&mut tunnel).await, b"");
    assert_eq!(fixture.proxy.credentials(), 1);
    let mut client = fixture.client().await;
    let request = format!("CONNECT a.example:{port} HTTP/1.1\r\nHost: a.example\r\n{credential}\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(read_response(&mut client).await.0, 407);
}

#[tokio::test]
async fn a_dropped_proxy_leaves_no_connection() {
    let mut fixture = Fixture::start(&ALLOW, Limits::default()).await;
    let port = fixture.echo().await;
    let (mut tunnel, _) = fixture.connect(&format!("a.example:{port}")).await;
    let free = fixture.proxy.free_connections();
    assert_eq!(free, Limits::default().connections - 2, "one for the tunnel, one for the next client");
    fixture.tasks.shutdown().await;
    assert_eq!(read_rest(&mut tunnel).await, b"");
    assert_eq!(fixture.proxy.free_connections(), Limits::default().connections);
    assert!(TcpStream::connect(fixture.address).await.is_err());
}
