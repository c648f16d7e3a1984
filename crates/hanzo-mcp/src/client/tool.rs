//! A tool of a server, as the engine calls it.

use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::message::ToolSchema;
use hanzo_protocol::tool::{Effect, Reach, ReachConsent, TimeLimit, Tool, ToolContext, ToolResult};
use rmcp::model::CallToolRequestParams;
use serde_json::Value;
use serde_json::value::RawValue;

use super::approvals::{Approvals, Standing, fingerprint};
use super::config::ServerTrust;
use super::exchange::{Ask, Asking, arguments};
use super::listing::RawTool;
use super::result;
use super::schema::{Repaired, repair};
use super::server::Server;
use super::text::{MOST_DESCRIPTION, clean, line};

/// A tool of a server.
pub struct RemoteTool {
    schema: ToolSchema,
    server: Arc<Server>,
    approvals: Arc<Approvals>,
    /// What `tools/call` has to say.
    raw: RawTool,
    fingerprint: String,
    effect: Effect,
    /// What was put right about its schema.
    notes: Vec<String>,
}

impl RemoteTool {
    /// A tool offered as `name`; the error says why it cannot be.
    pub(crate) fn new(
        name: &str,
        raw: &RawTool,
        server: &Arc<Server>,
        approvals: &Arc<Approvals>,
    ) -> Result<Self, String> {
        let Repaired { schema, notes } = repair(Some(&raw.input_schema).filter(|schema| !schema.is_null()))?;
        let about = raw.description.as_deref().or(raw.title.as_deref()).unwrap_or_default();
        let from = line(&server.config.name, 100);
        let parameters = RawValue::from_string(schema.to_string()).map_err(|error| error.to_string())?;
        let reads = server.config.trust == ServerTrust::Trusted && raw.claims_to_read_only();
        Ok(Self {
            schema: ToolSchema {
                name: name.to_owned(),
                description: format!("[MCP:{from}] {}", clean(about, MOST_DESCRIPTION)),
                parameters,
            },
            fingerprint: fingerprint(
                &raw.name,
                raw.description.as_deref(),
                &raw.input_schema,
                &raw.annotations,
            ),
            server: Arc::clone(server),
            approvals: Arc::clone(approvals),
            raw: raw.clone(),
            // What a server does is its own affair: it may reach anything but what the jail keeps it from.
            effect: if reads { Effect::Read } else { Effect::Network },
            notes,
        })
    }

    /// The server it belongs to.
    pub fn server(&self) -> &str {
        &self.server.config.name
    }

    /// The tool as its server listed it.
    pub fn raw(&self) -> &RawTool {
        &self.raw
    }

    /// What was put right about its schema.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether it says something else about itself than when it was last let through.
    pub fn changed(&self) -> bool {
        self.standing() == Standing::Changed
    }

    fn standing(&self) -> Standing {
        self.approvals.standing(self.server(), &self.raw.name, &self.fingerprint)
    }

    /// Whether it is offered in the same words and does the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.schema.name == other.schema.name
            && self.schema.description == other.schema.description
            && self.schema.parameters.get() == other.schema.parameters.get()
            && self.fingerprint == other.fingerprint
    }
}

impl Tool for RemoteTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn reach(&self, _: &Value) -> Reach {
        let consent = match self.standing() {
            Standing::Changed => ReachConsent::Fresh(format!(
                "the MCP server `{}` describes `{}` differently from when it was last allowed",
                line(self.server(), 100),
                line(&self.raw.name, 100),
            )),
            Standing::New | Standing::Same => ReachConsent::Usual,
        };
        // The server has a time limit of its own.
        Reach { time_limit: TimeLimit::Own, consent, ..Reach::new(self.schema.name.clone(), self.effect) }
    }

    fn execute<'a>(&'a self, context: &'a ToolContext, input: Value) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            // Whoever runs it let it through as it is now.
            self.approvals.approve(self.server(), &self.raw.name, &self.fingerprint);
            let params = CallToolRequestParams::new(self.raw.name.clone()).with_arguments(arguments(input));
            let asking = Asking { thread: Some(context.thread), output: context.output.clone() };
            match self.server.ask(Ask::Tool(params), &asking).await {
                Ok(answer) => result::tool_result(&self.schema.name, context, &answer),
                Err(error) => result::failure(&self.schema.name, context, &error),
            }
        })
    }
}
