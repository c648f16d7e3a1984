//! `fs.search_text`.

use std::fs;

use serde_json::{Value, json};

use crate::support::Stage;

fn tree() -> Stage {
    let stage = Stage::new();
    stage.write("a.rs", "fn main() {\n    Needle();\n}\n");
    stage.write("a/b.txt", "x\nneedle needle\ny\n");
    stage.write("a/c.rs", "// needle\n");
    stage.write("a-b.rs", "needle\n");
    stage.write("target/t.rs", "needle\n");
    stage.write(".hidden/h.rs", "needle\n");
    stage.write("bin.rs", b"needle\n\0\0\0");
    fs::create_dir(stage.root.join(".git")).unwrap();
    stage.write(".gitignore", "/target\n");
    stage
}

fn found(stage: &Stage, mut arguments: Value) -> Vec<String> {
    arguments["action"] = json!("search_text");
    let data = stage.ok(arguments);
    let prefix = format!("file://{}/", stage.root.display());
    let matches = data["matches"].as_array().unwrap();
    matches
        .iter()
        .map(|found| {
            let line = found["range"]["start"]["line"].as_u64().unwrap();
            format!("{}:{line}", found["uri"].as_str().unwrap().replace(&prefix, ""))
        })
        .collect()
}

#[test]
fn matches_come_in_path_order_with_ranges() {
    let stage = tree();
    assert_eq!(found(&stage, json!({"pattern": "needle"})), ["a-b.rs:0", "a/b.txt:1", "a/c.rs:0"]);
    let data = stage.ok(json!({"action": "search_text", "pattern": "needle", "path": "a/b.txt"}));
    let first = &data["matches"][0];
    assert_eq!(first["range"], json!({"start": {"line": 1, "col": 0}, "end": {"line": 1, "col": 6}}));
    assert_eq!(first["text"], "needle needle");
}

#[test]
fn options_do_what_they_say() {
    let stage = tree();
    assert_eq!(
        found(&stage, json!({"pattern": "needle", "ignore_case": true})),
        ["a-b.rs:0", "a.rs:1", "a/b.txt:1", "a/c.rs:0"]
    );
    assert_eq!(found(&stage, json!({"pattern": "needle", "glob": "*.txt"})), ["a/b.txt:1"]);
    assert_eq!(found(&stage, json!({"pattern": "needle", "glob": "!*.txt"})), ["a-b.rs:0", "a/c.rs:0"]);
    assert_eq!(found(&stage, json!({"pattern": "needle", "glob": "a/**"})), ["a/b.txt:1", "a/c.rs:0"]);
    assert_eq!(found(&stage, json!({"pattern": "needle", "type": "rust"})), ["a-b.rs:0", "a/c.rs:0"]);
    assert_eq!(found(&stage, json!({"pattern": "main()", "fixed": true})), ["a.rs:0"]);
    assert_eq!(found(&stage, json!({"pattern": "need", "word": true})), Vec::<String>::new());
    assert_eq!(found(&stage, json!({"pattern": "x\\nneedle", "multiline": true})), ["a/b.txt:0"]);
    let all = found(&stage, json!({"pattern": "needle", "all": true}));
    assert!(all.contains(&"target/t.rs:0".into()) && all.contains(&".hidden/h.rs:0".into()), "{all:?}");
    let data =
        stage.ok(json!({"action": "search_text", "pattern": "needle", "path": "a/b.txt", "context": 1}));
    assert_eq!((&data["matches"][0]["before"], &data["matches"][0]["after"]), (&json!(["x"]), &json!(["y"])));
}

#[test]
fn pages_put_together_are_the_whole_and_survive_a_restart() {
    let stage = tree();
    for file in 0..40 {
        stage.write(&format!("many/{file:02}.txt"), "needle\n".repeat(file % 4 + 1));
    }
    let whole = found(&stage, json!({"pattern": "needle", "limit": 10_000}));
    for limit in [1, 3, 7, 50] {
        let mut paged = Vec::new();
        let mut arguments = json!({"action": "search_text", "pattern": "needle", "limit": limit});
        loop {
            // New tools each time: nothing but the cursor carries over.
            let tools = hanzo_tools::toolset(&stage.host, &hanzo_tools::Selection::default());
            let fresh = Stage { tools, ..Stage::new() };
            let envelope = fresh.call("fs", arguments.clone()).envelope.unwrap();
            paged.extend(envelope["data"]["matches"].as_array().unwrap().clone());
            if envelope["meta"]["paging"]["more"] == json!(false) {
                break;
            }
            arguments["cursor"] = envelope["meta"]["paging"]["cursor"].clone();
        }
        assert_eq!(paged.len(), whole.len(), "limit {limit}");
    }
    let page =
        stage.call("fs", json!({"action": "search_text", "pattern": "needle", "limit": 2})).envelope.unwrap();
    assert_eq!(page["meta"]["backend"], "ripgrep");
    let cursor = page["meta"]["paging"]["cursor"].clone();
    let error = stage.err(json!({"action": "search_text", "pattern": "other", "cursor": cursor}));
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
}

#[test]
fn a_slow_first_file_does_not_stall_the_many_behind_it() {
    let stage = Stage::new();
    // The first takes longer than all the others together, which fill the window behind it.
    stage.write("a.txt", format!("{}needle\n", "hay needl hay\n".repeat(400_000)));
    for directory in 0..50 {
        for file in 0..100 {
            stage.write(&format!("d{directory}/{file}.txt"), "hay\n");
        }
    }
    stage.write("z.txt", "needle\n");
    assert_eq!(found(&stage, json!({"pattern": "needle"})), ["a.txt:400000", "z.txt:0"]);
}

#[test]
fn the_answer_is_bounded_whatever_is_found() {
    let stage = Stage::new();
    for file in 0..200 {
        stage.write(&format!("{file}.txt"), format!("needle {}\n", "x".repeat(5000)).repeat(20));
    }
    let result = stage.call("fs", json!({"action": "search_text", "pattern": "needle", "limit": 100_000}));
    assert!(result.output.len() < 50_000, "{}", result.output.len());
    assert_eq!(result.envelope.unwrap()["meta"]["paging"]["more"], true);
}

#[test]
fn a_dropped_search_stops() {
    use std::time::{Duration, Instant};

    let stage = Stage::new();
    for file in 0..3000 {
        stage.write(&format!("d{}/{file}.txt", file % 50), "nothing here\n".repeat(200));
    }
    let context = hanzo_protocol::tool::ToolContext::new(
        hanzo_protocol::ids::ThreadId::new(),
        hanzo_protocol::ids::TraceId::new(),
    );
    let tool = stage.tools.get("fs").unwrap();
    let arguments = json!({"action": "search_text", "pattern": "(a|b|c)*zzz.*q"});
    stage.runtime.block_on(async {
        let call = tool.execute(&context, arguments);
        let _ = tokio::time::timeout(Duration::from_millis(5), call).await;
    });
    // The runtime waits for blocking work when it is dropped, so this is the time the search goes on for.
    let Stage { runtime, dir, .. } = stage;
    let started = Instant::now();
    drop(runtime);
    assert!(started.elapsed() < Duration::from_millis(500), "{:?}", started.elapsed());
    drop(dir);
}
