//! Real work runs, and nothing is left behind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};

use hanzo_sandbox::jail::{Command, DenialKind, ExitStatus, Io, Jail, JailSite, Leftovers, PtySize};

use crate::support::{World, config, everyone, listing, scratch, sh, tried};

const KEEP: usize = 64 * 1024;

fn run(jail: &Jail, line: &str) -> String {
    let output = jail.run(Command::shell(line), KEEP, KEEP).unwrap();
    assert!(
        output.report.success(),
        "{line}: {:?}\n{}\n{}",
        output.report,
        output.stdout.text(),
        output.stderr.text()
    );
    output.stdout.text()
}

const SERVER: &str = "import http.server,socketserver\n\
    class H(http.server.BaseHTTPRequestHandler):\n\
    \x20 def do_GET(s):\n\
    \x20   s.send_response(200); s.end_headers(); s.wfile.write(b'from the server')\n\
    socketserver.TCPServer.allow_reuse_address=True\n\
    with socketserver.TCPServer(('127.0.0.1',8123),H) as s:\n\
    \x20 print('ready',flush=True); s.serve_forever()";

fn ready(child: &mut hanzo_sandbox::jail::JailedChild) {
    let mut line = String::new();
    let mut stdout = BufReader::new(fs::File::from(child.stdout.take().unwrap()));
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
}

#[test]
fn a_server_started_in_the_background_answers_the_next_command() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let mut server = jail.spawn(Command::new(["/usr/bin/python3", "-c", SERVER])).unwrap();
    ready(&mut server);
    assert_eq!(run(&jail, "curl -s http://localhost:8123/"), "from the server");
    server.kill();
    assert_eq!(server.wait().unwrap().status, ExitStatus::Killed);

    // The same with the shell's own `&`.
    let mut command = Command::shell(format!("/usr/bin/python3 -c \"{SERVER}\" &"));
    command.leftovers = Leftovers::Keep;
    let mut shell = jail.spawn(command).unwrap();
    assert!(shell.wait().unwrap().leftovers);
    ready(&mut shell);
    assert_eq!(run(&jail, "curl -s http://localhost:8123/"), "from the server");
    // It is this jail's loopback: another jail's is another.
    let other = Jail::start(config(dir.path())).unwrap();
    let refused = other.run(Command::shell("curl -s http://localhost:8123/"), KEEP, KEEP).unwrap();
    assert_eq!(refused.report.status, ExitStatus::Exited(7));
}

#[test]
fn tmp_is_shared_between_commands_and_with_the_host() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    run(&jail, "echo one > /tmp/note; echo shm > /dev/shm/note");
    assert_eq!(run(&jail, "cat /tmp/note /var/tmp/note /dev/shm/note"), "one\none\nshm\n");
    assert_eq!(fs::read_to_string(jail.tmp_dir().join("note")).unwrap(), "one\n");
    fs::write(jail.tmp_dir().join("from-host"), "two").unwrap();
    assert_eq!(run(&jail, "cat $TMPDIR/from-host"), "two");
    let tmp = jail.tmp_dir();
    drop(jail);
    assert!(!tmp.exists());
}

#[test]
fn tmp_is_there_before_the_jail_is() {
    let dir = scratch();
    let site = JailSite::prepare(config(dir.path())).unwrap();
    let tmp = site.tmp_dir();
    fs::write(tmp.join("early"), "before").unwrap();
    let jail = site.build().unwrap();
    assert_eq!(jail.tmp_dir(), tmp);
    assert_eq!(run(&jail, "cat /tmp/early"), "before");
    drop(jail);
    assert!(!tmp.exists());

    let unused = JailSite::prepare(config(dir.path())).unwrap();
    let tmp = unused.tmp_dir();
    drop(unused);
    assert!(!tmp.exists(), "a place that was never built on is removed too");
}

#[test]
fn a_workspace_in_tmp_works_and_its_neighbours_are_gone() {
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let other = tempfile::tempdir_in("/tmp").unwrap();
    let jail = Jail::start(config(dir.path())).unwrap();
    run(&jail, "echo x > here");
    assert_eq!(fs::read_to_string(dir.path().join("here")).unwrap(), "x\n");
    assert!(!run(&jail, "ls /tmp").contains(other.path().file_name().unwrap().to_str().unwrap()));
}

