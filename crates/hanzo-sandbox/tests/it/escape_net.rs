//! Ways to talk to somebody outside. Listeners write down what they hear.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::{Who, World, everyone, is_root, probe, tried};

/// What a listener hears, if anything.
struct Log(mpsc::Receiver<Vec<u8>>);

impl Log {
    fn start(listen: impl FnOnce() -> Vec<u8> + Send + 'static) -> Self {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(listen()));
        Self(receiver)
    }

    fn heard(&self, patience: Duration) -> bool {
        self.0.recv_timeout(patience).is_ok_and(|bytes| bytes == b"out")
    }
}

fn stream_log<S: Read>(accepted: std::io::Result<S>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = accepted.map(|mut stream| stream.read_to_end(&mut bytes));
    bytes
}

fn tcp() -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (address, Log::start(move || stream_log(listener.accept().map(|(stream, _)| stream))))
}

fn udp() -> (String, Log) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let log = Log::start(move || {
        let mut bytes = [0; 16];
        let length = socket.recv(&mut bytes).unwrap_or(0);
        bytes[..length].to_vec()
    });
    (address, log)
}

const PATIENCE: Duration = Duration::from_secs(10);
/// The jailed attempt is over when this starts, and a message on loopback is there at once.
const SILENCE: Duration = Duration::from_millis(300);

fn silent(name: &str, options: &[&str], listen: impl Fn(&World) -> (String, Log)) {
    for who in everyone() {
        let world = World::new(who);
        let (address, log) = listen(&world);
        tried(world.plain(&probe(name, &[&address])));
        assert!(log.heard(PATIENCE), "the control of {name} did not work as {who:?}");
        let world = World::new(who);
        let (address, log) = listen(&world);
        tried(world.jailed(options, &probe(name, &[&address])));
        assert!(!log.heard(SILENCE), "ESCAPED by {name} as {who:?}");
    }
}

#[test]
fn tcp_and_udp_to_the_host() {
    silent("tcp", &[], |_| tcp());
    silent("udp", &[], |_| udp());
}

#[test]
fn the_network_is_there_when_it_is_on() {
    for who in everyone() {
        for (name, (address, log)) in [("tcp", tcp()), ("udp", udp())] {
            let world = World::new(who);
            tried(world.jailed(&["--network"], &probe(name, &[&address])));
            assert!(log.heard(PATIENCE), "{name} as {who:?}");
        }
    }
}

fn open_to_all(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

#[test]
fn pathname_unix_sockets_outside_and_inside_the_workspace() {
    for options in [&[][..], &["--network"]] {
        for inside in [false, true] {
            let place = move |world: &World| {
                let path = if inside { &world.workspace } else { &world.outside }.join("s");
                (path.to_str().unwrap().to_owned(), path)
            };
            silent("unix-stream", options, move |world| {
                let (name, path) = place(world);
                let listener = UnixListener::bind(&path).unwrap();
                open_to_all(&path);
                (name, Log::start(move || stream_log(listener.accept().map(|(stream, _)| stream))))
            });
            for attempt in ["unix-datagram", "unix-pair"] {
                silent(attempt, options, move |world| {
                    let (name, path) = place(world);
                    let socket = UnixDatagram::bind(&path).unwrap();
                    open_to_all(&path);
                    let log = Log::start(move || {
                        let mut bytes = [0; 16];
                        let length = socket.recv(&mut bytes).unwrap_or(0);
                        bytes[..length].to_vec()
                    });
                    (name, log)
                });
            }
        }
    }
}

#[test]
fn abstract_unix_sockets() {
    use std::os::linux::net::SocketAddrExt;
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    for options in [&[][..], &["--network"]] {
        silent("unix-abstract", options, |_| {
            let name = format!("hanzo-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            let listener = UnixListener::bind_addr(&address).unwrap();
            (name, Log::start(move || stream_log(listener.accept().map(|(stream, _)| stream))))
        });
    }
}

#[test]
fn raw_and_exotic_sockets() {
    let got = |world: &World, jailed: bool, numbers: [i32; 3]| {
        let [family, kind, protocol] = numbers.map(|number| number.to_string());
        let argv = probe("socket", &[&family, &kind, &protocol]);
        let command = if jailed { world.jailed(&["--network"], &argv) } else { world.plain(&argv) };
        tried(command).contains("got a socket")
    };
    // Raw and packet sockets need root outside too; the generic netlink family, kernel crypto and vsock do not.
    let privileged =
        [[libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP], [libc::AF_PACKET, libc::SOCK_RAW, 0]];
    let open = [
        [libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC],
        [libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT],
    ];
    for who in everyone() {
        let world = World::new(who);
        for numbers in privileged {
            if is_root() && who == Who::Own {
                assert!(got(&world, false, numbers), "the control of {numbers:?} did not work");
            }
            assert!(!got(&world, true, numbers), "ESCAPED by {numbers:?} as {who:?}");
        }
        for numbers in open {
            assert!(got(&world, false, numbers), "the control of {numbers:?} did not work as {who:?}");
            assert!(!got(&world, true, numbers), "ESCAPED by {numbers:?} as {who:?}");
        }
        // What runtimes ask for the list of interfaces stays.
        let routes = [libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE];
        assert!(got(&world, true, routes), "netlink routes are refused as {who:?}");
    }
}
