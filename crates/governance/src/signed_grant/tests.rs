//! Chains of signed grants: what verifies, each refusal, and that no attenuation widens.

use pintle_agent::{Limits, SessionId, Timestamp};
use pintle_test_conditions::cases;
use pintle_tools::Effect;
use proptest::prelude::*;

use super::*;
use crate::grant::{Delegation, EffectCeiling, GrantId, PathScope, Window};
use crate::pattern::Pattern;

const NOW: i64 = 1_000_000;

fn key(number: u8) -> PrivateKey {
    PrivateKey::parse(&format!("ed25519-private:{}", format!("{number:02x}").repeat(32))).unwrap()
}

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn grant(id: &str, depth: u32) -> Grant {
    let mut grant = Grant::none(GrantId::new(id));
    grant.tools = [Pattern::new("*_file")].into();
    grant.reads = PathScope::within(["/w"]);
    grant.effect = EffectCeiling::Write;
    grant.budget = Limits::default().with_tokens(100);
    grant.window = Window::new(Some(time(NOW)), Some(time(NOW + 1_000)));
    grant.delegation = Delegation::new(depth, 1);
    grant
}

/// Parties of a grant that the key with this number may attenuate.
fn held_by(number: u8) -> GrantRecipient {
    GrantRecipient::new("ann", ["here"]).with_holder(key(number).public())
}

/// A chain of this length; key 1 issues its first grant, and each later one is of the next key.
fn chain_of(length: u8) -> SignedChain {
    let mut chain = SignedChain::issue(&key(1), held_by(2), grant("1", 20)).unwrap();
    for number in 2..=length {
        let next = grant(&number.to_string(), 20 - u32::from(number));
        chain = chain.attenuate(&key(number), held_by(number + 1), next).unwrap();
    }
    chain
}

fn trust() -> GrantTrust {
    let root = key(1).public();
    GrantTrust::parse(&format!("roots = [\"{root}\"]\naudience = [\"here\"]\nsubjects = [\"ann\"]\n"))
        .unwrap()
}

/// Signs claims without the checks of `attenuate`, as a holder with another program can.
fn push_unchecked(chain: &SignedChain, number: u8, change: impl FnOnce(&mut GrantClaims)) -> SignedChain {
    let mut chain = chain.clone();
    let parent = chain.grants.last().unwrap().claims.grant.clone();
    let mut next = grant("forged", parent.delegation.depth.saturating_sub(1));
    next.ancestors = parent.ancestors.iter().chain([&parent.id]).cloned().collect();
    let signed = SignedGrant::sign(&key(number), held_by(number + 1), next).unwrap();
    let mut claims = signed.claims;
    change(&mut claims);
    let signature = key(number).sign(claims.signed_text().unwrap().as_bytes());
    chain.grants.push(SignedGrant { claims, signature });
    chain
}

#[test]
fn a_chain_verifies_and_comes_back_from_its_text() {
    for length in [1, 2, 5, 16] {
        let chain = chain_of(length);
        let parsed = SignedChain::parse(&chain.to_json()).unwrap();
        assert_eq!(parsed, chain);
        let verified = trust().verify(&parsed, time(NOW)).unwrap();
        assert_eq!(verified.id, GrantId::new(length.to_string()));
        assert_eq!(verified.ancestors.len() + 1, usize::from(length));
        let issuers: Vec<PublicKey> = (1..=length).map(|number| key(number).public()).collect();
        assert_eq!(verified.issuers, issuers);
        assert_eq!(SignedChain::parse(verified.chain.as_deref().unwrap()).unwrap(), chain);
        assert_eq!(Grant::parse(&verified.to_json()).unwrap(), verified, "a record keeps all of it");
        let mut child = verified.clone();
        (child.id, child.delegation) = (GrantId::new("sub"), Delegation::default());
        child.issuers.clear();
        assert_eq!(verified.attenuate(child).unwrap().issuers, issuers, "a subagent has the issuers as well");
    }
}

#[test]
fn the_signed_text_does_not_depend_on_the_form_of_the_file() {
    let chain = chain_of(2);
    let value: serde_json::Value = serde_json::from_str(&chain.to_json()).unwrap();
    assert_eq!(SignedChain::parse(&format!("{value:#}")).unwrap(), chain);
}

