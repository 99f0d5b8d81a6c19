//! One client connection.

use std::io;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::reply::{EventStream, Reply, ReplyBody};
use super::responder::Responder;
use crate::http::{ReadError, Reader, Writer, reason};

/// Timeout for receiving a complete request after the previous response, and for writing one piece of a response.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(300);

/// Limits in bytes and time for draining a refused request. Closing with unread bytes would reset the connection, and the
/// client would lose the error response.
const LINGER_BYTES: usize = 256 << 20;
const LINGER: Duration = Duration::from_secs(5);

/// Serves one connection until the client closes it, a fault cuts it, or it fails.
pub(super) async fn serve(mut stream: TcpStream, responder: &Responder) {
    // Events are small and must not be delayed. Failure is harmless.
    let _ = stream.set_nodelay(true);
    let mut reader = Reader::new(responder.options().body_bytes);
    loop {
        let request = match timeout(CLIENT_TIMEOUT, reader.next(&mut stream)).await {
            Ok(Ok(request)) => request,
            Ok(Err(error)) => return refuse(&mut stream, &error).await,
            Err(_elapsed) => return,
        };
        let reply = responder.respond(&request);
        match write(&mut stream, reply, request.keep_alive).await {
            Ok(true) if request.keep_alive => {}
            // A client that disconnects is not an error of the server.
            Ok(_) | Err(_) => return,
        }
    }
}

/// Sends an error response for a malformed request, if possible.
async fn refuse(stream: &mut TcpStream, error: &ReadError) {
    if let Some(status) = error.status() {
        let body = json!({"error": {"message": error.to_string(), "type": reason(status)}}).to_string();
        let headers = [("content-type".to_owned(), "application/json".to_owned())];
        // The connection is closed next, even if this fails.
        let _ = timeout(LINGER, async {
            Writer::new(stream, false, LINGER).complete(status, &headers, body.as_bytes(), false).await?;
            linger(stream).await
        })
        .await;
    }
}

/// Ends the response, then discards what the client still sends.
async fn linger(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut scratch = vec![0; 16 << 10];
    let mut left = LINGER_BYTES;
    while left > 0 {
        match stream.read(&mut scratch).await? {
            0 => return Ok(()),
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}

/// Writes a reply; returns `false` if the connection must be closed after it.
async fn write(stream: &mut TcpStream, reply: Reply, keep_alive: bool) -> io::Result<bool> {
    let mut writer = Writer::new(stream, keep_alive, CLIENT_TIMEOUT);
    if !reply.stall.is_zero() {
        sleep(reply.stall).await;
    }
    match reply.body {
        ReplyBody::Close => Ok(false),
        ReplyBody::Complete { status, body, cut } => {
            writer.complete(status, &reply.headers, &body, cut).await?;
            Ok(!cut)
        }
        ReplyBody::Stream(events) => {
            writer.begin(&reply.headers).await?;
            write_events(&mut writer, &events).await
        }
    }
}

async fn write_events(writer: &mut Writer<'_, TcpStream>, events: &EventStream) -> io::Result<bool> {
    for (index, frame) in events.frames.iter().enumerate() {
        if index > 0 && !events.pause.is_zero() {
            sleep(events.pause).await;
        }
        let fault = events.fault.as_ref().filter(|fault| fault.after == index);
        if let Some(fault) = fault {
            sleep(fault.stall).await;
            if fault.cut {
                writer.chunk(&frame.bytes(), true).await?;
                return Ok(false);
            }
        }
        writer.chunk(&frame.bytes(), false).await?;
    }
    writer.end().await?;
    Ok(true)
}
