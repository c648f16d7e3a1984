//! An engine for commands that are not a run.

use std::sync::Arc;

use hanzo_protocol::BoxStream;
use hanzo_protocol::engine::{EngineError, Request, Response};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::message::{ApiError, ApiErrorKind, ModelRequest, StreamEvent};
use hanzo_protocol::roles::ApiClient;

use crate::cli::Global;
use crate::commands::settings;
use crate::exit::Failure;
use crate::headless::{Surroundings, find_thread};
use crate::output::Printer;
use crate::root::{Keep, Root, RootOptions};

/// Opens the engine for a command that asks no model.
pub async fn open(global: &Global, program: &'static str, printer: &mut Printer) -> Result<Root, Failure> {
    let inputs = settings::inputs(global, settings::trust(false))?;
    let instead: Arc<dyn ApiClient> = Arc::new(NoModel);
    let options = RootOptions { inputs, keep: Keep::Stored, program, wrap: None, instead: Some(instead) };
    let root = Root::open(options).await?;
    for notice in &root.notices {
        printer.warning(notice);
    }
    Ok(root)
}

/// Asks the engine.
pub async fn call(root: &Root, request: Request) -> Result<Response, Failure> {
    root.client().call(request).await.map_err(|error| root.explain(error))
}

/// The thread whose id begins with `prefix`.
pub async fn thread(root: &Root, prefix: &str) -> Result<ThreadId, Failure> {
    let explain = |error: EngineError| root.explain(error);
    let sandbox = |_: ThreadId| String::new();
    find_thread(&Surroundings { client: root.client(), explain: &explain, sandbox: &sandbox }, prefix).await
}

/// What stands for a model where none is asked: whoever asks is told so.
struct NoModel;

impl ApiClient for NoModel {
    fn name(&self) -> &'static str {
        "none"
    }

    fn send_message(&self, _: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        let error = ApiError {
            kind: ApiErrorKind::BadRequest,
            message: "this command asks no model".to_owned(),
            status: None,
            retry_after_ms: None,
        };
        Box::pin(futures_util::stream::iter([StreamEvent::Error(error)]))
    }
}
