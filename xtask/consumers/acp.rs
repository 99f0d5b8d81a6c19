//! Serves a client that knows no better, without a session.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use pintle_acp::{AcpAgent, AgentHost, AgentInfo, Client, HostError, NewSession, OpenSession};

#[derive(Debug)]
struct Host;

impl AgentHost for Host {
    fn info(&self) -> AgentInfo {
        AgentInfo::new("consumer", "1.0.0")
    }

    fn new_session<'this, 'client, 'future>(
        &'this self,
        _request: NewSession,
        _client: &'client Client,
    ) -> Pin<Box<dyn Future<Output = Result<OpenSession, HostError>> + Send + 'future>>
    where
        'this: 'future,
        'client: 'future,
        Self: 'future,
    {
        Box::pin(async { Err(HostError::AuthenticationRequired) })
    }
}

fn main() {
    let error = HostError::NoSuchSession("one".to_owned());
    assert_eq!(error.to_string(), "there is no session `one`");
    let agent = AcpAgent::new(Host).with_max_line(1_024);
    let info = Host.info();
    assert!(info.name == "consumer" && !info.loads_sessions, "{agent:?}");
    let mut poll = Context::from_waker(Waker::noop());
    let authenticated = pin!(Host.authenticate("key")).poll(&mut poll);
    assert!(matches!(authenticated, Poll::Ready(Err(HostError::Invalid(_)))));
}
