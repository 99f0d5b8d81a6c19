//! Refuses a server on another host, since the connection would not be encrypted.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use pintle_postgres::{PostgresOptions, PostgresStore};

fn main() {
    let connect =
        pin!(PostgresStore::connect("host=db.example.com", PostgresOptions::new().with_schema("agents")));
    let Poll::Ready(Err(error)) = connect.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the connection was not refused at once");
    };
    assert_eq!(error.to_string(), "cannot use the connection string");
}
