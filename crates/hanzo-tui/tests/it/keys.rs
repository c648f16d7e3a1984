//! What each mode's keys do, the timeout, the `:` line, and that widgets share nothing.

use std::time::Duration;

use hanzo_tui::edit::{
    Editor, HistoryStep, Host, InputMode, Key, KeyCode, Mode, Modifiers, Outcome, Pos, Settings, TextKind,
};

fn vim(text: &str) -> Editor {
    let mut editor = Editor::new(text, Settings { input: InputMode::Vim, ..Settings::default() });
    press(&mut editor, "<Esc>gg0");
    editor
}

fn with(input: InputMode, text: &str) -> Editor {
    Editor::new(text, Settings { input, ..Settings::default() })
}

/// Presses the keys without a pause; returns what the last one came to.
fn press(editor: &mut Editor, keys: &str) -> Outcome {
    Key::parse_all(keys)
        .unwrap()
        .into_iter()
        .map(|key| editor.key(key, Duration::ZERO))
        .last()
        .unwrap_or(Outcome::Done)
}

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn an_operator_waits_500_ms_and_no_longer() {
    let mut editor = vim("foo bar\nbaz");
    editor.key(Key::char('d'), at(1_000));
    assert_eq!(editor.mode(), Mode::OperatorPending);
    assert_eq!(editor.pending_keys(), "d");
    assert_eq!(editor.deadline(), Some(at(1_500)));
    editor.key(Key::char('w'), at(1_499));
    assert_eq!(editor.text(), "bar\nbaz", "499 ms: `dw`");

    editor.key(Key::char('d'), at(2_000));
    editor.key(Key::char('w'), at(2_501));
    assert_eq!(editor.text(), "bar\nbaz", "501 ms: `w` alone");
    assert_eq!(editor.cursor(), Pos::new(1, 0));
}

#[test]
fn each_key_of_a_command_gets_its_own_500_ms() {
    let mut editor = vim("say \"hello\"");
    for (key, now) in [('c', 0), ('i', 400), ('"', 800)] {
        editor.key(Key::char(key), at(now));
    }
    assert_eq!((editor.text().as_str(), editor.mode()), ("say \"\"", Mode::Insert));
}

#[test]
fn the_face_can_drop_a_late_command_before_the_next_key() {
    let mut editor = vim("foo");
    editor.key(Key::char('g'), at(10));
    assert!(!editor.tick(at(510)));
    assert!(editor.tick(at(511)));
    assert_eq!((editor.pending_keys().as_str(), editor.deadline()), ("", None));
}

#[test]
fn a_timeout_of_zero_waits_for_ever() {
    let mut editor = vim("foo bar");
    assert_eq!(press(&mut editor, ":set timeoutlen=0<CR>"), Outcome::Done);
    editor.key(Key::char('d'), at(0));
    assert_eq!(editor.deadline(), None);
    editor.key(Key::char('w'), at(3_600_000));
    assert_eq!(editor.text(), "bar");
}

#[test]
fn the_timeout_is_a_setting_that_the_command_line_changes_too() {
    let mut editor = vim("foo bar");
    press(&mut editor, ":set timeoutlen=1000<CR>");
    assert_eq!(editor.settings().pending_timeout, at(1_000));
    editor.key(Key::char('d'), at(0));
    editor.key(Key::char('w'), at(999));
    assert_eq!(editor.text(), "bar");
}

#[test]
fn the_command_line_sends_leaves_and_sets() {
    let mut editor = vim("hello");
    assert_eq!(press(&mut editor, ":w"), Outcome::Done);
    assert_eq!((editor.mode(), editor.command_line()), (Mode::Command, Some("w")));
    assert_eq!(press(&mut editor, "<CR>"), Outcome::Submit);
    assert_eq!(editor.mode(), Mode::Normal);
    for (line, outcome) in [
        (":q<CR>", Outcome::Quit),
        (":q!<CR>", Outcome::Quit),
        (":wq<CR>", Outcome::SubmitAndQuit),
        (":x<CR>", Outcome::SubmitAndQuit),
        (":<CR>", Outcome::Done),
        (":set shiftwidth=4<CR>", Outcome::Done),
        (":set emacs<CR>", Outcome::InputMode(InputMode::Emacs)),
    ] {
        assert_eq!(press(&mut editor, line), outcome, "{line}");
    }
    assert_eq!((editor.settings().input, editor.settings().shift_width), (InputMode::Emacs, 4));
    assert_eq!(editor.text(), "hello");
}

#[test]
fn a_wrong_command_line_says_what_to_try() {
    let mut editor = vim("");
    for line in [":frobnicate<CR>", ":set colour=red<CR>", ":set input_mode=ed<CR>"] {
        let Outcome::Message(message) = press(&mut editor, line) else { panic!("{line} has a message") };
        assert!(message.contains("\n\nhint: "), "{message}");
    }
    let Outcome::Message(shown) = press(&mut editor, ":set<CR>") else { panic!("the settings are shown") };
    assert_eq!(shown, "input_mode=vim timeoutlen=500 shiftwidth=2 tabstop=8");
}

