//! Spellings of `rm -rf`, each of which bash really runs.
//!
//! Under the deny rule `Bash(rm -rf*)` none may be allowed, even where bare `Bash` is. The second test is the
//! control: it runs every spelling and sees the directory disappear, so that no entry of the table is a mere string.

use hanzo_permissions::{Basis, Call, Decision};
use hanzo_testkit::not_run;
use serde_json::json;

use crate::run::Playground;
use crate::{bash, policy};

/// The programs of which an entry is in need, where that is not obvious from its first word.
const NEEDS: &[(&str, &str)] = &[
    ("bash_reversed", "rev"),
    ("make_stdin", "make"),
    ("git_alias", "git"),
    ("python", "python3"),
    ("python_tree", "python3"),
    ("python_stdin", "python3"),
    ("which", "which"),
    ("perl_path", "perl"),
    ("script", "script"),
    ("flock", "flock"),
    ("flock_c", "flock"),
    ("tar", "tar"),
    ("dash_c", "dash"),
    ("ionice", "ionice"),
];

const SPELLINGS: &[(&str, &str)] = &[
    ("plain", "rm -rf victim"),
    ("blanks", "rm    -rf     victim"),
    ("tab", "rm\t-rf\tvictim"),
    ("leading_blank", "   rm -rf victim"),
    ("split_flags", "rm -r -f victim"),
    ("swapped", "rm -fr victim"),
    ("swapped_split", "rm -f -r victim"),
    ("capital", "rm -Rf victim"),
    ("capital_split", "rm -f -R victim"),
    ("long", "rm --recursive --force victim"),
    ("long_mixed", "rm -r --force victim"),
    ("long_mixed_2", "rm --recursive -f victim"),
    ("long_short", "rm --rec --for victim"),
    ("more_flags", "rm -rvf victim"),
    ("more_flags_2", "rm -v -r -f victim"),
    ("flags_last", "rm victim -rf"),
    ("flags_split_round", "rm -r victim -f"),
    ("end_of_options", "rm -rf -- victim"),
    ("single_quotes", "'rm' -rf victim"),
    ("double_quotes", r#""rm" -rf victim"#),
    ("empty_quotes", r#"r""m -rf victim"#),
    ("empty_single", "r''m -rf victim"),
    ("mixed_quotes", r#"'r'"m" -rf victim"#),
    ("quoted_flag", "rm '-rf' victim"),
    ("quoted_flag_part", "rm -'r'f victim"),
    ("quoted_flag_part_2", r#"rm -"rf" victim"#),
    ("backslash", r"\rm -rf victim"),
    ("backslash_inside", r"r\m -rf victim"),
    ("backslash_flag", r"rm \-rf victim"),
    ("backslash_flag_2", r"rm -\r\f victim"),
    ("continuation", "r\\\nm -rf victim"),
    ("continuation_words", "rm \\\n -rf victim"),
    ("absolute", "/bin/rm -rf victim"),
    ("absolute_usr", "/usr/bin/rm -rf victim"),
    ("absolute_odd", "/usr/../bin/rm -rf victim"),
    ("absolute_double", "//bin//rm -rf victim"),
    ("ansi", "$'rm' -rf victim"),
    ("ansi_hex", r"$'\x72m' -rf victim"),
    ("ansi_octal", r"$'\162\155' -rf victim"),
    ("ansi_flag", "rm $'-rf' victim"),
    ("locale_quotes", r#"$"rm" -rf victim"#),
    ("variable", "x=rm; $x -rf victim"),
    ("variable_flag", "f=-rf; rm $f victim"),
    ("variable_halves", "a=r; b=m; $a$b -rf victim"),
    ("variable_whole", "c='rm -rf victim'; $c"),
    ("default", "${x:-rm} -rf victim"),
    ("default_flag", "rm ${x:--rf} victim"),
    ("substring", "x=xrmx; ${x:1:2} -rf victim"),
    ("replace", "x=rZm; ${x/Z/} -rf victim"),
    ("array", r#"a=(rm -rf victim); "${a[@]}""#),
    ("substitution", "$(echo rm) -rf victim"),
    ("backticks", "`echo rm` -rf victim"),
    ("substitution_flag", "rm $(echo -rf) victim"),
    ("substitution_whole", "$(echo rm -rf victim)"),
    ("inside_substitution", "echo $(rm -rf victim)"),
    ("inside_backticks", "echo `rm -rf victim`"),
    ("inside_string", r#"echo "$(rm -rf victim)""#),
    ("inside_assignment", "x=$(rm -rf victim)"),
    ("inside_process", "cat <(rm -rf victim)"),
    ("glob_program", "/bin/r[m] -rf victim"),
    ("glob_question", "ln -s /bin/rm r1; ./r? -rf victim"),
    ("brace", "{rm,-rf,victim}"),
    ("brace_flags", "rm -{r,f} victim"),
    ("brace_path", "{/bin/rm,-rf,victim}"),
    ("after_and", "true && rm -rf victim"),
    ("after_or", "false || rm -rf victim"),
    ("after_semicolon", "true; rm -rf victim"),
    ("after_pipe", "true | rm -rf victim"),
    ("after_newline", "true\nrm -rf victim"),
    ("after_background", "true & rm -rf victim; wait"),
    ("in_background", "rm -rf victim & wait $!"),
    ("subshell", "(rm -rf victim)"),
    ("group", "{ rm -rf victim; }"),
    ("negated", "! rm -rf victim"),
    ("timed", "time rm -rf victim"),
    ("if", "if true; then rm -rf victim; fi"),
    ("while", "while rm -rf victim; do break; done"),
    ("for", "for x in victim; do rm -rf $x; done"),
    ("case", "case x in x) rm -rf victim;; esac"),
    ("function", "f() { rm -rf victim; }; f"),
    ("function_arguments", r#"f() { "$@"; }; f rm -rf victim"#),
    ("env", "env rm -rf victim"),
    ("env_options", "env -i A=b /bin/rm -rf victim"),
    ("env_unset", "env -u HOME rm -rf victim"),
    ("env_split", "env -S 'rm -rf victim'"),
    ("env_split_attached", "env --split-string='rm -rf victim'"),
    ("assignment", "A=b rm -rf victim"),
    ("sudo", "sudo rm -rf victim"),
    ("sudo_user", "sudo -u root rm -rf victim"),
    ("sudo_env", "sudo A=b rm -rf victim"),
    ("doas", "doas rm -rf victim"),
    ("nohup", "nohup rm -rf victim"),
    ("timeout", "timeout 5 rm -rf victim"),
    ("timeout_options", "timeout -k 5 10 rm -rf victim"),
    ("timeout_signal", "timeout --signal=KILL 10 rm -rf victim"),
    ("nice", "nice rm -rf victim"),
    ("nice_level", "nice -n 5 rm -rf victim"),
    ("nice_old", "nice -5 rm -rf victim"),
    ("ionice", "ionice -c 3 rm -rf victim"),
    ("setsid", "setsid -w rm -rf victim"),
    ("stdbuf", "stdbuf -o0 rm -rf victim"),
    ("command", "command rm -rf victim"),
    ("command_p", "command -p rm -rf victim"),
    ("exec", "exec rm -rf victim"),
    ("exec_name", "exec -a ls rm -rf victim"),
    ("builtin_command", "builtin command rm -rf victim"),
    ("busybox", "busybox rm -rf victim"),
    ("toybox", "toybox rm -rf victim"),
    ("chroot", "chroot / rm -rf victim"),
    ("unshare", "unshare -n rm -rf victim"),
    ("nsenter", "nsenter -t 1 rm -rf victim"),
    ("su", "su root -c 'rm -rf victim'"),
    ("ssh", "ssh host rm -rf victim"),
    ("watch", "watch -n 1 rm -rf victim"),
    ("parallel", "parallel rm -rf ::: victim"),
    ("xargs", "echo victim | xargs rm -rf"),
    ("xargs_flags", "echo -rf victim | xargs rm"),
    ("xargs_replace", "echo victim | xargs -I{} rm -rf {}"),
    ("xargs_whole", "echo rm -rf victim | xargs env"),
    ("xargs_shell", r#"echo victim | xargs sh -c 'rm -rf "$@"' _"#),
    ("find_exec", "find victim -maxdepth 0 -exec rm -rf {} +"),
    ("find_exec_semicolon", r"find . -name victim -prune -exec rm -rf {} \;"),
    ("find_execdir", "find . -name victim -prune -execdir rm -rf {} +"),
    ("find_exec_shell", r#"find victim -maxdepth 0 -exec sh -c 'rm -rf "$1"' _ {} \;"#),
    ("find_delete", "find victim -delete"),
    ("bash_c", "bash -c 'rm -rf victim'"),
    ("bash_lc", r#"bash -lc "rm -rf victim""#),
    ("bash_options", "bash -e -o pipefail -c 'rm -rf victim'"),
    ("bash_nested", r#"bash -c "sh -c 'rm -rf victim'""#),
    ("sh_c", "sh -c 'rm -rf victim'"),
    ("dash_c", "dash -c 'rm -rf victim'"),
    ("absolute_sh", "/bin/sh -c 'rm -rf victim'"),
    ("bash_arguments", r#"bash -c '"$@"' _ rm -rf victim"#),
    ("bash_stdin", "echo 'rm -rf victim' | bash"),
    ("bash_s", "echo 'rm -rf victim' | bash -s"),
    ("bash_dev", "echo 'rm -rf victim' | bash /dev/stdin"),
    ("bash_encoded", "echo cm0gLXJmIHZpY3RpbQ== | base64 -d | sh"),
    ("bash_reversed", "echo mitciv fr- mr | rev | bash"),
    ("bash_herestring", "bash <<< 'rm -rf victim'"),
    ("bash_heredoc", "bash <<EOF\nrm -rf victim\nEOF"),
    ("bash_heredoc_quoted", "bash <<'EOF'\nrm -rf victim\nEOF"),
    ("bash_process", "bash <(echo rm -rf victim)"),
    ("heredoc_substitution", "cat <<EOF\n$(rm -rf victim)\nEOF"),
    ("eval", "eval rm -rf victim"),
    ("eval_text", r#"eval "rm -rf victim""#),
    ("eval_pieces", r#"eval r"m -r"f victim"#),
    ("eval_encoded", r#"eval "$(echo cm0gLXJmIHZpY3RpbQ== | base64 -d)""#),
    ("source_process", ". <(echo rm -rf victim)"),
    ("source_file", "echo rm -rf victim > s; . ./s"),
    ("script_file", "echo rm -rf victim > s; sh s"),
    ("trap", "trap 'rm -rf victim' EXIT"),
    ("alias", "shopt -s expand_aliases\nalias z='rm -rf'\nz victim"),
    ("hash", "hash -p /bin/rm z; z -rf victim"),
    ("link", "ln -s /bin/rm z; ./z -rf victim"),
    ("copy", "cp /bin/rm z; ./z -r -f victim"),
    ("which", "$(which rm) -rf victim"),
    ("type", r#""$(type -P rm)" -rf victim"#),
    ("cd_bin", r#"d=$PWD; cd /bin; ./rm -rf "$d/victim""#),
    ("test_v", "test -v 'a[$(rm -rf victim)]'"),
    ("printf_v", "printf -v 'a[$(rm -rf victim)]' x"),
    ("arithmetic", "echo $((a[$(rm -rf victim)]))"),
    ("arithmetic_hidden", "x='a[$(rm -rf victim)]'; echo $((x))"),
    ("let", "let 'a[$(rm -rf victim)]=1'"),
    ("prompt_expansion", "x='$(rm -rf victim)'; echo ${x@P}"),
    ("coproc", "coproc rm -rf victim; wait"),
    ("mapfile", "mapfile -C 'rm -rf victim #' -c 1 <<< x"),
    ("compgen", "compgen -C 'rm -rf victim #'"),
    ("perl", r#"perl -e 'system "rm -rf victim"'"#),
    ("perl_path", r#"perl -MFile::Path -e 'rmtree("victim")'"#),
    ("python", r#"/usr/bin/python3 -c 'import os; os.system("rm -rf victim")'"#),
    ("python_tree", r#"/usr/bin/python3 -c 'import shutil; shutil.rmtree("victim")'"#),
    ("python_stdin", r#"echo 'import shutil; shutil.rmtree("victim")' | /usr/bin/python3"#),
    ("awk", r#"awk 'BEGIN { system("rm -rf victim") }'"#),
    ("sed", "echo x | sed '1e rm -rf victim'"),
    ("flock", "flock lock rm -rf victim"),
    ("flock_c", "flock lock -c 'rm -rf victim'"),
    ("script", "script -qc 'rm -rf victim' /dev/null"),
    ("loader", "/lib64/ld-linux-x86-64.so.2 /bin/rm -rf victim"),
    ("tar", "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='rm -rf victim' /etc/hostname"),
    ("git_alias", "git -c alias.z='!rm -rf victim' z"),
    ("default_backticks", "echo ${x:-`rm -rf victim`}"),
    ("shell_option", "/bin/bash -O extglob -c 'rm -rf victim'"),
    ("split_options_env", "env -iS '/bin/rm -rf victim'"),
    ("redirect_inside", "rm >out -rf victim"),
    ("redirect_first", "2>&1 rm -rf victim"),
    ("positional", "set -- rm -rf victim; \"$@\""),
    ("empty_expansion", "r${x}m -rf victim"),
    ("ifs", "rm${IFS}-rf${IFS}victim"),
    ("bash_variable", "\"$BASH\" -c 'rm -rf victim'"),
    ("ps4", "PS4='$(rm -rf victim)'; set -x; :"),
    ("bash_env", "echo 'rm -rf victim' > e; BASH_ENV=./e bash -c :"),
    ("make_stdin", r"printf 'a:\n\trm -rf victim\n' | make -f -"),
];

#[test]
fn no_spelling_of_a_denied_command_is_allowed() {
    assert!(SPELLINGS.len() >= 67, "{}", SPELLINGS.len());
    let policy = policy(&["Bash"], &[], &["Bash(rm -rf*)"]);
    let allowed: Vec<_> =
        SPELLINGS.iter().filter(|(_, line)| bash(&policy, line) == Decision::Allow).collect();
    assert!(allowed.is_empty(), "allowed: {allowed:#?}");
}

#[test]
fn no_spelling_escapes_the_prefix_form_of_the_rule() {
    let policy = policy(&["*"], &[], &["Bash(rm -rf:*)"]);
    let allowed: Vec<_> =
        SPELLINGS.iter().filter(|(_, line)| bash(&policy, line) == Decision::Allow).collect();
    assert!(allowed.is_empty(), "allowed: {allowed:#?}");
}

#[test]
fn spellings_that_the_words_settle_are_denied_outright() {
    let policy = policy(&["Bash"], &[], &["Bash(rm -rf*)"]);
    let settled = [
        "plain",
        "blanks",
        "tab",
        "split_flags",
        "swapped",
        "capital",
        "long",
        "long_short",
        "more_flags",
        "flags_last",
        "single_quotes",
        "empty_quotes",
        "mixed_quotes",
        "quoted_flag",
        "backslash",
        "backslash_inside",
        "absolute",
        "after_and",
        "after_pipe",
        "after_newline",
        "subshell",
        "group",
        "if",
        "function",
        "inside_substitution",
        "env",
        "env_options",
        "env_split",
        "sudo_user",
        "nohup",
        "timeout_options",
        "nice_level",
        "ionice",
        "stdbuf",
        "command",
        "exec_name",
        "busybox",
        "chroot",
        "su",
        "ssh",
        "watch",
        "xargs",
        "xargs_replace",
        "find_exec",
        "find_exec_shell",
        "bash_c",
        "bash_lc",
        "bash_options",
        "bash_nested",
        "eval",
        "eval_text",
        "trap",
        "flock_c",
        "bash_heredoc_quoted",
    ];
    for name in settled {
        let (_, line) = SPELLINGS.iter().find(|(n, _)| *n == name).expect("an entry");
        assert_eq!(bash(&policy, line), Decision::Deny, "{name}: {line}");
    }
}

#[test]
fn no_posture_runs_a_spelling() {
    use hanzo_protocol::engine::Posture;
    let policy = policy(&["Bash"], &[], &["Bash(rm -rf*)"]);
    for (name, line) in SPELLINGS {
        let args = json!({ "command": line });
        let explanation = policy.explain(&Call::new("bash", &args));
        assert!(explanation.decision == Decision::Deny || explanation.basis == Basis::UnprovenDeny, "{name}");
        assert_ne!(explanation.under(Posture::Yolo), Decision::Allow, "{name}");
    }
}

#[test]
fn every_spelling_really_deletes() {
    let playground = Playground::new();
    let mut skipped = Vec::new();
    let mut harmless = Vec::new();
    for (name, line) in SPELLINGS {
        let needed = NEEDS.iter().find(|(entry, _)| entry == name).map(|(_, program)| *program);
        if needed.is_some_and(|program| !Playground::has(program)) || (*name == "loader" && !loader_exists())
        {
            skipped.push(*name);
            continue;
        }
        let directory = playground.directory(name);
        let victim = playground.victim(&directory);
        assert!(playground.run(&directory, line), "{name}: bash did not start");
        if victim.exists() {
            harmless.push((*name, *line));
        }
    }
    if !skipped.is_empty() {
        not_run(&format!("the programs of these spellings: {}", skipped.join(", ")));
    }
    assert!(harmless.is_empty(), "these delete nothing and prove nothing: {harmless:#?}");
    assert!(SPELLINGS.len() - skipped.len() >= 67, "too few could be run");
}

fn loader_exists() -> bool {
    std::path::Path::new("/lib64/ld-linux-x86-64.so.2").exists()
}

#[test]
fn ordinary_commands_stay_allowed_beside_the_deny() {
    let policy = policy(&["Bash"], &[], &["Bash(rm -rf*)"]);
    for line in [
        "ls -la",
        "rm build.log",
        "rm -r build",
        "rm a && cp -rf b c",
        "cargo test && git commit -m 'rm leftovers'",
        "echo $HOME",
        "echo 'rm -rf is dangerous'",
        "grep -rn 'rm -rf' docs",
        "FOO=1 cargo build",
        "cargo test > log.txt 2>&1",
        "for f in a b; do wc -l $f; done",
        "(cd src && ls)",
        "python3 script.py",
        "python3 -m pytest -rf",
        "git rm --cached x",
        "cat <<EOF > notes\nhello\nEOF",
        "find . -name '*.rs' -exec wc -l {} +",
        "bash build.sh",
        "timeout 5 make test",
    ] {
        assert_eq!(bash(&policy, line), Decision::Allow, "{line}");
    }
}
