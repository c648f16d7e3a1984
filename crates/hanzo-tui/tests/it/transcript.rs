//! What items look like: at four widths, in every theme's way, and whatever a model or a tool wrote.

use hanzo_md_render::plain;
use hanzo_protocol::engine::ApprovalAnswer;
use hanzo_protocol::ids::{ApprovalId, ItemId, QuestionId, ThreadId, ToolCallId, TraceId};
use hanzo_protocol::item::{
    Answer, AnsweredBy, Approval, BreakReason, Item, ItemContent, NoticeLevel, PlanStatus, PlanStep,
    Question, Taint, ToolCallItem, ToolCallStatus, TurnEnd, TurnSummary, Visibility,
};
use hanzo_protocol::message::{ApiError, ApiErrorKind, Attachment, AttachmentSource, Reasoning};
use hanzo_protocol::tool::ToolResult;
use hanzo_protocol::usage::Usage;
use hanzo_testkit::scale::rounds;
use hanzo_tui::theme::Theme;
use hanzo_tui::transcript::{self, Detail, RenderContext, StreamingMessage, Verdict, render_item};
use proptest::prelude::*;
use ratatui::style::{Color, Modifier};
use ratatui::text::Line;
use serde_json::{Value, json};

const DIFF: &str = "--- a/src/parser.rs\n+++ b/src/parser.rs\n@@ -9,5 +9,6 @@ fn parse\n     let mut depth = 0;\n-    for byte in text.bytes() {\n-        if byte == b'(' { depth += 1; }\n+    for byte in text.bytes().skip(1) {\n+        if byte == b'[' { depth += 1; }\n+        // Ein Kommentar mit 日本語 darin\n     }\n     depth\n@@ -40,1 +41,0 @@\n-fn unused() {}\n";

fn item(content: ItemContent) -> Item {
    Item {
        id: ItemId::new(),
        thread_id: ThreadId::new(),
        turn_id: None,
        created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        visibility: Visibility::Active,
        taint: None,
        content,
    }
}

fn call(tool: &str, arguments: &Value, status: ToolCallStatus, result: Option<ToolResult>) -> ItemContent {
    ItemContent::ToolCall(ToolCallItem {
        call_id: ToolCallId::new("call_1"),
        tool: tool.into(),
        called_as: None,
        arguments: arguments.to_string(),
        effect: None,
        status,
        result,
        full_output: None,
        trace_id: TraceId::new(),
        duration_ms: status.is_final().then_some(1_234),
    })
}

fn enveloped(data: &Value) -> ToolResult {
    ToolResult::success("for the model").with_envelope(json!({"ok": true, "data": data}))
}

