//! The lists that commands open, what is kept of a draft, and what is sent before there is a thread.

use std::path::PathBuf;
use std::time::Duration;

use hanzo_protocol::engine::{EngineError, EngineErrorKind, Listed, Page, Request, Response};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::item::{ItemContent, ToolCallStatus, TurnEnd};
use hanzo_protocol::message::{Attachment, AttachmentSource};
use hanzo_protocol::tool::ToolResult;
use hanzo_tui::Setup;
use hanzo_tui::app::{App, Asked, Command, Event, Part};
use hanzo_tui::edit::Key;
use hanzo_tui::host::{FileEdit, Memory};
use hanzo_tui::terminal::Input;
use serde_json::json;

use crate::stage::{Stage, call, setup};

fn rows(stage: &Stage, part: Part) -> usize {
    stage.app.layout().1.into_iter().filter(|(other, _)| *other == part).map(|(_, rows)| rows).sum()
}

fn servers() -> Response {
    Response::List(Listed {
        entries: vec![
            json!({"name": "docs", "transport": "stdio", "status": "connected", "toolsCount": 3, "promptsCount": 1,
                   "resourcesCount": 0, "latencyMs": 12}),
            json!({"name": "cloud", "transport": "http", "status": "failed", "error": "cannot connect:\nrefused"}),
            json!({"name": "spare", "transport": "stdio", "status": "disabled"}),
        ],
    })
}

fn memories() -> Vec<Memory> {
    let file = |label: &str, detail: &str, path: &str| Memory {
        label: label.into(),
        detail: detail.into(),
        path: PathBuf::from(path),
    };
    vec![
        file("your AGENTS.md", "for everything you do · not there yet", "/home/user/.config/hanzo/AGENTS.md"),
        file("AGENTS.md", "this workspace · 12 lines", "/home/user/project/AGENTS.md"),
    ]
}

/// Opens what `open` opens.
fn opened(open: &str) -> Stage {
    opened_at(80, open)
}

fn opened_at(width: u16, open: &str) -> Stage {
    let prompts = vec!["an earlier prompt".to_owned()];
    let mut stage = Stage::with(Setup { prompts, ..setup() }, width, 24);
    match open {
        "/queue" => {
            stage.ask("go");
            stage.keys("later<Tab>/queue<CR>");
        }
        "/mcp" => {
            stage.keys("/mcp<CR>");
            stage.answer(Asked::McpServers, servers());
        }
        "/memory" => {
            stage.keys("/memory<CR>");
            stage.event(Event::Memories(memories()));
        }
        "/find" => {
            stage.keys("/find<CR>");
            let said = stage.item(ItemContent::AgentMessage { text: "a quokka".into() });
            stage.answer(
                Asked::Find(String::new()),
                Response::ThreadRead(Page { entries: vec![said], next: None }),
            );
        }
        keys => stage.keys(keys),
    }
    stage
}

/// Seed 004 §3.8: what owns the keys hides the composer, and below it there is the status line and nothing else.
#[test]
fn every_list_is_modal_and_escape_gives_the_composer_back() {
    let lists =
        ["/mcp", "/memory", "/find", "/queue", "/resume<CR>", "/theme<Esc><CR>", "/clear<CR>", "<C-r>"];
    for (width, open) in [20, 40, 80, 200].into_iter().flat_map(|width| lists.map(|open| (width, open))) {
        let mut stage = opened_at(width, open);
        let shown = stage.screen();
        assert!(rows(&stage, Part::Panel) > 0, "{open} at {width}\n{shown}");
        assert_eq!(
            (rows(&stage, Part::Composer), rows(&stage, Part::Status)),
            (0, 1),
            "{open} at {width}\n{shown}"
        );
        let total: usize = stage.app.layout().1.iter().map(|(_, rows)| rows).sum();
        assert_eq!(total, stage.app.view().rows.len(), "{open} at {width}: every row belongs to something");
        // Letters narrow the list and are not typed into the draft behind it.
        stage.keys("zz<Esc>");
        assert!(rows(&stage, Part::Composer) > 0, "{open} at {width}\n{}", stage.screen());
        assert!(!stage.app.unsent().contains("zz"), "{open} at {width}");
    }
}

