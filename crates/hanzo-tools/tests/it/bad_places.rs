//! The tools that start programs, with real ones and with places nobody should get anywhere with: a typed error or an
//! answer that tells nothing of what is outside, soon, and nothing changed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hanzo_protocol::tool::ToolCaller;
use serde_json::{Value, json};

use crate::bad_input::{TYPED, hostile_paths, snapshot};
use crate::world::World;

const SECRET: &str = "what-nobody-inside-may-see";

fn repository_with_traps() -> World {
    let world = World::new();
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).current_dir(&world.workspace).status().unwrap();
        assert!(done.success(), "git {arguments:?}");
    };
    world.write("plain.txt", "1\n");
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.name", "Ada"]);
    git(&["config", "user.email", "ada@example.org"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "First"]);
    world.write("plain.txt", "2\n");
    let outside = outside(&world);
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), format!("{SECRET}\n")).unwrap();
    symlink("loop-b", world.path("loop-a")).unwrap();
    symlink("loop-a", world.path("loop-b")).unwrap();
    symlink(&outside, world.path("out")).unwrap();
    assert!(Command::new("mkfifo").arg(world.path("fifo")).status().unwrap().success());
    world
}

fn outside(world: &World) -> std::path::PathBuf {
    world.workspace.parent().unwrap().join("outside")
}

/// Every action with a field that names a place, and what is to be put there.
async fn actions_with_places(world: &World) -> Vec<(&'static str, Value, &'static str)> {
    let mut found = Vec::new();
    for tool in ["proc", "vcs", "test"] {
        let schemas = world.ok(tool, json!({"action": "schema"})).await;
        for (action, schema) in schemas["actions"].as_object().unwrap() {
            for field in ["path", "paths", "to", "cwd"] {
                if schema["input"]["properties"].get(field).is_none() {
                    continue;
                }
                // What an action cannot do without, so that the place is what it fails for.
                let mut call = json!({"action": action});
                for required in schema["input"]["required"].as_array().into_iter().flatten() {
                    match required.as_str().unwrap() {
                        "command" => call["command"] = json!("cat x plain.txt"),
                        "message" => call["message"] = json!("m"),
                        "ref" => call["ref"] = json!("HEAD"),
                        "patch" => {
                            call["patch"] =
                                json!("--- a/plain.txt\n+++ b/plain.txt\n@@ -1 +1 @@\n-no such line\n+3\n");
                        }
                        _ => {}
                    }
                }
                found.push((tool, call, field));
            }
        }
    }
    found
}

fn without_git(root: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    // Git refreshes its index and notes where it was; what counts is the work and the history.
    let changing = ["index", "ORIG_HEAD", "COMMIT_EDITMSG", "logs"];
    let all = snapshot(root).into_iter();
    all.filter(|(path, _)| {
        !path.strip_prefix(root).is_ok_and(|inside| {
            inside.starts_with("data")
                || (inside.starts_with("ws/.git")
                    && changing.iter().any(|name| inside.iter().any(|part| part == *name)))
        })
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn places_that_lead_out_around_or_nowhere_with_real_programs() {
    let world = repository_with_traps();
    let base = world.workspace.parent().unwrap().to_owned();
    let before = without_git(&base);
    let actions = actions_with_places(&world).await;
    assert!(actions.len() >= 10, "there are more actions with places than {}", actions.len());
    for (tool, call, field) in actions {
        for path in hostile_paths() {
            // A link is something to commit, wherever it leads.
            if call["action"] == "commit" && path == "loop-a" {
                continue;
            }
            let mut arguments = call.clone();
            arguments[field] = if field == "paths" { json!([path]) } else { json!(path) };
            let started = Instant::now();
            let result = world.call_as(ToolCaller::Remote, tool, arguments.clone()).await;
            let shown: String = arguments.to_string().chars().take(200).collect();
            assert!(started.elapsed() < Duration::from_secs(10), "{tool} {shown}: {:?}", started.elapsed());
            assert!(!result.output.contains(SECRET), "{tool} {shown}: {}", result.output);
            let envelope = result.envelope.unwrap();
            if result.is_error {
                let code = envelope["error"]["code"].as_str().unwrap();
                assert!(TYPED.contains(&code), "{tool} {shown}: {envelope}");
            } else {
                // Git has nothing to say of most of these; what it must not do is to follow them.
                let told = envelope["data"].to_string();
                assert!(!told.contains(SECRET) && !told.contains("root:"), "{tool} {shown}: {told}");
            }
        }
    }
    assert_eq!(without_git(&base), before);
}