#[test]
fn every_change_of_a_claim_breaks_the_signature() {
    let changes: [fn(&mut GrantClaims); 9] = [
        |claims| claims.subject.push('x'),
        |claims| claims.audience = ["elsewhere".to_owned()].into(),
        |claims| claims.holder = None,
        |claims| claims.issuer = key(9).public(),
        |claims| claims.grant.id = GrantId::new("2x"),
        |claims| claims.grant.epoch = 1,
        |claims| claims.grant.budget = Limits::default().with_tokens(101),
        |claims| claims.grant.window.not_after = None,
        |claims| claims.grant.network = true,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut chain = chain_of(2);
        change(&mut chain.grants[1].claims);
        let error = SignedChain::parse(&chain.to_json()).unwrap_err();
        assert!(matches!(error, ChainError::Signature { position: 2 }), "{number}: {error}");
    }
    let mut swapped = chain_of(3);
    let signature = swapped.grants[1].signature.clone();
    swapped.grants[2].signature = signature;
    assert!(matches!(SignedChain::parse(&swapped.to_json()), Err(ChainError::Signature { position: 3 })));
}

#[test]
fn a_holder_can_sign_anything_but_only_narrower_grants_verify() {
    type Case = (&'static str, fn(&mut GrantClaims));
    let cases: [Case; 15] = [
        ("form", |claims| claims.grant.ancestors.clear()),
        ("form", |claims| claims.grant.ancestors.push(GrantId::new("made-up"))),
        ("form", |claims| claims.grant.issuers = vec![key(7).public()]),
        ("form", |claims| claims.grant.chain = Some("{}".to_owned())),
        ("form", |claims| claims.grant.id = GrantId::new("1")),
        ("epoch", |claims| claims.grant.epoch = 1),
        ("tools", |claims| claims.grant.tools = [Pattern::any()].into()),
        ("reads", |claims| claims.grant.reads = PathScope::all()),
        ("writes", |claims| claims.grant.writes = PathScope::within(["/w"])),
        ("effect", |claims| claims.grant.effect = EffectCeiling::Execute),
        ("network", |claims| claims.grant.network = true),
        ("budget", |claims| claims.grant.budget = Limits::default()),
        ("window", |claims| claims.grant.window.not_after = None),
        ("delegation", |claims| claims.grant.delegation.depth += 1),
        ("audience", |claims| claims.audience.extend(["there".to_owned()])),
    ];
    assert!(push_unchecked(&chain_of(1), 2, |_| {}).checked().is_ok(), "without a change it verifies");
    for (axis, change) in cases {
        let forged = push_unchecked(&chain_of(1), 2, change);
        let error = SignedChain::parse(&forged.to_json()).unwrap_err().to_string();
        assert_eq!(error, format!("grant 2 exceeds the grant before it: {axis}"));
    }
}

#[test]
fn a_grant_for_one_session_is_not_passed_to_another() {
    let mut first = grant("1", 2);
    first.session = Some(SessionId::new("s"));
    let chain = SignedChain::issue(&key(1), held_by(2), first).unwrap();
    for (session, is_kept) in [(None, false), (Some("t"), false), (Some("s"), true)] {
        let forged = push_unchecked(&chain, 2, |claims| claims.grant.session = session.map(SessionId::new));
        assert_eq!(SignedChain::parse(&forged.to_json()).is_ok(), is_kept, "{session:?}");
    }
}

#[test]
fn other_chains_are_refused_with_the_reason() {
    let chain = chain_of(2);
    let without_holder =
        SignedChain::issue(&key(1), GrantRecipient::new("ann", ["here"]), grant("1", 2)).unwrap();
    let mut of_empty = chain.clone();
    of_empty.grants.clear();
    let mut tail = chain.clone();
    tail.grants.remove(0);
    let no_subject = push_unchecked(&chain, 3, |claims| claims.subject.clear());
    let no_audience = push_unchecked(&chain, 3, |claims| claims.audience.clear());
    let wrong_path = push_unchecked(&chain, 3, |claims| claims.grant.reads = PathScope::within(["/w/.."]));
    let mut long = chain_of(16);
    long = push_unchecked(&long, 17, |_| {});
    for (text, expected) in [
        (of_empty.to_json(), "the chain has no grant"),
        (tail.to_json(), "grant 1 of the chain has ancestors"),
        (
            push_unchecked(&chain, 9, |_| {}).to_json(),
            "the issuer of grant 3 is not the holder of the grant before it",
        ),
        (
            push_unchecked(&without_holder, 2, |_| {}).to_json(),
            "the issuer of grant 2 is not the holder of the grant before it",
        ),
        (
            push_unchecked(&chain, 1, |_| {}).to_json(),
            "grant 3 of the chain has the issuer of an earlier one",
        ),
        (no_subject.to_json(), "grant 3 of the chain has no subject or no audience"),
        (no_audience.to_json(), "grant 3 of the chain has no subject or no audience"),
        (wrong_path.to_json(), "grant 3 of the chain is wrong"),
        (long.to_json(), "the chain has 17 grants, and at most 16 are read"),
        (format!("{}{}", chain.to_json(), " ".repeat(64 * 1024)), "and at most 65536 are read"),
        (
            chain.to_json().replacen("\"version\":1", "\"version\":2", 1),
            "the signed grant has version 2, expected 1",
        ),
    ] {
        let error = SignedChain::parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}: {expected}");
    }
}

