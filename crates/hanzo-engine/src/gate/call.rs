//! A call as rules see it.
//!
//! It is judged by the canonical action the tool itself names, whatever the caller called it, and by the files the tool says it will
//! touch, also where rules would not have looked for them in the arguments.

use std::path::Path;

use hanzo_permissions::{Access, Call, Classification};
use hanzo_protocol::tool::Reach;
use serde_json::Value;

/// Hands `judge` the call as rules see it.
pub(super) fn with_call<R>(
    reach: &Reach,
    arguments: &Value,
    workspace: &Path,
    judge: impl FnOnce(&Call<'_>) -> R,
) -> R {
    with_name(&reach.action, reach, arguments, Some(workspace), judge)
}

/// The same, under another of its names. Without a workspace rules see where files really are, also of those that lie in it.
pub(super) fn with_name<R>(
    name: &str,
    reach: &Reach,
    arguments: &Value,
    workspace: Option<&Path>,
    judge: impl FnOnce(&Call<'_>) -> R,
) -> R {
    let access = if reach.effect.is_read_only() { Access::Reader } else { Access::Writer };
    let root = workspace.map(Path::to_string_lossy);
    let real: Vec<(&str, String)> = reach
        .paths
        .iter()
        .map(|path| (path.given.as_str(), path.real.to_string_lossy().into_owned()))
        .collect();
    let build = |arguments: &Value, judge: &mut dyn FnMut(&Call<'_>)| {
        let call = Call::new(name, arguments).classified(Classification::Host(access));
        let call = match &root {
            Some(root) => call.in_workspace(root),
            None => call,
        };
        let call = real.iter().fold(call, |call, (given, real)| call.with_resolved(given, real));
        judge(&call);
    };
    // Files the tool is going to touch that rules did not find in the arguments are given to them as well.
    let mut unseen: Vec<Value> = Vec::new();
    build(arguments, &mut |call| {
        let facts = call.facts();
        let seen: Vec<_> = facts.subjects().collect();
        // A subject is shown cut when it is long; such a path is given once more rather than taken for seen.
        let missing = reach.paths.iter().filter(|path| !seen.iter().any(|seen| *seen == path.given));
        unseen = missing.map(|path| Value::from(path.given.clone())).collect();
    });
    let completed = (!unseen.is_empty()).then(|| completed(arguments, unseen));
    let mut judge = Some(judge);
    let mut answer = None;
    build(completed.as_ref().unwrap_or(arguments), &mut |call| {
        answer = judge.take().map(|judge| judge(call));
    });
    answer.expect("the call is built and judged exactly once")
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
