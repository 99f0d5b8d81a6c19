//! Tunnels: connections whose bytes pass unchanged, once their first ones name the target.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional_with_sizes},
    net::TcpStream,
    time::timeout,
};

use crate::{
    client_hello::{ClientHello, MAX_INPUT},
    connection::Connection,
    forward::{self, Forwarding},
    refusal::Refusal,
    state::Account,
    stream::{Counted, Prefixed},
    target::{Host, Target},
    traffic::Protocol,
};

/// Buffer of each direction.
const BUFFER: usize = 16 << 10;

/// First byte of TLS.
const HANDSHAKE: u8 = 22;

/// The fatal alert `unrecognized_name`, in a record.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 1, 0, 2, 2, 112];

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Methods by which HTTP is recognized on other ports.
const METHODS: [&[u8]; 8] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE "];

/// A target that was reached for a client.
pub(crate) struct Tunnel {
    pub(crate) account: Arc<Account>,
    pub(crate) target: Target,
    pub(crate) protocol: Protocol,
    pub(crate) upstream: TcpStream,
}

/// Protocol of the first bytes of a client.
#[derive(Debug, PartialEq, Eq)]
enum Opening {
    /// HTTP without TLS. Each of its requests is checked.
    Http,
    /// TLS that names the target, or a protocol that is neither TLS nor HTTP.
    Other,
}

impl Tunnel {
    /// Passes the bytes of a client, if the first ones do not name another host than the target.
    ///
    /// Port 443 has TLS, port 80 HTTP. On other ports a protocol that is neither is passed, also one whose server speaks first.
    pub(crate) async fn run<C>(self, mut client: C, connection: &Arc<Connection>)
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let limits = &connection.shared.limits;
        let mut first = Vec::new();
        let opening = self.read_opening(&mut client, &mut first);
        let opening = match timeout(limits.head_time, opening).await {
            Ok(opening) => opening,
            Err(_) => Err(Refusal::Invalid { reason: "expected the first bytes in time" }),
        };
        match opening {
            Ok(Opening::Http) => {
                let Self { account, target, protocol, upstream } = self;
                let upstream = Counted::new(upstream, account.ledger.note(&target, protocol, None));
                let client = Prefixed::new(first, client);
                let forwarding = Forwarding { account, target, protocol };
                forward::serve(client, upstream, forwarding, connection).await;
            }
            Ok(Opening::Other) => {
                let counters = self.account.ledger.note(&self.target, self.protocol, None);
                let mut upstream = Counted::new(self.upstream, counters);
                let passed = async {
                    upstream.write_all(&first).await?;
                    drop(first);
                    copy_bidirectional_with_sizes(&mut client, &mut upstream, BUFFER, BUFFER).await
                };
                if let Err(error) = passed.await {
                    tracing::debug!(%error, target = %self.target, "a tunnel ends");
                }
            }
            Err(refusal) => {
                self.account.ledger.note(&self.target, self.protocol, Some(refusal));
                if first.first() == Some(&HANDSHAKE)
                    && let Err(error) = end_with(&mut client, &UNRECOGNIZED_NAME).await
                {
                    tracing::debug!(%error, "a refused client is gone");
                }
            }
        }
    }

    /// Reads into `first` until the protocol is known.
    async fn read_opening<C>(&self, client: &mut C, first: &mut Vec<u8>) -> Result<Opening, Refusal>
    where
        C: AsyncRead + Unpin,
    {
        let is_web = [HTTP_PORT, HTTPS_PORT].contains(&self.target.port());
        let mut spoken = [0];
        loop {
            if let Some(opening) = recognize(first, &self.target) {
                return opening;
            }
            let read = tokio::select! {
                read = client.read_buf(first) => read,
                // A protocol whose server speaks first.
                _ = self.upstream.peek(&mut spoken), if first.is_empty() && !is_web => return Ok(Opening::Other),
            };
            match read {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Err(Refusal::Invalid { reason: "expected more first bytes" }),
            }
        }
    }
}

async fn end_with(client: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    client.write_all(bytes).await?;
    client.shutdown().await
}

/// Returns the protocol of the first bytes; `None` if more are needed.
fn recognize(first: &[u8], target: &Target) -> Option<Result<Opening, Refusal>> {
    let start = *first.first()?;
    if start == HANDSHAKE {
        return match ClientHello::parse(first) {
            ClientHello::Incomplete if first.len() < MAX_INPUT => None,
            ClientHello::Incomplete | ClientHello::Invalid => {
                Some(Err(Refusal::Invalid { reason: "expected a valid TLS handshake" }))
            }
            ClientHello::Named(name) => Some(match Host::parse(&name) {
                Ok(host) if host == *target.host() => Ok(Opening::Other),
                Ok(host) => Err(Refusal::OtherHost { found: host.to_string() }),
                Err(_) => Err(Refusal::Invalid { reason: "expected a valid TLS server name" }),
            }),
            // There is no name for an address.
            ClientHello::Unnamed => Some(match target.host() {
                Host::Name(_) => Err(Refusal::NoServerName),
                Host::Address(_) => Ok(Opening::Other),
            }),
        };
    }
    match target.port() {
        HTTPS_PORT => Some(Err(Refusal::OtherProtocol { expected: "TLS" })),
        HTTP_PORT => Some(Ok(Opening::Http)),
        _ if METHODS.iter().any(|method| first.starts_with(method)) => Some(Ok(Opening::Http)),
        _ if METHODS.iter().any(|method| method.starts_with(first)) => None,
        _ => Some(Ok(Opening::Other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_hello::tests::hello;

    #[test]
    fn first_bytes_decide() {
        let tls = hello("a.example", 60);
        let nameless = [22, 3, 1, 0, 47, 1, 0, 0, 43, 3, 3];
        let nameless = [&nameless[..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0, 0, 0]].concat();
        let other = || Some(Err(Refusal::OtherHost { found: "a.example".to_owned() }));
        let not_tls = || Some(Err(Refusal::OtherProtocol { expected: "TLS" }));
        let invalid = Some(Err(Refusal::Invalid { reason: "expected a valid TLS handshake" }));
        for (target, first, expected) in [
            ("a.example:443", &tls[..], Some(Ok(Opening::Other))),
            ("A.example.:443", &tls, Some(Ok(Opening::Other))),
            ("a.example:8443", &tls, Some(Ok(Opening::Other))),
            ("b.example:443", &tls, other()),
            ("b.example:8443", &tls, other()),
            ("192.0.2.1:443", &tls, other()),
            ("a.example:443", &tls[..70], None),
            ("a.example:443", &nameless, Some(Err(Refusal::NoServerName))),
            ("192.0.2.1:443", &nameless, Some(Ok(Opening::Other))),
            ("a.example:443", &[22, 9], invalid),
            ("a.example:443", b"GET / HTTP/1.1\r\n", not_tls()),
            ("a.example:443", b"SSH-2.0", not_tls()),
            ("a.example:80", b"S", Some(Ok(Opening::Http))),
            ("a.example:8080", b"GET /", Some(Ok(Opening::Http))),
            ("a.example:8080", b"GE", None),
            ("a.example:22", b"SSH-2.0", Some(Ok(Opening::Other))),
            ("a.example:22", b"", None),
        ] {
            let target = Target::parse(target, None).unwrap();
            assert_eq!(recognize(first, &target), expected, "{target} {first:?}");
        }
    }
}
