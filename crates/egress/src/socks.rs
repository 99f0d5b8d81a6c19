//! SOCKS5 (RFC 1928) with the user name and password of RFC 1929.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use crate::{
    connection::Connection,
    outbound,
    refusal::Refusal,
    state::Account,
    target::{Host, InvalidTarget, Target},
    traffic::Protocol,
    tunnel::Tunnel,
};

const VERSION: u8 = 5;
const PASSWORD_METHOD: u8 = 2;
const NO_METHOD: u8 = 0xff;
const PASSWORD_VERSION: u8 = 1;
const CONNECT: u8 = 1;

const SUCCEEDED: u8 = 0;
const NOT_ALLOWED: u8 = 2;
const HOST_UNREACHABLE: u8 = 4;
const COMMAND_UNSUPPORTED: u8 = 7;

/// A request of an authenticated client.
struct Request {
    account: Arc<Account>,
    command: u8,
    target: Result<Target, InvalidTarget>,
}

/// Serves a client that speaks SOCKS5. Only connections are supported: no UDP, and no listeners.
pub(crate) async fn serve<C>(mut client: C, connection: &Arc<Connection>)
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let negotiated = timeout(connection.shared.limits.head_time, negotiate(&mut client, connection)).await;
    let Ok(Ok(Some(Request { account, command, target }))) = negotiated else { return };
    let connected = match &target {
        Err(InvalidTarget) => Err(Refusal::Invalid { reason: "expected a valid host and port" }),
        Ok(_) if command != CONNECT => {
            Err(Refusal::Invalid { reason: "expected a connection, no UDP and no listener" })
        }
        Ok(target) => outbound::connect(&connection.shared, &account.rules, target).await,
    };
    let shown = target.as_ref().map(Target::to_string).unwrap_or_default();
    match (connected, target) {
        (Ok(upstream), Ok(target)) => {
            if client.write_all(&reply(SUCCEEDED)).await.is_ok() {
                let tunnel = Tunnel { account, target, protocol: Protocol::Socks, upstream };
                tunnel.run(client, connection).await;
            }
        }
        (Ok(_), Err(InvalidTarget)) => {}
        (Err(refusal), _) => {
            let code = if matches!(refusal, Refusal::Unreachable | Refusal::Unresolved) {
                HOST_UNREACHABLE
            } else if command == CONNECT {
                NOT_ALLOWED
            } else {
                COMMAND_UNSUPPORTED
            };
            account.ledger.note(&shown, Protocol::Socks, Some(refusal));
            let ended = async {
                client.write_all(&reply(code)).await?;
                client.shutdown().await
            };
            if let Err(error) = ended.await {
                tracing::debug!(%error, "a refused client is gone");
            }
        }
    }
}

/// Authenticates a client and reads its request; `None` if it has no valid credential.
async fn negotiate<C>(client: &mut C, connection: &Connection) -> io::Result<Option<Request>>
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    expect_version(client, VERSION).await?;
    let methods = read_short(client).await?;
    if !methods.contains(&PASSWORD_METHOD) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        client.shutdown().await?;
        return Ok(None);
    }
    client.write_all(&[VERSION, PASSWORD_METHOD]).await?;
    expect_version(client, PASSWORD_VERSION).await?;
    let _user = read_short(client).await?;
    let token = read_short(client).await?;
    let Some(account) = std::str::from_utf8(&token).ok().and_then(|token| connection.authenticate(token))
    else {
        client.write_all(&[PASSWORD_VERSION, 1]).await?;
        client.shutdown().await?;
        return Ok(None);
    };
    client.write_all(&[PASSWORD_VERSION, 0]).await?;
    expect_version(client, VERSION).await?;
    let command = client.read_u8().await?;
    let _reserved = client.read_u8().await?;
    let host = match client.read_u8().await? {
        1 => Ok(Host::from(IpAddr::V4(Ipv4Addr::from(client.read_u32().await?)))),
        3 => {
            let name = read_short(client).await?;
            std::str::from_utf8(&name).map_err(|_| InvalidTarget).and_then(Host::parse)
        }
        4 => Ok(Host::from(IpAddr::V6(Ipv6Addr::from(client.read_u128().await?)))),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let port = client.read_u16().await?;
    Ok(Some(Request { account, command, target: host.and_then(|host| Target::new(host, port)) }))
}

async fn expect_version(client: &mut (impl AsyncRead + Unpin), expected: u8) -> io::Result<()> {
    if client.read_u8().await? == expected { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Reads a length of one byte, and so many bytes.
async fn read_short(client: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Returns a reply with no address.
fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}
