//! Media that are replaced before a request is encoded: `data:` URLs here, local files by the adapter.

use std::borrow::Cow;

use super::{MessageList, Request};
use crate::content::PendingMedia;
use crate::error::Error;
use crate::history::HistoryItem;

/// Kind of the cached prefix that holds its [`PendingMedia`].
const PENDING: &str = "pending-media";

/// Kind of the cached prefix, and dialect of the cached item: the decoded messages.
const DECODED: &str = "decoded-urls";

impl MessageList {
    /// Returns whether a message has media in a local file, which an adapter reads before it encodes the request.
    ///
    /// Each message is checked once, together with the client's check for `data:` URLs.
    #[must_use]
    pub fn has_local_media(&self) -> bool {
        self.pending_media().files
    }

    /// Checks the messages that no earlier request has checked.
    fn pending_media(&self) -> PendingMedia {
        let cached = self.cached_prefix::<PendingMedia>(PENDING, "");
        let (known, pending) = cached.unwrap_or_default();
        if known == self.len() && cached.is_some() {
            return pending;
        }
        let pending = self.iter().skip(known).fold(pending, |pending, item| pending | pending_in(item));
        self.cache_prefix(PENDING, "", self.len(), pending);
        pending
    }
}

impl Request {
    /// Returns the request with `data:` URLs replaced by their bytes. Borrowed without such URLs.
    ///
    /// Each message is decoded once, and each list of messages is checked once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) for a malformed `data:` URL, and for a URL that
    /// is a local path: a URL never reads a file.
    pub(crate) fn decode_urls(&self) -> Result<Cow<'_, Self>, Error> {
        if !self.messages.pending_media().urls {
            return Ok(Cow::Borrowed(self));
        }
        let cached = self.messages.take_cached_prefix::<MessageList>(DECODED, "");
        let (known, mut decoded) = cached.unwrap_or_default();
        for item in self.messages.iter().skip(known) {
            decoded.push(if pending_in(item).urls { decode_item(item)? } else { item.clone() });
        }
        self.messages.cache_prefix(DECODED, "", self.messages.len(), decoded.clone());
        Ok(Cow::Owned(Self { messages: decoded, ..self.clone() }))
    }
}

fn pending_in(item: &HistoryItem) -> PendingMedia {
    item.content.iter().fold(PendingMedia::default(), |pending, part| pending | part.pending_media())
}

fn decode_item(item: &HistoryItem) -> Result<HistoryItem, Error> {
    let mut message = item.message().clone();
    message.content.iter_mut().try_for_each(|part| part.decode_urls())?;
    Ok((*item.encoding(DECODED, "", |_| HistoryItem::from(message))).clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::ImageData;
    use crate::message::{Message, Role};

    fn image(url: &str) -> Message {
        Message::new(Role::User, vec![ImageData::url(url).into()])
    }

    #[test]
    fn a_growing_conversation_is_decoded_like_a_new_one() {
        let messages = [
            Message::user("hi"),
            image("data:image/png;base64,AQ=="),
            image("https://example.com/a.png"),
            image("data:image/png;base64,Ag=="),
            Message::user("bye"),
        ];
        let mut request = Request::new("m", Vec::<Message>::new());
        for (index, message) in messages.iter().enumerate() {
            request.messages.push(message.clone().into());
            let decoded = request.decode_urls().unwrap();
            assert_eq!(matches!(decoded, Cow::Borrowed(_)), index == 0);
            let mut expected = request.messages.to_vec();
            for (position, byte) in [(1, 1), (3, 2)] {
                if let Some(item) = expected.get_mut(position) {
                    let image = ImageData::data(vec![byte], "image/png");
                    *item = Message::new(Role::User, vec![image.into()]).into();
                }
            }
            assert_eq!(decoded.messages.to_vec(), expected, "after {} messages", index + 1);
        }
        let (first, second) = (request.decode_urls().unwrap(), request.decode_urls().unwrap());
        assert_eq!(first.messages.as_ptr(), second.messages.as_ptr(), "the list is cached");
        let fresh = Request::new("m", request.messages.to_vec());
        let fresh = fresh.decode_urls().unwrap();
        fresh.messages[1].encoding("d", "", |_| 7);
        let cached = *first.messages[1].encoding("d", "", |_| 8);
        assert_eq!(cached, 7, "another list shares the decoded item");
    }

    #[test]
    fn local_files_are_found_as_the_conversation_grows() {
        let file = Message::new(Role::User, vec![ImageData::path("/tmp/a.png").into()]);
        let mut messages =
            Request::new("m", [Message::user("hi"), image("https://example.com/a.png")]).messages;
        assert!(!messages.has_local_media());
        messages.push(image("data:image/png;base64,AQ==").into());
        assert!(!messages.has_local_media(), "a URL is no file");
        messages.push(file.into());
        assert!(messages.has_local_media());
        messages.push(Message::user("bye").into());
        assert!(messages.has_local_media());
        let request = Request::new("m", messages.to_vec());
        assert!(request.decode_urls().unwrap().messages.has_local_media(), "the adapter reads it");
        messages.truncate(3);
        assert!(!messages.has_local_media(), "it is gone");
    }

    #[test]
    fn a_local_path_as_url_is_refused() {
        let request = Request::new("m", [image("/etc/passwd")]);
        let error = request.decode_urls().unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::InvalidRequest);
        assert!(error.message().contains("is a local path, not a URL"), "{error}");
    }
}
