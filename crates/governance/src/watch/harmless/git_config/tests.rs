//! Tests of the judgement of git's settings.

use std::path::Path;

use super::is_plain;

/// Judges a configuration of the submodule `sub` in the working directory `/w`.
fn is_plain_in_submodule(config: &[u8]) -> bool {
    is_plain(config, Path::new("/w/.git/modules/sub/config"), Path::new("/w"))
}

#[test]
fn only_settings_that_name_no_program_are_plain() {
    for (config, plain) in [
        ("", true),
        ("[core]\n\tbare = false\n\tfilemode = true\n[remote \"origin\"]\n\turl = /srv/a.git\n", true),
        ("[core]\n\tworktree = ../../../sub\n# comment\n; another\n", true),
        ("[CORE]\nBare\n", true),
        ("[core]\n\tfsmonitor = ./x\n", false),
        ("[core]\n\thooksPath = x\n", false),
        ("[core] fsmonitor = ./x\n", false),
        ("[core]fsmonitor=x]\n", false),
        ("[core]\n\tworktree = /elsewhere\n", false),
        ("[core]\n\tworktree = ../../../../elsewhere\n", false),
        ("[core]\n\tworktree = ../../../../elsewhere #/../../w/sub\n", false),
        ("[filter \"x\"]\n\tclean = ./x\n", false),
        ("[include]\n\tpath = ../x\n", false),
        ("[remote \"x\"]\n\turl = ext::sh -c x\n", false),
        ("[remote \"x\"]\n\turl = \"ext:\":sh\n", false),
        ("[remote \"x\"]\n\turl = --upload-pack=x\n", false),
        ("[remote \"x\"]\n\turl = \" --upload-pack=x\"\n", false),
        ("[remote \"x\"]\n\turl = https://host.example/a.git\n", true),
        ("[remote \"x\"]\n\turl = git@host.example:a.git\n", true),
        ("[remote \"x\"]\n\turl = helper://x\n", false),
        ("[remote \"x\"]\n\tfetch = +refs/heads/*:refs/remotes/x/*\n", true),
        ("[remote \"x\"]\n\tfetch = --upload-pack=x\n", false),
        ("[remote \"x\"]\n\tpush = --receive-pack=x\n", false),
        ("[remote \"--upload-pack=/x/evil\"]\n\tpromisor = true\n", false),
        ("[remote \" --upload-pack=/x/evil\"]\n\tpromisor = true\n", false),
        ("[remote \"ext::sh -c x\"]\n\tpromisor = true\n", false),
        ("[remote \"a\u{1}\"]\n\tpromisor = true\n", false),
        ("[remote \"--upload-pack=x\"]\n\turl = /srv/a.git\n", false),
        ("[remote]\n\tpushDefault = origin\n", true),
        ("[remote]\n\tpushDefault = --receive-pack=x\n", false),
        ("[remotes]\n\tdefault = --upload-pack=x\n", false),
        ("[extensions]\n\tpartialClone = origin\n", true),
        ("[extensions]\n\tpartialClone = --upload-pack=/x/evil\n", false),
        ("[extensions]\n\tpartialClone = \"-\"-upload-pack=/x/evil\n", false),
        ("[extensions]\n\tpartialClone = ext::sh -c x\n", false),
        ("[extensions]\n\trefStorage = reftable\n", true),
        ("[extensions]\n\trefStorage = files:///elsewhere\n", false),
        ("[checkout]\n\tdefaultRemote = origin\n", true),
        ("[checkout]\n\tdefaultRemote = --upload-pack=x\n", false),
        ("[fetch]\n\tbundleURI = x\n", false),
        ("[remote \"x\"]\n\tpushurl = ext::sh -c x\n", false),
        ("[remote \"ext::sh -c x\"]\n\tprune = true\n", false),
        ("[branch \"-x\"]\n\trebase = true\n", false),
        ("[remote \"x\"]\n\tpromisor = true\n\tpartialclonefilter = blob:none\n\ttagOpt = --no-tags\n", true),
        ("[remote \"x\"]\n\tuploadpack = x\n", false),
        ("[remote \"x\"]\n\tvcs = x\n", false),
        ("[remote \"x\"]\n\tproxy = x\n", false),
        ("[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n\trebase = true\n", true),
        ("[branch \"x\"]\n\tremote = ext::sh -c x\n", false),
        ("[branch \"x\"]\n\tremote = --upload-pack=x\n", false),
        ("[branch \"x\"]\n\tpushRemote = --receive-pack=x\n", false),
        ("[branch \"x\"]\n\tmerge = --upload-pack=x\n", false),
        ("[branch \"x\"]\n\tmergeOptions = -s x\n", false),
        ("[submodule \"x\"]\n\tupdate = rebase\n", true),
        ("[submodule \"x\"]\n\tupdate = !x\n", false),
        ("[submodule \"x\"]\n\tbranch = --upload-pack=x\n", false),
        ("[submodule \"x\"]\n\turl = --upload-pack=x\n", false),
        ("[user]\n\tname = A User\n\temail = a@example.org\n", true),
        ("[core]\n\tautocrlf = input\n\tsparseCheckout = true\n", true),
        ("[pull]\n\trebase = true\n[commit]\n\tgpgSign = false\n", true),
        ("[color \"diff\"]\n\tnew = green\n[advice]\n\tanything = false\n", true),
        ("[uploadpack]\n\tallowFilter = true\n", true),
        ("[uploadpack]\n\tpackObjectsHook = x\n", false),
        ("[maintenance]\n\tauto = false\n\tstrategy = incremental\n", true),
        ("[unknown]\n\tkey = x\n", false),
        ("[core]\n\tbare = \\\nfsmonitor = x\n", false),
        ("[remote \"a\\\"b\"]\n\turl = x\n", false),
        ("[core]\n\tbare = false\r[core]\n", false),
        ("bare = false\n", false),
    ] {
        assert_eq!(is_plain_in_submodule(config.as_bytes()), plain, "{config:?}");
    }
    assert!(!is_plain_in_submodule(b"[core]\n\tbare = \xff\n"));
}

