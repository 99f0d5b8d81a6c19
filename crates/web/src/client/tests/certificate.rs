//! Pages over TLS from a server with a self-signed certificate.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;

/// Self-signed for 127.0.0.1 and pages.test with an Ed25519 key, until 2126.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n\
    MIIBWTCCAQugAwIBAgIUH1D7x9elP3TG4Pj10RfHZvOLvMYwBQYDK2VwMBQxEjAQ\n\
    BgNVBAMMCTEyNy4wLjAuMTAgFw0yNjExMjIwNDMxMDJaGA8yMTI2MTAyOTA0MzEw\n\
    MlowFDESMBAGA1UEAwwJMTI3LjAuMC4xMCowBQYDK2VwAyEA2HVl451376B0Y8OL\n\
    aUdPclmMSg5usKIJTMtZ6pJ+tayjbTBrMB0GA1UdDgQWBBTphHTbme5MFfSICFun\n\
    JeoWL+gMbzAfBgNVHSMEGDAWgBTphHTbme5MFfSICFunJeoWL+gMbzAbBgNVHREE\n\
    FDAShwR/AAABggpwYWdlcy50ZXN0MAwGA1UdEwEB/wQCMAAwBQYDK2VwA0EALzcw\n\
    sicSDzn3Fr/4otOiBkJwhPeUP5YgSIFbDxueC5/lu5pmTybbALBMkIUz6M/Juo5r\n\
    /3Vn7DBUKCNnmkrBCg==\n\
    -----END CERTIFICATE-----\n";

/// The key of the certificate, used in these tests only.
const CERTIFICATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIF91LIXETQeNwohnRdixPKvO/2UX/hzNFplmwS0wHiT/\n\
    -----END PRIVATE KEY-----\n";

/// Serves one request over TLS. The thread returns the result of the handshake.
fn server() -> (SocketAddr, JoinHandle<std::io::Result<()>>) {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(CERTIFICATE_KEY.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = thread::spawn(move || {
        let (socket, _) = listener.accept()?;
        let mut tls = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), socket);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            tls.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nsecret")?;
        tls.flush()
    });
    (address, served)
}

fn client(rules: AddressRules) -> HttpWebClient {
    let lookup: HostLookup = Arc::new(|_host| Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) }));
    HttpWebClient::with_lookup(FetchLimits::default(), rules, lookup)
}

#[tokio::test]
async fn added_root_certificates_are_trusted() {
    for host in ["127.0.0.1", "pages.test"] {
        let (address, served) = server();
        let client = client(AddressRules::any()).with_root_certificates(CERTIFICATE.as_bytes()).unwrap();
        let page = fetch(&client, &format!("https://{host}:{}/", address.port())).await.unwrap();
        assert_eq!((page.status, page.text.as_str()), (200, "secret"), "{host}");
        served.join().unwrap().unwrap();
    }
}

#[tokio::test]
async fn untrusted_or_misnamed_certificates_are_refused() {
    let trusting = client(AddressRules::any()).with_root_certificates(CERTIFICATE.as_bytes()).unwrap();
    for (client, host) in [(client(AddressRules::any()), "pages.test"), (trusting, "other.test")] {
        let (address, served) = server();
        let (kind, message) =
            fetch(&client, &format!("https://{host}:{}/", address.port())).await.unwrap_err();
        assert_eq!(kind, WebErrorKind::Failed, "{message}");
        assert!(message.starts_with(&format!("cannot connect to {host}: ")), "{message}");
        assert!(message.contains("certificate"), "{message}");
        assert!(served.join().unwrap().is_err(), "the client refuses the certificate");
    }
}

#[tokio::test]
async fn addresses_are_checked_over_tls() {
    let client = client(AddressRules::public_only()).with_root_certificates(CERTIFICATE.as_bytes()).unwrap();
    let (kind, message) = fetch(&client, "https://pages.test/").await.unwrap_err();
    assert_eq!(
        (kind, message.as_str()),
        (WebErrorKind::Refused, "pages.test may not be reached: 127.0.0.1 is a loopback address")
    );
}

#[test]
fn text_without_a_certificate_is_refused() {
    let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    for pem in ["", "no certificate", broken] {
        let error = client(AddressRules::any()).with_root_certificates(pem.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the root certificates", "{pem}");
        assert!(StdError::source(&error).is_some(), "{pem}");
    }
}
