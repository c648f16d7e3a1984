//! Cases whose expected values came from real Vim and Neovim (`tests/data/vim-cases.json`, and what
//! `tests/oracle/generate.py` adds). `HANZO_VIM_CASES` names another file of the same shape.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use hanzo_tui::edit::{Editor, Key, Mode, Pos, RegisterText, Settings, Stepping, TextKind};
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize, Clone)]
struct Case {
    id: String,
    start: State,
    keys: String,
    end: State,
    /// Why we differ here on purpose.
    #[serde(default)]
    may_differ: Option<String>,
}

#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
struct State {
    text: String,
    cursor: Place,
    mode: String,
    register: Option<Register>,
    #[serde(default)]
    anchor: Option<Place>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    line: usize,
    col: usize,
}

#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
struct Register {
    text: String,
    kind: String,
}

impl From<Pos> for Place {
    fn from(at: Pos) -> Self {
        Self { line: at.line, col: at.col }
    }
}

fn cases(path: &PathBuf) -> Vec<Case> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    serde_json::from_str::<File>(&text).unwrap().cases
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn editor_at(start: &State, settings: Settings) -> Editor {
    let mut editor = Editor::new(&start.text, settings);
    press(&mut editor, "<Esc>");
    let place = |editor: &mut Editor, at: Place| {
        let at = editor.at_scalar(Pos::new(at.line, at.col));
        editor.set_cursor(at);
    };
    let first = start.anchor.unwrap_or(start.cursor);
    place(&mut editor, first);
    match start.mode.as_str() {
        "normal" => {}
        "insert" => press(&mut editor, "i"),
        "visual" => press(&mut editor, "v"),
        "visual-line" => press(&mut editor, "V"),
        "command" => press(&mut editor, ":"),
        other => panic!("no start in mode {other}"),
    }
    place(&mut editor, start.cursor);
    if let Some(register) = &start.register {
        let kind = if register.kind == "line" { TextKind::Lines } else { TextKind::Characters };
        editor.set_register(RegisterText { text: register.text.clone(), kind });
    }
    editor
}

fn press(editor: &mut Editor, keys: &str) {
    for key in Key::parse_all(keys).unwrap() {
        editor.key(key, Duration::ZERO);
    }
}

fn state_of(editor: &Editor) -> State {
    let mode = match editor.mode() {
        Mode::Insert => "insert",
        Mode::Normal => "normal",
        Mode::OperatorPending => "operator-pending",
        Mode::Visual => "visual",
        Mode::VisualLine => "visual-line",
        Mode::Command => "command",
        other => panic!("no name for mode {other:?}"),
    };
    State {
        text: editor.text(),
        cursor: editor.cursor_scalar().into(),
        mode: mode.to_owned(),
        register: editor.register(None).map(|register| Register {
            text: register.text.clone(),
            kind: if register.kind == TextKind::Lines { "line" } else { "char" }.to_owned(),
        }),
        anchor: editor.anchor_scalar().map(Into::into),
    }
}

/// The cases that fail, each with what came instead.
fn failures(cases: &[Case], settings: Settings) -> Vec<(String, String)> {
    let mut failures = Vec::new();
    for case in cases.iter().filter(|case| case.may_differ.is_none()) {
        let run = std::panic::catch_unwind(|| {
            let mut editor = editor_at(&case.start, settings);
            press(&mut editor, &case.keys);
            state_of(&editor)
        });
        let Ok(got) = run else {
            failures.push((case.id.clone(), format!("{} from {:?}: panicked", case.keys, case.start)));
            continue;
        };
        // The command line itself is not compared, as in Vim: a selection leaves a range there.
        if got != case.end {
            let Case { id, start, keys, end, .. } = case;
            failures.push((
                id.clone(),
                format!("\n  keys  {keys}\n  start {start:?}\n  want  {end:?}\n  got   {got:?}"),
            ));
        }
    }
    failures
}

fn check(cases: &[Case], what: &str) {
    let failures = failures(cases, Settings::like_vim());
    // Written past the test harness, which keeps what passing tests print to itself.
    let excused = cases.iter().filter(|case| case.may_differ.is_some()).count();
    let passed = cases.len() - excused - failures.len();
    let line = format!("{what}: {passed} of {} cases passed, {excused} may differ\n", cases.len());
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    assert!(excused * 50 <= cases.len(), "too many cases are excused to say anything");
    let shown: Vec<String> =
        failures.iter().take(12).map(|(id, difference)| format!("{id}{difference}")).collect();
    assert!(failures.is_empty(), "{} cases differ from the editors:\n{}", failures.len(), shown.join("\n"));
}

#[test]
fn vim_oracle_cases() {
    match std::env::var_os("HANZO_VIM_CASES") {
        Some(path) => check(&cases(&PathBuf::from(path)), "the cases of HANZO_VIM_CASES"),
        None => check(&cases(&data("vim-cases.json")), "vim-cases.json"),
    }
}

#[test]
fn vim_generated_cases() {
    check(&cases(&data("vim-generated.json")), "vim-generated.json");
}

/// What the prompt changes on purpose is only this: an emoji of several code points is one stop.
#[test]
fn by_grapheme_only_the_emoji_cases_differ() {
    let settings = Settings { stepping: Stepping::Grapheme, ..Settings::like_vim() };
    let differing: Vec<String> =
        failures(&cases(&data("vim-cases.json")), settings).into_iter().map(|(id, _)| id).collect();
    assert_eq!(differing, ["unicode#3", "unicode#4", "unicode#5"]);
}
