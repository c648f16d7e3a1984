//! JUnit XML, as pytest, node, nextest, ctest and everybody else writes it. A file that ends in the middle, because its runner
//! did, is read as far as it goes.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::outcome::{Failure, Outcome};

/// How much text of one test is kept while reading.
const MAX_TEXT: usize = 64 << 10;

#[derive(Default)]
struct Case {
    name: String,
    class: String,
    file: Option<String>,
    line: Option<u32>,
    verdict: Verdict,
    message: String,
    text: String,
    output: String,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    #[default]
    Passed,
    Failed,
    Skipped,
}

/// Where the reader is within a test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    Failure,
    Output,
}

/// Reads a report.
pub(super) fn parse(bytes: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    reader.config_mut().check_end_names = false;
    let mut outcome = Outcome::default();
    let mut case: Option<Case> = None;
    let mut within = Within::Nothing;
    let mut depth = 0usize;
    let mut ended = false;
    loop {
        let event = match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(event) => event,
            Err(fault) => {
                outcome.notes.push(format!("the report is not well-formed: {fault}"));
                break;
            }
        };
        match event {
            Event::Start(tag) => {
                depth += 1;
                begin(&tag, &mut case, &mut within, &mut outcome, depth);
            }
            Event::Empty(tag) => {
                let before = within;
                begin(&tag, &mut case, &mut within, &mut outcome, depth + 1);
                within = before;
                if tag.name().into_inner() == "testcase" {
                    finish(case.take(), &mut outcome);
                }
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                ended = depth == 0;
                match tag.name().into_inner() {
                    "testcase" => finish(case.take(), &mut outcome),
                    "failure" | "error" | "system-out" | "system-err" => within = Within::Nothing,
                    _ => {}
                }
            }
            Event::Text(content) => push(&mut case, within, &content.xml10_content()),
            Event::CData(content) => push(&mut case, within, &content.xml10_content()),
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().ok().flatten();
                let character = character.or_else(|| named(&reference.xml10_content()));
                if let Some(character) = character {
                    push(&mut case, within, character.encode_utf8(&mut [0; 4]));
                }
            }
            _ => {}
        }
    }
    if let Some(case) = case {
        // Its runner ended while this test was under way or being written down.
        finish(Some(case), &mut outcome);
    }
    if !ended && outcome.notes.is_empty() {
        outcome.notes.push("the report is not complete: the runner ended while writing it".to_owned());
    }
    outcome
}

fn named(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "apos" => '\'',
        "quot" => '"',
        _ => return None,
    })
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.try_get_attribute(name).ok().flatten()?;
    let value = found.normalized_value(quick_xml::XmlVersion::Implicit1_0);
    Some(value.map_or_else(|_| found.value.to_string(), std::borrow::Cow::into_owned))
}

fn begin(
    tag: &BytesStart<'_>,
    case: &mut Option<Case>,
    within: &mut Within,
    outcome: &mut Outcome,
    depth: usize,
) {
    match (tag.name().into_inner(), case.as_mut()) {
        ("testcase", _) => {
            let mut begun = Case {
                name: attribute(tag, "name").unwrap_or_default(),
                class: attribute(tag, "classname").unwrap_or_default(),
                file: attribute(tag, "file"),
                line: attribute(tag, "line").and_then(|line| line.parse().ok()),
                ..Case::default()
            };
            // ctest says it here as well as, for some outcomes, only here.
            match attribute(tag, "status").as_deref() {
                Some("notrun" | "disabled" | "skipped") => begun.verdict = Verdict::Skipped,
                Some("fail") => begun.verdict = Verdict::Failed,
                _ => {}
            }
            finish(case.replace(begun), outcome);
        }
        ("failure" | "error", Some(case)) => {
            // What was marked as skipped or still to be done may fail.
            if case.verdict != Verdict::Skipped {
                case.verdict = Verdict::Failed;
            }
            let message = attribute(tag, "message").unwrap_or_default();
            if case.message.is_empty() {
                case.message = message;
            }
            *within = Within::Failure;
        }
        ("skipped", Some(case)) => case.verdict = Verdict::Skipped,
        ("system-out" | "system-err", Some(_)) => *within = Within::Output,
        ("testsuites" | "testsuite", None) if depth == 1 => {
            outcome.seconds = attribute(tag, "time").and_then(|time| time.parse().ok());
        }
        // pytest says it on the inner one.
        ("testsuite", None) if outcome.seconds.is_none() => {
            outcome.seconds = attribute(tag, "time").and_then(|time| time.parse().ok());
        }
        _ => {}
    }
}

fn push(case: &mut Option<Case>, within: Within, text: &str) {
    let Some(case) = case else { return };
    let into = match within {
        Within::Failure => &mut case.text,
        Within::Output => &mut case.output,
        Within::Nothing => return,
    };
    let room = MAX_TEXT.saturating_sub(into.len());
    into.push_str(&text[..text.floor_char_boundary(room)]);
}

fn finish(case: Option<Case>, outcome: &mut Outcome) {
    let Some(case) = case else { return };
    match case.verdict {
        Verdict::Passed => outcome.pass += 1,
        Verdict::Skipped => outcome.skip += 1,
        Verdict::Failed => {
            let text = match (case.text.trim(), case.message.trim()) {
                ("", "") => case.output.as_str(),
                ("", message) => message,
                // Usually the text begins with the message.
                (text, _) => text,
            };
            // node calls every class `test`; nextest's and pytest's tell tests of one name apart.
            let name = match case.class.as_str() {
                "" | "test" => case.name,
                class if class == case.name => case.name,
                class => format!("{class}::{}", case.name),
            };
            let mut failure = Failure::new(name, text);
            // pytest counts these lines from 0.
            failure.at = case.file.map(|file| (file, case.line.unwrap_or(0), 0));
            outcome.failed(failure);
        }
    }
}