#[test]
fn only_submodules_have_a_plain_working_tree() {
    for (path, worktree, plain) in [
        ("/w/.git/modules/sub/config", "../../../sub", true),
        ("/w/.git/modules/a/modules/b/config", "../../../../../a/b", true),
        ("/w/.git/modules/sub/config.worktree", "../../../sub", true),
        ("/w/.git/worktrees/tree/modules/sub/config", "../../../../../tree/sub", true),
        ("/w/.git/config", "../sub", false),
        ("/w/modules/nested/.git/config", "../../sub", false),
        ("/w/.git/modules/a/.git/config", "../sub", false),
        ("/w/.git/modules/../../evil/config", "../sub", false),
        ("/w/evil/modules/x/config", "../sub", false),
    ] {
        let config = format!("[core]\n\tworktree = {worktree}\n");
        assert_eq!(is_plain(config.as_bytes(), Path::new(path), Path::new("/w")), plain, "{path}");
    }
}

#[test]
fn settings_that_start_programs_or_switch_them_are_never_plain() {
    for key in [
        "alias.x",
        "browser.x.cmd",
        "core.alternateRefsCommand",
        "core.askPass",
        "core.attributesFile",
        "core.editor",
        "core.fsmonitor",
        "core.gitProxy",
        "core.hooksPath",
        "core.pager",
        "core.sshCommand",
        "credential.helper",
        "credential.x.helper",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "difftool.x.cmd",
        "filter.x.clean",
        "filter.x.process",
        "filter.x.smudge",
        "gc.recentObjectsHook",
        "gpg.program",
        "gpg.x.program",
        "gpg.ssh.defaultKeyCommand",
        "guitool.x.cmd",
        "help.browser",
        "http.proxy",
        "imap.tunnel",
        "include.path",
        "includeIf.x.path",
        "interactive.diffFilter",
        "man.x.cmd",
        "merge.x.driver",
        "mergetool.x.cmd",
        "pager.log",
        "protocol.allow",
        "protocol.ext.allow",
        "receive.procReceiveRefs",
        "remote.x.receivepack",
        "sendemail.smtpServer",
        "sendemail.toCmd",
        "sequence.editor",
        "ssh.variant",
        "trailer.x.command",
        "uploadpack.packObjectsHook",
        "url.x.insteadOf",
        "url.x.pushInsteadOf",
        "web.browser",
    ] {
        let (section, name) = key.rsplit_once('.').unwrap();
        let header = match section.split_once('.') {
            Some((section, instance)) => format!("[{section} \"{instance}\"]"),
            None => format!("[{section}]"),
        };
        assert!(!is_plain_in_submodule(format!("{header}\n\t{name} = x\n").as_bytes()), "{key}");
    }
}
