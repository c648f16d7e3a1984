//! What a tool is (seed 004 §3.2) and what runs one (seed 000 §2).

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BoxFuture;
use crate::envelope::{Envelope, ErrorCode, ToolError};
use crate::ids::{ThreadId, TraceId};
use crate::item::Taint;
use crate::message::{Attachment, ToolSchema};
use crate::render;

/// What a call does to the world. Everything that depends on it is derived from here: whether a call is read-only,
/// may run beside others, or needs the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// Looks at files or state.
    Read,
    /// Changes files.
    Write,
    /// Runs a program.
    Execute,
    /// Reaches another machine.
    Network,
    /// Looks at or acts on the screen.
    Screen,
    /// Changes what is remembered beyond the thread.
    Memory,
}

impl Effect {
    /// Whether the call changes nothing, and so may run in parallel with others like it.
    pub fn is_read_only(self) -> bool {
        self == Self::Read
    }

    /// What somebody may do who may do this, as an end of "may not …".
    pub fn verb(self) -> &'static str {
        match self {
            Self::Read => "look at files or state",
            Self::Write => "change files",
            Self::Execute => "run a program",
            Self::Network => "reach the network",
            Self::Screen => "act on the screen",
            Self::Memory => "change what is remembered",
        }
    }
}

/// Something a model can call.
pub trait Tool: Send + Sync {
    /// Its name, what it is for, and the JSON Schema of its arguments.
    fn schema(&self) -> &ToolSchema;

    /// What a call with these arguments is going to reach. The gate decides by it, so it errs on the side of more: arguments
    /// that make no sense reach what the worst action of the tool could.
    fn reach(&self, arguments: &Value) -> Reach;

    /// Runs a call. The result says what went wrong where something did: a tool has no other way to fail, because the
    /// model is to read the failure and try something else. Dropping the future cancels the call.
    fn execute<'a>(&'a self, context: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult>;

    /// Tells the tool what a call of it returned before the thread was closed and opened again: in the order of the thread, and
    /// before any other call. What it must not forget, that content came from elsewhere for one, it takes from there.
    fn remind(&self, _result: &ToolResult) {}
}

/// What a call is going to reach, said before it runs by the tool that owns the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The canonical `tool.action`, whatever name the caller used; the tool's own name when it has no actions.
    pub action: String,
    /// What it does to the world.
    pub effect: Effect,
    /// The files it names. What a program touches cannot be known and is not here.
    pub paths: Vec<ReachedPath>,
    /// Whether it asks to run outside the sandbox.
    pub confinement: ReachConfinement,
    /// Who ends it when it takes too long.
    pub time_limit: TimeLimit,
    /// Whether earlier consent counts.
    pub consent: ReachConsent,
}

impl Reach {
    /// A call of `action` that names no files, inside the sandbox, under the usual time limit.
    pub fn new(action: impl Into<String>, effect: Effect) -> Self {
        Self {
            action: action.into(),
            effect,
            paths: Vec::new(),
            confinement: ReachConfinement::Inside,
            time_limit: TimeLimit::Standard,
            consent: ReachConsent::Usual,
        }
    }
}

/// Whether what was allowed before holds for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReachConsent {
    /// Rules, grants and postures decide.
    Usual,
    /// They were given for something else than what would run now; a person is asked again, and told this reason.
    Fresh(String),
}

/// A file a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachedPath {
    /// As it stands in the arguments.
    pub given: String,
    /// Absolute and free of symlinks, as far as it exists.
    pub real: PathBuf,
    /// Which side of the sandbox's wall it is on.
    pub place: Place,
}

/// Which side of the sandbox's wall a file is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the workspace, the thread's `/tmp` or another directory that tools may write.
    Inside,
    /// Elsewhere.
    Outside,
}

/// Whether a call runs in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReachConfinement {
    /// It does.
    Inside,
    /// It asks not to, which needs a person's consent.
    Outside,
}

/// Who ends a call that takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeLimit {
    /// The host, after the time every tool has.
    Standard,
    /// The tool itself: a command goes to the background instead.
    Own,
}

/// Where a call comes from, and where it may report to.
#[derive(Clone)]
pub struct ToolContext {
    /// The thread it belongs to.
    pub thread: ThreadId,
    /// The id that ties its traces together.
    pub trace: TraceId,
    /// Who calls.
    pub caller: ToolCaller,
    /// Takes output while the call runs, to show; the result has it again.
    pub output: Option<Arc<dyn OutputSink>>,
}

