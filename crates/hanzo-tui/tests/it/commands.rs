//! Slash commands, references, the shell, the history, the editor.

use hanzo_protocol::engine::{Listed, NotRewound, Page, Request, Response, RewindPreview, RewindWhat};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::{ApprovalId, CheckpointId};
use hanzo_protocol::item::{Approval, ItemContent, ToolCallStatus, TurnEnd};
use hanzo_protocol::tool::ToolResult;
use hanzo_tui::app::{Asked, Command, Event};
use hanzo_tui::host::Completion;
use hanzo_tui::terminal::Input;
use serde_json::json;

use crate::stage::{Stage, call, setup};

#[test]
fn a_slash_opens_the_menu_and_letters_narrow_it() {
    let mut stage = Stage::new(80, 24);
    stage.keys("/");
    let screen = stage.screen();
    assert!(screen.contains("❯ /help") && screen.contains("Show what can be typed here"), "{screen}");
    stage.keys("re");
    let screen = stage.screen();
    assert!(
        screen.contains("/resume [thread]") && screen.contains("/rewind") && screen.contains("/review"),
        "{screen}"
    );
    assert!(!screen.contains("/compact"));
    stage.keys("v<Tab>");
    assert!(stage.screen().contains("› /review"), "{}", stage.screen());
}

#[test]
fn enter_in_the_menu_runs_the_command_unless_it_needs_more() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("/cost<CR>");
    assert!(matches!(&stage.requests()[..], [Request::CommandRun(run)] if run.name == "cost"));
    assert!(stage.screen().contains("cost was run."));
    stage.keys("/rev<CR>");
    assert!(stage.requests().is_empty(), "it wants an argument");
    stage.keys("errors<CR>");
    assert!(
        matches!(&stage.requests()[..], [Request::CommandRun(run)] if run.name == "review" && run.arguments == "errors")
    );
}

#[test]
fn a_path_is_not_a_command() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("/usr/bin/env fails<CR>");
    assert!(matches!(&stage.requests()[..], [Request::TurnStart(turn)] if turn.text == "/usr/bin/env fails"));
}

#[test]
fn built_in_commands_never_reach_the_model() {
    let names = [
        "help",
        "compact",
        "new",
        "clear",
        "model",
        "resume",
        "copy",
        "cost",
        "fork",
        "mcp",
        "effort",
        "memory",
        "doctor",
        "find",
        "queue",
        "mode",
        "permissions",
        "context",
        "theme",
        "export",
        "rewind",
    ];
    for name in names {
        let mut stage = Stage::new(80, 24);
        stage.take_wanted();
        stage.keys(&format!("/{name}<Esc><CR>"));
        let said = stage.requests().into_iter().any(|request| matches!(request, Request::TurnStart(_)));
        assert!(!said, "/{name}");
    }
}

#[test]
fn clear_asks_first_and_does_nothing_by_default() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("/clear<CR>");
    assert!(stage.screen().contains("Discard this thread") && stage.screen().contains("❯ Never mind"));
    stage.keys("<CR>");
    assert!(stage.requests().is_empty());
    stage.keys("/clear<CR><Down><CR>");
    assert!(matches!(&stage.requests()[..], [Request::ThreadDelete(_)]));
    stage.answer(Asked::Discard, Response::ThreadDelete(hanzo_protocol::engine::Done {}));
    assert!(stage.requests().iter().any(|request| matches!(request, Request::ThreadStart(_))));
}

#[test]
fn new_keeps_the_thread_before() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("/new<CR>");
    let requests = stage.requests();
    assert!(
        requests.iter().any(|request| matches!(request, Request::ThreadStart(start) if !start.ephemeral))
    );
    assert!(!requests.iter().any(|request| matches!(request, Request::ThreadDelete(_))));
}

#[test]
fn resume_lists_threads_and_opens_the_chosen_one() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("/resume<CR>");
    assert!(stage.screen().contains("an earlier task"));
    stage.keys("<CR>");
    assert!(stage.requests().iter().any(|request| matches!(request, Request::ThreadResume(_))));
}

