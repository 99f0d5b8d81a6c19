//! The minimal program on a terminal: raw mode, a prompt, and nothing that is kept.
//!
//! `baseline-terminal echo` prints a prompt and then every key that it reads; `baseline-terminal print ADDRESS` prints the
//! text of a streamed response as it arrives. Both are baselines for the conversation of `pintle`, and linked statically.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a program of the benchmarks, which must stop if it cannot measure")]

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
};

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

const BODY: &str = r#"{"model":"baseline","stream":true,"input":[{"role":"user","content":"Write."}]}"#;

fn main() {
    let mut words = std::env::args().skip(1);
    let mut modes = tcgetattr(io::stdin()).expect("standard input is a terminal");
    modes.make_raw();
    tcsetattr(io::stdin(), OptionalActions::Now, &modes).expect("it can be set to raw mode");
    match words.next().as_deref() {
        Some("echo") => echo(),
        Some("print") => print(&words.next().expect("an address is given")),
        _ => std::process::exit(2),
    }
}

/// Prints every key, until the terminal is closed.
fn echo() {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut show = |bytes: &[u8]| output.write_all(bytes).and_then(|()| output.flush()).is_ok();
    let mut keys = [0; 4096];
    if !show("› say what to do".as_bytes()) {
        return;
    }
    while let Ok(length @ 1..) = input.read(&mut keys) {
        if !show(keys.get(..length).unwrap_or_default()) {
            return;
        }
    }
}

/// Prints the text of one response.
fn print(address: &str) {
    let mut connection = TcpStream::connect(address).expect("the server listens");
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    connection.write_all(head.as_bytes()).expect("it is read");
    let mut output = io::stdout().lock();
    for line in BufReader::new(connection).lines() {
        let line = line.expect("the response is text");
        let delta = line.contains("output_text.delta").then(|| line.split_once("\"delta\":\"")).flatten();
        let Some(text) = delta.and_then(|(_, rest)| rest.split('"').next()) else { continue };
        let text = text.replace("\\n", "\r\n");
        if output.write_all(text.as_bytes()).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}