impl ToolContext {
    /// A call from the thread's own agent that shows nothing while it runs.
    pub fn new(thread: ThreadId, trace: TraceId) -> Self {
        Self { thread, trace, caller: ToolCaller::Local, output: None }
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("thread", &self.thread)
            .field("trace", &self.trace)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

/// Who calls a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolCaller {
    /// The agent, or the user at this machine.
    #[default]
    Local,
    /// Somebody over MCP, HTTP or A2A, who reads the workspace only and reaches no private network.
    Remote,
}

/// Takes output of a call while it runs. It never blocks: what it cannot take it drops, for the result has everything.
pub trait OutputSink: Send + Sync {
    /// More output, in order.
    fn push(&self, text: &str);
}

/// What a call returned, as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The text for the model.
    pub output: String,
    /// What went wrong, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether something went wrong.
    #[serde(alias = "is_error")]
    pub is_error: bool,
    /// The envelope of a built-in tool, for programs; `output` says the same to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<Value>,
    /// Images and documents that belong to the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Where untrusted content in the output came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taint: Option<Taint>,
    /// What the sandbox was probably in the way of, so that the host can offer to run the call again outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
}

impl ToolResult {
    /// A call that went well.
    pub fn success(output: impl Into<String>) -> Self {
        Self {
            output: output.into(),
            error: None,
            is_error: false,
            envelope: None,
            attachments: Vec::new(),
            taint: None,
            denial: None,
        }
    }

    /// The same result with the envelope it says in words.
    #[must_use]
    pub fn with_envelope(mut self, envelope: Value) -> Self {
        self.envelope = Some(envelope);
        self
    }

    /// What an envelope says, with the envelope.
    pub fn enveloped(envelope: Envelope) -> Self {
        let error = envelope.outcome.as_ref().err().map(ToString::to_string);
        let envelope = envelope.into_json();
        let result = Self::success(render::envelope(&envelope)).with_envelope(envelope);
        Self { is_error: error.is_some(), error, ..result }
    }

    /// A call that went wrong.
    pub fn failure(error: impl Into<String>) -> Self {
        let error = error.into();
        Self { error: Some(error.clone()), is_error: true, ..Self::success(error) }
    }
}

impl<T: Serialize> From<Envelope<T>> for ToolResult {
    fn from(Envelope { outcome, meta }: Envelope<T>) -> Self {
        match outcome.map(serde_json::to_value) {
            Ok(Ok(data)) => Self::enveloped(Envelope::success(data, meta)),
            Ok(Err(fault)) => Self::failure(format!("the result cannot be written as JSON: {fault}")),
            Err(error) => Self::enveloped(Envelope::failure(error, meta)),
        }
    }
}

/// Runs a tool by its name.
pub trait ToolExecutor: Send + Sync {
    /// Runs `name` with `input` for `thread`. Failures are part of the result and never end the loop that asked.
    fn execute<'a>(&'a self, name: &'a str, input: Value, thread: ThreadId) -> BoxFuture<'a, ToolResult>;
}

/// The tools of one run, by name, in the order in which they are advertised.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: IndexMap<String, Arc<dyn Tool>>,
    unlisted: HashMap<String, Arc<dyn Tool>>,
}

impl ToolSet {
    /// Adds a tool; one of the same name is replaced and returned, so that the caller can report the clash.
    pub fn insert(&mut self, tool: Arc<dyn Tool>) -> Option<Arc<dyn Tool>> {
        self.tools.insert(tool.schema().name.clone(), tool)
    }

    /// Adds a name that can be called but is not listed: an older name of an action. A listed tool of that name goes first.
    pub fn insert_unlisted(&mut self, name: impl Into<String>, tool: Arc<dyn Tool>) {
        self.unlisted.insert(name.into(), tool);
    }

    /// The tool called `name`, listed or not.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name).or_else(|| self.unlisted.get(name))
    }

    /// What a model is told, in a stable order.
    pub fn schemas(&self) -> Vec<ToolSchema> {
        self.tools.values().map(|tool| tool.schema().clone()).collect()
    }

    fn unknown(&self, name: &str) -> ToolError {
        let names: Vec<&str> = self.tools.keys().map(String::as_str).collect();
        let near = names
            .iter()
            .map(|known| (strsim::jaro_winkler(name, known), known))
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let suggestion = near.map_or_else(String::new, |(_, known)| format!("; did you mean `{known}`?"));
        ToolError::new(ErrorCode::UnknownTool, format!("there is no tool `{name}`{suggestion}"))
            .with_details(serde_json::json!({ "available": names }))
    }
}