#[test]
fn a_reopened_thread_shows_its_end() {
    let mut stage = Stage::new(80, 24);
    stage.keys("/resume<CR><CR>");
    let mut thread = stage.summary();
    thread.id = "01900000-0000-7000-8000-000000000002".parse().unwrap();
    stage.answer(Asked::Open, Response::ThreadResume(thread));
    let items: Vec<_> =
        (0..100).map(|n| stage.item(ItemContent::AgentMessage { text: format!("said {n}.") })).collect();
    stage.answer(Asked::Replay, Response::ThreadRead(Page { entries: items, next: None }));
    let all = stage.everything();
    assert!(all.contains("40 earlier items are not shown"), "{all}");
    assert!(all.contains("said 99.") && all.contains("said 40.") && !all.contains("said 39."));
}

#[test]
fn rewind_is_never_mind_unless_chosen_otherwise() {
    let mut stage = Stage::new(80, 24);
    let turn = stage.turn;
    let said =
        stage.item(ItemContent::UserMessage { text: "break everything".into(), attachments: Vec::new() });
    let checkpoint = CheckpointId::new();
    stage.take_wanted();
    stage.keys("<Esc><Esc>");
    assert!(matches!(&stage.requests()[..], [Request::List(_)]));
    let entry = json!({"id": checkpoint, "turn": turn, "moment": "before", "left_out": 3});
    stage.answer(Asked::Checkpoints, Response::List(Listed { entries: vec![entry] }));
    let mut wrote =
        stage.item(call("fs.write", &json!({"uri": "src/lib.rs"}), ToolCallStatus::Completed, None));
    if let ItemContent::ToolCall(call) = &mut wrote.content {
        call.effect = Some(hanzo_protocol::tool::Effect::Write);
    }
    stage.answer(Asked::Prompts, Response::ThreadRead(Page { entries: vec![said, wrote], next: None }));
    assert!(stage.screen().contains("❯ Never mind") && stage.screen().contains("before: break everything"));
    assert!(stage.screen().contains("1 call changed something since"));
    stage.take_wanted();
    stage.keys("<Down><CR>");
    let screen = stage.screen();
    assert!(!screen.contains("Take back what?"), "what would happen is found out first\n{screen}");
    let wanted = stage.requests();
    assert!(matches!(&wanted[..], [Request::ThreadPreview(preview)] if preview.checkpoint == checkpoint));
    let not = |path: &str, reason: &str| NotRewound { path: path.into(), reason: reason.into() };
    let preview = RewindPreview {
        written: vec!["src/lib.rs".into()],
        removed: vec!["made-by-the-shell.txt".into()],
        kept: vec![not("notes.md", "it was changed afterwards")],
        left_out: vec![not("target/", "ignored"), not("big.bin", "too large")],
        left_out_more: 3,
    };
    stage.answer(Asked::Preview(checkpoint), Response::ThreadPreview(preview));
    let screen = stage.screen();
    for words in [
        "❯ Never mind",
        "Would be again what they were: src/lib.rs",
        "Would be removed: made-by-the-shell.txt",
        "Would stay as they are: notes.md (it was changed afterwards)",
        "Cannot be brought back: target/ (ignored), big.bin (too large) and 3 more",
    ] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    stage.take_wanted();
    stage.keys("<Down><Down><Down><CR>");
    let requests = stage.requests();
    assert!(
        matches!(&requests[..], [Request::ThreadRewind(rewind)] if rewind.what == RewindWhat::Both && rewind.checkpoint == checkpoint),
        "{requests:?}"
    );
}

