//! The least that a program with one question does: connects, sends, reads the answer and prints its text.
//!
//! `floor-start ADDRESS` is what the start of `pintle run` is measured against. It has no runtime, no TLS and no
//! JSON parser, and it is linked statically.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program of the benchmarks, which must stop where it cannot measure"
)]

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

const BODY: &str = r#"{"model":"floor","stream":true,"input":[{"role":"user","content":"Say hello."}]}"#;

fn main() {
    let address = std::env::args().nth(1).expect("an address is given");
    let mut connection = TcpStream::connect(&address).expect("somebody listens");
    let head = format!(
        "POST /floor/start/responses HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
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
