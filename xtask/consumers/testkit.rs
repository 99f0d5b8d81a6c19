//! Parses a script for the scripted model server, and checks that an invalid one is refused.

use pintle_testkit::Script;

fn main() {
    let script = Script::parse("name = \"greeting\"\n[[turn]]\ntext = \"Hello\"\n").expect("a good script");
    assert_eq!(script.name, "greeting");
    let refused = Script::parse("name = \"typo\"\n[[turn]]\ntxet = \"Hello\"\n").expect_err("an unknown key");
    assert!(refused.to_string().len() > 10);
}