#[test]
fn an_at_sign_completes_one_level_at_a_time() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("see @s");
    assert!(stage.take_wanted().contains(&Command::Complete("s".into())));
    let found = |label: &str, goes_on| Completion { label: label.into(), insert: label.into(), goes_on };
    stage.event(Event::Completions("s".into(), vec![found("src/", true), found("setup.py", false)]));
    assert!(stage.screen().contains("❯ src/") && stage.screen().contains("setup.py"));
    stage.keys("<Tab>");
    assert!(stage.screen().contains("› see @src/"));
    assert!(stage.take_wanted().contains(&Command::Complete("src/".into())), "it descends");
    let inside = Completion { label: "main.rs".into(), insert: "src/main.rs".into(), goes_on: false };
    stage.event(Event::Completions("src/".into(), vec![inside]));
    stage.keys("<CR>");
    assert!(stage.screen().contains("› see @src/main.rs"));
    stage.keys("now<CR>");
    let said = stage.requests();
    assert!(
        matches!(&said[..], [Request::TurnStart(turn)] if turn.text == "see @src/main.rs now"),
        "{said:?}"
    );
}

#[test]
fn late_completions_are_not_shown() {
    let mut stage = Stage::new(80, 24);
    stage.keys("@s<BS><BS>word");
    let found = Completion { label: "src/".into(), insert: "src/".into(), goes_on: true };
    stage.event(Event::Completions("s".into(), vec![found]));
    assert!(!stage.screen().contains("src/"));
    stage.keys(" mail@example");
    assert!(
        stage.take_wanted().iter().all(|command| *command != Command::Complete("example".into())),
        "an address"
    );
}

#[test]
fn a_shell_command_needs_no_second_consent_and_its_output_goes_with_the_next_message() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("!ls -a<CR>");
    let requests = stage.requests();
    let [Request::ToolCall(request)] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(
        (request.tool.as_str(), &request.arguments),
        ("proc", &json!({"action": "exec", "command": "ls -a"}))
    );
    let arguments = request.arguments.clone();
    let mut item = stage.item(call("proc.exec", &arguments, ToolCallStatus::AwaitingApproval, None));
    item.turn_id = None;
    stage.engine(EventContent::ItemStarted { item: item.clone() });
    let approval = Approval {
        approval_id: ApprovalId::new(),
        item_id: item.id,
        tool: "proc.exec".into(),
        summary: "Run `ls -a`".into(),
        reason: "No rule covers it".into(),
        scopes: Vec::new(),
    };
    stage.engine(EventContent::ApprovalRequested { approval });
    assert!(!stage.screen().contains("Allow this?"), "typing it was the consent");
    assert!(matches!(&stage.requests()[..], [Request::ApprovalRespond(_)]));
    stage.answer(Asked::Shell("ls -a".into()), Response::ToolCall(ToolResult::success("file.txt")));
    stage.keys("what is this?<CR>");
    let requests = stage.requests();
    let [Request::TurnStart(turn)] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(turn.text, "<shell>\n$ ls -a\nfile.txt\n</shell>\n\nwhat is this?");
}

#[test]
fn a_call_of_the_model_with_the_same_words_still_asks() {
    let mut stage = Stage::new(80, 24);
    stage.keys("!ls<CR>");
    let mut own = stage.item(call("proc.exec", &json!({"command": "ls"}), ToolCallStatus::Pending, None));
    own.turn_id = None;
    stage.engine(EventContent::ItemStarted { item: own });
    stage.wait(1_000);
    let models =
        stage.item(call("proc.exec", &json!({"command": "ls"}), ToolCallStatus::AwaitingApproval, None));
    stage.engine(EventContent::ItemStarted { item: models.clone() });
    let approval = Approval {
        approval_id: ApprovalId::new(),
        item_id: models.id,
        tool: "proc.exec".into(),
        summary: "Run `ls`".into(),
        reason: String::new(),
        scopes: Vec::new(),
    };
    stage.engine(EventContent::ApprovalRequested { approval });
    assert!(stage.screen().contains("Allow this?"));
}

#[test]
fn earlier_prompts_are_found_and_gone_through() {
    let prompts = ["fix the parser", "run the tests", "write the docs"].map(String::from).to_vec();
    let mut stage = Stage::with(hanzo_tui::Setup { prompts, ..setup() }, 80, 24);
    stage.keys("<Up><Up>");
    assert!(stage.screen().contains("› run the tests"));
    stage.keys("<C-c><C-r>pars<CR>");
    assert!(stage.screen().contains("› fix the parser"), "{}", stage.screen());
}

