//! A tool of the unified set: its name, its actions, and what comes for free.

use std::fmt;
use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::envelope::{Envelope, ErrorCode, Intent, Meta, ToolError};
use hanzo_protocol::message::ToolSchema;
use hanzo_protocol::tool::{Effect, Reach, Tool, ToolContext, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::action::{Action, Answer, BaseHashes, Call};
use super::{cursor, help, place, schema, validate};
use crate::host::Host;

/// The actions every tool has.
const BUILT_IN: [&str; 3] = ["help", "schema", "status"];

/// A tool: a named set of actions.
pub struct UnifiedTool {
    name: &'static str,
    about: &'static str,
    host: Arc<Host>,
    actions: Vec<Box<dyn ErasedAction>>,
    advertised: ToolSchema,
}

impl fmt::Debug for UnifiedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnifiedTool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Puts a tool together.
pub struct ToolBuilder {
    name: &'static str,
    about: &'static str,
    actions: Vec<Box<dyn ErasedAction>>,
    example: Option<&'static str>,
}

impl fmt::Debug for ToolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ToolBuilder {
    /// Adds an action; they are advertised in this order.
    #[must_use]
    pub fn action<A: Action>(mut self, action: A) -> Self {
        let input = schema::of::<A::Input>();
        let exact = schema::exact(A::NAME, &input, A::FIELD_ALIASES);
        let shown = schema::shown(&input, A::HIDDEN, A::QUIET);
        self.actions.push(Box::new(Erased { action, input, exact, shown }));
        self
    }

    /// Shows a model the example of the action called `name`; of the others it is told the fields only.
    #[must_use]
    pub fn example_of(mut self, name: &'static str) -> Self {
        self.example = Some(name);
        self
    }

    /// Leaves only the actions `keep` says yes to.
    #[must_use]
    pub fn only(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.actions.retain(|action| keep(action.name()));
        self
    }

    /// The names of its actions.
    pub fn action_names(&self) -> Vec<&'static str> {
        self.actions.iter().map(|action| action.name()).collect()
    }

    /// The tool's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The tool, working for the thread of `host`.
    ///
    /// # Panics
    /// When two actions give a field different types, which is a mistake in this crate that its tests find.
    pub fn build(self, host: Arc<Host>) -> UnifiedTool {
        let Self { name, about, actions, example } = self;
        let fields = actions.iter().map(|action| (action.name(), action.shown_schema()));
        let builtin_schema = json!({});
        // A tool with a `help` of its own has told of it already.
        let has_help = actions.iter().any(|action| action.name() == "help");
        let builtin = (!has_help).then_some(("help", &builtin_schema));
        let flat = match schema::flat(name, fields.chain(builtin)) {
            Ok(flat) => flat,
            Err(error) => panic!("{error}"),
        };
        let parameters = RawValue::from_string(flat.to_string()).expect("a JSON value is JSON text");
        let description = help::description(about, &actions, example);
        let advertised = ToolSchema { name: name.into(), description, parameters };
        UnifiedTool { name, about, host, actions, advertised }
    }
}

/// A call that has been understood.
struct Understood<'a> {
    action: &'a dyn ErasedAction,
    arguments: Map<String, Value>,
    intent: Option<Intent>,
}

enum Wanted<'a> {
    Help,
    Schema,
    Status,
    Action(Understood<'a>),
}

impl UnifiedTool {
    /// Begins a tool called `name`; `about` is its first sentence to a model.
    pub fn builder(name: &'static str, about: &'static str) -> ToolBuilder {
        ToolBuilder { name, about, actions: Vec::new(), example: None }
    }