/// One item of each sort.
fn gallery() -> Vec<Item> {
    let lines =
        |count: usize| (1..=count).map(|n| format!("line {n} of the output\n")).collect::<Vec<_>>().concat();
    let step = |text: &str, status| PlanStep { text: text.into(), status };
    let failed = ToolResult {
        is_error: true,
        ..enveloped(
            &json!({"exit_code": 101, "status": "exited", "stdout": lines(20), "stderr": "error: it broke"}),
        )
    };
    let image = Attachment {
        media_type: "image/png".into(),
        name: Some("screen.png".into()),
        source: AttachmentSource::Inline { base64: String::new() },
    };
    let mut fetched = item(call(
        "net.fetch",
        &json!({"url": "https://example.org/"}),
        ToolCallStatus::Completed,
        Some(ToolResult::success("Example Domain")),
    ));
    fetched.taint = Some(Taint::Network);
    let mut items = vec![
        item(ItemContent::UserMessage {
            text: "<file path=\"a\">x</file>\nfix the failing test in the parser, please, and explain 为什么它失败了"
                .into(),
            attachments: vec![image],
        }),
        item(ItemContent::Reasoning(Reasoning {
            text: "**Reading the test**\n\nThe test expects brackets, the code counts parentheses.".into(),
            signature: None,
        })),
        item(ItemContent::AgentMessage {
            text: "I will *look* at the `parser` first:\n\n1. read it\n2. fix it\n\n| file | lines |\n|---|--:|\n| parser.rs | 120 |\n"
                .into(),
        }),
        item(ItemContent::Plan {
            steps: vec![
                step("Read the test", PlanStatus::Done),
                step("Fix the parser so that it counts brackets", PlanStatus::Active),
                step("Run everything", PlanStatus::Pending),
                step("Rewrite it (not needed)", PlanStatus::Dropped),
            ],
        }),
        item(call(
            "fs.read",
            &json!({"uri": "file://src/parser.rs"}),
            ToolCallStatus::Completed,
            Some(enveloped(&json!({"text": lines(120), "lines": 120, "size": 2000}))),
        )),
        item(call(
            "fs.edit",
            &json!({"uri": "src/parser.rs"}),
            ToolCallStatus::Completed,
            Some(enveloped(&json!({"files": [], "diff": DIFF}))),
        )),
        item(call(
            "proc.exec",
            &json!({"command": "cargo test --workspace"}),
            ToolCallStatus::Completed,
            Some(enveloped(&json!({"exit_code": 0, "stdout": lines(30)}))),
        )),
        item(call("proc.exec", &json!({"command": "cargo build"}), ToolCallStatus::Failed, Some(failed))),
    ];
    items.push(item(call(
        "proc.exec",
        &json!({"command": "rm -rf /"}),
        ToolCallStatus::Denied,
        Some(ToolResult::failure(
            "denied by the rule `Bash(rm *)` of .hanzo/settings.toml; remove files one by one",
        )),
    )));
    items.push(item(call("proc.exec", &json!({"command": "sleep 100"}), ToolCallStatus::Interrupted, None)));
    items.push(item(call("proc.exec", &json!({"command": "make"}), ToolCallStatus::AwaitingApproval, None)));
    items.push(item(call(
        "agent.run",
        &json!({"agent": "reviewer", "task": "review the change in src/parser.rs"}),
        ToolCallStatus::Completed,
        Some(ToolResult::success("The change is **right**.\n\n- no other callers\n")),
    )));
    items.push(fetched);
    items.push(item(ItemContent::Question(Question {
        question_id: QuestionId::new(),
        text: "Which branch?".into(),
        choices: vec!["main".into(), "next".into()],
        answer: Some(Answer { text: "next".into(), by: AnsweredBy::User }),
    })));
    items.push(item(ItemContent::Question(Question {
        question_id: QuestionId::new(),
        text: "Keep the old name?".into(),
        choices: Vec::new(),
        answer: Some(Answer { text: "yes".into(), by: AnsweredBy::ModelAssumption }),
    })));
    items.push(item(ItemContent::Compaction {
        digest: "The parser was fixed.".into(),
        folded: 42,
        tokens_saved: 12_345,
        before: None,
    }));
    items.push(item(ItemContent::PrefixBreak { reason: BreakReason::ModelSwitch }));
    items.push(item(ItemContent::Fragment { kind: "date".into(), text: "only for the model".into() }));
    items.push(item(ItemContent::Notice {
        level: NoticeLevel::Error,
        text: "the key was refused\n\nhint: `hanzo-dev doctor` says which key is used".into(),
    }));
    items.push(item(ItemContent::Notice { level: NoticeLevel::Info, text: "2 files were restored".into() }));
    items
}

/// Everything the transcript can show.
fn everything(context: &RenderContext) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for item in gallery() {
        lines.extend(render_item(&item, context));
        lines.push(Line::default());
    }
    let asked = Approval {
        approval_id: ApprovalId::new(),
        item_id: ItemId::new(),
        tool: "proc.exec".into(),
        summary: "Run `cargo test --workspace`".into(),
        reason: "no rule covers it".into(),
        scopes: Vec::new(),
    };
    let rule = || "Bash(cargo test:*)".to_owned();
    for answer in [
        ApprovalAnswer::Once,
        ApprovalAnswer::Session { rule: rule() },
        ApprovalAnswer::Always { rule: rule() },
        ApprovalAnswer::Deny { reason: Some("not now".into()) },
    ] {
        lines.extend(transcript::approval(&asked, Verdict::Answered(&answer), context));
    }
    lines.extend(transcript::approval(
        &asked,
        Verdict::Elsewhere { allowed: true, by: "the web face" },
        context,
    ));
    let error = ApiError {
        kind: ApiErrorKind::Auth,
        message: "the provider refused the key".into(),
        status: Some(401),
        retry_after_ms: None,
    };
    lines.extend(transcript::failure(&error, context));
    let summary = TurnSummary {
        ended: TurnEnd::StepLimit,
        steps: 50,
        usage: Usage::default(),
        cost: None,
        checkpoint: None,
        refused: 0,
        prefix_breaks: 0,
        context_tokens: None,
        context_window: None,
    };
    lines.extend(transcript::turn_end(&summary, context));
    lines
}

