//! The first message of a TLS client, as far as it names its server.

/// Content type of a record with handshake messages.
const HANDSHAKE: u8 = 22;

/// Type of the message.
const CLIENT_HELLO: u8 = 1;

/// Longest fragment in a record.
const MAX_FRAGMENT: usize = 1 << 14;

/// Longest message. Clients with keys of several kinds send about 2 KiB.
const MAX_MESSAGE: usize = 1 << 14;

/// Longest input that is parsed: a message in many short records.
pub(crate) const MAX_INPUT: usize = 2 * MAX_MESSAGE;

/// Number of the extension that names the server.
const SERVER_NAME: u16 = 0;

/// Type of a name that is a name of a host.
const HOST_NAME: u8 = 0;

/// The start of a connection, read as TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientHello {
    /// More bytes are needed.
    Incomplete,
    /// The name of the server, in the bytes of the client.
    Named(String),
    /// The message names no server.
    Unnamed,
    /// This is no such message.
    Invalid,
}

impl ClientHello {
    /// Parses the bytes that a client has sent up to now. The message may be in several records.
    pub(crate) fn parse(input: &[u8]) -> Self {
        let mut records = Reader(input);
        let mut message = Vec::new();
        loop {
            let record = match next_fragment(&mut records) {
                Ok(Some(fragment)) => fragment,
                Ok(None) if input.len() >= MAX_INPUT => return Self::Invalid,
                Ok(None) => return Self::Incomplete,
                Err(Invalid) => return Self::Invalid,
            };
            message.extend_from_slice(record);
            match body(&message) {
                Ok(Some(body)) => return parse_body(body).unwrap_or(Self::Invalid),
                Ok(None) => {}
                Err(Invalid) => return Self::Invalid,
            }
        }
    }
}

struct Invalid;

/// Returns the fragment of the next record; `None` if it is incomplete.
fn next_fragment<'a>(records: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Invalid> {
    let mut rest = Reader(records.0);
    if records.0.first().is_some_and(|kind| *kind != HANDSHAKE)
        || records.0.get(1).is_some_and(|major| *major != 3)
    {
        return Err(Invalid);
    }
    let Some([_, _, _]) = rest.take(3) else { return Ok(None) };
    let Some(length) = rest.u16() else { return Ok(None) };
    let length = usize::from(length);
    // An empty fragment would let a client send records without end.
    if length == 0 || length > MAX_FRAGMENT {
        return Err(Invalid);
    }
    let fragment = rest.take(length);
    if fragment.is_some() {
        *records = rest;
    }
    Ok(fragment)
}

/// Returns the body of the message; `None` if it is incomplete.
fn body(message: &[u8]) -> Result<Option<&[u8]>, Invalid> {
    let mut reader = Reader(message);
    match reader.u8() {
        Some(CLIENT_HELLO) => {}
        Some(_) => return Err(Invalid),
        None => return Ok(None),
    }
    let Some(length) = reader.take(3) else { return Ok(None) };
    let length = length.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
    if length > MAX_MESSAGE { Err(Invalid) } else { Ok(reader.take(length)) }
}

fn parse_body(body: &[u8]) -> Option<ClientHello> {
    let mut reader = Reader(body);
    let _version_and_random = reader.take(2 + 32)?;
    let session_id = reader.short_vector()?;
    let cipher_suites = reader.long_vector()?;
    let compressions = reader.short_vector()?;
    if session_id.len() > 32 || cipher_suites.len() < 2 || compressions.is_empty() {
        return None;
    }
    if reader.0.is_empty() {
        return Some(ClientHello::Unnamed);
    }
    let mut extensions = Reader(reader.long_vector()?);
    if !reader.0.is_empty() {
        return None;
    }
    let mut name = None;
    while !extensions.0.is_empty() {
        let (kind, content) = (extensions.u16()?, extensions.long_vector()?);
        if kind == SERVER_NAME && name.replace(server_name(content)?).is_some() {
            return None;
        }
    }
    Some(name.map_or(ClientHello::Unnamed, ClientHello::Named))
}

/// Returns the only name of the extension. Servers differ in which of several they use.
fn server_name(extension: &[u8]) -> Option<String> {
    let mut reader = Reader(extension);
    let mut names = Reader(reader.long_vector()?);
    if !reader.0.is_empty() || names.u8()? != HOST_NAME {
        return None;
    }
    let name = names.long_vector()?;
    let is_only = names.0.is_empty() && !name.is_empty();
    String::from_utf8(name.to_vec()).ok().filter(|_| is_only)
}

