//! `net` and `ui` as a user meets them: through the gate, under the sandbox's word about the network.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{Ran, World};

/// A server with one page, which counts who came.
struct Site {
    address: SocketAddr,
    visits: Arc<AtomicUsize>,
}

impl Site {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let visits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&visits);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 4096]);
                let page = "<title>Hello</title><h1>Hi</h1><p>there</p>";
                let head = format!("content-type: text/html\r\ncontent-length: {}\r\n", page.len());
                let _ = write!(stream, "HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\n{page}");
            }
        });
        Self { address, visits }
    }

    fn url(&self) -> String {
        format!("http://{}/page", self.address)
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

fn tool(world: &World, action: &str, arguments: &Value, more: &[&str]) -> Ran {
    let arguments = arguments.to_string();
    let (tool, action) = action.split_once('.').unwrap();
    world.run(&[&["tool", tool, action, "--json", &arguments], more].concat())
}

fn error(ran: &Ran) -> (i32, String, String) {
    let envelope: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|fault| panic!("{fault}: {ran:#?}"));
    let text = |name: &str| envelope["error"][name].as_str().unwrap_or_default().to_owned();
    (ran.code, text("code"), text("message"))
}

/// Everything that reaches the network, towards `site`.
fn calls(site: &Site) -> Vec<(&'static str, Value)> {
    let socket = site.url().replace("http", "ws");
    vec![
        ("net.request", json!({"url": site.url()})),
        ("net.download", json!({"url": site.url(), "output": "page.html"})),
        ("net.websocket", json!({"url": socket, "wait": 0.2})),
        ("net.dns", json!({"host": "localhost"})),
        ("net.open", json!({"url": site.url()})),
    ]
}

#[test]
fn with_the_network_off_nothing_reaches_it_unless_the_user_said_so() {
    let site = Site::start();
    let world = World::new();
    for (action, arguments) in calls(&site) {
        let (exit, code, message) = error(&tool(&world, action, &arguments, &[]));
        assert_eq!((exit, code.as_str()), (56, "DENIED"), "{action}: {message}");
        assert!(message.contains("nobody can be asked"), "{action}: {message}");
    }
    // A command in the jail is told the same by the kernel.
    let curl = json!({"command": format!("curl -sS -m 5 {}", site.url())});
    let jailed = tool(&world, "proc.exec", &curl, &[]).json();
    assert_ne!(jailed["data"]["exit_code"], 0, "{jailed}");
    assert_eq!(site.visits(), 0, "nothing got out");
    assert!(!world.workspace().join("page.html").exists());
    let (_, _, message) = error(&tool(&world, "net.request", &json!({"url": site.url()}), &[]));
    assert!(message.contains("Net("), "it says which rule would allow it: {message}");

    // What a user can say: a rule for the host, or a posture.
    world.user("[permissions]\nallow = ['Net(127.0.0.1)']\n");
    let page = tool(&world, "net.request", &json!({"url": site.url(), "as": "markdown"}), &[]).json();
    assert_eq!((&page["data"]["title"], &page["data"]["text"]), (&json!("Hello"), &json!("# Hi\n\nthere\n")));
    let elsewhere = tool(&world, "net.dns", &json!({"host": "localhost"}), &[]);
    assert_eq!(error(&elsewhere).0, 56, "a rule for one host is none for another");
    world.user("");
    let page = tool(&world, "net.request", &json!({"url": site.url()}), &["--posture", "auto"]).json();
    assert_eq!(page["data"]["status"], 200);
    assert_eq!(site.visits(), 2);
}

#[test]
fn with_the_network_on_it_is_inside_the_box_and_rules_still_count() {
    let site = Site::start();
    let world = World::new();
    world.user("[sandbox]\nnetwork = true\n");
    let page = tool(&world, "net.request", &json!({"url": site.url()}), &[]).json();
    assert_eq!(page["data"]["status"], 200);
    let file = tool(&world, "net.download", &json!({"url": site.url(), "output": "page.html"}), &[]).json();
    assert_eq!(file["data"]["size"], 43, "{file}");
    assert!(world.workspace().join("page.html").exists());
    let names = tool(&world, "net.dns", &json!({"host": "localhost"}), &[]).json();
    assert_eq!(names["data"]["addresses"][0]["reach"], "loopback");
    assert_eq!(site.visits(), 2);
    // The user's browser is no part of the box, and nobody is there to say yes.
    assert_eq!(error(&tool(&world, "net.open", &json!({"url": site.url()}), &[])).0, 56);

    world.user("[sandbox]\nnetwork = true\n[permissions]\ndeny = ['Net(127.0.0.1)']\n");
    let ran = tool(&world, "net.request", &json!({"url": site.url()}), &["--posture", "yolo"]);
    assert_eq!(error(&ran).1, "DENIED");
    assert_eq!(site.visits(), 2);
}

#[test]
fn the_screen_is_no_part_of_the_box_and_its_absence_is_said() {
    let world = World::new();
    let shot = json!({});
    let (exit, _, message) = error(&tool(&world, "ui.screenshot", &shot, &[]));
    assert_eq!(exit, 56, "{message}");
    assert!(message.contains("screen"), "{message}");
    let (exit, code, message) = error(&tool(&world, "ui.screenshot", &shot, &["--posture", "yolo"]));
    assert_eq!((exit, code.as_str()), (1, "UNSUPPORTED"), "{message}");
    assert!(message.contains("DISPLAY"), "{message}");
}

#[test]
fn a_server_in_the_sandbox_is_not_looked_for_on_this_machine_without_a_word() {
    let world = World::new();
    world.user("[permissions]\nallow = ['Net']\n");
    let (_, code, message) = error(&tool(&world, "net.request", &json!({"url": "http://127.0.0.1:1/"}), &[]));
    assert_eq!(code, "UNAVAILABLE");
    assert!(message.contains("loopback of its own"), "{message}");
}
