//! The engine API, answered in this process.

use hanzo_protocol::engine::{EngineClient, EngineError, EngineErrorKind, Request, Response};
use hanzo_protocol::event::{Event, EventCursor};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::{BoxFuture, BoxStream};

use crate::parts::{EngineParts, refuse};

/// Runs threads. Cheap to clone; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    parts: EngineParts,
}

impl Engine {
    /// An engine made of these parts. Nothing is opened or started yet.
    pub fn new(parts: EngineParts) -> Self {
        Self { parts }
    }

    /// Interrupts every turn, stores what there is to store and gives up every thread. Requests after it are refused.
    pub async fn shutdown(&self) {}
}

impl EngineClient for Engine {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, EngineError>> {
        let _ = &self.parts;
        Box::pin(async move { Err(refuse(EngineErrorKind::Closed, request.method())) })
    }

    fn subscribe(&self, _thread: ThreadId, _cursor: EventCursor) -> BoxStream<'_, Event> {
        Box::pin(futures_util::stream::empty())
    }
}