/// Reads bytes from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u16(&mut self) -> Option<u16> {
        Some((u16::from(self.u8()?) << 8) | u16::from(self.u8()?))
    }

    /// Reads a length of one byte, and so many bytes.
    fn short_vector(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        self.take(length.into())
    }

    /// Reads a length of two bytes, and so many bytes.
    fn long_vector(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn short(bytes: &[u8]) -> Vec<u8> {
        [&[u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn long(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &long(content)].concat()
    }

    fn name_extension(name: &[u8]) -> Vec<u8> {
        extension(SERVER_NAME, &long(&[&[HOST_NAME][..], &long(name)].concat()))
    }

    fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend(short(&[1; 32]));
        body.extend(long(&[0x13, 0x01]));
        body.extend(short(&[0]));
        if !extensions.is_empty() {
            body.extend(long(&extensions.concat()));
        }
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[CLIENT_HELLO][..], &length[1..], &body].concat()
    }

    fn records(message: &[u8], fragment: usize) -> Vec<u8> {
        message.chunks(fragment).flat_map(|part| [&[HANDSHAKE, 3, 1][..], &long(part)].concat()).collect()
    }

    /// Returns a message that names this server, in records of so many bytes.
    pub(crate) fn hello(name: &str, fragment: usize) -> Vec<u8> {
        let others = extension(43, &[2, 3, 4]);
        records(&message(&[others, name_extension(name.as_bytes())]), fragment)
    }

    fn named(name: &str) -> ClientHello {
        ClientHello::Named(name.to_owned())
    }

    #[test]
    fn each_message_has_one_meaning() {
        let whole = |extensions: &[Vec<u8>]| records(&message(extensions), MAX_FRAGMENT);
        let two_names = long(&[&[HOST_NAME][..], &long(b"a"), &[HOST_NAME], &long(b"b")].concat());
        let large = records(&message(&[extension(9, &vec![0; 14_000]), name_extension(b"a.example")]), 9_000);
        for (case, input, expected) in [
            ("named", whole(&[name_extension(b"a.example")]), named("a.example")),
            ("large", large, named("a.example")),
            ("without extensions", whole(&[]), ClientHello::Unnamed),
            ("without the extension", whole(&[extension(43, &[2, 3, 4])]), ClientHello::Unnamed),
            ("twice", whole(&[name_extension(b"a"), name_extension(b"b")]), ClientHello::Invalid),
            ("two names", whole(&[extension(0, &two_names)]), ClientHello::Invalid),
            ("empty name", whole(&[name_extension(b"")]), ClientHello::Invalid),
            ("empty extension", whole(&[extension(0, b"")]), ClientHello::Invalid),
            ("not UTF-8", whole(&[name_extension(&[0xff])]), ClientHello::Invalid),
            ("nothing", Vec::new(), ClientHello::Incomplete),
            ("HTTP", b"GET / HTTP/1.1\r\n".to_vec(), ClientHello::Invalid),
            ("SSL 2", vec![0x80, 0x2e, 1, 0, 2], ClientHello::Invalid),
            ("alert", vec![21, 3, 3, 0, 2, 2, 40], ClientHello::Invalid),
            ("empty record", vec![HANDSHAKE, 3, 1, 0, 0], ClientHello::Invalid),
            ("long record", vec![HANDSHAKE, 3, 1, 0x40, 1], ClientHello::Invalid),
            ("long message", vec![HANDSHAKE, 3, 1, 0, 4, CLIENT_HELLO, 1, 0, 0], ClientHello::Invalid),
            ("server hello", vec![HANDSHAKE, 3, 3, 0, 4, 2, 0, 0, 0], ClientHello::Invalid),
        ] {
            assert_eq!(ClientHello::parse(&input), expected, "{case}");
        }
    }

    #[test]
    fn endless_records_are_invalid() {
        // The message never ends, in records of one byte each.
        let unfinished = records(&[CLIENT_HELLO, 0, 0x40, 0], 1);
        let padding = records(&vec![0; MAX_INPUT / 6], 1);
        let input = [unfinished, padding].concat();
        assert!(input.len() >= MAX_INPUT);
        assert_eq!(ClientHello::parse(&input), ClientHello::Invalid);
    }

    proptest! {
        #[test]
        fn no_input_panics(input in proptest::collection::vec(any::<u8>(), 0..600)) {
            ClientHello::parse(&input);
            let framed = [&[HANDSHAKE, 3, 1][..], &long(&input), &[CLIENT_HELLO, 0, 0, 9]].concat();
            ClientHello::parse(&framed);
        }

        #[test]
        fn the_name_does_not_depend_on_records(
            name in "[a-z]{1,20}(\\.[a-z0-9-]{1,20}){0,4}",
            fragment in 1..400_usize,
            rest in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let input = hello(&name, fragment);
            prop_assert_eq!(ClientHello::parse(&input), named(&name));
            // Data may follow, and each part of the message is incomplete.
            prop_assert_eq!(ClientHello::parse(&[input.clone(), rest].concat()), named(&name));
            for end in 0..input.len() {
                prop_assert_eq!(ClientHello::parse(&input[..end]), ClientHello::Incomplete);
            }
        }

        #[test]
        fn a_changed_byte_never_adds_a_second_meaning(at in 0..200_usize, byte in any::<u8>()) {
            let mut input = hello("host.example", 60);
            let at = at % input.len();
            input[at] = byte;
            if let ClientHello::Named(name) = ClientHello::parse(&input) {
                prop_assert_eq!(name.len(), "host.example".len());
            }
        }
    }
}
