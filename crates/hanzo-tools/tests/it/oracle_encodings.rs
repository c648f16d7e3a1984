//! Encodings against `iconv` of the C library: the same text is read from its bytes, and after an edit the bytes are those it
//! writes for the new text.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use hanzo_testkit::not_run;
use proptest::prelude::*;
use serde_json::json;

use crate::support::Stage;

/// Converts; `None` where there is no `iconv`.
fn iconv(from: &str, to: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut child = child_of(Command::new("iconv").args(["-f", from, "-t", to]))?;
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{from} to {to}: {}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}

fn child_of(command: &mut Command) -> Option<std::process::Child> {
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    if spawned.is_err() {
        not_run("`iconv`");
    }
    spawned.ok()
}

/// What `iconv` calls it, what we do, a mark in front, and characters it can write.
const ENCODINGS: [(&str, Option<&str>, &[u8], &str); 8] = [
    ("UTF-16LE", None, b"\xFF\xFE", "aZ 9{}äß€日本語中文Жж𝄞"),
    ("UTF-16BE", None, b"\xFE\xFF", "aZ 9{}äß€日本語中文Жж𝄞"),
    ("UTF-16LE", Some("utf-16le"), b"", "aZ 9{}äß€日本語中文Жж𝄞"),
    ("UTF-8", None, b"\xEF\xBB\xBF", "aZ 9{}äß€日本語中文Жж𝄞"),
    ("ISO-8859-1", Some("latin1"), b"", "aZ 9{}äößÜé¿ñÿ"),
    ("SHIFT_JIS", Some("shift_jis"), b"", "aZ 9{}日本語表示ソ能ｱｲｳカナ"),
    ("GBK", Some("gbk"), b"", "aZ 9{}中文简体漢字龍"),
    ("KOI8-R", Some("koi8-r"), b"", "aZ 9{}Привет"),
];

fn line(alphabet: &'static str) -> impl Strategy<Value = String> {
    let characters: Vec<char> = alphabet.chars().collect();
    proptest::collection::vec(proptest::sample::select(characters), 0..12)
        .prop_map(|line| line.into_iter().collect())
}

fn check(
    name: &str,
    ours: Option<&str>,
    mark: &[u8],
    lines: &[String],
    at: usize,
    new: &str,
    end: &str,
) -> Result<(), TestCaseError> {
    let marker = "EDIT".to_owned();
    let mut before: Vec<String> = lines.to_vec();
    before.insert(at, marker.clone());
    let mut after = before.clone();
    after[at] = format!("{new}{marker}X");
    let text = |lines: &[String]| format!("{}{end}", lines.join(end));
    let bytes =
        |lines: &[String]| iconv("UTF-8", name, text(lines).as_bytes()).map(|body| [mark, &body].concat());
    let (Some(old), Some(wanted)) = (bytes(&before), bytes(&after)) else { return Ok(()) };
    let stage = Stage::new();
    let path = stage.write("f", &old);
    let mut read = json!({"action": "read", "path": "f"});
    let mut edit = json!({"action": "apply_patch", "path": "f"});
    if let Some(encoding) = ours {
        read["encoding"] = json!(encoding);
        edit["encoding"] = json!(encoding);
    }
    let data = stage.ok(read);
    prop_assert_eq!(&data["text"], &json!(text(&before)), "{}", name);
    edit["base_hash"] = data["hash"].clone();
    edit["edits"] = json!([{"old_text": marker, "new_text": format!("{new}{marker}X")}]);
    stage.ok(edit);
    prop_assert_eq!(fs::read(path).unwrap(), wanted, "{}", name);
    Ok(())
}

#[test]
fn text_and_bytes_are_those_of_iconv() {
    let cases = hanzo_testkit::scale::rounds(400);
    for (name, ours, mark, alphabet) in ENCODINGS {
        let mut runner =
            proptest::test_runner::TestRunner::new(ProptestConfig { cases, ..Default::default() });
        let strategy = (
            proptest::collection::vec(line(alphabet), 1..8),
            any::<prop::sample::Index>(),
            line(alphabet),
            prop_oneof![Just("\n"), Just("\r\n")],
        );
        let run = runner.run(&strategy, |(lines, at, new, end)| {
            check(name, ours, mark, &lines, at.index(lines.len() + 1), &new, end)
        });
        run.unwrap();
    }
}
