//! What a tool is (seed 004 §3.2) and what runs one (seed 000 §2).

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BoxFuture;
use crate::envelope::{Envelope, ErrorCode, ToolError};
use crate::ids::{ThreadId, TraceId};
use crate::message::ToolSchema;

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
}

/// Something a model can call.
pub trait Tool: Send + Sync {
    /// Its name, what it is for, and the JSON Schema of its arguments.
    fn schema(&self) -> &ToolSchema;

    /// What a call with these arguments does to the world.
    fn effect(&self, arguments: &Value) -> Effect;

    /// Runs a call. The result says what went wrong where something did: a tool has no other way to fail, because the
    /// model is to read the failure and try something else. Dropping the future cancels the call.
    fn execute<'a>(&'a self, context: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult>;
}

/// Where a call comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolContext {
    /// The thread it belongs to.
    pub thread: ThreadId,
    /// The id that ties its traces together.
    pub trace: TraceId,
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
}

impl ToolResult {
    /// A call that went well.
    pub fn success(output: impl Into<String>) -> Self {
        Self { output: output.into(), error: None, is_error: false }
    }

    /// A call that went wrong.
    pub fn failure(error: impl Into<String>) -> Self {
        let error = error.into();
        Self { output: error.clone(), error: Some(error), is_error: true }
    }
}

impl<T: Serialize + Clone> From<Envelope<T>> for ToolResult {
    fn from(envelope: Envelope<T>) -> Self {
        let error = envelope.outcome.as_ref().err().map(ToString::to_string);
        match serde_json::to_string(&envelope) {
            Ok(output) => Self { output, is_error: error.is_some(), error },
            Err(fault) => Self::failure(format!("the result cannot be written as JSON: {fault}")),
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
}

impl ToolSet {
    /// Adds a tool; one of the same name is replaced and returned, so that the caller can report the clash.
    pub fn insert(&mut self, tool: Arc<dyn Tool>) -> Option<Arc<dyn Tool>> {
        self.tools.insert(tool.schema().name.clone(), tool)
    }

    /// The tool called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name)
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
            let Some(tool) = self.tools.get(name) else {
                let error = self.unknown(name);
                return ToolResult::failure(format!("{error} (available: {})", error.details["available"]));
            };
            let context = ToolContext { thread, trace: TraceId::new() };
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

        fn effect(&self, _: &Value) -> Effect {
            Effect::Read
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
        let envelope: Envelope = serde_json::from_str(&result.output).unwrap();
        assert_eq!(envelope.outcome.unwrap(), json!({"text": "hi"}));

        let mut tools = ToolSet::default();
        tools.insert(Arc::new(Echo::new()));
        let schemas = tools.schemas();
        assert_eq!((schemas[0].name.as_str(), schemas[0].description.as_str()), ("echo", "Says it back"));
        assert!(serde_json::from_str::<Value>(schemas[0].parameters.get()).unwrap().is_object());
        assert!(tools.insert(Arc::new(Echo::new())).is_some(), "a clash is reported");
    }

    #[test]
    fn a_tools_failure_is_a_result_the_model_can_read() {
        let result = run("echo", json!({"text": 5}));
        assert!(result.is_error);
        assert_eq!(result.error.as_deref(), Some("INVALID_ARGUMENTS: `text` must be a string"));
        let envelope: Envelope = serde_json::from_str(&result.output).unwrap();
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
