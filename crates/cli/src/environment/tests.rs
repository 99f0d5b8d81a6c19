use std::io::ErrorKind;
use std::path::PathBuf;

use super::*;

fn place(text: &str) -> Result<Place, String> {
    text.parse()
}

#[test]
fn places_are_read_and_shown_as_they_were_given() {
    let rows = [
        ("docker:box", None),
        ("docker:0a1b2c3d4e5f", None),
        ("docker:my_app-web.1", None),
        ("ssh:build.example", Some("build.example")),
        ("ssh:me@build.example", Some("me@build.example")),
        ("ssh:me@build.example:2222", Some("me@build.example")),
        ("ssh:192.0.2.7:1", Some("192.0.2.7")),
        ("ssh:me@corp.example@host", Some("me@corp.example@host")),
        ("ssh:me@corp.example@host:65535", Some("me@corp.example@host")),
        ("ssh:[::1]", Some("::1")),
        ("ssh:me@[::1]:2222", Some("me@::1")),
        ("ssh:me@[2001:db8::7]", Some("me@2001:db8::7")),
        ("ssh:me@[fe80::1%eth0]", Some("me@fe80::1%eth0")),
    ];
    assert_eq!(place("local"), Ok(Place::Local));
    assert_eq!(Place::Local.to_string(), "local");
    for (text, destination) in rows {
        let place = place(text).unwrap();
        assert_eq!(place.to_string(), text);
        let found = match &place {
            Place::Ssh(host) => Some(host.destination()),
            Place::Docker(container) => {
                assert_eq!(Some(container.as_str()), text.strip_prefix("docker:"));
                None
            }
            Place::Local => panic!("{text} is not local"),
        };
        assert_eq!(found.as_deref(), destination, "{text}");
    }
}

#[test]
fn what_names_no_place_is_refused_in_a_sentence() {
    let rows = [
        ("", "expected local, docker:CONTAINER or ssh:[USER@]HOST[:PORT]"),
        ("Local", "expected local,"),
        ("local:", "expected local,"),
        ("docker", "expected local,"),
        ("ssh", "expected local,"),
        ("podman:box", "expected local,"),
        ("docker:", "found no container, expected docker:CONTAINER"),
        ("docker:-v", "found the container \"-v\", expected the name or the id"),
        ("docker:debian:12", "found the container \"debian:12\", expected the name or the id"),
        ("docker:a/b", "an image is no container"),
        ("docker:a b", "found the container \"a b\""),
        ("ssh:", "found no host, expected ssh:[USER@]HOST[:PORT]"),
        ("ssh:@host", "found no user, expected"),
        ("ssh:me@", "found no host, expected"),
        ("ssh:me@:22", "found no host, expected"),
        ("ssh:host:", "found the port \"\", expected a number from 1 to 65535"),
        ("ssh:host:0", "found the port \"0\", expected"),
        ("ssh:host:+22", "found the port \"+22\", expected"),
        ("ssh:host:65536", "found the port \"65536\", expected"),
        ("ssh:host:ssh", "found the port \"ssh\", expected"),
        (
            "ssh:-oProxyCommand=id",
            "found the host \"-oProxyCommand=id\", expected one that does not begin with `-`",
        ),
        ("ssh:-oProxyCommand=id:22", "expected one that does not begin with `-`"),
        ("ssh:me@-oProxyCommand=id", "expected one that does not begin with `-`"),
        ("ssh:-l@host", "found the user \"-l\", expected one that does not begin with `-`"),
        ("ssh:me:secret@host", "there is no place for a password"),
        ("ssh:a b", "without spaces and control characters"),
        ("ssh:a\u{1b}[2J", "without `/` and brackets"),
        ("ssh:a\u{7}b", "without spaces and control characters"),
        ("ssh://host", "found the host \"//host\", expected a name or an address without `/` and brackets"),
        ("ssh:::1", "an IPv6 address stands in brackets, as in ssh:[::1]"),
        ("ssh:[::1", "found no `]`, expected an IPv6 address in brackets"),
        ("ssh:[]", "found \"\" in brackets, expected an IPv6 address"),
        ("ssh:[host]", "found \"host\" in brackets"),
        ("ssh:[::1%]", "found \"::1%\" in brackets"),
        ("ssh:[::1%a b]", "found \"::1%a b\" in brackets"),
        ("ssh:[::1]22", "found \"22\" after the address, expected `:` and a port"),
        ("ssh:[::1]:x", "found the port \"x\", expected"),
    ];
    for (text, sentence) in rows {
        let refused = place(text).unwrap_err();
        assert!(refused.contains(sentence), "{text:?}: {refused}");
        assert!(!refused.contains(char::is_control), "{text:?}: {refused:?}");
    }
}

#[test]
fn why_a_place_cannot_be_used_is_one_sentence() {
    let host = Host::of_process();
    let sentence = |text: &str, directory: Option<&str>, error: EnvError| {
        let args = PlaceArgs { env: place(text).unwrap(), dir: directory.map(PathBuf::from) };
        let failure = Site {
            place: &args.env,
            directory: args.dir.as_deref(),
            confinement: ConfinementArgs::default(),
            host: &host,
        }
        .unusable(&error);
        (failure.exit().code(), failure.sentence().to_owned())
    };
    let not_found = || EnvError::NotFound { path: "/x".into(), source: ErrorKind::NotFound.into() };
    let unreachable = |source: &str| EnvError::Unreachable {
        environment: "docker:box".to_owned(),
        source: Some(source.to_owned().into()),
    };
    assert_eq!(
        sentence("docker:box", Some("x"), not_found()),
        (2, "--dir x: does not exist at docker:box; expected an existing directory there".to_owned())
    );
    assert_eq!(
        sentence("ssh:me@host:22", Some("/x"), EnvError::NotADirectory { path: "/x".into() }),
        (
            2,
            "--dir /x: is not a directory at ssh:me@host:22; expected an existing directory there".to_owned()
        )
    );
    assert_eq!(
        sentence("ssh:host", None, EnvError::NotADirectory { path: "/srv/me".into() }),
        (1, "ssh:host cannot be used: /srv/me is not a directory".to_owned())
    );
    assert_eq!(
        sentence("docker:box", None, unreachable("No such container: box")),
        (1, "cannot reach docker:box: No such container: box".to_owned())
    );
}

#[test]
fn a_directory_of_this_machine_is_looked_at_before_anything_else() {
    let host = Host::of_process();
    let mut args = PlaceArgs { env: Place::Local, dir: Some("/no/such/place".into()) };
    let confinement = ConfinementArgs::default();
    assert!(Site::of(&args, confinement, &host).unwrap_err().sentence().contains("does not exist"));
    args.env = place("docker:box").unwrap();
    assert!(Site::of(&args, confinement, &host).is_ok(), "whether it is there is known there");
}
