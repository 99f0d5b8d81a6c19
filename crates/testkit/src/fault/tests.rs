use std::io::ErrorKind;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

const REQUEST: &[u8] = b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi";

async fn connect(server: &FaultServer) -> TcpStream {
    TcpStream::connect(server.address()).await.unwrap()
}

/// Reads until the end; returns the bytes, and the error of an unclean end.
async fn read_all(client: &mut TcpStream) -> (Vec<u8>, Result<(), ErrorKind>) {
    let mut seen = Vec::new();
    let end = client.read_to_end(&mut seen).await;
    (seen, end.map(drop).map_err(|error| error.kind()))
}

#[tokio::test]
async fn connections_close_or_reset_as_scripted() {
    let responding = FaultScript::new().read_request().write("hello");
    let scripts = [responding.clone(), responding.clone().reset()];
    let server = FaultServer::start(scripts).await.unwrap();
    let ends = [Ok(()), Err(ErrorKind::ConnectionReset), Err(ErrorKind::ConnectionReset)];
    for (index, expected) in ends.into_iter().enumerate() {
        let mut client = connect(&server).await;
        client.write_all(REQUEST).await.unwrap();
        let (seen, end) = read_all(&mut client).await;
        assert_eq!(end, expected, "connection {index}; the last script is reused");
        // A reset may discard sent bytes.
        assert!(seen == b"hello" || (expected.is_err() && seen.is_empty()), "{seen:?}");
    }
    let records = server.finish().await;
    assert_eq!(records.iter().map(|record| record.steps).collect::<Vec<_>>(), [2, 3, 3]);
    assert!(records.iter().all(|record| record.completed && record.written == 5), "{records:?}");
}

#[tokio::test]
async fn without_a_script_connections_are_reset() {
    let server = FaultServer::start([]).await.unwrap();
    let mut client = connect(&server).await;
    assert_eq!(read_all(&mut client).await, (Vec::new(), Err(ErrorKind::ConnectionReset)));
}

#[tokio::test]
async fn gates_hold_until_opened() {
    let gate = FaultGate::new();
    let script = FaultScript::new().write("before").wait(&gate).write("after");
    let server = FaultServer::start([script]).await.unwrap();
    let mut client = connect(&server).await;
    gate.reached().await;
    assert_eq!(server.records().first().map(|record| (record.steps, record.completed)), Some((1, false)));
    gate.open();
    assert_eq!(read_all(&mut client).await, (b"beforeafter".to_vec(), Ok(())));
    gate.reached().await;
}

#[tokio::test]
async fn slow_reads_stop_at_their_limit() {
    let script = FaultScript::new().read_slowly(10, 4, Duration::from_millis(1)).write("ten").await_close();
    let server = FaultServer::start([script]).await.unwrap();
    let mut client = connect(&server).await;
    client.write_all(&[b'x'; 9]).await.unwrap();
    client.write_all(b"x and more").await.unwrap();
    let mut seen = [0; 3];
    client.read_exact(&mut seen).await.unwrap();
    assert_eq!(&seen, b"ten");
    drop(client);
    assert!(server.finish().await.iter().all(|record| record.completed));
}

#[tokio::test]
async fn disconnecting_clients_end_the_script() {
    let endless = FaultScript::new().repeat(vec![b'x'; 1 << 20], usize::MAX, Duration::ZERO);
    let waiting = FaultScript::new().read_request().write("never");
    let server = FaultServer::start([endless, waiting]).await.unwrap();
    let mut first = connect(&server).await;
    first.read_exact(&mut [0; 1024]).await.unwrap();
    drop(first);
    drop(connect(&server).await);
    let records = server.finish().await;
    assert_eq!(
        records.iter().map(|record| (record.steps, record.completed)).collect::<Vec<_>>(),
        [(0, false), (0, false)]
    );
    assert!(records[0].written > 0 && records[1].written == 0, "{records:?}");
}

#[tokio::test]
async fn refusing_ports_refuse() {
    let server = FaultServer::refusing().unwrap();
    for _ in 0..2 {
        let error = TcpStream::connect(server.address()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
    assert!(server.finish().await.is_empty());
}

#[tokio::test]
async fn never_accepting_ports_establish_no_connection() {
    let server = FaultServer::never_accepting().await.unwrap();
    let connected = timeout(FILLER_TIMEOUT, TcpStream::connect(server.address())).await;
    assert!(connected.is_err(), "{connected:?}");
}

#[tokio::test]
async fn dropping_the_server_closes_its_connections() {
    let server = FaultServer::start([FaultScript::new().write("x").await_close()]).await.unwrap();
    let mut client = connect(&server).await;
    client.read_exact(&mut [0; 1]).await.unwrap();
    drop(server);
    assert!(read_all(&mut client).await.0.is_empty());
}
