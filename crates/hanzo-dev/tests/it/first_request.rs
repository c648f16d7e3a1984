//! What every thread sends before a word of the user's: its size, for both vendors, and the names its tools go by.

use hanzo_testkit::scripted::{Reply, Server};
use serde_json::Value;

use crate::support::World;

/// The agent's share of a request that may not be exceeded.
const MOST: usize = 12_000;

fn first_request(kind: &str) -> (String, Value) {
    let server = Server::start([Reply::text("Hi.")]);
    let world = World::new();
    // Anthropic's address has no version in it.
    let url = match kind {
        "anthropic" => server.base_url().trim_end_matches("/v1").to_owned(),
        _ => server.base_url(),
    };
    world.user(&format!(
        "model = \"scripted/test-model\"\n\n[[providers]]\nname = \"scripted\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\nmodels = [\"test-model\"]\n"
    ));
    assert_eq!(world.run(&["run", "hello"]).ok(), "Hi.\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "one request for one answer");
    (String::from_utf8_lossy(&requests[0].body).into_owned(), requests[0].json())
}

#[test]
fn the_first_request_is_small_for_both_vendors() {
    for kind in ["openai", "anthropic"] {
        let (body, request) = first_request(kind);
        assert!(body.len() <= MOST, "{kind}: the first request has {} bytes:\n{body}", body.len());
        let tools = request["tools"].as_array().expect("tools").len();
        assert!(tools >= 3, "{kind}: {tools} tools are advertised");
        let system = match kind {
            "anthropic" => request["system"].to_string(),
            _ => request["messages"][0]["content"].to_string(),
        };
        assert!(system.len() > 500, "{kind}: there is a system prompt in it: {system}");
    }
}

#[test]
fn other_names_mean_the_same_to_tools_and_to_rules() {
    for (name, id) in hanzo_tools::alias::table() {
        let names = hanzo_permissions::names_of(id);
        assert!(names.contains(&id), "rules do not know `{id}`, which `{name}` means");
        assert!(names.contains(&name), "tools take `{name}` for `{id}`, rules do not");
    }
    // The other way round: rules may know names of tools that are still to come, but none that means something else.
    let ids: std::collections::BTreeSet<&str> = hanzo_tools::alias::table().map(|(_, id)| id).collect();
    for id in ids {
        for name in hanzo_permissions::names_of(id).into_iter().filter(|name| *name != id) {
            let meant = hanzo_tools::alias::canonical(name);
            assert!(
                meant.is_none_or(|meant| meant == id),
                "rules take `{name}` for `{id}`, tools for {meant:?}"
            );
        }
    }
}
