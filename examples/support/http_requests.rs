//! Requests to a server, in place of a browser.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Sends a request and prints the status, the target of a redirect, and the end of the run in a stream of events.
pub(super) async fn ask(address: SocketAddr, head: &str, body: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let fields = format!("host: {address}\r\nconnection: close\r\ncontent-type: application/json");
    let request = format!("{head}\r\n{fields}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await?;
    let mut lines = BufReader::new(stream).lines();
    let status = lines.next_line().await?.unwrap_or_default();
    let line = head.lines().next().unwrap_or_default();
    let target = line.trim_end_matches(" HTTP/1.1");
    if target.ends_with("/events") {
        while let Some(line) = lines.next_line().await? {
            if line.contains("PROCESSING_END") {
                println!("the session has answered");
                return Ok(());
            }
        }
    }
    println!("{target}: {}", status.trim_start_matches("HTTP/1.1 "));
    while let Some(line) = lines.next_line().await? {
        if line.starts_with("location: ./") {
            println!("  {line}");
        }
    }
    Ok(())
}