#[test]
fn a_large_paste_is_a_chip_and_is_sent_whole() {
    let mut stage = Stage::new(80, 24);
    let pasted = (0..200).map(|n| format!("pasted line {n}\n")).collect::<Vec<_>>().concat();
    stage.keys("look: ");
    stage.event(Event::Input(Input::Paste(pasted.clone())));
    assert!(stage.screen().contains("› look: [Pasted #1: 200 lines]"));
    stage.take_wanted();
    stage.keys("<CR>");
    let requests = stage.requests();
    let [Request::TurnStart(turn)] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(turn.text, format!("look: {pasted}"));
    stage.turn_ends(TurnEnd::Completed);
    stage.event(Event::Input(Input::Paste("two\nlines".into())));
    assert!(stage.screen().contains("› two\n  lines"), "a small one is just text");
}

#[test]
fn a_pasted_path_of_an_image_becomes_an_attachment() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.event(Event::Input(Input::Paste("'/tmp/shot.png'".into())));
    assert!(stage.take_wanted().contains(&Command::FindImage("/tmp/shot.png".into())));
    let image = hanzo_protocol::message::Attachment {
        media_type: "image/png".into(),
        name: Some("shot.png".into()),
        source: hanzo_protocol::message::AttachmentSource::Inline { base64: "AA==".into() },
    };
    stage.event(Event::Image("/tmp/shot.png".into(), Some(image)));
    assert!(stage.screen().contains("[Image #1: shot.png]"));
    stage.keys("what is wrong?<CR>");
    let requests = stage.requests();
    assert!(
        matches!(&requests[..], [Request::TurnStart(turn)] if turn.attachments.len() == 1),
        "{requests:?}"
    );
}

#[test]
fn line_breaks_are_typed_in_four_ways() {
    let mut stage = Stage::new(80, 24);
    stage.take_wanted();
    stage.keys("a<C-j>b<S-CR>c<M-CR>d\\<CR>e<CR>");
    let requests = stage.requests();
    assert!(
        matches!(&requests[..], [Request::TurnStart(turn)] if turn.text == "a\nb\nc\nd\ne"),
        "{requests:?}"
    );
}

#[test]
fn the_editor_gets_the_whole_draft_and_gives_it_back() {
    let mut stage = Stage::new(80, 24);
    stage.keys("draft<C-g>");
    assert!(stage.take_wanted().contains(&Command::Edit("draft".into())));
    stage.event(Event::Edited(Ok("a better draft\n".into())));
    assert!(stage.screen().contains("› a better draft"));
}

#[test]
fn vim_keys_have_the_composer_first() {
    let mut stage =
        Stage::with(hanzo_tui::Setup { input: hanzo_tui::edit::InputMode::Vim, ..setup() }, 80, 24);
    assert!(stage.screen().contains("INSERT"));
    stage.keys("hello world<Esc>");
    assert!(stage.screen().contains("NORMAL"));
    stage.keys("0dw");
    assert!(stage.screen().contains("› world"));
    stage.take_wanted();
    stage.keys(":w<CR>");
    assert!(matches!(&stage.requests()[..], [Request::TurnStart(turn)] if turn.text == "world"));
    stage.engine(EventContent::TurnStarted { turn_id: stage.turn });
    stage.keys("x<Esc>");
    assert!(stage.requests().is_empty(), "the first Escape leaves insert mode");
    stage.keys("<Esc>");
    assert!(matches!(&stage.requests()[..], [Request::TurnInterrupt(_)]), "the second stops the turn");
}

#[test]
fn copying_goes_to_the_terminal_and_nothing_is_claimed() {
    let mut stage = Stage::new(80, 24);
    stage.keys("/copy<CR>");
    assert!(stage.screen().contains("There is no answer to copy yet"));
    stage.ask("go");
    stage.say("The answer.");
    stage.turn_ends(TurnEnd::Completed);
    stage.take_wanted();
    stage.keys("/copy<CR>");
    assert!(stage.take_wanted().contains(&Command::Copy("The answer.".into())));
}