#[test]
fn widgets_share_no_state() {
    let mut first = vim("foo bar");
    let mut second = vim("other");
    press(&mut first, "dwd");
    assert_eq!((first.mode(), second.mode()), (Mode::OperatorPending, Mode::Normal));
    assert_eq!(press(&mut second, "p"), Outcome::Beep, "the other's register is not seen");
    assert_eq!(press(&mut second, "."), Outcome::Beep, "nor its last change");
    assert_eq!(second.text(), "other");
}

#[test]
fn in_a_prompt_the_edges_lead_to_the_history() {
    let mut editor = vim("a\nb");
    assert_eq!(press(&mut editor, "k"), Outcome::History(HistoryStep::Older));
    assert_eq!(press(&mut editor, "jj"), Outcome::History(HistoryStep::Newer));
    assert_eq!(press(&mut editor, "dj"), Outcome::Beep, "not with an operator");
    assert_eq!(press(&mut editor, "vj"), Outcome::Beep, "nor with a selection");
    assert_eq!(press(&mut editor, "<Esc>/"), Outcome::SearchHistory);
    assert_eq!(press(&mut editor, "<CR>"), Outcome::Submit);
    assert_eq!(press(&mut editor, "i<CR>"), Outcome::Submit);
    assert_eq!(editor.text(), "a\nb");
}

#[test]
fn four_ways_to_a_line_break_in_every_mode() {
    for input in [InputMode::Default, InputMode::Emacs, InputMode::Vim] {
        let mut editor = with(input, "a");
        press(&mut editor, "<C-j>b\\<CR>c<M-CR>d<S-CR>e");
        assert_eq!(editor.text(), "a\nb\nc\nd\ne", "{input:?}");
        assert_eq!(press(&mut editor, "<CR>"), Outcome::Submit);
    }
    let mut text = Editor::new("a", Settings { host: Host::Text, ..Settings::default() });
    press(&mut text, "<CR>b");
    assert_eq!(text.text(), "a\nb");
}

#[test]
fn keys_of_the_face_are_left_to_the_face() {
    for input in [InputMode::Default, InputMode::Emacs, InputMode::Vim] {
        let mut editor = with(input, "x");
        for key in
            ["<C-c>", "<C-g>", "<C-o>", "<C-l>", "<C-z>", "<C-v>", "<Tab>", "<S-Tab>", "<PageUp>", "<C-r>"]
        {
            assert_eq!(press(&mut editor, key), Outcome::Ignored, "{key} with {input:?}");
        }
        if input != InputMode::Vim {
            assert_eq!(press(&mut editor, "<Esc>"), Outcome::Ignored);
        }
    }
    assert_eq!(press(&mut vim("x"), "<Esc>"), Outcome::Ignored, "Escape with nothing to end interrupts");
}

#[test]
fn kills_gather_and_the_ring_turns() {
    let mut editor = with(InputMode::Emacs, "one two three");
    press(&mut editor, "<C-w><C-w>");
    assert_eq!(editor.text(), "one ");
    press(&mut editor, "<C-a><C-k>x<C-y>");
    assert_eq!(editor.text(), "xone ", "a key between ends the kill");
    press(&mut editor, "<M-y>");
    assert_eq!(editor.text(), "xtwo three");
    press(&mut editor, "<C-e><C-u><C-y><C-y>");
    assert_eq!(editor.text(), "xtwo threextwo three");
}

#[test]
fn emacs_moves_and_changes_by_words() {
    let mut editor = with(InputMode::Emacs, "foo-bar baz\nqux");
    press(&mut editor, "<M-<><M-f>");
    assert_eq!(editor.cursor(), Pos::new(0, 3));
    press(&mut editor, "<M-u>");
    assert_eq!(editor.text(), "foo-BAR baz\nqux");
    press(&mut editor, "<M-c><C-n>");
    assert_eq!((editor.text().as_str(), editor.cursor()), ("foo-BAR Baz\nqux", Pos::new(1, 3)));
    press(&mut editor, "<C-p><C-a><C-f><C-t>");
    assert_eq!(editor.text(), "ofo-BAR Baz\nqux");
    press(&mut editor, "<C-x><C-u>");
    assert_eq!(editor.text(), "foo-BAR Baz\nqux");
}

#[test]
fn default_keys_undo_word_by_word_and_redo() {
    let mut editor = with(InputMode::Default, "");
    press(&mut editor, "one two");
    press(&mut editor, "<C-_>");
    assert_eq!(editor.text(), "one ");
    press(&mut editor, "<C-_>");
    assert_eq!(editor.text(), "");
    press(&mut editor, "<M-_><M-_>");
    assert_eq!((editor.text().as_str(), editor.cursor()), ("one two", Pos::new(0, 7)));
}

#[test]
fn up_and_down_keep_the_column_they_began_in() {
    let mut editor = with(InputMode::Default, "longer\nab\nlonger");
    press(&mut editor, "<Up><Up>");
    assert_eq!(editor.cursor(), Pos::new(0, 6));
    assert_eq!(press(&mut editor, "<Up>"), Outcome::History(HistoryStep::Older));
}

