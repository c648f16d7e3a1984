//! Whatever is typed: nothing panics, the cursor stays in the text, undo leads back to the start, and both ways of counting
//! cells agree.

use std::time::Duration;

use hanzo_testkit::scale::rounds;
use hanzo_tui::edit::{
    Editor, Host, InputMode, Key, KeyCode, Mode, Modifiers, Outcome, Pos, Settings, Stepping,
};
use proptest::prelude::*;

/// Characters that commands are made of, and those that are hard to count: wide, combining, joined, right to left, control.
const CHARACTERS: &str = "hjklwbeWBE0123456789^$|GgfFtT;,%{}_+-dcyxXDCYSspPJ~uUrR.vVoOiaIA\"'`()[]<>:/? \
    zq日語かカéß\u{301}\u{200d}👨👩🇩🇪שع\u{7}\u{0}\t\u{feff}";

fn key() -> impl Strategy<Value = Key> {
    let characters: Vec<char> = CHARACTERS.chars().collect();
    let named = vec![
        KeyCode::Escape,
        KeyCode::Enter,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::Tab,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::PageUp,
    ];
    prop_oneof![
        12 => proptest::sample::select(characters).prop_map(Key::char),
        3 => proptest::sample::select(named).prop_map(Key::new),
        1 => proptest::sample::select(vec!['r', 'w', 'u', 'h', 'k', 'y', 'a', 'e', 't', '_', 'x', 'c', 'j', 'd'])
            .prop_map(Key::ctrl),
        1 => proptest::sample::select(vec!['b', 'f', 'd', 'y', 'u', 'l', 'c', '<', '>', '/']).prop_map(Key::alt),
        1 => Just(Key::new(KeyCode::Enter).with(Modifiers::SHIFT)),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z (){}\"'.,\t\n]{0,60}",
        "(\\PC|\n){0,30}",
        proptest::sample::select(vec![
            String::new(),
            "\n\n".to_owned(),
            "👨\u{200d}👩\u{200d}👧 🇩🇪🇫🇷 e\u{301}\u{302}\n\u{301}x".to_owned(),
        ]),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let input =
        proptest::sample::select(vec![InputMode::Vim, InputMode::Vim, InputMode::Emacs, InputMode::Default]);
    let host = proptest::sample::select(vec![Host::Prompt, Host::Text]);
    let stepping = proptest::sample::select(vec![Stepping::Grapheme, Stepping::Character]);
    (input, host, stepping, 0usize..12).prop_map(|(input, host, stepping, tab_width)| Settings {
        input,
        host,
        stepping,
        tab_width,
        ..Settings::default()
    })
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: rounds(8_000), failure_persistence: None, ..ProptestConfig::default() }
}

/// Fails unless what the editor shows of itself hangs together.
fn consistent(editor: &Editor) {
    let text = editor.text();
    let at = editor.cursor();
    assert!(at.line < editor.line_count(), "the cursor {at:?} is below the text {text:?}");
    assert_eq!(text.split('\n').count(), editor.line_count());
    let line = editor.line(at.line).unwrap();
    let offset = editor.byte_offset(at);
    let before: usize = text.split('\n').take(at.line).map(|line| line.len() + 1).sum();
    assert!(offset <= before + line.len(), "the cursor {at:?} is right of its line {line:?}");
    assert!(text.is_char_boundary(offset), "the cursor is inside a character");
    assert_eq!(
        editor.at_scalar(editor.cursor_scalar()),
        at,
        "both ways of counting lead to one cell of {line:?}"
    );
    if editor.mode() == Mode::Normal && !line.is_empty() {
        assert!(offset < before + line.len(), "in normal mode the cursor is on a character of {line:?}");
    }
    if let Some((start, end)) = editor.selection() {
        assert!(editor.byte_offset(start) <= editor.byte_offset(end));
    }
    editor.display_column(at);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_key_sequence_panics_or_loses_the_cursor(
        start in text(),
        settings in settings(),
        keys in proptest::collection::vec(key(), 0..40),
        gaps in proptest::collection::vec(0u64..800, 40),
    ) {
        let mut editor = Editor::new(&start, settings);
        let mut now = Duration::ZERO;
        for (key, gap) in keys.iter().zip(gaps) {
            now += Duration::from_millis(gap);
            editor.key(*key, now);
            consistent(&editor);
        }
    }

    #[test]
    fn undoing_all_gives_the_start_and_redoing_all_the_end(
        start in text(),
        settings in settings(),
        keys in proptest::collection::vec(key(), 0..30),
    ) {
        let mut editor = Editor::new(&start, settings);
        let start = editor.text();
        for key in &keys {
            editor.key(*key, Duration::ZERO);
        }
        // Whatever mode that ended in: two Escapes lead to normal mode, or do nothing without modes.
        for _ in 0..2 {
            editor.key(Key::new(KeyCode::Escape), Duration::ZERO);
        }
        let (undo, redo) = if editor.settings().input == InputMode::Vim {
            (Key::char('u'), Key::ctrl('r'))
        } else {
            (Key::ctrl('_'), Key::alt('_'))
        };
        let all = |editor: &mut Editor, key: Key| {
            let steps = (0..200).take_while(|_| editor.key(key, Duration::ZERO) != Outcome::Beep).count();
            assert!(steps < 200, "each step takes something back");
        };
        // What was undone while the keys were typed is done again first: it is not the end that is looked for.
        let end = editor.text();
        all(&mut editor, undo);
        prop_assert_eq!(editor.text(), start);
        all(&mut editor, redo);
        if !keys.iter().any(|key| *key == undo || *key == Key::ctrl('_') || *key == Key::ctrl('u')) {
            prop_assert_eq!(editor.text(), end);
        }
    }

    #[test]
    fn pastes_and_clicks_anywhere_keep_the_text_whole(
        start in text(),
        pasted in text(),
        settings in settings(),
        keys in proptest::collection::vec(key(), 0..12),
        line in 0usize..8,
        col in 0usize..40,
    ) {
        let mut editor = Editor::new(&start, settings);
        for key in &keys {
            editor.key(*key, Duration::ZERO);
        }
        editor.set_cursor(Pos::new(line, col));
        consistent(&editor);
        let mode = editor.mode();
        let before = editor.text().len();
        editor.paste(&pasted);
        consistent(&editor);
        if mode == Mode::Insert {
            let breaks = pasted.matches("\r\n").count();
            prop_assert_eq!(editor.text().len(), before + pasted.len() - breaks);
        }
    }

    #[test]
    fn a_key_is_read_back_as_it_is_shown(keys in proptest::collection::vec(key(), 0..20)) {
        let shown: String = keys.iter().map(ToString::to_string).collect();
        prop_assert_eq!(Key::parse_all(&shown).unwrap(), keys);
    }
}
