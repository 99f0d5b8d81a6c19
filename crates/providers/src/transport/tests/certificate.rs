//! TLS with an untrusted certificate.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use pintle_llm::{ErrorKind, ProviderAdapter as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::{KEY, request};
use crate::OpenAiCompatible;

/// Self-signed for 127.0.0.1 with an Ed25519 key, until 2126, in hexadecimal digits of its DER form.
const CERTIFICATE: &str = "3082015030820102a00302010202142eb081c78fcbe17af6eff92e81af4f027c0e5d51300506032b65703014311230100603\
    5504030c093132372e302e302e313020170d3236313132323031323535365a180f32313236313032393031323535365a3014\
    3112301006035504030c093132372e302e302e31302a300506032b6570032100c169bbe661a68a323f81bb7d132c02359bf5\
    091cd258e569886fc6c3f35bbaa0a3643062301d0603551d0e0416041461e9ec01d59a609cb25b715f942a847f280a74ca30\
    1f0603551d2304183016801461e9ec01d59a609cb25b715f942a847f280a74ca300f0603551d130101ff040530030101ff30\
    0f0603551d110408300687047f000001300506032b6570034100bb6658c8522b77de628b37931106f420d13d18bd80d2b159\
    7c0a33e748cdb748ec3bbf2863884ecdece8a61edbd5872e9e4be3497236a10ffe9f96e69f1c2b0c";
/// The key of the certificate, used in this test only.
const CERTIFICATE_KEY: &str =
    "302e020100300506032b6570042204204387872e2a9699e2b7e683e0cea7b969c313bc7d718f995f95e2daeb7bd43e46";

fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn server_config() -> ServerConfig {
    let certificate = CertificateDer::from(bytes(CERTIFICATE));
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(bytes(CERTIFICATE_KEY)));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap()
}

#[tokio::test]
async fn untrusted_certificates_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut tls = ServerConnection::new(Arc::new(server_config())).unwrap();
        // Succeeds only if the client accepts the certificate.
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        tls.complete_io(&mut socket)
    });
    let adapter = OpenAiCompatible::builder(url).with_api_key(KEY).build().unwrap();
    let error = adapter.complete(&request()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Network, true), "{error:?}");
    assert!(format!("{error:?}").contains("certificate"), "{error:?}");
    let refused = server.join().unwrap().unwrap_err();
    assert!(refused.to_string().contains("alert"), "the client refuses the certificate: {refused}");
}
