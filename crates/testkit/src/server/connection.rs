//! One connection: requests in, replies out.

use std::io;

use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::reply::{EventStream, Reply, ReplyBody};
use super::responder::Responder;
use crate::http::{ReadError, Reader, Writer, reason};

/// Serves one connection until the client closes it, a fault cuts it, or it fails.
pub(super) async fn serve(mut stream: TcpStream, responder: &Responder) {
    // Events are small and must not wait for each other; a socket that cannot be told so works too.
    let _ = stream.set_nodelay(true);
    let mut reader = Reader::new(responder.options().body_bytes);
    loop {
        let request = match reader.next(&mut stream).await {
            Ok(request) => request,
            Err(error) => {
                refuse(&mut stream, &error).await;
                return;
            }
        };
        let reply = responder.respond(&request);
        match write(&mut stream, reply, request.keep_alive).await {
            Ok(true) if request.keep_alive => {}
            // A client that went away is no failure of the server, and there is nobody left to tell.
            Ok(_) | Err(_) => return,
        }
    }
}

/// Tells the client what was wrong with its bytes, where it can be told.
async fn refuse(stream: &mut TcpStream, error: &ReadError) {
    if let Some(status) = error.status() {
        let body = json!({"error": {"message": error.to_string(), "type": reason(status)}}).to_string();
        let headers = [("content-type".to_owned(), "application/json".to_owned())];
        // The connection is closed next, whether or not the client reads this.
        let _ = Writer::new(stream, false).whole(status, &headers, body.as_bytes(), false).await;
    }
}

/// Writes a reply; false if the connection is to be closed after it.
async fn write(stream: &mut TcpStream, reply: Reply, keep_alive: bool) -> io::Result<bool> {
    let mut writer = Writer::new(stream, keep_alive);
    if !reply.stall.is_zero() {
        sleep(reply.stall).await;
    }
    match reply.body {
        ReplyBody::Nothing => Ok(false),
        ReplyBody::Whole { status, body, cut } => {
            writer.whole(status, &reply.headers, &body, cut).await?;
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
