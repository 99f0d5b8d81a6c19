use proptest::prelude::*;

use super::*;

fn decode_all(bytes: &[u8]) -> Vec<Input> {
    let mut decoder = Decoder::default();
    let mut inputs = decoder.push(bytes);
    inputs.extend(decoder.flush());
    inputs
}

fn key(code: KeyCode) -> Key {
    Key::plain(code)
}

#[test]
fn keys_are_decoded() {
    let cases: &[(&[u8], Key)] = &[
        (b"a", key(KeyCode::Char('a'))),
        ("é".as_bytes(), key(KeyCode::Char('é'))),
        ("日".as_bytes(), key(KeyCode::Char('日'))),
        ("👍".as_bytes(), key(KeyCode::Char('👍'))),
        (b"\r", key(KeyCode::Enter)),
        (b"\n", Key::ctrl('j')),
        (b"\x1b\r", key(KeyCode::Enter).with_alt()),
        (b"\x1b[13;2u", key(KeyCode::Enter).with_shift()),
        (b"\x1b[27;2;13~", key(KeyCode::Enter).with_shift()),
        (b"\x1bOM", key(KeyCode::Enter)),
        (b"\t", key(KeyCode::Tab)),
        (b"\x1b[Z", key(KeyCode::Tab).with_shift()),
        (b"\x7f", key(KeyCode::Backspace)),
        (b"\x08", key(KeyCode::Backspace).with_ctrl()),
        (b"\x1b\x7f", key(KeyCode::Backspace).with_alt()),
        (b"\x1b", key(KeyCode::Escape)),
        (b"\x1b[27u", key(KeyCode::Escape)),
        (b"\x03", Key::ctrl('c')),
        (b"\x1b[99;5u", Key::ctrl('c')),
        (b"\x1b[27;5;99~", Key::ctrl('c')),
        (b"\x1f", Key::ctrl('_')),
        (b"\x00", Key::ctrl(' ')),
        (b"\x1bf", Key::alt('f')),
        ("\x1bé".as_bytes(), Key::alt('é')),
        (b"\x1b[", Key::alt('[')),
        (b"\x1bO", Key::alt('O')),
        (b"\x1b[A", key(KeyCode::Up)),
        (b"\x1bOB", key(KeyCode::Down)),
        (b"\x1b[1;5C", key(KeyCode::Right).with_ctrl()),
        (b"\x1b[1;3D", key(KeyCode::Left).with_alt()),
        (b"\x1b[1;1:1A", key(KeyCode::Up)),
        (b"\x1b[H", key(KeyCode::Home)),
        (b"\x1b[7~", key(KeyCode::Home)),
        (b"\x1b[4~", key(KeyCode::End)),
        (b"\x1b[3~", key(KeyCode::Delete)),
        (b"\x1b[3;5~", key(KeyCode::Delete).with_ctrl()),
        (b"\x1b[2~", key(KeyCode::Insert)),
        (b"\x1b[5~", key(KeyCode::PageUp)),
        (b"\x1b[6~", key(KeyCode::PageDown)),
        (b"\x1bOP", key(KeyCode::Function(1))),
        (b"\x1b[[A", key(KeyCode::Function(1))),
        (b"\x1b[15~", key(KeyCode::Function(5))),
        (b"\x1b[24~", key(KeyCode::Function(12))),
        (b"\x1b[97;2u", key(KeyCode::Char('A'))),
        (b"\x1b[233u", key(KeyCode::Char('é'))),
    ];
    for (bytes, expected) in cases {
        assert_eq!(decode_all(bytes), [Input::Key(*expected)], "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn what_is_no_key_is_dropped() {
    let cases: &[&[u8]] = &[
        b"\x1b[57358u",
        b"\x1b[97;1:3u",
        b"\x1b[1;1:3A",
        b"\x1b[I",
        b"\x1b[<0;10;10M",
        b"\x1b[?1;2y",
        b"\x1b[12;40R",
        b"\x1b[99~",
        b"\x1bOz",
        b"\x1b]52;c;QQ==\x07",
        b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
        b"\x1b]11;rgb:ffff/ffff\x07",
        b"\x1b]11;rgb:zzzz/fffff//\x07",
        b"\x1b[?62;22c",
        b"\x1bP1$r0m\x1b\\",
        b"\x1b_Gi=1;OK\x1b\\",
        "\u{85}".as_bytes(),
        b"\x1b[12",
    ];
    for bytes in cases {
        assert_eq!(decode_all(bytes), [], "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn the_background_is_understood_and_never_typed() {
    let cases = [
        ("\x1b]11;rgb:ffff/ffff/ffff\x1b\\", Background::Light),
        ("\x1b]11;rgb:fd/f6/e3\x07", Background::Light),
        ("\x1b]11;rgba:0000/2b2b/3636/ffff\x07", Background::Dark),
        ("\x1b]11;rgb:0/0/f\x07", Background::Dark),
    ];
    for (bytes, expected) in cases {
        assert_eq!(decode_all(bytes.as_bytes()), [Input::Background(expected)], "{bytes:?}");
        // However slowly it arrives.
        let mut decoder = Decoder::default();
        let (start, rest) = bytes.split_at(8);
        assert_eq!(decoder.push(start.as_bytes()), []);
        assert!(!decoder.is_within_sequence());
        assert_eq!(decoder.flush(), []);
        assert_eq!(decoder.push(rest.as_bytes()), [Input::Background(expected)], "{bytes:?}");
    }
}

#[test]
fn invalid_utf8_is_replaced_and_nothing_after_it_is_lost() {
    let replaced = Input::Key(key(KeyCode::Char('\u{fffd}')));
    let a = Input::Key(key(KeyCode::Char('a')));
    let cases: &[&[u8]] = &[b"\xffa", b"\xe6\x97a", b"\xc3a", b"\x80a", b"\xf0\x9f\x91a"];
    for bytes in cases {
        assert_eq!(decode_all(bytes), [replaced.clone(), a.clone()], "{bytes:?}");
    }
}

#[test]
fn escape_waits_for_the_rest_of_a_sequence() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.push(b"\x1b"), []);
    assert!(decoder.is_within_sequence());
    assert_eq!(decoder.push(b"["), []);
    assert_eq!(decoder.push(b"A"), [Input::Key(key(KeyCode::Up))]);
    assert!(!decoder.is_within_sequence());
    let escape = Input::Key(key(KeyCode::Escape));
    assert_eq!(decoder.push(b"\x1b\x1b"), std::slice::from_ref(&escape), "the first one is a key of its own");
    assert_eq!(decoder.flush(), [escape]);
    assert_eq!(decoder.flush(), []);
}

#[test]
fn a_paste_is_text_whatever_it_contains() {
    let pasted = decode_all(b"\x1b[200~one\r\ntwo\rthree\x1b[A\x03\x1b[201~x");
    let text = "one\ntwo\nthree\x1b[A\x03".to_owned();
    let expected = [Input::Paste(Paste { text, dropped: 0 }), Input::Key(key(KeyCode::Char('x')))];
    assert_eq!(pasted, expected);
}

#[test]
fn a_paste_is_kept_up_to_its_limit() {
    let mut decoder = Decoder::default();
    decoder.push(PASTE_START);
    let piece = vec![b'x'; 64 << 10];
    let pieces = 2 * MAX_PASTE / piece.len();
    for _ in 0..pieces {
        assert_eq!(decoder.push(&piece), []);
        assert!(decoder.pending.len() < PASTE_END.len());
    }
    let [Input::Paste(paste)] = <[Input; 1]>::try_from(decoder.push(PASTE_END)).unwrap() else { panic!() };
    assert_eq!((paste.text.len(), paste.dropped), (MAX_PASTE, pieces * piece.len() - MAX_PASTE));
}

#[test]
fn a_sequence_without_an_end_is_dropped() {
    for start in ["\x1b[", "\x1b]11;", "\x1bP"] {
        let mut decoder = Decoder::default();
        decoder.push(start.as_bytes());
        for _ in 0..3 * MAX_SEQUENCE {
            decoder.push(b"1");
        }
        assert!(decoder.pending.len() <= start.len() + MAX_SEQUENCE, "{start:?}");
    }
}

proptest! {
    /// Neither does the decoder fail, nor does it matter how the bytes are cut.
    #[test]
    fn decoding_does_not_depend_on_pieces(
        bytes in proptest::collection::vec(
            prop_oneof![
                3 => any::<u8>().prop_map(|byte| vec![byte]),
                2 => Just(b"\x1b".to_vec()),
                1 => Just(b"\x1b[".to_vec()),
                1 => Just(b"1;5".to_vec()),
                1 => Just(PASTE_START.to_vec()),
                1 => Just(PASTE_END.to_vec()),
                1 => Just("日👍".as_bytes().to_vec()),
                1 => Just(b"\x1b]11;rgb:1/2/3\x07".to_vec()),
            ],
            0..60,
        ),
        cut in 1_usize..7,
    ) {
        let bytes = bytes.concat();
        let whole = decode_all(&bytes);
        let mut decoder = Decoder::default();
        let mut pieces: Vec<Input> = bytes.chunks(cut).flat_map(|piece| decoder.push(piece)).collect();
        pieces.extend(decoder.flush());
        prop_assert_eq!(pieces, whole);
    }
}
