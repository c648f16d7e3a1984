//! Contexts with large values: on the disk, and read only by whoever asks for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hanzo_mcp::server::ServerOptions;
use serde_json::{Value, json};

use crate::server::Client;

const MB: usize = 1024 * 1024;

async fn client(directory: &Path) -> Client {
    let mut options = ServerOptions::new("/project");
    options.contexts = Some(directory.to_owned());
    let mut client = Client::start(options);
    client.greet("2025-11-25", json!({})).await;
    client
}

async fn update(client: &mut Client, strategy: &str, entries: Value) -> Value {
    client.ask("context/update", json!({"entries": entries, "merge_strategy": strategy})).await
}

async fn get(client: &mut Client, keys: Option<&[&str]>) -> Value {
    let params = keys.map_or_else(|| json!({}), |keys| json!({ "keys": keys }));
    client.ask("context/get", params).await["result"].clone()
}

fn entry<'a>(context: &'a Value, key: &str) -> &'a Value {
    let entries = context["entries"].as_array().unwrap();
    entries.iter().find(|entry| entry["key"] == key).unwrap_or_else(|| panic!("no {key}"))
}

/// The files of large values, with when each was written.
fn values(directory: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let Ok(files) = std::fs::read_dir(directory.join("default.values")) else { return BTreeMap::new() };
    files
        .map(|file| file.unwrap())
        .map(|file| (file.path(), file.metadata().unwrap().modified().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_large_value_is_kept_apart_and_read_only_when_it_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let mut writer = client(place.path()).await;
    let (small, large) = ("s".repeat(1_000), "l".repeat(100_000));
    update(&mut writer, "replace", json!([{"key": "small", "value": small}, {"key": "large", "value": large}, {"key": "none", "value": null}])).await;
    let files = values(place.path());
    assert_eq!(files.len(), 1);
    let index = std::fs::metadata(place.path().join("default.json")).unwrap().len();
    assert!(index < 3_000, "the index has the small ones alone: {index}");

    let mut reader = client(place.path()).await;
    let all = get(&mut reader, None).await;
    assert_eq!(
        (&entry(&all, "small")["value"], &entry(&all, "none")["value"]),
        (&json!(small), &Value::Null)
    );
    assert!(entry(&all, "none").get("value").is_some());
    let named = entry(&all, "large");
    assert_eq!((&named["bytes"], named.get("value")), (&json!(100_002), None), "{named}");
    assert!(all["hint"].as_str().unwrap().contains("`keys`"));
    let asked = get(&mut reader, Some(&["large"])).await;
    assert_eq!((&entry(&asked, "large")["value"], asked.get("hint")), (&json!(large), None));

    // Nothing but whoever asks for it minds that it is damaged, and nobody believes it.
    let file = files.keys().next().unwrap();
    std::fs::write(file, format!("\"{}\"", "x".repeat(100_000))).unwrap();
    let mut reader = client(place.path()).await;
    assert_eq!(entry(&get(&mut reader, Some(&["small"])).await, "small")["value"], json!(small));
    assert_eq!(entry(&get(&mut reader, None).await, "small")["value"], json!(small));
    let both = get(&mut reader, Some(&["small", "large"])).await;
    assert_eq!(entry(&both, "small")["value"], json!(small));
    let damaged = entry(&both, "large");
    assert!(
        damaged.get("value").is_none() && damaged["error"].as_str().unwrap().contains("damaged"),
        "{damaged}"
    );
    let refused = update(&mut reader, "append", json!([{"key": "large", "value": 1}])).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("hint: set it anew"), "{refused}");
    std::fs::remove_file(file).unwrap();
    assert!(entry(&get(&mut reader, Some(&["large"])).await, "large")["error"].is_string());
    update(&mut reader, "merge", json!([{"key": "large", "value": large}])).await;
    assert_eq!(entry(&get(&mut reader, Some(&["large"])).await, "large")["value"], json!(large));
}

#[tokio::test]
async fn a_change_writes_what_changed_and_removes_what_nobody_names() {
    let place = tempfile::tempdir().unwrap();
    let mut client = client(place.path()).await;
    let large = |letter: &str| json!(letter.repeat(70_000));
    update(
        &mut client,
        "replace",
        json!([{"key": "a", "value": large("a")}, {"key": "b", "value": large("b")}]),
    )
    .await;
    let before = values(place.path());
    assert_eq!(before.len(), 2);
    // What was being written when the machine stopped.
    let torn = place.path().join("default.values/.torn.new");
    std::fs::write(&torn, "\"half").unwrap();
    std::fs::write(place.path().join("default.values").join("0".repeat(64)), "1").unwrap();
    update(&mut client, "merge", json!([{"key": "c", "value": 1}])).await;
    assert_eq!(values(place.path()), before, "large values are neither written again nor left behind");
    update(
        &mut client,
        "merge",
        json!([{"key": "b", "value": large("B")}, {"key": "a", "value": large("a")}]),
    )
    .await;
    let after = values(place.path());
    let kept: Vec<&PathBuf> = before.keys().filter(|path| after.contains_key(*path)).collect();
    assert_eq!((after.len(), kept.len()), (2, 1), "one is another, and one is as it was");
    assert_eq!(before[kept[0]], after[kept[0]]);
    update(&mut client, "replace", json!([{"key": "c", "value": 1}])).await;
    assert!(!place.path().join("default.values").exists());
    assert_eq!(entry(&get(&mut client, None).await, "c")["value"], 1);
}

#[tokio::test]
async fn a_context_holds_much_and_every_answer_fits_a_message() {
    let place = tempfile::tempdir().unwrap();
    let mut client = client(place.path()).await;
    // Many that are not large, which together are.
    for part in 0..3 {
        let entries: Vec<Value> = (0..50)
            .map(|number| json!({"key": format!("m{part}-{number}"), "value": "m".repeat(60_000)}))
            .collect();
        let done = update(&mut client, "merge", json!(entries)).await;
        assert!(done["error"].is_null(), "{done}");
    }
    let index = std::fs::metadata(place.path().join("default.json")).unwrap().len();
    assert!(index <= MB as u64, "{index}");
    let keys: Vec<String> = (0..3).map(|number| format!("big{number}")).collect();
    for key in &keys {
        let done = update(&mut client, "merge", json!([{"key": key, "value": ["b".repeat(4 * MB)]}])).await;
        assert!(done["error"].is_null(), "{done}");
    }
    // Objects and lists grow without being sent whole.
    update(&mut client, "append", json!([{"key": "big0", "value": "more"}])).await;
    let grown = get(&mut client, Some(&["big0"])).await;
    assert_eq!(entry(&grown, "big0")["value"].as_array().unwrap()[1], "more");

    let all = get(&mut client, None).await;
    assert!(all.to_string().len() < 10 * MB);
    assert_eq!(all["entries"].as_array().unwrap().len(), 153);
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    let asked = get(&mut client, Some(&names)).await;
    assert!(asked.to_string().len() < 10 * MB, "{}", asked.to_string().len());
    assert!(asked["hint"].is_string() && entry(&asked, "big0").get("value").is_some());
    assert_eq!(entry(&asked, "big2")["bytes"], 4 * MB + 4);
    let alone = get(&mut client, Some(&["big2"])).await;
    assert_eq!(entry(&alone, "big2")["value"][0].as_str().unwrap().len(), 4 * MB);

    let grown = update(&mut client, "append", json!([{"key": "big1", "value": "x".repeat(5 * MB)}])).await;
    assert!(grown["error"]["message"].as_str().unwrap().contains("hint: divide it"), "{grown}");
}

#[tokio::test]
async fn a_context_is_full_at_64_megabytes_and_stays_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let kept = |number: usize| {
        let kept = json!({"hash": format!("sha256:{number:064x}"), "bytes": 8 * MB});
        json!({"key": format!("k{number}"), "kept": kept, "type": "string", "timestamp": "2026-01-02T03:04:05Z"})
    };
    // Nothing of it is read to know how much it is.
    let full: Vec<Value> = (0..8).map(kept).collect();
    let index = json!({"version": 8, "entries": full, "history": [], "metadata": {}}).to_string();
    std::fs::write(place.path().join("default.json"), &index).unwrap();
    let mut client = client(place.path()).await;
    for value in [json!(1), json!("x".repeat(100_000))] {
        let refused = update(&mut client, "merge", json!([{"key": "more", "value": value}])).await;
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("67108864 bytes") && message.contains("hint:"), "{message}");
    }
    assert_eq!(std::fs::read_to_string(place.path().join("default.json")).unwrap(), index);
    assert!(update(&mut client, "merge", json!([{"key": "k0", "value": 1}])).await["error"].is_null());
}