#[test]
fn wrong_forms_are_refused() {
    let text = chain_of(2).to_json();
    let root = key(1).public().to_string();
    let claims_again = text.replacen("\"subject\":\"ann\"", "\"subject\":\"ann\",\"subject\":\"eve\"", 1);
    for (number, wrong) in [
        text[..text.len() / 2].to_owned(),
        text[..text.len() - 1].to_owned(),
        claims_again,
        text.replacen("\"kind\":\"signed_grant\"", "\"kind\":\"other\"", 1),
        text.replacen("\"kind\":\"signed_grant\",", "", 1),
        text.replacen("\"subject\"", "\"unknown\":1,\"subject\"", 1),
        text.replacen(&root, &root.replace("ed25519:", "rsa:"), 1),
        text.replacen(&root, &root.replace("ed25519:", "ed25519-private:"), 1),
        "[".repeat(10_000),
        String::new(),
    ]
    .into_iter()
    .enumerate()
    {
        assert_ne!(wrong, text, "{number}");
        assert!(matches!(SignedChain::parse(&wrong), Err(ChainError::Form(_))), "{number}");
    }
}

#[test]
fn wrong_grants_are_not_signed() {
    let issue = |grant| SignedChain::issue(&key(1), held_by(2), grant).map(drop);
    let mut huge = grant("1", 2);
    huge.budget = Limits::default().with_tokens(u64::MAX);
    assert!(matches!(issue(huge), Err(ChainError::Number(_))));
    let mut long = grant("1", 2);
    long.reads = PathScope::within((0..8_000).map(|number| format!("/w/{number}")));
    assert!(matches!(issue(long), Err(ChainError::Size { .. })));
    let chain = chain_of(1);
    let mut wide = grant("2", 2);
    wide.network = true;
    let widened = chain.attenuate(&key(2), held_by(3), wide);
    assert!(matches!(widened, Err(ChainError::Exceeds { position: 2, axis: Axis::Network })));
    assert!(matches!(
        chain.attenuate(&key(5), held_by(3), grant("2", 2)),
        Err(ChainError::Holder { position: 2 })
    ));
    let looped = chain.attenuate(&key(2), held_by(3), grant("1", 2));
    assert!(matches!(looped, Err(ChainError::Exceeds { position: 2, axis: Axis::Form })));
}

#[test]
fn an_operator_accepts_pinned_roots_for_own_names_within_the_window() {
    let chain = chain_of(2);
    let verify = |trust: &GrantTrust, now| {
        trust.verify(&chain, time(now)).map(drop).map_err(|error| error.to_string())
    };
    let changed = |change: fn(&mut GrantTrust)| {
        let mut trust = trust();
        change(&mut trust);
        verify(&trust, NOW)
    };
    let skew = i64::try_from(GrantTrust::CLOCK_SKEW.as_millis()).unwrap();
    assert_eq!(verify(&trust(), NOW), Ok(()));
    assert_eq!(verify(&trust(), NOW - skew), Ok(()), "the clock of the issuer may be ahead");
    assert_eq!(verify(&trust(), NOW + 999), Ok(()));
    for (result, expected) in [
        (verify(&trust(), NOW - skew - 1), "the grant is not valid before 1970-01-01T00:16:40.000Z"),
        (verify(&trust(), NOW + 1_000), "the grant expired at 1970-01-01T00:16:41.000Z"),
        (verify(&trust(), i64::MAX), "the grant expired at 1970-01-01T00:16:41.000Z"),
        (verify(&trust(), i64::MIN), "the grant is not valid before 1970-01-01T00:16:40.000Z"),
        (changed(|trust| trust.audience = ["there".to_owned()].into()), "the grant is for `here`"),
        (changed(|trust| trust.audience.clear()), "the grant is for `here`"),
        (changed(|trust| trust.subjects = ["eve".to_owned()].into()), "the grant is for the user `ann`"),
    ] {
        assert_eq!(result.unwrap_err(), expected);
    }
    for error in [
        changed(|trust| trust.roots.clear()),
        // The key of a holder is not a root.
        changed(|trust| trust.roots = [key(2).public()].into()),
        GrantTrust::default().verify(&chain, time(NOW)).map(drop).map_err(|error| error.to_string()),
    ] {
        assert!(error.unwrap_err().ends_with("is not a pinned root"));
    }
    for wrong in ["root = []", "roots = [\"rsa:00\"]", "roots = \"\""] {
        assert!(GrantTrust::parse(wrong).is_err(), "{wrong}");
    }
}

