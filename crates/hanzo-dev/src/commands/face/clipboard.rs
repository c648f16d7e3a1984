//! The image on the clipboard, through the program each desktop has for it: a terminal passes on text and nothing else.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use hanzo_config::Environment;

/// How long a program may take. One whose clipboard's owner hangs would hang with it.
const PATIENCE: Duration = Duration::from_secs(3);
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// What is tried, and the variable without which there is no use in it.
const WAYS: [(&str, &[&str], Option<&str>); 3] = [
    ("wl-paste", &["--no-newline", "--type", "image/png"], Some("WAYLAND_DISPLAY")),
    ("xclip", &["-selection", "clipboard", "-target", "image/png", "-out"], Some("DISPLAY")),
    ("pngpaste", &["-"], None),
];

/// The image as PNG, at most `most` bytes; the error is a sentence.
pub fn image(environment: &Environment, most: u64) -> Result<Vec<u8>, String> {
    let mut asked = Vec::new();
    for (program, arguments, needs) in WAYS {
        if needs.is_some_and(|name| environment.get(name).is_none_or(str::is_empty)) {
            continue;
        }
        let Some(printed) = run(program, arguments, most) else { continue };
        if printed.len() as u64 > most {
            return Err(format!("The image on the clipboard is larger than {} MB", most / 1024 / 1024));
        }
        if printed.starts_with(PNG) {
            return Ok(printed);
        }
        asked.push(program);
    }
    Err(if asked.is_empty() {
        "No program for the clipboard was found: wl-paste, xclip or pngpaste; paste the path of an image instead"
            .to_owned()
    } else {
        "There is no image on the clipboard".to_owned()
    })
}

/// What a program prints; `None` when there is no such program.
fn run(program: &str, arguments: &[&str], most: u64) -> Option<Vec<u8>> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let out = child.stdout.take()?;
    let (sender, printed) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = out.take(most + 1).read_to_end(&mut bytes);
        // Nobody may be waiting any more.
        let _ = sender.send(bytes);
    });
    let printed = printed.recv_timeout(PATIENCE).unwrap_or_default();
    let _ = child.kill();
    let _ = child.wait();
    Some(printed)
}
