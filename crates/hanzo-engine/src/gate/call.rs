//! A call as rules see it.
//!
//! It is judged by the canonical action the tool itself names, whatever the caller called it, and by the files the tool says it will
//! touch, also where rules would not have looked for them in the arguments.

use std::borrow::Cow;
use std::path::Path;

use hanzo_permissions::{Access, Call, Classification, Facts};
use hanzo_protocol::tool::{Reach, ReachedPath};
use serde_json::Value;

/// Hands `judge` the call as rules see it, and what they look at in it.
pub(super) fn with_call<R>(
    reach: &Reach,
    arguments: &Value,
    workspace: &Path,
    judge: impl FnOnce(&Call<'_>, &Facts<'_>) -> R,
) -> R {
    with_name(&reach.action, reach, arguments, Some(workspace), judge)
}

/// The same, under another of its names. Without a workspace rules see where files really are, also of those that lie in it.
pub(super) fn with_name<R>(
    name: &str,
    reach: &Reach,
    arguments: &Value,
    workspace: Option<&Path>,
    judge: impl FnOnce(&Call<'_>, &Facts<'_>) -> R,
) -> R {
    let root = workspace.map(Path::to_string_lossy);
    let real: Vec<Cow<'_, str>> = reach.paths.iter().map(|path| path.real.to_string_lossy()).collect();
    let call = build(name, reach, arguments, root.as_deref(), &real);
    let facts = call.facts();
    // Files the tool is going to touch that rules did not find in the arguments are given to them as well. A subject is shown cut
    // when it is long; such a path is given once more rather than taken for seen.
    let is_seen = |path: &&ReachedPath| facts.subjects().any(|seen| seen == path.given);
    let unseen: Vec<Value> =
        reach.paths.iter().filter(|path| !is_seen(path)).map(|path| path.given.clone().into()).collect();
    if unseen.is_empty() {
        return judge(&call, &facts);
    }
    let completed = completed(arguments, unseen);
    let call = build(name, reach, &completed, root.as_deref(), &real);
    judge(&call, &call.facts())
}

fn build<'a>(
    name: &'a str,
    reach: &'a Reach,
    arguments: &'a Value,
    root: Option<&'a str>,
    real: &'a [Cow<'a, str>],
) -> Call<'a> {
    let access = if reach.effect.is_read_only() { Access::Reader } else { Access::Writer };
    let call = Call::new(name, arguments).classified(Classification::Host(access));
    let call = match root {
        Some(root) => call.in_workspace(root),
        None => call,
    };
    let places = reach.paths.iter().zip(real);
    places.fold(call, |call, (path, real)| call.with_resolved(&path.given, real))
}

fn completed(arguments: &Value, mut unseen: Vec<Value>) -> Value {
    let mut completed = match arguments {
        Value::Object(map) => map.clone(),
        _ => serde_json::Map::new(),
    };
    match completed.remove("paths") {
        Some(Value::Array(own)) => unseen.extend(own),
        Some(other) => unseen.push(other),
        None => {}
    }
    completed.insert("paths".to_owned(), Value::Array(unseen));
    Value::Object(completed)
}
