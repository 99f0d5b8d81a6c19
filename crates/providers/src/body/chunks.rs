//! Request bodies in chunks that share memory with the encoded items.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::oneshot;

/// Size in bytes from which a fragment is shared. Copying a smaller one is cheaper than a separate chunk.
const LARGE: usize = 4 * 1024;

/// Maximum size of a chunk of joined small fragments, in bytes. Larger blocks would be fresh pages from the system each
/// time.
const MAX_JOINED: usize = 64 * 1024;

/// A request body that can be appended to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    closed: Vec<Bytes>,
    /// Bytes that follow the closed chunks.
    open: Vec<u8>,
}

impl Body {
    pub(crate) fn len(&self) -> usize {
        self.closed.iter().map(Bytes::len).sum::<usize>() + self.open.len()
    }

    /// Appends a copy of these bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.open.len() + bytes.len() > MAX_JOINED {
            self.close();
        }
        self.open.extend_from_slice(bytes);
    }

    /// Appends these bytes, without copying them if they are many.
    pub(crate) fn share(&mut self, bytes: &Bytes) {
        if bytes.len() < LARGE {
            self.write(bytes);
        } else {
            self.close();
            self.closed.push(bytes.clone());
        }
    }

    /// Appends another body, sharing its closed chunks.
    pub(crate) fn append(&mut self, other: &Self) {
        if !other.closed.is_empty() {
            self.close();
            self.closed.extend_from_slice(&other.closed);
        }
        self.write(&other.open);
    }

    /// Appends an element to a list that this body consists of, preceded by a comma if needed.
    pub(crate) fn element(&mut self, element: &Self) {
        if !self.is_empty() {
            self.write(b",");
        }
        self.append(element);
    }

    /// Like [`Body::element`], for an element in one chunk.
    pub(crate) fn shared_element(&mut self, element: &Bytes) {
        if !self.is_empty() {
            self.write(b",");
        }
        self.share(element);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.open.is_empty()
    }

    /// Appends the elements of a list, without its brackets.
    pub(crate) fn share_all<'a>(&mut self, elements: impl IntoIterator<Item = &'a Bytes>) {
        for (index, element) in elements.into_iter().enumerate() {
            if index > 0 {
                self.write(b",");
            }
            self.share(element);
        }
    }

    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        if self.open.len() * 2 < self.open.capacity() {
            // Otherwise the few bytes between two large fragments would each hold a large allocation.
            self.closed.push(Bytes::copy_from_slice(&self.open));
            self.open.clear();
        } else {
            self.closed.push(std::mem::take(&mut self.open).into());
        }
    }

    /// Converts it into an HTTP body.
    pub(crate) fn into_http(mut self) -> HttpBody {
        self.close();
        HttpBody { left: self.len() as u64, chunks: self.closed.into_iter(), sent: None }
    }

    /// Returns a copy of all bytes.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = self.closed.concat();
        bytes.extend_from_slice(&self.open);
        bytes
    }
}

/// An HTTP body of known length, which therefore is not sent with chunked encoding.
#[derive(Debug)]
pub(crate) struct HttpBody {
    chunks: std::vec::IntoIter<Bytes>,
    /// Remaining bytes.
    left: u64,
    /// Dropped when the last chunk is taken.
    sent: Option<oneshot::Sender<()>>,
}

impl HttpBody {
    /// Returns a receiver that resolves when the connection has taken the last chunk or dropped the body. It always
    /// resolves to an error, because nothing is ever sent on the channel.
    pub(crate) fn on_sent(&mut self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.sent = (self.left > 0).then_some(sender);
        receiver
    }
}

impl http_body::Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        Poll::Ready(this.chunks.next().map(|chunk| {
            this.left = this.left.saturating_sub(chunk.len() as u64);
            if this.left == 0 {
                this.sent = None;
            }
            Ok(Frame::data(chunk))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use http_body::Body as _;
    use proptest::prelude::*;

    use super::*;

    fn sent(body: Body) -> Vec<Bytes> {
        let (mut http_body, mut cx) = (body.into_http(), Context::from_waker(Waker::noop()));
        let mut pieces = Vec::new();
        while let Poll::Ready(Some(frame)) = Pin::new(&mut http_body).poll_frame(&mut cx) {
            pieces.push(frame.unwrap().into_data().unwrap());
        }
        assert!(http_body.is_end_stream());
        pieces
    }

    #[test]
    fn large_fragments_are_not_copied() {
        let (small, large) = (Bytes::from(vec![1; LARGE - 1]), Bytes::from(vec![2; LARGE]));
        let mut body = Body::default();
        body.share_all([&small, &large, &small]);
        let pieces = sent(body);
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [LARGE, LARGE, LARGE]);
        assert_eq!(pieces[1].as_ptr(), large.as_ptr());
    }

    #[test]
    fn small_chunks_between_large_ones_waste_no_capacity() {
        let large = Bytes::from(vec![2; LARGE]);
        let mut body = Body::default();
        body.share_all([&large, &large, &large]);
        body.write(b"]");
        let pieces = sent(body);
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [LARGE, 1, LARGE, 1, LARGE, 1]);
        let held = |piece: Bytes| piece.try_into_mut().map_or(0, |piece| piece.capacity());
        assert!(pieces.into_iter().filter(|piece| piece.len() == 1).all(|piece| held(piece) < LARGE));
    }

    #[test]
    fn empty_bodies_end_at_once() {
        let http_body = Body::default().into_http();
        assert!(http_body.is_end_stream());
        assert_eq!(http_body.size_hint().exact(), Some(0));
    }

    proptest! {
        #[test]
        fn copied_and_shared_bytes_keep_their_order(
            parts in proptest::collection::vec((any::<u8>(), prop_oneof![0..9usize, 4090..4100usize, 65_530..65_540usize], any::<bool>()), 0..8)
        ) {
            let mut body = Body::default();
            let mut expected = Vec::new();
            for (byte, length, shared) in parts {
                let bytes = Bytes::from(vec![byte; length]);
                expected.extend_from_slice(&bytes);
                if shared { body.share(&bytes) } else { body.write(&bytes) }
            }
            prop_assert_eq!(body.len(), expected.len());
            prop_assert_eq!(&body.to_vec(), &expected);
            prop_assert_eq!(body.clone().into_http().size_hint().exact(), Some(expected.len() as u64));
            prop_assert_eq!(sent(body).concat(), expected);
        }
    }
}