#[test]
fn what_is_typed_in_keeps_the_composer() {
    for keys in ["/", "/re", "@"] {
        let mut stage = Stage::new(80, 24);
        stage.keys(keys);
        if keys == "@" {
            let found =
                hanzo_tui::host::Completion { label: "src/".into(), insert: "src/".into(), goes_on: true };
            stage.event(Event::Completions(String::new(), vec![found]));
        }
        assert!(
            rows(&stage, Part::Panel) > 0 && rows(&stage, Part::Composer) > 0,
            "{keys}\n{}",
            stage.screen()
        );
        assert_eq!(rows(&stage, Part::Status), 1);
    }
}

#[test]
fn servers_are_listed_with_how_they_are_and_one_can_be_reconnected_or_switched() {
    let mut stage = opened("/mcp");
    let screen = stage.screen();
    assert!(screen.contains("❯ docs  connected · 3 tools · 1 prompt · 12 ms"), "{screen}");
    assert!(screen.contains("cloud  failed · cannot connect: refused"), "{screen}");
    stage.take_wanted();
    stage.keys("<Down><CR>");
    let screen = stage.screen();
    assert!(screen.contains("MCP server cloud") && screen.contains("❯ Never mind"), "{screen}");
    stage.keys("<Down><CR>");
    let requests = stage.requests();
    assert!(
        matches!(&requests[..], [Request::CommandRun(run)] if run.name == "mcp" && run.arguments == "reconnect cloud"),
        "{requests:?}"
    );
    for (which, wanted) in [("<CR><Down><Down><CR>", "disable docs"), ("spare<CR><Down><CR>", "enable spare")]
    {
        let mut stage = opened("/mcp");
        stage.take_wanted();
        stage.keys(which);
        let requests = stage.requests();
        assert!(
            matches!(&requests[..], [Request::CommandRun(run)] if run.arguments == wanted),
            "{requests:?}"
        );
    }
    let mut stage = Stage::new(80, 24);
    stage.keys("/mcp<CR>");
    stage.answer(Asked::McpServers, Response::List(Listed { entries: Vec::new() }));
    assert!(stage.screen().contains("No MCP server is configured"), "{}", stage.screen());
}

#[test]
fn a_command_a_server_brought_is_in_the_menu_when_it_opens() {
    let mut stage = Stage::new(80, 24);
    stage.keys("/");
    let prompt = json!({"name": "mcp__docs__greet", "kind": "turn", "argumentHint": "<name>", "description": "Greets"});
    stage.answer(Asked::Commands, Response::List(Listed { entries: vec![prompt] }));
    assert!(stage.screen().contains("❯ /mcp__docs__greet <name>  Greets"), "{}", stage.screen());
    stage.take_wanted();
    stage.keys("<CR>Ada<CR>");
    let requests = stage.requests();
    assert!(
        matches!(&requests[..], [Request::CommandRun(run)] if run.name == "mcp__docs__greet" && run.arguments == "Ada"),
        "{requests:?}"
    );
}

#[test]
fn an_instruction_file_is_opened_in_the_editor_and_its_change_is_told() {
    let mut stage = opened("/memory");
    let screen = stage.screen();
    assert!(screen.contains("❯ your AGENTS.md  for everything you do · not there yet"), "{screen}");
    stage.take_wanted();
    stage.keys("<Down><CR>");
    let path = PathBuf::from("/home/user/project/AGENTS.md");
    assert_eq!(stage.take_wanted(), [Command::EditFile(path.clone())]);
    stage.event(Event::FileEdited(path.clone(), Ok(FileEdit::Changed)));
    assert!(stage.screen().contains("AGENTS.md was changed"), "{}", stage.screen());
    stage.event(Event::FileEdited(path.clone(), Ok(FileEdit::Same)));
    assert!(stage.screen().contains("The file is as it was"));
    stage.event(Event::FileEdited(path, Err("the editor failed".into())));
    assert!(stage.screen().contains("the editor failed"));
}

#[test]
fn the_doctor_s_report_is_shown() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("/doctor<CR>");
    assert_eq!(stage.take_wanted().last(), Some(&Command::Doctor));
    stage.event(Event::Report("- `git` ok\n  - git version 2".into()));
    assert!(stage.screen().contains("git version 2"), "{}", stage.screen());
}

