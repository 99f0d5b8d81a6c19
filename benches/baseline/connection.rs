//! One persistent connection, driven by hyper.

use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request,
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinHandle};

/// A connection to one server, for sequential requests.
pub(crate) struct Connection {
    address: String,
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a connection can do without delay");
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("it speaks HTTP");
        let driver = tokio::spawn(async move {
            // An error shows up as a missing response.
            let _ = connection.await;
        });
        Self { address: address.to_owned(), sender, driver }
    }

    /// Sends `body` and passes each piece of the response to `read`.
    pub(crate) async fn post(&mut self, path: &str, body: Bytes, mut read: impl FnMut(&[u8])) {
        let mut answer = self.send(path, body).await;
        while let Some(frame) = answer.frame().await {
            if let Some(bytes) = frame.expect("the answer is whole").data_ref() {
                read(bytes);
            }
        }
    }

    async fn send(&mut self, path: &str, body: Bytes) -> Incoming {
        let request = Request::post(path)
            .header("host", &self.address)
            .header("content-type", "application/json")
            .header("authorization", "Bearer baseline")
            .body(Full::new(body))
            .expect("the request is well formed");
        self.sender.ready().await.expect("the connection is kept");
        let response = self.sender.send_request(request).await.expect("it is answered");
        assert!(response.status().is_success(), "the server answers {}", response.status());
        response.into_body()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
