use super::*;

fn rules(allow: &[&str], deny: &[&str]) -> HostRules {
    let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<HostPattern>>();
    HostRules::new(parse(allow), parse(deny))
}

fn check(rules: &HostRules, target: &str) -> Result<(), Refusal> {
    rules.check(&Target::parse(target, Some(443)).unwrap())
}

#[test]
fn patterns_are_parsed_and_rendered() {
    for text in [
        "packages.example.org",
        "*.example.com:443",
        "*",
        "*:*",
        "localhost:8080",
        "192.0.2.7",
        "192.0.2.7:22",
        "10.0.0.0/8",
        "10.0.0.0/8:*",
        "[2001:db8::1]",
        "[2001:db8::1]:443",
        "2001:db8::/32",
        "[2001:db8::]/32:443",
    ] {
        assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), text);
    }
    assert_eq!("Example.COM.".parse::<HostPattern>().unwrap().to_string(), "example.com");
    assert_eq!("2001:db8::1".parse::<HostPattern>().unwrap().to_string(), "[2001:db8::1]");
    for text in [
        "",
        "https://example.com",
        "example.com/path",
        "ex*mple.com",
        "*.*.com",
        "*.10.0.0.1",
        "*.",
        "example.com:0",
        "example.com:https",
        "exämple.com",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "example.com/8",
        "127.1",
        "[::1",
        "a b",
    ] {
        let error = text.parse::<HostPattern>().unwrap_err();
        assert!(error.to_string().starts_with(&format!("invalid host `{text}`")), "{error}");
    }
}

#[test]
fn targets_need_a_rule_and_deny_wins() {
    let denied = |rule: &str| Err(Refusal::Denied { rule: rule.to_owned() });
    let some = rules(
        &["packages.example.org", "*.example.com:8443", "192.0.2.0/24", "git.example.net:22"],
        &["secret.example.com", "192.0.2.9"],
    );
    for (target, expected) in [
        ("packages.example.org", Ok(())),
        ("PACKAGES.example.org.:80", Ok(())),
        ("packages.example.org:22", Err(Refusal::Unnamed)),
        ("x.packages.example.org", Err(Refusal::Unnamed)),
        ("evilpackages.example.org", Err(Refusal::Unnamed)),
        ("a.example.com:8443", Ok(())),
        ("a.b.example.com:8443", Ok(())),
        ("a.example.com:443", Err(Refusal::Unnamed)),
        ("example.com:8443", Err(Refusal::Unnamed)),
        ("evilexample.com:8443", Err(Refusal::Unnamed)),
        ("secret.example.com:8443", denied("secret.example.com")),
        ("git.example.net:22", Ok(())),
        ("git.example.net", Err(Refusal::Unnamed)),
        ("192.0.2.8", Ok(())),
        ("[::ffff:192.0.2.8]:443", Ok(())),
        ("192.0.3.8", Err(Refusal::UnnamedAddress)),
        ("192.0.2.9", denied("192.0.2.9")),
        ("[2001:db8::1]:443", Err(Refusal::UnnamedAddress)),
    ] {
        assert_eq!(check(&some, target), expected, "{target}");
    }
    let all = rules(&["*"], &["*.example.com:443"]);
    assert_eq!(check(&all, "other.example"), Ok(()));
    assert_eq!(check(&all, "a.example.com"), denied("*.example.com:443"));
    assert_eq!(check(&all, "a.example.com:80"), Ok(()));
    // No pattern of names allows an address.
    assert_eq!(check(&all, "1.1.1.1"), Err(Refusal::UnnamedAddress));
    assert_eq!(check(&HostRules::nothing(), "example.com"), Err(Refusal::Unnamed));
}

