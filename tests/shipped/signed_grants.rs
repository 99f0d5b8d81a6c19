//! Signed grants of the built command: keys, chains, pinned roots and revocations.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use super::grants::grant;
use super::user::User;

/// Answers, without a call.
const ANSWERING: &str = "[[turn]]\ntext = \"Done.\"\n";

/// Parties of a grant.
const PARTIES: [&str; 4] = ["--subject", "ann", "--audience", "here"];

fn text_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Generates a key in a file of the home, and returns the file and the public key.
fn generate(user: &User, name: &str) -> (PathBuf, String) {
    let file = user.at(name);
    let public = user.pintle(&["grants", "keygen", text_of(&file)]);
    (file, public.trim().to_owned())
}

/// Signs a grant for everything, with other flags, and returns the file of the chain.
fn issue(user: &User, key: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let unsigned = grant(user, &format!("{name}.unsigned"), "/", true);
    let text = std::fs::read_to_string(&unsigned).unwrap();
    let text = text.replace("\"network\"", "\"delegation\": {\"depth\": 3, \"width\": 2}, \"network\"");
    std::fs::write(&unsigned, text).unwrap();
    sign(user, &["issue"], key, &unsigned, name, flags)
}

fn sign(user: &User, verb: &[&str], key: &Path, unsigned: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let of_files = ["--key", text_of(key), "--grant", text_of(unsigned)];
    let chain = user.pintle(&[&["grants"][..], verb, &of_files, &PARTIES, flags].concat());
    let file = user.at(name);
    std::fs::write(&file, chain).unwrap();
    file
}

/// Writes the roots and names that the user accepts.
fn pin(user: &User, root: &str, audience: &str, subject: &str) {
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    let text = format!("roots = [\"{root}\"]\naudience = [\"{audience}\"]\nsubjects = [\"{subject}\"]\n");
    std::fs::write(user.at(".config/pintle/grant-roots.toml"), text).unwrap();
}

fn run(user: &User, file: &Path) -> Output {
    user.run_command("Go").arg("--grant").arg(file).output().unwrap()
}

#[track_caller]
fn assert_refused(user: &User, file: &Path, reason: &str) {
    let output = run(user, file);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{reason}: {error}");
    assert!(error.contains(reason), "{reason}: {error}");
    assert_eq!(user.model.requests().len(), 0, "{reason}");
}

#[test]
fn a_run_takes_a_signed_grant_of_a_pinned_root_for_its_own_names() {
    let user = User::new(ANSWERING);
    let (key, root) = generate(&user, "root.key");
    let (_, other) = generate(&user, "other.key");
    let signed = issue(&user, &key, "signed.json", &[]);
    assert_refused(&user, &signed, "is not a pinned root");
    pin(&user, &other, "here", "ann");
    assert_refused(&user, &signed, "is not a pinned root");
    pin(&user, &root, "there", "ann");
    assert_refused(&user, &signed, "the grant is for `here`");
    pin(&user, &root, "here", "eve");
    assert_refused(&user, &signed, "the grant is for the user `ann`");
    pin(&user, &root, "here", "ann");
    let text = std::fs::read_to_string(&signed).unwrap();
    for (from, to, reason) in [
        ("\"network\":true", "\"network\":false", "the signature of grant 1 is not valid"),
        (root.as_str(), other.as_str(), "the signature of grant 1 is not valid"),
        ("ed25519:", "rsa:", "it is not a signed grant"),
        ("\"subject\":\"ann\"", "\"subject\":\"ann\",\"subject\":\"ann\"", "it is not a signed grant"),
    ] {
        let changed = user.at("changed.json");
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&changed, text.replacen(from, to, 1)).unwrap();
        assert_refused(&user, &changed, reason);
    }
    let long = user.at("long.json");
    std::fs::write(&long, format!("{text}{}", " ".repeat(64 * 1024))).unwrap();
    assert_refused(&user, &long, "at most 65536 are read");
    let truncated = user.at("truncated.json");
    std::fs::write(&truncated, &text[..text.len() / 2]).unwrap();
    assert_refused(&user, &truncated, "it is not a grant");
    assert!(run(&user, &signed).status.success(), "the unchanged grant is accepted");
}

#[test]
fn an_expired_signed_grant_and_forged_issuers_start_nothing() {
    let user = User::new(ANSWERING);
    let (key, root) = generate(&user, "root.key");
    pin(&user, &root, "here", "ann");
    let unsigned = grant(&user, "unsigned.json", "/", true);
    let text = std::fs::read_to_string(&unsigned).unwrap();
    let window = "\"window\": {\"not_after\": \"2020-01-01T00:00:00Z\"}, \"network\"";
    std::fs::write(&unsigned, text.replace("\"network\"", window)).unwrap();
    let expired = sign(&user, &["issue"], &key, &unsigned, "expired.json", &[]);
    assert_refused(&user, &expired, "the grant expired at 2020-01-01T00:00:00.000Z");
    let issuers = format!("\"issuers\": [\"{root}\"], \"network\"");
    std::fs::write(&unsigned, text.replace("\"network\"", &issuers)).unwrap();
    assert_refused(&user, &unsigned, "an unsigned grant has `issuers` or `chain`");
}