    /// What it works with.
    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// The tool's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The names of its actions, those every tool has left out.
    pub fn action_names(&self) -> Vec<&'static str> {
        self.actions.iter().map(|action| action.name()).collect()
    }

    /// Runs a call whose base hashes may come from the thread's read ledger.
    pub(crate) async fn run(
        &self,
        context: &ToolContext,
        arguments: Value,
        base_hashes: BaseHashes,
    ) -> ToolResult {
        let action = named_action(&arguments).unwrap_or("help").to_owned();
        let mut meta = Meta::new(self.name, action, context.trace);
        let wanted = match self.understand(arguments) {
            Ok(wanted) => wanted,
            Err(error) => return Envelope::<Value>::failure(error, meta).into(),
        };
        let call = match wanted {
            Wanted::Help => {
                let page = self.page();
                return Envelope::success(json!({ "text": page }), meta).into();
            }
            Wanted::Schema => return Envelope::success(self.schemas(), meta).into(),
            Wanted::Status => return Envelope::success(self.status(), meta).into(),
            Wanted::Action(call) => call,
        };
        meta.intent = call.intent;
        let id = format!("{}.{}", self.name, call.action.name());
        let running = Call {
            host: &self.host,
            context,
            intent: call.intent,
            base_hashes,
            query: cursor::Query {
                scope: self.host.workspace.path(),
                action: &id,
                arguments: &call.arguments,
            },
        };
        match call.action.run(&running, call.arguments.clone()).await {
            Ok(answer) => {
                meta.backend = answer.backend.map(str::to_owned);
                meta.paging = answer.paging;
                let mut result = ToolResult::enveloped(Envelope::success(answer.data, meta));
                result.attachments = answer.attachments;
                result.taint = answer.taint;
                result.denial = answer.denial;
                result
            }
            Err(error) => {
                let denial = (error.code == ErrorCode::SandboxDenied).then(|| error.message.clone());
                let mut result = ToolResult::enveloped(Envelope::failure(error, meta));
                result.denial = denial;
                result
            }
        }
    }

    fn understand(&self, arguments: Value) -> Result<Wanted<'_>, ToolError> {
        let Value::Object(mut arguments) = arguments else {
            return Err(ToolError::new(ErrorCode::InvalidArguments, "the arguments are not a JSON object"));
        };
        let name = match arguments.shift_remove("action") {
            None | Some(Value::Null) => return Ok(Wanted::Help),
            Some(Value::String(name)) => name,
            Some(_) => return Err(ToolError::new(ErrorCode::InvalidArguments, "`action` takes a string")),
        };
        // `fs.read` as the action of `fs` is clear enough.
        let name = name.strip_prefix(self.name).and_then(|rest| rest.strip_prefix('.')).unwrap_or(&name);
        // A tool may have an action of its own of that name, as `vcs.status`.
        if let Some(action) = self.actions.iter().find(|action| action.name() == name) {
            return self.understand_action(action.as_ref(), arguments).map(Wanted::Action);
        }
        match name {
            "help" => Ok(Wanted::Help),
            "schema" => Ok(Wanted::Schema),
            "status" => Ok(Wanted::Status),
            _ => {
                let mut known = self.action_names();
                known.extend(BUILT_IN.iter().filter(|built_in| !self.action_names().contains(built_in)));
                let hint = validate::did_you_mean(name, known.iter().copied());
                Err(ToolError::new(
                    ErrorCode::UnknownAction,
                    format!("`{}` has no action `{name}`{hint}", self.name),
                )
                .with_details(json!({ "available": known })))
            }
        }
    }

    fn understand_action<'a>(
        &self,
        action: &'a dyn ErasedAction,
        mut arguments: Map<String, Value>,
    ) -> Result<Understood<'a>, ToolError> {
        let none = Map::new();
        let intent = match arguments.shift_remove("intent") {
            None | Some(Value::Null) => None,
            Some(value) => Some(serde_json::from_value::<Intent>(value).map_err(|_| {
                ToolError::new(
                    ErrorCode::InvalidArguments,
                    "`intent` is one of `inspect`, `apply`, `verify`, `ship`",
                )
                .with_details(json!({"field": "intent"}))
            })?),
        };
        let input = action.input_schema();
        let fields = input.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let arguments = action.prepare(arguments);
        let arguments = validate::normalise(arguments, action.field_aliases(), fields)?;
        let arguments = Value::Object(arguments);
        validate::check(&arguments, input, "")?;
        let Value::Object(arguments) = arguments else { unreachable!("it was made an object above") };
        if let Some(intent) = intent {
            let facts = action.facts(&arguments)?;
            let allowed = facts.effect.is_read_only() || action.intents(facts.effect).contains(&intent);
            if !allowed {
                let wire = serde_json::to_value(intent).unwrap_or_default();
                return Err(ToolError::new(
                    ErrorCode::Denied,
                    format!(
                        "`{}.{}` changes something, which a call with the intent {wire} may not; \
                         leave `intent` out or say what the call is for",
                        self.name,
                        action.name()
                    ),
                ));
            }
        }
        Ok(Understood { action, arguments, intent })
    }

    /// Its manual page.
    pub(crate) fn page(&self) -> String {
        help::page(self.name, self.about, &self.actions)
    }

    /// The schemas of all its actions.
    pub(crate) fn schemas(&self) -> Value {
        let actions: Map<String, Value> = self
            .actions
            .iter()
            .map(|action| {
                let schemas = json!({"input": action.exact_schema(), "output": action.output_schema()});
                (action.name().to_owned(), schemas)
            })
            .collect();
        json!({ "actions": actions })
    }

    fn status(&self) -> Value {
        json!({
            "enabled": true,
            "version": env!("CARGO_PKG_VERSION"),
            "backend": "built-in",
            "actions": self.action_names(),
        })
    }

    fn worst(&self) -> Effect {
        let severity = |effect: &Effect| match effect {
            Effect::Read => 0,
            Effect::Memory => 1,
            Effect::Screen => 2,
            Effect::Write => 3,
            Effect::Network => 4,
            Effect::Execute => 5,
        };
        self.actions.iter().map(|action| action.worst()).max_by_key(severity).unwrap_or(Effect::Read)
    }
}

fn named_action(arguments: &Value) -> Option<&str> {
    arguments.get("action").and_then(Value::as_str)
}

impl Tool for UnifiedTool {
    fn schema(&self) -> &ToolSchema {
        &self.advertised
    }