#[test]
fn addresses_that_are_not_public_are_allowed_as_such() {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let special = |text: &str, class| Err(Refusal::SpecialAddress { address: address(text), class });
    let some = rules(&["*", "10.1.0.0/16:443", "[fd00::7]:*"], &["1.1.1.0/24", "10.1.9.9"]);
    for (text, port, expected) in [
        ("9.9.9.9", 443, Ok(())),
        ("1.1.1.1", 443, Err(Refusal::Denied { rule: "1.1.1.0/24".to_owned() })),
        ("::ffff:1.1.1.1", 443, Err(Refusal::Denied { rule: "1.1.1.0/24".to_owned() })),
        ("10.1.2.3", 443, Ok(())),
        ("10.1.2.3", 80, special("10.1.2.3", "a private address")),
        ("10.2.2.3", 443, special("10.2.2.3", "a private address")),
        ("10.1.9.9", 443, Err(Refusal::Denied { rule: "10.1.9.9".to_owned() })),
        ("fd00::7", 9, Ok(())),
        ("fd00::8", 443, special("fd00::8", "a private address")),
        ("127.0.0.1", 443, special("127.0.0.1", "a loopback address")),
        ("169.254.169.254", 80, special("169.254.169.254", "a link-local address")),
    ] {
        assert_eq!(some.check_address(address(text), port), expected, "{text}:{port}");
    }
}

#[test]
fn a_child_only_removes() {
    let parent = rules(&["*.example.com", "10.0.0.0/8"], &["b.example.com"]);
    let child = rules(&["*", "*:*"], &["c.example.com"]);
    let both = parent.clone().narrowed_by(&child);
    for (target, expected) in [
        ("a.example.com:443", true),
        ("a.example.com:22", false),
        ("b.example.com:443", false),
        ("c.example.com:443", false),
        ("example.org:443", false),
    ] {
        assert_eq!(check(&both, target).is_ok(), expected, "{target}");
        assert_eq!(check(&child.clone().narrowed_by(&parent), target).is_ok(), expected, "{target}");
    }
    assert!(both.check_address("10.0.0.1".parse().unwrap(), 443).is_err());
    assert_eq!(parent.clone().narrowed_by(&parent), parent);
    assert!(check(&parent.narrowed_by(&HostRules::nothing()), "a.example.com").is_err());
}

#[test]
fn networks_are_compared_by_their_bits() {
    for (network, found, expected) in [
        ("0.0.0.0/0", "255.1.2.3", true),
        ("10.0.0.0/9", "10.127.255.255", true),
        ("10.0.0.0/9", "10.128.0.0", false),
        ("::/0", "2001:db8::1", true),
        ("::/0", "10.0.0.1", false),
        ("2001:db8::/33", "2001:db8:8000::", false),
    ] {
        let pattern: HostPattern = network.parse().unwrap();
        let host = Host::parse(found).unwrap();
        assert_eq!(pattern.covers(&host, 443, Side::Allow), expected, "{network} {found}");
    }
}

#[test]
fn two_patterns_have_an_exact_common_part() {
    for (one, other, common) in [
        ("a.example", "a.example", Some("a.example")),
        ("a.example", "b.example", None),
        ("*.example", "a.example:443", Some("a.example:443")),
        ("*.example", "example", None),
        ("*.example", "*.a.example", Some("*.a.example")),
        ("*.a.example", "*.ba.example", None),
        ("*", "*.example:*", Some("*.example")),
        ("*:*", "*.example:22", Some("*.example:22")),
        ("*", "*.example:22", None),
        ("*", "192.0.2.1", None),
        ("10.0.0.0/8", "10.1.2.3:80", Some("10.1.2.3:80")),
        ("10.0.0.0/8", "11.0.0.1", None),
        ("2001:db8::/32", "[2001:db8::1]", Some("[2001:db8::1]")),
    ] {
        let [one, other]: [HostPattern; 2] = [one, other].map(|text| text.parse().unwrap());
        let common = common.map(|text| text.parse::<HostPattern>().unwrap());
        assert_eq!(one.common_part(&other), common, "{one} {other}");
        assert_eq!(other.common_part(&one), common, "{other} {one}");
    }
}