impl ToolExecutor for ToolSet {
    fn execute<'a>(&'a self, name: &'a str, input: Value, thread: ThreadId) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let Some(tool) = self.get(name) else {
                let error = self.unknown(name);
                return ToolResult::failure(format!("{error} (available: {})", error.details["available"]));
            };
            let context = ToolContext::new(thread, TraceId::new());
            tool.execute(&context, input).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;
    use crate::envelope::Meta;

    struct Echo(ToolSchema);

    impl Echo {
        fn new() -> Self {
            let parameters = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            Self(ToolSchema {
                name: "echo".into(),
                description: "Says it back".into(),
                parameters: RawValue::from_string(parameters.to_string()).unwrap(),
            })
        }
    }

    impl Tool for Echo {
        fn schema(&self) -> &ToolSchema {
            &self.0
        }

        fn reach(&self, _: &Value) -> Reach {
            Reach::new("echo", Effect::Read)
        }

        fn execute<'a>(&'a self, context: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult> {
            let meta = Meta::new("echo", "say", context.trace);
            Box::pin(async move {
                if let Some(text) = arguments["text"].as_str() {
                    return Envelope::success(json!({ "text": text }), meta).into();
                }
                let error = ToolError::new(ErrorCode::InvalidArguments, "`text` must be a string");
                Envelope::<Value>::failure(error, meta).into()
            })
        }
    }

    fn run(name: &str, input: Value) -> ToolResult {
        let mut tools = ToolSet::default();
        assert!(tools.insert(Arc::new(Echo::new())).is_none());
        let mut call = pin!(tools.execute(name, input, ThreadId::new()));
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("nothing here waits"),
        }
    }

    #[test]
    fn a_tool_has_a_name_a_description_and_a_schema_and_answers_in_the_envelope() {
        let result = run("echo", json!({"text": "hi"}));
        assert!(!result.is_error);
        assert_eq!(result.output, "text: hi");
        let envelope: Envelope = serde_json::from_value(result.envelope.unwrap()).unwrap();
        assert_eq!(envelope.outcome.unwrap(), json!({"text": "hi"}));

        let mut tools = ToolSet::default();
        tools.insert(Arc::new(Echo::new()));
        let schemas = tools.schemas();
        assert_eq!((schemas[0].name.as_str(), schemas[0].description.as_str()), ("echo", "Says it back"));
        assert!(serde_json::from_str::<Value>(schemas[0].parameters.get()).unwrap().is_object());
        assert!(tools.insert(Arc::new(Echo::new())).is_some(), "a clash is reported");
    }

    #[test]
    fn an_unlisted_name_can_be_called_and_is_not_advertised() {
        let mut tools = ToolSet::default();
        tools.insert(Arc::new(Echo::new()));
        tools.insert_unlisted("say", Arc::new(Echo::new()));
        assert_eq!(tools.schemas().len(), 1);
        assert!(tools.get("say").is_some());
    }

    #[test]
    fn a_tools_failure_is_a_result_the_model_can_read() {
        let result = run("echo", json!({"text": 5}));
        assert!(result.is_error);
        assert_eq!(result.error.as_deref(), Some("INVALID_ARGUMENTS: `text` must be a string"));
        assert_eq!(result.output, "error INVALID_ARGUMENTS: `text` must be a string");
        let envelope: Envelope = serde_json::from_value(result.envelope.unwrap()).unwrap();
        assert_eq!(envelope.outcome.unwrap_err().code, ErrorCode::InvalidArguments);
    }

    #[test]
    fn an_unknown_tool_is_a_result_that_names_what_there_is() {
        let result = run("ehco", json!({}));
        assert!(result.is_error);
        let error = result.error.unwrap();
        assert!(error.contains("did you mean `echo`?") && error.contains("[\"echo\"]"), "{error}");
    }

    #[test]
    fn only_reading_is_read_only() {
        use Effect::{Execute, Memory, Network, Read, Screen, Write};
        assert!(Read.is_read_only());
        assert!(![Write, Execute, Network, Screen, Memory].into_iter().any(Effect::is_read_only));
    }

    #[test]
    fn a_result_has_the_documented_fields() {
        assert_eq!(
            serde_json::to_value(ToolResult::failure("no")).unwrap(),
            json!({"output": "no", "error": "no", "isError": true})
        );
    }
}