#[test]
fn cargo_builds_an_offline_crate() {
    let dir = scratch();
    fs::create_dir(dir.path().join("src")).unwrap();
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(dir.path().join("Cargo.toml"), manifest).unwrap();
    fs::write(dir.path().join("src/main.rs"), "fn main() { println!(\"built\") }").unwrap();
    let jail = Jail::start(config(dir.path())).unwrap();
    assert!(run(&jail, "cargo run --offline -q 2>&1").ends_with("built\n"));
    drop(jail);
    assert_eq!(listing(dir.path()), ["Cargo.lock", "Cargo.toml", "src", "target"]);
}

#[test]
fn npm_installs_from_a_local_tarball() {
    for who in everyone() {
        let world = World::new(who);
        let package = world.workspace.join("dep/package.json");
        fs::create_dir(package.parent().unwrap()).unwrap();
        fs::write(&package, r#"{"name":"dep","version":"1.0.0","main":"i.js"}"#).unwrap();
        fs::write(world.workspace.join("dep/i.js"), "module.exports = 'from dep'").unwrap();
        fs::write(world.workspace.join("package.json"), r#"{"name":"app","version":"1.0.0"}"#).unwrap();
        for path in
            [&package, &package.parent().unwrap().to_path_buf(), &world.workspace.join("package.json")]
        {
            world.give(path);
        }
        let line = "export HOME=/tmp npm_config_cache=/tmp/npm npm_config_update_notifier=false; \
            tar czf dep.tgz --transform 's,^dep,package,' dep && npm install --offline --no-audit --no-fund ./dep.tgz && \
            node -e \"console.log(require('dep'), Object.keys(require('os').networkInterfaces()))\" && echo tried";
        let output = tried(world.jailed(&[], &sh(line)));
        assert!(output.contains("from dep") && output.contains("lo"), "as {who:?}: {output}");
        let left = ["dep", "dep.tgz", "node_modules", "package-lock.json", "package.json"];
        assert_eq!(listing(&world.workspace), left);
    }
}

#[test]
fn python_tests_run() {
    for who in everyone() {
        let world = World::new(who);
        let test = "import unittest,tempfile,multiprocessing,socket\n\
            class T(unittest.TestCase):\n\
            \x20 def test_tmp(s):\n\
            \x20   with tempfile.NamedTemporaryFile() as f: f.write(b'x')\n\
            \x20 def test_pool(s):\n\
            \x20   with multiprocessing.Pool(2) as p: s.assertEqual(p.map(abs,[-1,2]),[1,2])\n\
            \x20 def test_loopback(s):\n\
            \x20   l=socket.create_server(('127.0.0.1',0)); c=socket.create_connection(l.getsockname()); c.close()\n";
        fs::write(world.workspace.join("test_x.py"), test).unwrap();
        let line = "PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m unittest -v test_x 2>&1; echo tried";
        let output = tried(world.jailed(&[], &sh(line)));
        assert!(output.contains("Ran 3 tests") && output.contains("\nOK"), "as {who:?}: {output}");
        assert_eq!(listing(&world.workspace), ["test_x.py"]);
    }
}

#[test]
fn a_terminal_is_a_terminal() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let mut command =
        Command::shell("tty; stty size; read line; echo got $line; stty size; read x < /dev/tty; echo $x");
    command.pty = Some(PtySize { rows: 30, columns: 90 });
    let mut child = jail.spawn(command).unwrap();
    let mut terminal = fs::File::from(child.terminal.as_ref().unwrap().try_clone().unwrap());
    let mut reader = BufReader::new(terminal.try_clone().unwrap());
    let mut line = |expected: &str| {
        let mut text = String::new();
        reader.read_line(&mut text).unwrap();
        assert_eq!(text.trim_end(), expected);
    };
    line("/dev/pts/0");
    line("30 90");
    child.resize(PtySize { rows: 40, columns: 100 }).unwrap();
    terminal.write_all(b"hello\n").unwrap();
    line("hello");
    line("got hello");
    line("40 100");
    terminal.write_all(b"again\n").unwrap();
    line("again");
    line("again");
    assert!(child.wait().unwrap().success());
    let mut rest = Vec::new();
    assert!(terminal.read_to_end(&mut rest).is_err() || rest.is_empty());
}

#[test]
fn input_large_arguments_directory_and_environment_arrive() {
    let dir = scratch();
    fs::create_dir(dir.path().join("sub")).unwrap();
    let jail = Jail::start(config(dir.path())).unwrap();
    let large = "x".repeat(100_000);
    let mut command =
        Command::new(["sh", "-c", "cat; pwd; echo $GIVEN; echo $# ${#1}", "sh", &large, &large, &large]);
    command.stdin = Io::Pipe;
    command.cwd = Some(dir.path().join("sub"));
    command.env = vec![("GIVEN".into(), "value".into())];
    let mut child = jail.spawn(command).unwrap();
    fs::File::from(child.stdin.take().unwrap()).write_all(b"from stdin\n").unwrap();
    let output = child.wait_with_output(KEEP, KEEP).unwrap();
    let sub = dir.path().join("sub");
    assert_eq!(output.stdout.text(), format!("from stdin\n{}\nvalue\n3 100000\n", sub.display()));
}

#[test]
fn the_end_of_the_output_is_seen_while_the_command_runs() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let mut command = Command::shell("echo out; exec >&- 2>&-; read line");
    command.stdin = Io::Pipe;
    let mut child = jail.spawn(command).unwrap();
    let mut text = String::new();
    fs::File::from(child.stdout.take().unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text, "out\n");
    assert_eq!(child.try_wait().unwrap(), None, "it still waits for a line");
    fs::File::from(child.stdin.take().unwrap()).write_all(b"go\n").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_denial_is_recognisable() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let denied = |line: &str| {
        jail.run(Command::shell(line), KEEP, KEEP).unwrap().report.denial.map(|denial| denial.kind)
    };
    assert_eq!(denied("touch /usr/lib/x"), Some(DenialKind::Write(Some("/usr/lib/x".into()))));
    let hook = dir.path().join(".mcp.json");
    assert_eq!(
        denied(&format!("echo x > {}/y", hook.display())),
        Some(DenialKind::Write(Some(hook.join("y"))))
    );
    assert_eq!(denied("curl -sS http://203.0.113.1/"), Some(DenialKind::Network));
    assert_eq!(denied("curl -sS http://example.invalid/"), Some(DenialKind::Network));
    assert_eq!(denied("curl -sS http://127.0.0.1:9/"), None);
    assert_eq!(denied("echo no such thing >&2; exit 3"), None);
    assert_eq!(denied("true"), None);
}

#[test]
fn further_directories_are_writable_when_asked_for() {
    for who in everyone() {
        let world = World::new(who);
        let line = format!("echo tried; echo x > {}/file", world.outside.display());
        tried(world.jailed(&["--write", world.outside.to_str().unwrap()], &sh(&line)));
        assert_eq!(fs::read_to_string(world.outside.join("file")).unwrap(), "x\n", "as {who:?}");
    }
}

#[test]
fn commands_run_side_by_side_and_exit_codes_are_their_own() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    std::thread::scope(|scope| {
        for code in 0..8 {
            let jail = &jail;
            scope.spawn(move || {
                for _ in 0..5 {
                    let output =
                        jail.run(Command::shell(format!("echo {code}; exit {code}")), KEEP, KEEP).unwrap();
                    assert_eq!(output.report.status, ExitStatus::Exited(code));
                    assert_eq!(output.stdout.text(), format!("{code}\n"));
                }
            });
        }
    });
    let output = jail.run(Command::shell("kill -SEGV $$"), KEEP, KEEP).unwrap();
    assert_eq!(output.report.status, ExitStatus::Signalled(11));
    assert_eq!(listing(dir.path()), Vec::<String>::new());
}
