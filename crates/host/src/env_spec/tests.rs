use super::*;

fn spec(text: &str) -> Result<EnvSpec, String> {
    text.parse()
}

#[test]
fn specs_round_trip() {
    let cases = [
        ("docker:box", None),
        ("docker:0a1b2c3d4e5f", None),
        ("docker:my_app-web.1", None),
        ("docker:debian:12", None),
        ("docker:registry.example:5000/a/b@sha256:0a", None),
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
    assert_eq!(spec("local"), Ok(EnvSpec::Local));
    assert_eq!(EnvSpec::Local.to_string(), "local");
    for (text, destination) in cases {
        let spec = spec(text).unwrap();
        assert_eq!(spec.to_string(), text);
        let found = match &spec {
            EnvSpec::Ssh(host) => Some(host.destination()),
            EnvSpec::Docker(name) | EnvSpec::Image(name) => {
                assert_eq!(Some(name.as_str()), text.strip_prefix("docker:"));
                assert_eq!(matches!(spec, EnvSpec::Image(_)), name.contains(':'), "{text}");
                None
            }
            EnvSpec::Local => panic!("{text} is not local"),
        };
        assert_eq!(found.as_deref(), destination, "{text}");
    }
}

#[test]
fn invalid_specs_are_rejected() {
    let cases = [
        ("", "expected local, docker:CONTAINER or ssh:[USER@]HOST[:PORT]"),
        ("Local", "expected local,"),
        ("local:", "expected local,"),
        ("docker", "expected local,"),
        ("ssh", "expected local,"),
        ("podman:box", "expected local,"),
        ("docker:", "found no container, expected docker:CONTAINER"),
        ("docker:-v", "found the container \"-v\", expected the name or the id"),
        ("docker:/b", "found the container \"/b\", expected the name or the id"),
        ("docker:debian:12 x", "found the container \"debian:12 x\", expected the name or the id"),
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
            "found the host \"-oProxyCommand=id\", expected one that does not start with `-`",
        ),
        ("ssh:-oProxyCommand=id:22", "expected one that does not start with `-`"),
        ("ssh:me@-oProxyCommand=id", "expected one that does not start with `-`"),
        ("ssh:-l@host", "found the user \"-l\", expected one that does not start with `-`"),
        ("ssh:me:secret@host", "passwords are not supported"),
        ("ssh:a b", "without spaces and control characters"),
        ("ssh:a\u{1b}[2J", "without `/` and brackets"),
        ("ssh:a\u{7}b", "without spaces and control characters"),
        ("ssh://host", "found the host \"//host\", expected a name or an address without `/` and brackets"),
        ("ssh:::1", "an IPv6 address must be in brackets, as in ssh:[::1]"),
        ("ssh:[::1", "found no `]`, expected an IPv6 address in brackets"),
        ("ssh:[]", "found \"\" in brackets, expected an IPv6 address"),
        ("ssh:[host]", "found \"host\" in brackets"),
        ("ssh:[::1%]", "found \"::1%\" in brackets"),
        ("ssh:[::1%a b]", "found \"::1%a b\" in brackets"),
        ("ssh:[::1]22", "found \"22\" after the address, expected `:` and a port"),
        ("ssh:[::1]:x", "found the port \"x\", expected"),
    ];
    for (text, message) in cases {
        let error = spec(text).unwrap_err();
        assert!(error.contains(message), "{text:?}: {error}");
        assert!(!error.contains(char::is_control), "{text:?}: {error:?}");
    }
}