#[test]
fn a_search_reads_the_whole_thread_and_what_is_chosen_is_shown_in_full() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("/find quokka<CR>");
    let requests = stage.requests();
    assert!(matches!(&requests[..], [Request::ThreadRead(read)] if read.cursor.is_none()), "{requests:?}");
    let asked = || Asked::Find("quokka".into());
    let far = format!("{} the Quokka sat here {}", "word ".repeat(60), "end ".repeat(30));
    let pages =
        [
            vec![stage.item(ItemContent::UserMessage {
                text: "where is the quokka?".into(),
                attachments: Vec::new(),
            })],
            vec![
                stage.item(ItemContent::AgentMessage { text: "nothing of it".into() }),
                stage.item(ItemContent::AgentMessage { text: far }),
                stage.item(call(
                    "proc.exec",
                    &json!({"command": "ls"}),
                    ToolCallStatus::Completed,
                    Some(ToolResult::success("quokka.txt\nother.txt")),
                )),
            ],
        ];
    let [first, second] = pages;
    stage.answer(asked(), Response::ThreadRead(Page { entries: first, next: Some("on".into()) }));
    let requests = stage.requests();
    assert!(matches!(&requests[..], [Request::ThreadRead(read)] if read.cursor.as_deref() == Some("on")));
    stage.answer(asked(), Response::ThreadRead(Page { entries: second, next: None }));
    let screen = stage.screen();
    assert!(screen.contains("Find in this thread") && screen.contains("3/3"), "{screen}");
    assert!(screen.contains("Quokka sat here"), "the place is in sight\n{screen}");
    assert!(screen.contains("you: where is the quokka?") && !screen.contains("nothing of it"), "{screen}");
    // Newest first: the call.
    stage.keys("<CR>");
    assert!(stage.screen().contains("other.txt"), "its whole output is there\n{}", stage.screen());
    stage.keys("/find nowhere<CR>");
    stage.answer(
        Asked::Find("nowhere".into()),
        Response::ThreadRead(Page { entries: Vec::new(), next: None }),
    );
    assert!(stage.screen().contains("`nowhere` does not occur in this thread"), "{}", stage.screen());
}

#[test]
fn control_f_searches_on_an_empty_prompt_and_moves_in_a_text() {
    let emacs = || Stage::with(Setup { input: hanzo_tui::edit::InputMode::Emacs, ..setup() }, 80, 24);
    for mut stage in [Stage::new(80, 24), emacs()] {
        stage.take_wanted();
        stage.keys("<C-f>");
        assert!(matches!(&stage.requests()[..], [Request::ThreadRead(_)]));
    }
    let mut stage = emacs();
    stage.take_wanted();
    stage.keys("ab<C-a><C-f>X");
    assert!(stage.screen().contains("› aXb"), "{}", stage.screen());
    assert!(stage.requests().is_empty());
}

#[test]
fn what_waits_can_be_changed_sent_now_put_first_or_dropped() {
    let waiting = || {
        let mut stage = Stage::new(80, 24);
        stage.ask("go");
        stage.keys("one<Tab>two<Tab>/queue<CR>");
        assert!(stage.screen().contains("❯ one"), "{}", stage.screen());
        stage.take_wanted();
        stage
    };
    let mut stage = waiting();
    stage.keys("<CR><CR>");
    assert!(
        stage.screen().contains("› one") && stage.screen().contains("after it: two"),
        "{}",
        stage.screen()
    );
    let mut stage = waiting();
    stage.keys("<CR><Down><CR>");
    let requests = stage.requests();
    assert!(matches!(&requests[..], [Request::TurnSteer(turn)] if turn.text == "one"), "{requests:?}");
    let mut stage = waiting();
    stage.keys("<Down><CR><Down><Down><CR>");
    stage.turn_ends(TurnEnd::Completed);
    let requests = stage.requests();
    assert!(
        requests.iter().any(|request| matches!(request, Request::TurnStart(turn) if turn.text == "two")),
        "{requests:?}"
    );
    let mut stage = waiting();
    stage.keys("<CR><Down><Down><CR>");
    assert!(!stage.screen().contains("after it: one") && stage.screen().contains("after it: two"));
    let mut stage = Stage::new(80, 24);
    stage.keys("/queue<CR>");
    assert!(stage.screen().contains("Nothing waits to be sent"), "{}", stage.screen());
}

