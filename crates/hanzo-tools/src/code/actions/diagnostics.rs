//! `code.diagnostics`.

use std::sync::Arc;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{FileUri, Range};
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Shared;
use super::super::backend::{Limits, Operation};
use super::super::source::Source;
use super::outline::no_language;
use super::{URI_ALIASES, page_size, side_of};
use crate::contract::{Action, Answer, Call, Target, place};

/// Finds what is wrong with a file.
pub(in super::super) struct Diagnostics(pub(in super::super) Arc<Shared>);

/// The arguments of `code.diagnostics`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct DiagnosticsInput {
    /// File.
    uri: String,
    /// Most results.
    limit: Option<u32>,
}

/// The answer of `code.diagnostics`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct DiagnosticsOutput {
    /// What was looked at: a grammar finds errors of syntax, not of types.
    checked: &'static str,
    /// What is wrong, in the order of the file.
    diagnostics: Vec<Diagnostic>,
}

/// Something wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct Diagnostic {
    /// The file.
    uri: FileUri,
    /// Where it is.
    range: Range,
    /// How bad it is.
    severity: &'static str,
    /// What it is.
    message: String,
    /// The line.
    snippet: String,
}

impl Action for Diagnostics {
    const NAME: &'static str = "diagnostics";
    const SUMMARY: &'static str = "syntax errors";
    const EXAMPLE: &'static str = r#"{"uri":"src/main.rs"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = URI_ALIASES;
    const HIDDEN: &'static [&'static str] = &["limit"];
    type Input = DiagnosticsInput;
    type Output = DiagnosticsOutput;

    fn effect(&self, _: &DiagnosticsInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &DiagnosticsInput) -> Vec<Target> {
        vec![Target::read(&input.uri)]
    }

    async fn run(
        &self,
        call: &Call<'_>,
        input: DiagnosticsInput,
    ) -> Result<Answer<DiagnosticsOutput>, ToolError> {
        let most = page_size(input.limit);
        let shared = Arc::clone(&self.0);
        let caller = call.context.caller;
        let (diagnostics, backend, taint) = call
            .blocking(move |host, cancelled| {
                let (real, source) = Source::open(&host.workspace, &place::parse(&input.uri)?)?;
                let taint = side_of(host, &real, caller)?;
                let language = source.language.ok_or_else(|| no_language(&input.uri))?;
                let backends = shared.index(host).backends();
                if backends.for_language(Operation::Diagnostics, language).next().is_none() {
                    return Err(ToolError::new(
                        ErrorCode::Unsupported,
                        format!(
                            "there is no grammar for {} here, so errors in it cannot be found",
                            language.name()
                        ),
                    ));
                }
                let found = backends.first(Operation::Diagnostics, language, |backend| {
                    backend.diagnostics(&source, language, most, &Limits::for_file(&source, cancelled))
                });
                cancelled.check()?;
                let Some((faults, backend)) = found else {
                    return Err(ToolError::new(
                        ErrorCode::Timeout,
                        format!("`{}` takes too long to parse", input.uri),
                    ));
                };
                let uri = place::uri(&real);
                let diagnostics: Vec<Diagnostic> = faults
                    .into_iter()
                    .map(|fault| Diagnostic {
                        uri: uri.clone(),
                        range: source.range(fault.start, fault.end),
                        severity: "error",
                        message: fault.message,
                        snippet: source.snippet(fault.start),
                    })
                    .collect();
                Ok((diagnostics, backend, taint))
            })
            .await?;
        Ok(Answer::new(DiagnosticsOutput { checked: "syntax", diagnostics }).by(backend).tainted(taint))
    }
}
