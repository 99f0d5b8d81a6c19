//! The minimal program for one request: it connects, sends, reads the response and prints its text.
//!
//! `baseline-start ADDRESS` is the baseline for the start of `pintle run`. It has no runtime, no TLS and no
//! JSON parser, and it is linked statically.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program of the benchmarks, which must stop if it cannot measure"
)]

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

const BODY: &str = r#"{"model":"baseline","stream":true,"input":[{"role":"user","content":"Say hello."}]}"#;

fn main() {
    let address = std::env::args().nth(1).expect("an address is given");
    let mut connection = TcpStream::connect(&address).expect("the server listens");
    let head = format!(
        "POST /baseline/start/responses HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    connection.write_all(head.as_bytes()).expect("it is read");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("it is answered");
    let deltas = answer.lines().filter(|line| line.contains("output_text.delta"));
    let texts = deltas.filter_map(|line| line.split_once("\"delta\":\"")?.1.split('"').next());
    println!("{}", texts.collect::<String>());
}