#[test]
fn a_holder_narrows_a_signed_grant_but_cannot_widen_it() {
    let user = User::new(ANSWERING);
    let (root_key, root) = generate(&user, "root.key");
    let (holder_key, holder) = generate(&user, "holder.key");
    pin(&user, &root, "here", "ann");
    let signed = issue(&user, &root_key, "signed.json", &["--holder", &holder]);
    let narrow = grant(&user, "narrow", &user.project().to_string_lossy(), true);
    let verb = ["attenuate", text_of(&signed)];
    let chain = sign(&user, &verb, &holder_key, &narrow, "chain.json", &[]);
    let shown = user.pintle(&["grants", "show", text_of(&chain)]);
    for part in
        ["1. grant signed.json.unsigned@0", "2. grant narrow@0", &root, &holder, "cannot be attenuated"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let verified = user.pintle(&["grants", "verify", text_of(&chain)]);
    assert_eq!(verified, "valid: grant narrow@0, the last of a chain of 2\n");
    let of_another = ["grants", "verify", text_of(&chain), "--root", &holder];
    assert_eq!(user.command(&of_another).output().unwrap().status.code(), Some(1));
    assert!(run(&user, &chain).status.success());

    let unsigned = std::fs::read_to_string(&narrow).unwrap();
    let deep = unsigned.replace("\"network\"", "\"delegation\": {\"depth\": 3, \"width\": 2}, \"network\"");
    let wide = user.at("wide");
    std::fs::write(&wide, deep).unwrap();
    for (key, grant, reason) in [
        (&holder_key, &wide, "grant 2 exceeds the grant before it: delegation"),
        (&root_key, &narrow, "grant 2 of the chain has the issuer of an earlier one"),
    ] {
        let of_files = ["--key", text_of(key), "--grant", text_of(grant)];
        let arguments = [&["grants"][..], &verb, &of_files, &PARTIES].concat();
        let output = user.command(&arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), error.contains(reason)), (Some(2), true), "{reason}: {error}");
    }
}

#[test]
fn private_keys_are_neither_printed_nor_replaced_nor_read_from_an_open_file() {
    let user = User::new(ANSWERING);
    let (key, root) = generate(&user, "root.key");
    let secret = std::fs::read_to_string(&key).unwrap();
    let digits = secret.trim().rsplit(':').next().unwrap().to_owned();
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!root.contains(&digits));
    let again = user.command(&["grants", "keygen", text_of(&key)]).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert_eq!(std::fs::read_to_string(&key).unwrap(), secret);
    let signed = issue(&user, &key, "signed.json", &[]);
    // A private key in place of a public one is refused without its text.
    pin(&user, secret.trim(), "here", "ann");
    for arguments in [
        &["grants", "verify", text_of(&signed)][..],
        &["grants", "verify", text_of(&signed), "--root", secret.trim()],
        &["grants", "revoke", "--issuer", secret.trim()],
        &["grants", "show", text_of(&key)],
    ] {
        let output = user.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(!format!("{output:?}").contains(&digits), "{output:?}");
    }
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let unsigned = user.at("signed.json.unsigned");
    let of_files = ["grants", "issue", "--key", text_of(&key), "--grant", text_of(&unsigned)];
    let output = user.command(&[&of_files[..], &PARTIES].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is open to others"), "{output:?}");
}

/// Calls a tool, waits for the user, and calls it again.
const WAITING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "touch started; while [ ! -e revoked ]; do sleep 0.05; done" }
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "touch after" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_running_session_ends_with_its_issuer_its_generation_and_its_root() {
    for (revocation, reason) in [
        (Some(&["--issuer"][..]), "was revoked"),
        (Some(&["--before", "1", "--issuer"][..]), "was revoked"),
        (None, "is not pinned any more"),
    ] {
        let user = User::new(WAITING);
        let (key, root) = generate(&user, "root.key");
        pin(&user, &root, "here", "ann");
        let signed = issue(&user, &key, "signed.json", &[]);
        let mut command = user.run_command("Go");
        let running = command.arg("--grant").arg(&signed).stderr(Stdio::piped()).stdout(Stdio::null());
        let running = running.spawn().unwrap();
        user.wait_for_file("started");
        match revocation {
            Some(flags) => drop(user.pintle(&[&["grants", "revoke"][..], flags, &[root.as_str()]].concat())),
            None => std::fs::remove_file(user.at(".config/pintle/grant-roots.toml")).unwrap(),
        }
        std::fs::write(user.project().join("revoked"), "").unwrap();
        let output = running.wait_with_output().unwrap();
        assert!(!user.project().join("after").exists(), "{reason}: {output:?}");
        let result = user.request(2);
        assert!(result.contains(reason), "{reason}: {result}");
        if revocation.is_some() {
            let listed = user.pintle(&["grants", "list"]);
            assert!(listed.contains(&format!("all that {root} signed")), "{listed}");
            let verified = user.command(&["grants", "verify", text_of(&signed)]).output().unwrap();
            assert_eq!(verified.status.code(), Some(1), "{verified:?}");
        }
        assert_eq!(run(&user, &signed).status.code(), Some(2), "{reason}");
    }
}
