//! `hanzo-dev tool`: one call of a tool, through the gate, in a thread of its own that is forgotten.

use std::io::Read as _;
use std::process::ExitCode;

use hanzo_protocol::engine::{
    Attendance, List, ListKind, Posture, Request, Response, ThreadOptions, ThreadStart, ThreadSummary,
    ToolCallRequest,
};
use hanzo_protocol::envelope::ErrorCode;
use hanzo_protocol::tool::ToolResult;
use serde_json::{Map, Value, json};

use crate::cli::Global;
use crate::commands::settings;
use crate::commands::with_engine::{call, open};
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::root::{self, Root};

/// The largest arguments we read.
const MAX_INPUT: u64 = 16 * 1024 * 1024;

/// What to call.
pub struct Wanted<'a> {
    /// The tool; absent lists them.
    pub tool: Option<&'a str>,
    /// Its action; absent explains the tool.
    pub action: Option<&'a str>,
    /// The arguments as JSON.
    pub json: Option<&'a str>,
    /// How consent is asked for.
    pub posture: Option<Posture>,
}

/// Calls it and prints the envelope.
pub fn run(global: &Global, wanted: &Wanted<'_>, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let arguments = wanted.json.map(arguments).transpose()?.unwrap_or_default();
    root::block_on(async {
        let root = open(global, "hanzo-dev tool", printer).await?;
        let done = in_thread(&root, global, wanted, arguments, printer).await;
        root.close().await;
        done.map(Into::into)
    })
}

async fn in_thread(
    root: &Root,
    global: &Global,
    wanted: &Wanted<'_>,
    mut arguments: Map<String, Value>,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let thread = start(root, global, wanted.posture).await?;
    let Some(tool) = wanted.tool else { return list(root, &thread, printer).await };
    // `fs.read` is what the tool's action is called everywhere else.
    let (tool, action) = match (tool.split_once('.'), wanted.action) {
        (Some((tool, action)), None) => (tool, Some(action)),
        _ => (tool, wanted.action),
    };
    // Arguments without an action are a call too: they may name it, and `read_file` and its like have none.
    let explains = action.is_none() && wanted.json.is_none();
    if let Some(action) = action.or(explains.then_some("help")) {
        arguments.insert("action".to_owned(), json!(action));
    }
    let request = ToolCallRequest {
        thread_id: thread.id,
        tool: tool.to_owned(),
        arguments: arguments.into(),
        item_id: None,
    };
    let Response::ToolCall(result) = call(root, Request::ToolCall(request)).await? else {
        return Err(Failure::message(Exit::Failure, "the engine answered another question"));
    };
    if explains && !result.is_error {
        printer.line(result.output.trim_end())?;
        return Ok(Exit::Ok);
    }
    if explains && let Some(known) = listed(root, &thread).await?.iter().find(|known| known["name"] == tool) {
        // A tool without a manual: what a model is told of it is all there is.
        printer.line(known["description"].as_str().unwrap_or_default())?;
        printer.json(&known["parameters"])?;
        return Ok(Exit::Ok);
    }
    match &result.envelope {
        Some(envelope) => printer.json(envelope)?,
        None => printer.json(&result)?,
    }
    Ok(exit(&result))
}

/// What a result means to a script.
fn exit(result: &ToolResult) -> Exit {
    let code = result.envelope.as_ref().and_then(|envelope| envelope["error"]["code"].as_str());
    let denied = serde_json::to_value(ErrorCode::Denied).unwrap_or_default();
    match result.is_error {
        false => Exit::Ok,
        true if code.is_some() && denied.as_str() == code => Exit::ApprovalNeeded,
        true => Exit::Failure,
    }
}

async fn start(root: &Root, global: &Global, posture: Option<Posture>) -> Result<ThreadSummary, Failure> {
    let workspace = settings::inputs(global, settings::trust(false))?.workspace_root;
    let options = ThreadOptions { posture, attendance: Attendance::Headless, ..ThreadOptions::default() };
    let request = Request::ThreadStart(ThreadStart { workspace, agent: None, ephemeral: true, options });
    match call(root, request).await? {
        Response::ThreadStart(thread) => Ok(thread),
        _ => Err(Failure::message(Exit::Failure, "the engine answered another question")),
    }
}

/// The tools a model is told of.
async fn listed(root: &Root, thread: &ThreadSummary) -> Result<Vec<Value>, Failure> {
    let list = List { kind: ListKind::Tools, thread_id: Some(thread.id) };
    match call(root, Request::List(list)).await? {
        Response::List(listed) => Ok(listed.entries),
        _ => Err(Failure::message(Exit::Failure, "the engine answered another question")),
    }
}

async fn list(root: &Root, thread: &ThreadSummary, printer: &mut Printer) -> Result<Exit, Failure> {
    for tool in &listed(root, thread).await? {
        let name = tool["name"].as_str().unwrap_or_default();
        let about = tool["description"].as_str().unwrap_or_default();
        let about =
            about.split_inclusive(['.', '\n']).next().unwrap_or_default().trim_end_matches(['.', '\n']);
        printer.line(&format!("{name:<6}  {about}"))?;
    }
    printer.note("these are shown to a model; `hanzo-dev tool ws` is the manual of all that can be called");
    Ok(Exit::Ok)
}

fn arguments(text: &str) -> Result<Map<String, Value>, Failure> {
    let text = if text == "-" {
        let mut read = String::new();
        std::io::stdin().take(MAX_INPUT).read_to_string(&mut read)?;
        read
    } else {
        text.to_owned()
    };
    let hint = r#"quote it for your shell, as in --json '{"uri": "README.md"}'"#;
    let wrong = |what: String| Failure::message(Exit::BadInput, format!("`--json` {what}\n\nhint: {hint}"));
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(wrong("is JSON but not an object".to_owned())),
        Err(error) => Err(wrong(format!("is not JSON: {error}"))),
    }
}
