//! `ui` on a real X server with a real window, where the programs Xvfb and xterm are there; `cargo xtask test` says whether they
//! are.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hanzo_protocol::item::Taint;
use hanzo_protocol::message::AttachmentSource;
use hanzo_protocol::tool::{Effect, ToolCaller};
use hanzo_tools::ui::Ui;
use serde_json::{Value, json};

use crate::world::World;

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server() -> Option<(Running, String)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = ["Xvfb", "xterm"]
        .into_iter()
        .find(|program| !std::env::split_paths(&path).any(|directory| directory.join(program).is_file()));
    if let Some(program) = missing {
        eprintln!("not run: the screen, for want of `{program}`");
        return None;
    }
    let mut server = Command::new("Xvfb")
        .args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut number = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
    Some((Running(server), format!(":{}", number.trim())))
}

async fn wait_for(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !done().await {
        assert!(started.elapsed() < Duration::from_mins(1), "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn png(result: &hanzo_protocol::tool::ToolResult) -> Vec<u8> {
    use base64::Engine as _;
    match &result.attachments[0].source {
        AttachmentSource::Inline { base64 } => {
            base64::engine::general_purpose::STANDARD.decode(base64).unwrap()
        }
        AttachmentSource::Stored { .. } => panic!("pictures are inline"),
    }
}

fn colours(png: &[u8]) -> std::collections::BTreeSet<[u8; 3]> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    pixels[..info.buffer_size()].chunks(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_is_seen_clicked_typed_into_and_recorded() {
    let Some((_server, display)) = server() else { return };
    let world = World::with_ui(Ui::on_display(&display));
    let ui = |arguments: Value| world.ok("ui", arguments);
    let dark = world.call("ui", json!({"action": "screenshot"})).await;
    assert_eq!(dark.taint, Some(Taint::Outside), "{}", dark.output);
    assert_eq!(dark.envelope.as_ref().unwrap()["data"]["width"], 640);
    assert_eq!(colours(&png(&dark)).len(), 1, "an empty screen is one colour");

    let typed = world.path("typed.txt");
    let script = format!("stty -echo; cat > {}", typed.display());
    let _window = Running(
        Command::new("xterm")
            .args([
                "-display",
                &display,
                "-title",
                "The Window",
                "-geometry",
                "60x15+20+20",
                "-bg",
                "#204060",
                "-fg",
                "#ffff00",
                "-u8",
            ])
            .args(["-e", "sh", "-c", &script])
            .spawn()
            .unwrap(),
    );
    wait_for("the file of the window", async || typed.exists()).await;
    wait_for("the window", async || {
        !world.call("ui", json!({"action": "focus", "title": "the win"})).await.is_error
    })
    .await;
    assert_eq!(ui(json!({"action": "focus", "title": "the win"})).await["title"], "The Window");
    let (code, _) = world.error("ui", json!({"action": "focus", "title": "no such"})).await;
    assert_eq!(code, "NOT_FOUND");

    ui(json!({"action": "record", "fps": 10})).await;
    assert_eq!(world.error("ui", json!({"action": "record"})).await.0, "ALREADY_EXISTS");
    ui(json!({"action": "click", "x": 100, "y": 100})).await;
    let text = "Hello, World! {~} äß €\n";
    ui(json!({"action": "type", "text": text})).await;
    wait_for("the typed text", async || std::fs::read_to_string(&typed).unwrap_or_default() == text).await;

    let lit = world.call("ui", json!({"action": "screenshot"})).await;
    assert!(
        colours(&png(&lit)).contains(&[0x20, 0x40, 0x60]),
        "the window's colour is in the picture, not another order of it"
    );
    if let Some(place) = std::env::var_os("HANZO_ORACLE_SCREENSHOT") {
        std::fs::write(place, png(&lit)).unwrap();
    }
    let part = json!({"action": "screenshot", "region": {"x": 50, "y": 60, "width": 30, "height": 20}});
    let part = world.call("ui", part).await;
    assert_eq!(part.envelope.as_ref().unwrap()["data"]["height"], 20);
    let kept = part.envelope.as_ref().unwrap()["data"]["ref"].clone();
    let read = world.call("fs", json!({"action": "read", "path": kept})).await;
    assert_eq!(read.envelope.unwrap()["data"]["binary"], "image/png");

    let frames = ui(json!({"action": "stop"})).await["frames"].clone();
    assert!(!frames.as_array().unwrap().is_empty(), "{frames}");
    assert_eq!(world.error("ui", json!({"action": "stop"})).await.0, "NOT_FOUND");
    let session = ui(json!({"action": "session", "duration": 1, "fps": 5})).await["frames"].clone();
    assert!(session[0]["ref"].as_str().unwrap().starts_with("blob:sha256:"), "{session}");
    for (arguments, expected) in [
        (json!({"action": "click", "x": 640, "y": 0}), "INVALID_ARGUMENTS"),
        (
            json!({"action": "screenshot", "region": {"x": 600, "y": 0, "width": 41, "height": 1}}),
            "INVALID_ARGUMENTS",
        ),
        (
            json!({"action": "screenshot", "region": {"x": 0, "y": 0, "width": 0, "height": 1}}),
            "INVALID_ARGUMENTS",
        ),
        (
            json!({"action": "screenshot", "region": {"x": 4_294_967_295_u32, "y": 0, "width": 9, "height": 1}}),
            "INVALID_ARGUMENTS",
        ),
        (json!({"action": "type", "text": "\u{7}"}), "INVALID_ARGUMENTS"),
        (json!({"action": "focus"}), "INVALID_ARGUMENTS"),
        (json!({"action": "session", "duration": 601}), "INVALID_ARGUMENTS"),
    ] {
        assert_eq!(world.error("ui", arguments.clone()).await.0, expected, "{arguments}");
    }
}

#[tokio::test]
async fn without_a_display_every_action_says_so_and_nobody_reaches_a_screen_from_afar() {
    let world = World::with_ui(Ui::on_display(":4242"));
    for arguments in [
        json!({"action": "screenshot"}),
        json!({"action": "click", "x": 1, "y": 1}),
        json!({"action": "type", "text": "x"}),
        json!({"action": "focus", "title": "x"}),
        json!({"action": "record"}),
        json!({"action": "session", "duration": 1}),
    ] {
        assert_eq!(world.error("ui", arguments.clone()).await.0, "UNSUPPORTED", "{arguments}");
        assert_eq!(world.reach("ui", &arguments).effect, Effect::Screen);
        let remote = world.call_as(ToolCaller::Remote, "ui", arguments.clone()).await;
        assert_eq!(remote.envelope.unwrap()["error"]["code"], "DENIED", "{arguments}");
    }
}

/// A display that takes the call and never says a word.
#[tokio::test]
async fn a_display_that_does_not_answer_is_not_waited_for() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Displays count from port 6000.
    let display = format!("127.0.0.1:{}", port - 6000);
    let world = World::with_ui(Ui::on_display(display).with_patience(Duration::from_millis(300)));
    for arguments in [
        json!({"action": "screenshot"}),
        json!({"action": "type", "text": "x"}),
        json!({"action": "record"}),
        json!({"action": "session", "duration": 1}),
    ] {
        let started = Instant::now();
        assert_eq!(world.error("ui", arguments.clone()).await.0, "TIMEOUT", "{arguments}");
        assert!(started.elapsed() < Duration::from_secs(15), "{arguments}: {:?}", started.elapsed());
    }
    drop(listener);
}