#[test]
fn git_commands_are_run_as_typed_and_pass_no_gate() {
    let ran = |typed: &str| {
        let mut stage = Stage::new(80, 24);
        stage.take_wanted();
        stage.keys(typed);
        let wanted = stage.take_wanted();
        assert!(
            !wanted.iter().any(|command| matches!(command, Command::Call(..))),
            "{typed}: the engine is not asked"
        );
        wanted.into_iter().find_map(|command| match command {
            Command::Run(_, program, arguments) => Some(format!("{program} {}", arguments.join(" "))),
            _ => None,
        })
    };
    assert_eq!(ran("/branch my-fix<CR>").as_deref(), Some("git checkout -b my-fix"));
    assert_eq!(ran("/worktree try<CR>").as_deref(), Some("git worktree add ../project-try -b try"));
    assert_eq!(ran("/diff<Esc><CR>").as_deref(), Some("git diff HEAD"));
    assert!(ran("/stash<Esc><CR>").unwrap().starts_with("git stash push -m hanzo: 2"));
    assert_eq!(ran("/branch --orphan<CR>"), None, "an option is no name");
    assert_eq!(ran("/branch two words<CR>"), None);
}

#[test]
fn a_commit_message_is_written_by_the_model_and_accepted_by_the_user() {
    use hanzo_tui::app::{Afterwards, Job};
    let mut stage = Stage::new(80, 30);
    stage.keys("/commit<Esc><CR>");
    assert!(stage.take_wanted().iter().any(|command| matches!(command, Command::Run(Job::Stage(_), "git", arguments) if arguments[..] == ["add", "--update"])));
    stage.event(Event::Ran(Job::Stage(Afterwards::Nothing), Ok(String::new())));
    stage.take_wanted();
    stage.event(Event::Ran(Job::Staged(Afterwards::Nothing), Ok("+a line\n".into())));
    let requests = stage.requests();
    assert!(
        matches!(&requests[..], [Request::TurnStart(turn)] if turn.text.starts_with("<diff>\n+a line\n</diff>") && turn.text.contains("conventional")),
        "{requests:?}"
    );
    stage.engine(EventContent::TurnStarted { turn_id: stage.turn });
    stage.say("```\nfix(parser): accept empty input\n```");
    stage.turn_ends(TurnEnd::Completed);
    let screen = stage.screen();
    assert!(screen.contains("Commit?") && screen.contains("fix(parser): accept empty input"), "{screen}");
    stage.pause();
    stage.keys("<Down><CR>");
    assert!(stage.take_wanted().contains(&Command::Edit("fix(parser): accept empty input".into())));
    stage.event(Event::Edited(Ok("fix: better\n".into())));
    stage.pause();
    stage.keys("<CR>");
    let wanted = stage.take_wanted();
    assert!(wanted.iter().any(|command| matches!(command, Command::Run(Job::Commit(_), "git", arguments) if arguments[..] == ["commit", "-m", "fix: better"])), "{wanted:?}");
}

#[test]
fn with_nothing_staged_nothing_is_committed() {
    use hanzo_tui::app::{Afterwards, Job};
    let mut stage = Stage::new(80, 30);
    stage.take_wanted();
    stage.event(Event::Ran(Job::Staged(Afterwards::PullRequest), Ok("\n".into())));
    assert!(stage.screen().contains("there is nothing to commit"));
    assert!(stage.take_wanted().is_empty());
    stage.event(Event::Ran(Job::Commit(Afterwards::PullRequest), Ok("[main 1] x".into())));
    assert!(
        matches!(&stage.take_wanted()[..], [Command::Run(Job::Push, "git", arguments)] if arguments[0] == "push")
    );
    stage.event(Event::Ran(Job::Push, Ok(String::new())));
    assert!(matches!(&stage.take_wanted()[..], [Command::Run(Job::Tell, "gh", _)]));
}
