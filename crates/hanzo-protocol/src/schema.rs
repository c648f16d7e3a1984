//! The JSON Schemas of what goes over the wire, for clients in other languages. `docs/schema/` holds what this
//! generates, and a check fails when the two drift apart.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// Every schema, by the name of its file.
pub fn all() -> Vec<(&'static str, Schema)> {
    fn schema<T: JsonSchema>() -> Schema {
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
    }
    vec![
        ("message", schema::<crate::message::Message>()),
        ("model-request", schema::<crate::message::ModelRequest>()),
        ("stream-event", schema::<crate::message::StreamEvent>()),
        ("envelope", schema::<crate::envelope::Envelope>()),
        ("tool-result", schema::<crate::tool::ToolResult>()),
        ("item", schema::<crate::item::Item>()),
        ("event", schema::<crate::event::Event>()),
        ("request", schema::<crate::engine::Request>()),
        ("response", schema::<crate::engine::Response>()),
        ("engine-error", schema::<crate::engine::EngineError>()),
        ("permission-decision", schema::<crate::roles::PermissionDecision>()),
    ]
}