/// A call, as far as the property distinguishes calls.
#[derive(Clone, Debug)]
struct Call {
    tool: &'static str,
    path: &'static str,
    effect: Effect,
    at: i64,
    spent: u64,
}

/// Returns whether a grant allows a call, by its fields alone.
fn allows(grant: &Grant, call: &Call) -> bool {
    grant.allows_tool(call.tool)
        && grant.reads.contains(std::path::Path::new(call.path))
        && grant.effect.contains(call.effect)
        && grant.window.contains(time(call.at))
        && grant.budget.tokens.is_none_or(|tokens| call.spent <= tokens)
}

prop_compose! {
    fn random_grants()(
        tools in proptest::sample::subsequence(vec!["*", "a*", "a", "b"], 1..3),
        roots in proptest::sample::subsequence(vec!["/", "/w", "/w/a", "/x"], 1..3),
        effect in prop_oneof![Just(EffectCeiling::Read), Just(EffectCeiling::Write), Just(EffectCeiling::Execute)],
        (start, end) in (proptest::option::of(0..4i64), proptest::option::of(0..4i64)),
        (tokens, depth) in (proptest::option::of(0..4u64), 0..4u32),
    ) -> Grant {
        let mut grant = Grant::none(GrantId::new("random"));
        grant.tools = tools.into_iter().map(Pattern::new).collect();
        grant.reads = PathScope::within(roots);
        grant.effect = effect;
        grant.window = Window::new(start.map(time), end.map(time));
        grant.budget.tokens = tokens;
        grant.delegation = Delegation::new(depth, 1);
        grant
    }
}

prop_compose! {
    fn calls()(
        tool in proptest::sample::select(vec!["a", "ab", "b", "c"]),
        path in proptest::sample::select(vec!["/", "/w", "/w/a/b", "/w/b", "/x", "/y"]),
        effect in prop_oneof![Just(Effect::Read), Just(Effect::Write), Just(Effect::Execute)],
        (at, spent) in (0..5i64, 0..5u64),
    ) -> Call {
        Call { tool, path, effect, at, spent }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300, 1_000)))]

    /// Whatever the holders sign, a chain that verifies allows no call that one of its grants denies.
    #[test]
    fn no_attenuation_widens(
        grants in proptest::collection::vec((random_grants(), 0..6usize), 1..4),
        calls in proptest::collection::vec(calls(), 1..30),
    ) {
        let mut first = random_root();
        first.id = GrantId::new("1");
        let mut chain = SignedChain::issue(&key(1), held_by(2), first).unwrap();
        for (number, (random, field)) in (2u8..).zip(grants) {
            let parent = chain.grants.last().unwrap().claims.grant.clone();
            // One field of another grant is accepted often enough to be judged.
            let mut next = parent.clone();
            next.delegation.depth = next.delegation.depth.saturating_sub(1);
            match field {
                0 => next.tools = random.tools,
                1 => next.reads = random.reads,
                2 => next.effect = random.effect,
                3 => next.window = random.window,
                4 => next.budget = random.budget,
                _ => next = random,
            }
            next.id = GrantId::new(number.to_string());
            next.ancestors = parent.ancestors.iter().chain([&parent.id]).cloned().collect();
            let forged = push_unchecked(&chain, number, |claims| claims.grant = next);
            if let Ok(verified) = SignedChain::parse(&forged.to_json()) {
                chain = verified;
            } else {
                break;
            }
        }
        let last = &chain.grants.last().unwrap().claims.grant;
        for call in calls {
            let is_within = chain.grants.iter().all(|signed| allows(&signed.claims.grant, &call));
            prop_assert!(!allows(last, &call) || is_within, "{call:?} of {last:?}");
        }
    }
}

/// A root that random grants are sometimes within.
fn random_root() -> Grant {
    let mut root = Grant::none(GrantId::new("root"));
    root.tools = [Pattern::new("a*"), Pattern::new("b")].into();
    root.reads = PathScope::within(["/w", "/x"]);
    root.effect = EffectCeiling::Execute;
    root.delegation = Delegation::new(9, 9);
    root
}