#[test]
fn a_draft_is_kept_a_moment_after_the_last_key_and_forgotten_when_it_is_sent() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("half a sentence");
    assert!(stage.take_wanted().is_empty(), "not while typing");
    let due = stage.app.wake_at().expect("something is due");
    stage.wait(500);
    assert_eq!(stage.take_wanted(), [Command::KeepDraft("half a sentence".into())]);
    assert!(due > Duration::ZERO && stage.app.wake_at().is_none(), "and then nothing moves");
    stage.keys("<CR>");
    stage.take_wanted();
    stage.wait(500);
    assert_eq!(stage.take_wanted(), [Command::KeepDraft(String::new())]);
    // What waits is not sent either.
    stage.keys("later<Tab>and this");
    stage.wait(500);
    let kept = stage.take_wanted();
    assert!(kept.contains(&Command::KeepDraft("later\n\nand this".into())), "{kept:?}");
    let draft = Some("half a sentence".to_owned());
    let stage = Stage::with(Setup { draft, ..setup() }, 80, 24);
    let screen = stage.screen();
    assert!(screen.contains("› half a sentence") && screen.contains("did not send"), "{screen}");
}

#[test]
fn what_is_sent_before_there_is_a_thread_is_sent_when_there_is() {
    let begin = || {
        let (mut app, commands) = App::new(setup(), 80, 24);
        assert!(matches!(&commands[..], [Command::Call(Asked::Open, _)]));
        for key in Key::parse_all("first<CR>second<CR>").unwrap() {
            let wanted = app.update(Event::Input(Input::Key(key)), Duration::from_secs(1));
            assert!(!wanted.iter().any(|command| matches!(command, Command::Call(..))), "{wanted:?}");
        }
        assert_eq!(app.unsent(), "first\n\nsecond", "nothing is lost meanwhile");
        let summary = Stage::new(80, 24).summary();
        app.update(Event::Answer(Asked::Open, Ok(Response::ThreadStart(summary))), Duration::from_secs(2));
        app
    };
    let is_first = |wanted: &[Command]| {
        wanted.iter().any(|command| {
            matches!(command, Command::Call(Asked::Say(_), Request::TurnStart(turn)) if turn.text == "first")
        })
    };
    let mut app = begin();
    let listed = Response::List(Listed { entries: Vec::new() });
    let wanted = app.update(Event::Answer(Asked::Commands, Ok(listed)), Duration::from_secs(2));
    assert!(is_first(&wanted), "{wanted:?}");
    assert_eq!(app.unsent(), "second", "it waits for the first one's end");
    // A command waits for the list that says what it is.
    let (mut app, _) = App::new(setup(), 80, 24);
    let summary = Stage::new(80, 24).summary();
    app.update(Event::Answer(Asked::Open, Ok(Response::ThreadStart(summary))), Duration::from_secs(1));
    for key in Key::parse_all("/branch x<CR>").unwrap() {
        app.update(Event::Input(Input::Key(key)), Duration::from_secs(1));
    }
    let listed = Response::List(Listed { entries: vec![json!({"name": "branch", "kind": "local"})] });
    let wanted = app.update(Event::Answer(Asked::Commands, Ok(listed)), Duration::from_secs(2));
    assert!(wanted.iter().any(|command| matches!(command, Command::Run(..))), "{wanted:?}");
    // Also when the commands cannot be listed.
    let mut app = begin();
    let error = EngineError { kind: EngineErrorKind::Store, message: "no".into() };
    let wanted = app.update(Event::Answer(Asked::Commands, Err(error)), Duration::from_secs(2));
    assert!(is_first(&wanted), "{wanted:?}");
}

#[test]
fn two_keys_open_the_editor_and_an_image_comes_from_the_clipboard() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("draft<C-x>");
    assert!(stage.screen().contains("Ctrl+X …"), "{}", stage.screen());
    stage.keys("<C-e>");
    assert!(stage.take_wanted().contains(&Command::Edit("draft".into())));
    stage.keys("<C-x>y");
    assert!(
        stage.screen().contains("› drafty"),
        "two keys that mean nothing are two keys\n{}",
        stage.screen()
    );
    stage.keys("<C-v>");
    assert!(stage.take_wanted().contains(&Command::PasteImage));
    stage.event(Event::Clipboard(Err("There is no image on the clipboard".into())));
    assert!(stage.screen().contains("There is no image on the clipboard"));
    let image = Attachment {
        media_type: "image/png".into(),
        name: Some("clipboard.png".into()),
        source: AttachmentSource::Inline { base64: "AA==".into() },
    };
    stage.event(Event::Clipboard(Ok(image)));
    stage.keys("<CR>");
    let requests = stage.requests();
    assert!(
        matches!(&requests[..], [Request::TurnStart(turn)] if turn.attachments.len() == 1),
        "{requests:?}"
    );
    stage.engine(EventContent::TurnStarted { turn_id: stage.turn });
}
