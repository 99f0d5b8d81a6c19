//! Signed grants: keys, chains and their verification. Private keys are never printed.

use std::path::Path;

use pintle_agent::Timestamp;
use pintle_governance::{Grant, GrantRecipient, GrantTrust, PrivateKey, PublicKey, SignedChain, SignedGrant};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::policy::grant::{RevocationFile, grant_trust, read_chain};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::sanitize::{json_line, to_single_line};

use crate::arguments::{SignGrantArgs, VerifyGrantArgs};

/// Generates a key, and returns a line with its public key.
pub(super) fn generate_key(file: &Path, process_env: &ProcessEnv) -> Result<String, Failure> {
    let key = PrivateKey::generate().or_failed("cannot generate a key")?;
    process_env.write_new(file, &format!("{}\n", key.to_secret_text()))?;
    Ok(format!("{}\n", key.public()))
}

/// Returns a chain with one grant, as a line of JSON.
pub(super) fn issue(args: SignGrantArgs) -> Result<String, Failure> {
    let (key, recipient, grant) = read_signing(args)?;
    json_line(&SignedChain::issue(&key, recipient, grant).or_usage("the grant is not signed")?)
}

/// Returns the chain of a file with one more grant, as a line of JSON.
pub(super) fn attenuate(file: &Path, args: SignGrantArgs) -> Result<String, Failure> {
    let chain = read_chain(file)?;
    let (key, recipient, grant) = read_signing(args)?;
    json_line(&chain.attenuate(&key, recipient, grant).or_usage("the grant is not signed")?)
}

/// Returns the grants of a chain as text.
pub(super) fn show(file: &Path) -> Result<String, Failure> {
    let chain = read_chain(file)?;
    Ok(chain.grants().iter().enumerate().map(|(index, signed)| describe(index + 1, signed)).collect())
}

fn describe(position: usize, signed: &SignedGrant) -> String {
    let claims = &signed.claims;
    let audience: Vec<&str> = claims.audience.iter().map(String::as_str).collect();
    let holder = claims.holder.map_or_else(|| "none, it cannot be attenuated".to_owned(), String::from);
    let mut text = format!("{position}. grant {}\n", to_single_line(&claims.grant.label()));
    for (name, value) in [
        ("issuer", claims.issuer.to_string()),
        ("subject", claims.subject.clone()),
        ("audience", audience.join(", ")),
        ("holder", holder),
        ("allows", claims.grant.to_json()),
    ] {
        text.push_str(&format!("   {name}: {}\n", to_single_line(&value)));
    }
    text
}

/// Verifies a chain and its revocations, and returns a line about it. A chain that is not accepted is a failure.
pub(super) fn verify(
    args: &VerifyGrantArgs,
    revoked: &RevocationFile,
    process_env: &ProcessEnv,
) -> Result<String, Failure> {
    let chain = read_chain(&args.file)?;
    let trust = trust_of(args, process_env)?;
    let grant = trust.verify(&chain, Timestamp::now()).or_failed("the grant is not accepted")?;
    if let Some(reason) = revoked.read()?.objection(&grant) {
        return Err(Failure::failed(format!("the grant is not accepted: {}", to_single_line(&reason))));
    }
    let (label, count) = (to_single_line(&grant.label()), chain.grants().len());
    Ok(format!("valid: grant {label}, the last of a chain of {count}\n"))
}

/// Returns the roots and names of the user, with those of the flags in their place.
fn trust_of(args: &VerifyGrantArgs, process_env: &ProcessEnv) -> Result<GrantTrust, Failure> {
    let mut trust = grant_trust(process_env)?;
    if !args.root.is_empty() {
        trust.roots = args.root.iter().map(|text| public_key(text)).collect::<Result<_, _>>()?;
    }
    if !args.audience.is_empty() {
        trust.audience = args.audience.iter().cloned().collect();
    }
    if !args.subject.is_empty() {
        trust.subjects = args.subject.iter().cloned().collect();
    }
    Ok(trust)
}

/// Parses a public key. The message does not contain the text, which could be a private key.
pub(super) fn public_key(text: &str) -> Result<PublicKey, Failure> {
    text.parse().or_usage("the public key is wrong")
}

/// Reads the files of a grant that is to be signed.
fn read_signing(args: SignGrantArgs) -> Result<(PrivateKey, GrantRecipient, Grant), Failure> {
    let SignGrantArgs { key, grant, subject, audience, holder } = args;
    let mut recipient = GrantRecipient::new(subject, audience);
    recipient.holder = holder.as_deref().map(public_key).transpose()?;
    let text = process_env::read_text("grant", &grant)?;
    let grant = Grant::parse(&text).or_usage(&format!("{} is wrong", grant.display()))?;
    Ok((read_key(&key)?, recipient, grant))
}

fn read_key(file: &Path) -> Result<PrivateKey, Failure> {
    let text = process_env::read_private_if_exists("private key", file)?;
    let shown = file.display();
    let text = text.ok_or_else(|| Failure::usage(format!("the private key {shown} does not exist")))?;
    PrivateKey::parse(&text).or_usage(&format!("the private key {shown} is wrong"))
}