#[test]
fn registers_by_name_and_the_clipboard() {
    let mut editor = vim("foo bar\nbaz");
    assert_eq!(press(&mut editor, "\"+yw"), Outcome::Copy("foo ".to_owned()));
    press(&mut editor, "\"ayyj\"Ayy");
    let register = editor.register(Some('a')).unwrap();
    assert_eq!((register.text.as_str(), register.kind), ("foo bar\nbaz\n", TextKind::Lines));
    assert_eq!(press(&mut editor, "\"0p"), Outcome::Beep, "a yank with a name leaves \"0 alone");
    press(&mut editor, "ggyldd\"0P");
    assert_eq!(editor.text(), "fbaz");
    editor.set_clipboard("from outside ");
    press(&mut editor, "0\"+P");
    assert_eq!(editor.text(), "from outside fbaz");
    press(&mut editor, "\"_dd\"1p");
    assert_eq!(editor.text(), "\nfoo bar", "what the black hole took is not in \"1");
}

#[test]
fn a_paste_is_one_undo_step_and_replaces_a_selection() {
    let mut editor = vim("foo bar");
    press(&mut editor, "viw");
    editor.paste("x\r\ny");
    assert_eq!((editor.text().as_str(), editor.mode()), ("x\ny bar", Mode::Normal));
    press(&mut editor, "u");
    assert_eq!(editor.text(), "foo bar");
    let mut editor = with(InputMode::Default, "ab");
    press(&mut editor, "<Left>");
    editor.paste("\t1\n2");
    assert_eq!((editor.text().as_str(), editor.cursor()), ("a\t1\n2b", Pos::new(1, 1)));
    press(&mut editor, "<C-_>");
    assert_eq!(editor.text(), "ab");
}

#[test]
fn an_emoji_is_one_stop_and_its_column_is_known() {
    let mut editor = vim("👨\u{200d}👩\u{200d}👧x日本");
    press(&mut editor, "l");
    assert_eq!((editor.cursor(), editor.display_column(editor.cursor())), (Pos::new(0, 1), 2));
    press(&mut editor, "x");
    assert_eq!(editor.text(), "👨\u{200d}👩\u{200d}👧日本");
    press(&mut editor, "hx$");
    assert_eq!((editor.text().as_str(), editor.display_column(editor.cursor())), ("日本", 2));
}

#[test]
fn counts_typed_by_mistake_do_not_fill_the_memory() {
    let mut editor = vim("x");
    editor.set_register(hanzo_tui::edit::RegisterText {
        text: "0123456789".repeat(100),
        kind: TextKind::Characters,
    });
    assert!(matches!(press(&mut editor, "99999999p"), Outcome::Message(_)));
    press(&mut editor, "99999999iab<Esc>");
    assert!(editor.text().len() < 8 << 20);
}

#[test]
fn a_paragraph_motion_back_goes_to_the_start() {
    let mut editor = vim("one two\n\nthree");
    press(&mut editor, "G${");
    assert_eq!(editor.cursor(), Pos::new(1, 0));
    press(&mut editor, "{");
    assert_eq!(editor.cursor(), Pos::new(0, 0));
}

#[test]
fn a_bracket_leads_to_its_partner_and_gv_selects_again() {
    let mut editor = vim("f(a, [b]) c");
    press(&mut editor, "%");
    assert_eq!(editor.cursor(), Pos::new(0, 8));
    press(&mut editor, "d%");
    assert_eq!(editor.text(), "f c");
    press(&mut editor, "uviw<Esc>$gv");
    assert_eq!(editor.mode(), Mode::Visual);
}

#[test]
fn the_arrows_end_a_change_while_typing() {
    let mut editor = vim("");
    press(&mut editor, "iab<Left>c<Esc>");
    assert_eq!(editor.text(), "acb");
    press(&mut editor, "u");
    assert_eq!(editor.text(), "ab");
    press(&mut editor, "u");
    assert_eq!(editor.text(), "");
    let mut editor = vim("longer\n\nlonger");
    press(&mut editor, "A<Down><Down>X");
    assert_eq!(editor.text(), "longer\n\nlongerX");
}

/// What Vim 9 makes of the same keys.
#[test]
fn a_count_is_forgotten_when_the_arrows_are_used() {
    for (keys, expected) in
        [("3ix<Left>y<Esc>", "yxabc"), ("3ix<Left><Esc>", "xabc"), ("3ix<C-j><End><Esc>", "x\nabc")]
    {
        let mut editor = vim("abc");
        press(&mut editor, keys);
        assert_eq!(editor.text(), expected, "{keys}");
    }
}

#[test]
fn notation_names_keys_both_ways() {
    let keys = Key::parse_all("a<lt><Esc><C-w><M-CR><S-Tab>").unwrap();
    assert_eq!(keys[1], Key::char('<'));
    assert_eq!(keys[4], Key::new(KeyCode::Enter).with(Modifiers::ALT));
    assert_eq!(keys.iter().map(ToString::to_string).collect::<String>(), "a<lt><Esc><C-w><M-CR><S-Tab>");
    let error = Key::parse_all("<Nonsense>").unwrap_err();
    assert!(error.to_string().contains("`<Nonsense>`"));
}