#[tokio::test]
async fn servers_that_share_contexts_see_each_others_changes_and_lose_none() {
    let place = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (client(place.path()).await, client(place.path()).await);
    for round in 0..10 {
        for (client, key) in [(&mut one, "one"), (&mut two, "two")] {
            let value = format!("{key}{round}").repeat(20_000);
            update(
                client,
                "merge",
                json!([{"key": key, "value": value}, {"key": format!("{key}-{round}"), "value": round}]),
            )
            .await;
        }
    }
    let seen = get(&mut one, None).await;
    assert_eq!((seen["entries"].as_array().unwrap().len(), &seen["version"]), (22, &json!(20)));
    assert_eq!(get(&mut two, None).await, seen);
    assert_eq!(entry(&get(&mut one, Some(&["two"])).await, "two")["value"], json!("two9".repeat(20_000)));
    assert_eq!(values(place.path()).len(), 2);
}

#[tokio::test]
async fn an_index_of_before_is_read_and_one_that_leads_elsewhere_is_not() {
    let place = tempfile::tempdir().unwrap();
    let stamp = "2026-01-02T03:04:05Z";
    let old = json!({"version": 4, "entries": [{"key": "k", "value": {"a": 1}, "type": "object", "timestamp": stamp}], "history": [], "metadata": {}});
    std::fs::write(place.path().join("default.json"), old.to_string()).unwrap();
    std::fs::write(place.path().join("secret"), "1").unwrap();
    let mut client = client(place.path()).await;
    assert_eq!(entry(&get(&mut client, None).await, "k")["value"], json!({"a": 1}));
    let kept = json!({"hash": "sha256:../../secret", "bytes": 1});
    let odd = json!({"version": 5, "entries": [{"key": "k", "kept": kept, "type": "object", "timestamp": stamp}], "history": [], "metadata": {}});
    std::fs::write(place.path().join("default.json"), odd.to_string()).unwrap();
    let refused = client.ask("context/get", json!({"keys": ["k"]})).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("is damaged"), "{refused}");
}
