//! The bytes of a body, as pieces that are shared with what they were made from.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::oneshot;

/// From this size on, in bytes, a fragment goes out from where it is: below it, a copy is cheaper than a piece of its own.
const LARGE: usize = 4 * 1024;

/// How much of what is small is joined into one piece at most, in bytes. Larger blocks would come as fresh pages from
/// the system each time.
const JOINED: usize = 64 * 1024;

/// The body of a request, while it is written and when it is whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    whole: Vec<Bytes>,
    /// What follows the whole pieces.
    open: Vec<u8>,
}

impl Body {
    pub(crate) fn len(&self) -> usize {
        self.whole.iter().map(Bytes::len).sum::<usize>() + self.open.len()
    }

    /// Writes a copy of these bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.open.len() + bytes.len() > JOINED {
            self.close();
        }
        self.open.extend_from_slice(bytes);
    }

    /// Writes these bytes, without a copy if there are many.
    pub(crate) fn share(&mut self, bytes: &Bytes) {
        if bytes.len() < LARGE {
            self.write(bytes);
        } else {
            self.close();
            self.whole.push(bytes.clone());
        }
    }

    /// Writes what was written to another body, of which what is whole is shared.
    pub(crate) fn append(&mut self, other: &Self) {
        if !other.whole.is_empty() {
            self.close();
            self.whole.extend_from_slice(&other.whole);
        }
        self.write(&other.open);
    }

    /// Writes one more element of a list that stands alone in this body, with the comma before it.
    pub(crate) fn element(&mut self, element: &Self) {
        if !self.is_empty() {
            self.write(b",");
        }
        self.append(element);
    }

    /// As [`Body::element`], of an element in one piece.
    pub(crate) fn shared_element(&mut self, element: &Bytes) {
        if !self.is_empty() {
            self.write(b",");
        }
        self.share(element);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.open.is_empty()
    }

    /// Writes these as the elements of a list, without its brackets.
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
            // Of the little that stands between two large fragments, each piece would hold a block of its own.
            self.whole.push(Bytes::copy_from_slice(&self.open));
            self.open.clear();
        } else {
            self.whole.push(std::mem::take(&mut self.open).into());
        }
    }

    /// The body as it is sent.
    pub(crate) fn into_sending(mut self) -> Sending {
        self.close();
        Sending { left: self.len() as u64, pieces: self.whole.into_iter(), end: None }
    }

    #[cfg(test)]
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        [self.whole.concat(), self.open.clone()].concat()
    }
}

/// A body on its way. Its length is known, so that it is announced and not sent in chunks.
#[derive(Debug)]
pub(crate) struct Sending {
    pieces: std::vec::IntoIter<Bytes>,
    /// In bytes.
    left: u64,
    /// Dropped when the last piece is taken.
    end: Option<oneshot::Sender<()>>,
}

impl Sending {
    /// Resolves, with an error since nothing is sent, when the connection has taken the last piece or dropped the body.
    pub(crate) fn end(&mut self) -> oneshot::Receiver<()> {
        let (end, taken) = oneshot::channel();
        self.end = (self.left > 0).then_some(end);
        taken
    }
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        Poll::Ready(this.pieces.next().map(|piece| {
            this.left = this.left.saturating_sub(piece.len() as u64);
            if this.left == 0 {
                this.end = None;
            }
            Ok(Frame::data(piece))
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
        let (mut sending, mut cx) = (body.into_sending(), Context::from_waker(Waker::noop()));
        let mut pieces = Vec::new();
        while let Poll::Ready(Some(frame)) = Pin::new(&mut sending).poll_frame(&mut cx) {
            pieces.push(frame.unwrap().into_data().unwrap());
        }
        assert!(sending.is_end_stream());
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
        let sending = Body::default().into_sending();
        assert!(sending.is_end_stream());
        assert_eq!(sending.size_hint().exact(), Some(0));
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
            prop_assert_eq!(body.clone().into_sending().size_hint().exact(), Some(expected.len() as u64));
            prop_assert_eq!(sent(body).concat(), expected);
        }
    }
}
