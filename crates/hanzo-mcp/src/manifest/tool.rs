//! A manifest's tool, as the engine calls it.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use hanzo_protocol::BoxFuture;
use hanzo_protocol::envelope::{Envelope, ErrorCode, Meta, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::message::ToolSchema;
use hanzo_protocol::spawn::Spawner;
use hanzo_protocol::tool::{Effect, Reach, TimeLimit, Tool, ToolContext, ToolResult};
use jsonschema::Validator;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::parse::Manifest;
use super::permissions::{Network, Walls};
use super::run::run;
use crate::client::text::line;
use crate::rate::Limit;
use crate::results::Results;

/// Sandboxes for scripts, made by the composition root.
pub trait Sites: Send + Sync {
    /// What starts scripts in a sandbox that lets through `walls` and no more.
    fn spawner(&self, walls: Walls) -> Result<Arc<dyn Spawner>, String>;

    /// Where scripts run.
    fn workspace(&self) -> &Path;
}

/// A manifest's tool. Its calls are counted here, so that its rate holds for all threads that share it.
pub struct ManifestTool {
    manifest: Manifest,
    schema: ToolSchema,
    sites: Arc<dyn Sites>,
    variables: Vec<(OsString, OsString)>,
    input: Validator,
    output: Option<Validator>,
    limit: Mutex<Option<Limit>>,
    /// By the arguments and the script's state.
    results: Results<(String, Option<(SystemTime, u64)>), Value>,
}

impl fmt::Debug for ManifestTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManifestTool").field("manifest", &self.manifest).finish_non_exhaustive()
    }
}

impl ManifestTool {
    /// The tool of `manifest`. `variable` looks up those the manifest asks for; the error says why there cannot be such a tool.
    pub fn new(
        manifest: Manifest,
        sites: Arc<dyn Sites>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, String> {
        let schema = |what: &str, schema: &Value| {
            jsonschema::validator_for(schema).map_err(|error| {
                format!("the schema of its {what} makes no sense: {}", line(&error.to_string(), 300))
            })
        };
        let input = schema("input", &manifest.input)?;
        let output = manifest.output.as_ref().map(|output| schema("output", output)).transpose()?;
        let names = &manifest.permissions.variables;
        let variables = names.iter().filter_map(|name| Some((name.into(), variable(name)?))).collect();
        let parameters =
            RawValue::from_string(manifest.input.to_string()).map_err(|error| error.to_string())?;
        Ok(Self {
            schema: ToolSchema {
                name: manifest.name.clone(),
                description: format!("{} (version {})", manifest.description, manifest.version),
                parameters,
            },
            limit: Mutex::new(manifest.permissions.rate.map(Limit::new)),
            results: Results::default(),
            manifest,
            sites,
            variables,
            input,
            output,
        })
    }

    /// What it was made of.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    async fn call(&self, context: &ToolContext, mut arguments: Value) -> Result<Value, ToolError> {
        fill_in(&mut arguments, &self.manifest.input);
        check(&self.input, &arguments).map_err(|fault| {
            ToolError::new(
                ErrorCode::InvalidArguments,
                format!("the arguments are not what it takes: {fault}"),
            )
        })?;
        let script = self.manifest.handler.metadata().ok();
        let script = script.and_then(|script| Some((script.modified().ok()?, script.len())));
        let key = (arguments.to_string(), script);
        if let Some(result) = self.manifest.keeps.and_then(|_| self.results.get(&key, Instant::now())) {
            return Ok(result);
        }
        self.count()?;
        let spawner = self.sites.spawner(self.manifest.permissions.walls);
        let spawner = spawner.map_err(|reason| ToolError::new(ErrorCode::Error, reason))?;
        let shown = context.output.as_ref();
        let variables = self.variables.clone();
        let site = (spawner.as_ref(), self.sites.workspace());
        let result = run(site, &self.manifest, variables, &arguments, shown).await?;
        if let Some(output) = &self.output {
            check(output, &result).map_err(|fault| {
                let message = format!("it returned something else than its manifest says: {fault}");
                ToolError::new(ErrorCode::Error, message)
            })?;
        }
        if let Some(ttl) = self.manifest.keeps {
            self.results.keep(key, result.clone(), ttl, Instant::now());
        }
        Ok(result)
    }

    fn count(&self) -> Result<(), ToolError> {
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(limit) = limit.as_mut() else { return Ok(()) };
        limit.take(Instant::now()).map_err(|wait| {
            let message = format!(
                "permission denied: its manifest lets it be called less often; it may be called again in {} ms",
                wait.as_millis()
            );
            ToolError::new(ErrorCode::RateLimited, message)
                .with_details(json!({"retry_after_ms": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)}))
        })
    }
}

/// Defaults of the schema, where an argument is missing.
fn fill_in(arguments: &mut Value, schema: &Value) {
    if arguments.is_null() {
        *arguments = json!({});
    }
    let (Some(arguments), Some(properties)) = (arguments.as_object_mut(), schema["properties"].as_object())
    else {
        return;
    };
    for (name, property) in properties {
        if let Some(default) = property.get("default").filter(|_| !arguments.contains_key(name)) {
            arguments.insert(name.clone(), default.clone());
        }
    }
}

fn check(schema: &Validator, value: &Value) -> Result<(), String> {
    schema.validate(value).map_err(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { String::new() } else { format!(" at `{}`", line(&place, 100)) };
        format!("{}{place}", line(&error.to_string(), 400))
    })
}

impl Tool for ManifestTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn reach(&self, _: &Value) -> Reach {
        let effect = match self.manifest.permissions.walls.network {
            Network::On => Effect::Network,
            Network::Off => Effect::Execute,
        };
        Reach { time_limit: TimeLimit::Own, ..Reach::new(self.manifest.name.clone(), effect) }
    }

    fn execute<'a>(&'a self, context: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let meta = Meta::new(&self.manifest.name, "run", context.trace);
            let answer = match self.call(context, arguments).await {
                Ok(data @ Value::Object(_)) => Envelope::success(data, meta),
                Ok(plain) => Envelope::success(json!({ "result": plain }), meta),
                Err(error) => Envelope::failure(error, meta),
            };
            let taint = (self.manifest.permissions.walls.network == Network::On).then_some(Taint::Network);
            ToolResult { taint, ..ToolResult::enveloped(answer) }
        })
    }
}