    fn reach(&self, arguments: &Value) -> Reach {
        let described = |name: &str| Reach::new(format!("{}.{name}", self.name), Effect::Read);
        match self.understand(arguments.clone()) {
            Ok(Wanted::Help) => described("help"),
            Ok(Wanted::Schema) => described("schema"),
            Ok(Wanted::Status) => described("status"),
            Ok(Wanted::Action(call)) => {
                let id = format!("{}.{}", self.name, call.action.name());
                let Ok(facts) = call.action.facts(&call.arguments) else {
                    return Reach::new(id, call.action.worst());
                };
                Reach {
                    paths: facts.targets.iter().map(|t| place::reached(&self.host.workspace, t)).collect(),
                    confinement: facts.confinement,
                    time_limit: facts.time_limit,
                    ..Reach::new(id, facts.effect)
                }
            }
            Err(_) => {
                let known = named_action(arguments)
                    .and_then(|name| self.actions.iter().find(|action| action.name() == name));
                match known {
                    Some(action) => Reach::new(format!("{}.{}", self.name, action.name()), action.worst()),
                    None => Reach::new(self.name, self.worst()),
                }
            }
        }
    }

    fn remind(&self, result: &ToolResult) {
        if let (Some(taint), Some(envelope)) = (result.taint, &result.envelope) {
            self.host.ledger.remind(&envelope["data"], taint);
        }
    }

    fn execute<'a>(&'a self, context: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult> {
        Box::pin(self.run(context, arguments, BaseHashes::Given))
    }
}

/// What a call is going to do, known from its arguments.
pub(super) struct Facts {
    effect: Effect,
    targets: Vec<super::Target>,
    confinement: hanzo_protocol::tool::ReachConfinement,
    time_limit: hanzo_protocol::tool::TimeLimit,
}

/// An action whose types are out of sight.
pub(super) trait ErasedAction: Send + Sync {
    fn name(&self) -> &'static str;
    fn summary(&self) -> &'static str;
    fn example(&self) -> &'static str;
    fn field_aliases(&self) -> &'static [(&'static str, &'static str)];
    fn worst(&self) -> Effect;
    fn intents(&self, effect: Effect) -> &'static [Intent];
    fn input_schema(&self) -> &Value;
    fn exact_schema(&self) -> &Value;
    fn shown_schema(&self) -> &Value;
    fn output_schema(&self) -> Value;
    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value>;
    fn facts(&self, arguments: &Map<String, Value>) -> Result<Facts, ToolError>;
    fn run<'a>(
        &'a self,
        call: &'a Call<'a>,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<Answer<Value>, ToolError>>;
}

struct Erased<A> {
    action: A,
    input: Value,
    exact: Value,
    shown: Value,
}

impl<A: Action> Erased<A> {
    fn parse(arguments: Map<String, Value>) -> Result<A::Input, ToolError> {
        serde_json::from_value(Value::Object(arguments)).map_err(|fault| {
            ToolError::new(
                ErrorCode::InvalidArguments,
                format!("the arguments of `{}` are wrong: {fault}", A::NAME),
            )
        })
    }
}

impl<A: Action> ErasedAction for Erased<A> {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn summary(&self) -> &'static str {
        A::SUMMARY
    }

    fn example(&self) -> &'static str {
        A::EXAMPLE
    }

    fn field_aliases(&self) -> &'static [(&'static str, &'static str)] {
        A::FIELD_ALIASES
    }

    fn worst(&self) -> Effect {
        A::WORST
    }

    fn intents(&self, effect: Effect) -> &'static [Intent] {
        A::INTENTS.unwrap_or(match effect {
            Effect::Read => &[Intent::Inspect, Intent::Apply, Intent::Verify, Intent::Ship],
            Effect::Write | Effect::Memory | Effect::Screen => &[Intent::Apply],
            Effect::Execute => &[Intent::Verify, Intent::Ship],
            Effect::Network => &[Intent::Ship],
        })
    }

    fn input_schema(&self) -> &Value {
        &self.input
    }

    fn exact_schema(&self) -> &Value {
        &self.exact
    }

    fn shown_schema(&self) -> &Value {
        &self.shown
    }

    fn output_schema(&self) -> Value {
        schema::of::<A::Output>()
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        A::prepare(arguments)
    }

    fn facts(&self, arguments: &Map<String, Value>) -> Result<Facts, ToolError> {
        let input = Self::parse(arguments.clone())?;
        Ok(Facts {
            effect: self.action.effect(&input),
            targets: self.action.targets(&input),
            confinement: self.action.confinement(&input),
            time_limit: self.action.time_limit(&input),
        })
    }

    fn run<'a>(
        &'a self,
        call: &'a Call<'a>,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<Answer<Value>, ToolError>> {
        Box::pin(async move {
            let input = Self::parse(arguments)?;
            let answer = self.action.run(call, input).await?;
            let data = serde_json::to_value(&answer.data).map_err(|fault| {
                ToolError::new(ErrorCode::Error, format!("the answer cannot be written as JSON: {fault}"))
            })?;
            Ok(answer.map(|_| data))
        })
    }
}