fn text(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| line.to_string() + "\n").collect()
}

fn width(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| plain::width(&span.content)).sum()
}

fn assert_fits(lines: &[Line<'_>], columns: usize) {
    for line in lines {
        assert!(width(line) <= columns.max(2), "{} > {columns}: {:?}", width(line), line.to_string());
        assert!(!line.to_string().chars().any(char::is_control), "{line:?}");
    }
}

fn at_width(columns: usize) -> String {
    let lines = everything(&RenderContext::new(columns, Theme::ansi()));
    assert_fits(&lines, columns);
    text(&lines)
}

#[test]
fn everything_at_20_columns() {
    insta::assert_snapshot!(at_width(20));
}

#[test]
fn everything_at_40_columns() {
    insta::assert_snapshot!(at_width(40));
}

#[test]
fn everything_at_80_columns() {
    insta::assert_snapshot!(at_width(80));
}

#[test]
fn everything_at_200_columns() {
    insta::assert_snapshot!(at_width(200));
}

#[test]
fn everything_in_words_for_a_screen_reader() {
    let shown = text(&everything(&RenderContext::new(80, Theme::words())));
    for shape in ['│', '●', '○', '✗', '✓', '☐', '▸', '→', '─', '⋮', '•', '›', '·', '−', '■']
    {
        assert!(!shown.contains(shape), "{shape}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn everything_in_full() {
    let context = RenderContext {
        reasoning: Detail::Full,
        results: Detail::Full,
        ..RenderContext::new(60, Theme::ansi())
    };
    let lines = everything(&context);
    assert_fits(&lines, 60);
    let shown = text(&lines);
    assert!(!shown.contains("Ctrl+O"), "nothing is left to be shown");
    assert!(shown.contains("line 120 of the output") && shown.contains("The parser was fixed."));
}

#[test]
fn without_colour_there_is_none() {
    for theme in [Theme::plain(), Theme::words()] {
        for line in everything(&RenderContext::new(80, theme)) {
            for span in std::iter::once(line.style).chain(line.spans.iter().map(|span| span.style)) {
                assert_eq!((span.fg, span.bg), (None, None), "{line:?}");
            }
        }
    }
}

#[test]
fn changed_words_stand_out_in_a_diff() {
    let edit =
        call("fs.edit", &json!({}), ToolCallStatus::Completed, Some(enveloped(&json!({"diff": DIFF}))));
    // Three added lines against two removed ones are not paired; the hunk of one against one is.
    let paired = "@@ -1,1 +1,1 @@\n-let a = old(1);\n+let a = new(1);\n";
    let paired =
        call("fs.edit", &json!({}), ToolCallStatus::Completed, Some(enveloped(&json!({"diff": paired}))));
    let marked = |content: ItemContent| -> Vec<(String, Option<Color>)> {
        let lines = render_item(&item(content), &RenderContext::new(80, Theme::ansi()));
        let spans = lines.iter().skip(1).flat_map(|line| &line.spans);
        let marked = spans.filter(|span| span.style.add_modifier.contains(Modifier::UNDERLINED));
        marked.map(|span| (span.content.to_string(), span.style.fg)).collect()
    };
    assert_eq!(marked(paired), [("old".into(), Some(Color::Red)), ("new".into(), Some(Color::Green))]);
    assert_eq!(marked(edit), []);
}

#[test]
fn a_streamed_message_is_the_message() {
    let text_of = |lines: &[Line<'static>]| text(lines);
    let message = "# Title\n\nSome **bold** text that is long enough to wrap around.\n\n```rust\nfn main() {}\n```\n\n- a\n- b\n\nEnd";
    for theme in [Theme::ansi(), Theme::words()] {
        let context = RenderContext::new(30, theme);
        let whole = render_item(&item(ItemContent::AgentMessage { text: message.into() }), &context);
        for size in [1, 3, 7, 1000] {
            let mut stream = StreamingMessage::default();
            let mut lines = Vec::new();
            let letters: Vec<char> = message.chars().collect();
            for chunk in letters.chunks(size) {
                lines.extend(stream.push(&chunk.iter().collect::<String>(), &context));
                assert_fits(&stream.tail(&context), 30);
            }
            lines.extend(stream.finish(&context));
            assert_eq!(text_of(&lines), text_of(&whole), "in pieces of {size}");
        }
    }
}

#[test]
fn a_new_width_changes_what_is_not_final_only() {
    let mut stream = StreamingMessage::default();
    let wide = RenderContext::new(60, Theme::ansi());
    let narrow = RenderContext::new(20, Theme::ansi());
    let first = stream.push("one two three four five six seven eight\n\nnine ten eleven", &wide);
    assert_eq!(text(&first), "one two three four five six seven eight\n");
    assert_eq!(text(&stream.tail(&narrow)), "\nnine ten eleven\n");
    assert_fits(&stream.tail(&narrow), 20);
    let mut rest = stream.push(" twelve thirteen", &narrow);
    rest.extend(stream.finish(&narrow));
    assert_eq!(text(&rest), "\nnine ten eleven\ntwelve thirteen\n");
}

#[test]
fn the_sandbox_is_named_when_it_was_in_the_way() {
    let result = ToolResult { denial: Some("write to /etc/hosts".into()), ..ToolResult::failure("no") };
    let content = call("proc.exec", &json!({"command": "x"}), ToolCallStatus::Failed, Some(result));
    let shown = text(&render_item(&item(content), &RenderContext::new(80, Theme::ansi())));
    assert!(shown.contains("The sandbox was probably in the way: write to /etc/hosts"), "{shown}");
}

fn any_item(words: &str) -> Vec<ItemContent> {
    let text = words.to_owned();
    let result = || enveloped(&json!({"stdout": words, "exit_code": 0}));
    vec![
        ItemContent::UserMessage { text: text.clone(), attachments: Vec::new() },
        ItemContent::AgentMessage { text: text.clone() },
        ItemContent::Reasoning(Reasoning { text: text.clone(), signature: None }),
        call(words, &json!({"command": words}), ToolCallStatus::Failed, Some(ToolResult::failure(words))),
        call("agent.run", &json!({"agent": words, "task": words}), ToolCallStatus::Completed, Some(result())),
        call("fs.edit", &json!({}), ToolCallStatus::Denied, Some(ToolResult::failure(words))),
        call(
            "fs.edit",
            &json!({"path": words}),
            ToolCallStatus::Completed,
            Some(enveloped(
                &json!({"diff": format!("+++ {words}\n@@ -1,2 +1,2 @@\n-{words}\n+x{words}\n {words}")}),
            )),
        ),
        ItemContent::Plan { steps: vec![PlanStep { text: text.clone(), status: PlanStatus::Active }] },
        ItemContent::Question(Question {
            question_id: QuestionId::new(),
            text: text.clone(),
            choices: vec![text.clone()],
            answer: Some(Answer { text: text.clone(), by: AnsweredBy::ModelAssumption }),
        }),
        ItemContent::Compaction { digest: text.clone(), folded: 1, tokens_saved: 2, before: None },
        ItemContent::Notice { level: NoticeLevel::Warning, text },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(5_000)))]

    #[test]
    fn whatever_is_written_fits_and_steers_nothing(
        words in "(?s)(.|[a-z \n\t\r]|\u{1b}\\[2J|\u{1b}\\]0;x\u{7}|世|👨‍👩‍👧){0,60}",
        columns in 1_usize..90,
        full in any::<bool>(),
        spoken in any::<bool>(),
    ) {
        let detail = if full { Detail::Full } else { Detail::Folded };
        let theme = if spoken { Theme::words() } else { Theme::dark() };
        let context = RenderContext { width: columns, theme, reasoning: detail, results: detail };
        for content in any_item(&words) {
            assert_fits(&render_item(&item(content), &context), columns);
        }
    }
}
