//! Tools that are scripts, run by the programs they name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use hanzo_mcp::manifest::{Files, ManifestTool, Network, Sites, Walls, find};
use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_protocol::item::Taint;
use hanzo_protocol::spawn::Spawner;
use hanzo_protocol::tool::{Effect, Tool as _, ToolContext, ToolResult};
use hanzo_testkit::not_run;
use hanzo_testkit::plain_spawner::PlainSpawner;
use serde_json::{Value, json};

/// Sandboxes that are none, and remember what was asked of them.
struct Open {
    workspace: PathBuf,
    spawner: Arc<PlainSpawner>,
    asked: Mutex<Vec<Walls>>,
}

impl Sites for Open {
    fn spawner(&self, walls: Walls) -> Result<Arc<dyn Spawner>, String> {
        self.asked.lock().unwrap().push(walls);
        Ok(self.spawner.clone())
    }

    fn workspace(&self) -> &Path {
        &self.workspace
    }
}

struct Place {
    directory: tempfile::TempDir,
    sites: Arc<Open>,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let spawner = Arc::new(PlainSpawner::new(directory.path()));
        let workspace = directory.path().to_owned();
        Self { directory, sites: Arc::new(Open { workspace, spawner, asked: Mutex::default() }) }
    }

    fn tool(&self, manifest: &str, script: (&str, &str)) -> ManifestTool {
        let own = self.directory.path().join("tools/own");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join(script.0), script.1).unwrap();
        std::fs::write(own.join("mcp-tool.yaml"), manifest).unwrap();
        let (mut found, faults) = find(&self.directory.path().join("tools"), self.directory.path());
        assert!(faults.is_empty(), "{faults:?}");
        let variable = |name: &str| (name == "API_KEY").then(|| OsString::from("s3cret"));
        ManifestTool::new(found.remove(0), self.sites.clone(), variable).unwrap()
    }
}

fn manifest(runtime: &str, handler: &str, more: &str) -> String {
    format!(
        "name: shout\nversion: 2.1.0\ndescription: Say it loudly\ninput:\n  type: object\n  properties:\n    text: string\n    times: {{type: integer, default: 2}}\n  required: [text]\noutput:\n  type: object\n  properties:\n    said: string\n  required: [said]\nimplementation:\n  runtime: {runtime}\n  handler: ./{handler}\n  timeout: 20000\n{more}"
    )
}

async fn call(tool: &ManifestTool, arguments: Value) -> ToolResult {
    tool.execute(&ToolContext::new(ThreadId::new(), TraceId::new()), arguments).await
}

fn data(result: &ToolResult) -> Value {
    result.envelope.as_ref().unwrap()["data"].clone()
}

fn code(result: &ToolResult) -> Value {
    result.envelope.as_ref().unwrap()["error"]["code"].clone()
}

fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success());
    if !there {
        not_run(&format!("manifest: {program} is not installed"));
    }
    there
}

const PYTHON: &str = "import asyncio\nasync def shout(text, times):\n    print('shouting')\n    await asyncio.sleep(0)\n    if text == 'oops':\n        raise ValueError('no such word')\n    return {'said': ' '.join([text.upper()] * times)}\n";
const NODE: &str = "export default async function shout({ text, times }) {\n  console.log('shouting');\n  if (text === 'oops') throw new Error('no such word');\n  return { said: Array(times).fill(text.toUpperCase()).join(' ') };\n}\n";
const SHELL: &str = "#!/bin/sh\ncat > /dev/null\necho shouting >&2\nif [ \"$ARG_TEXT\" = oops ]; then echo 'no such word' >&2; exit 1; fi\nprintf '{\"said\": \"%s\"}' \"$(printf '%s %s' \"$ARG_TEXT\" \"$ARG_TEXT\" | tr a-z A-Z)\"\n";

async fn shouts(runtime: &str, script: (&str, &str)) {
    let place = Place::new();
    let tool = place.tool(&manifest(runtime, script.0, ""), script);
    assert_eq!(tool.schema().description, "Say it loudly (version 2.1.0)");
    let said = call(&tool, json!({"text": "hey"})).await;
    assert_eq!(data(&said), json!({"said": "HEY HEY"}), "{}", said.output);
    assert_eq!(said.taint, None);
    let failed = call(&tool, json!({"text": "oops"})).await;
    assert!(failed.is_error && failed.output.contains("no such word"), "{}", failed.output);
    let wrong = call(&tool, json!({"text": 5})).await;
    assert_eq!(code(&wrong), "INVALID_ARGUMENTS", "{}", wrong.output);
    assert_eq!(tool.reach(&json!({})).effect, Effect::Execute);
}

#[tokio::test]
async fn a_python_function_is_a_tool() {
    if has("python3") {
        shouts("python", ("shout.py", PYTHON)).await;
    }
}

#[tokio::test]
async fn a_node_function_is_a_tool() {
    if has("node") {
        // By its extension a module, whatever Node it is.
        shouts("node", ("shout.mjs", NODE)).await;
    }
}

#[tokio::test]
async fn a_shell_script_is_a_tool() {
    shouts("shell", ("shout.sh", SHELL)).await;
}

#[tokio::test]
async fn a_script_gets_what_its_manifest_names_and_nothing_else() {
    let place = Place::new();
    let script = ("shout.sh", "cat > /dev/null; printf '{\"said\": \"%s\"}' \"$API_KEY$OTHER\"");
    let text =
        manifest("shell", "shout.sh", "permissions: ['network:http', 'filesystem:write', 'env:API_KEY']\n");
    let tool = place.tool(&text, script);
    let said = call(&tool, json!({"text": "x"})).await;
    assert_eq!(data(&said)["said"], "s3cret", "{}", said.output);
    assert_eq!((said.taint, tool.reach(&json!({})).effect), (Some(Taint::Network), Effect::Network));
    let bare = place.tool(&manifest("shell", "shout.sh", ""), script);
    assert_eq!(data(&call(&bare, json!({"text": "x"})).await)["said"], "");
    let asked = place.sites.asked.lock().unwrap().clone();
    assert_eq!(asked, [Walls { network: Network::On, files: Files::Write }, Walls::default()]);
}

#[tokio::test]
async fn a_rate_holds_and_says_when_it_may_be_called_again() {
    let place = Place::new();
    let text = manifest("shell", "shout.sh", "permissions: ['rate_limit:2/hour']\n");
    let tool = place.tool(&text, ("shout.sh", SHELL));
    for _ in 0..2 {
        assert!(!call(&tool, json!({"text": "hey"})).await.is_error);
    }
    let refused = call(&tool, json!({"text": "hey"})).await;
    assert_eq!(code(&refused), "RATE_LIMITED", "{}", refused.output);
    assert!(refused.output.contains("permission denied"), "{}", refused.output);
}

#[tokio::test]
async fn a_result_that_holds_is_not_made_again_until_something_changes() {
    let place = Place::new();
    let count = place.directory.path().join("count");
    let script = format!(
        "cat > /dev/null; echo x >> '{}'; printf '{{\"said\": \"%s\"}}' \"$ARG_TEXT\"",
        count.display()
    );
    let text = manifest("shell", "shout.sh", "cache: {ttl: 60000}\n");
    let tool = place.tool(&text, ("shout.sh", &script));
    let ran = || std::fs::read_to_string(&count).unwrap_or_default().lines().count();
    for _ in 0..3 {
        assert_eq!(data(&call(&tool, json!({"text": "a"})).await)["said"], "a");
    }
    assert_eq!(ran(), 1);
    call(&tool, json!({"text": "b"})).await;
    assert_eq!(ran(), 2, "other arguments are another question");
    std::fs::write(&tool.manifest().handler, format!("{script} # changed")).unwrap();
    call(&tool, json!({"text": "a"})).await;
    assert_eq!(ran(), 3, "another script is another answer");
}

#[tokio::test]
async fn a_script_that_hangs_lies_or_floods_is_a_failure_in_words() {
    let place = Place::new();
    let hangs = place.tool(&manifest("shell", "a.sh", "").replace("20000", "300"), ("a.sh", "sleep 60"));
    let late = call(&hangs, json!({"text": "x"})).await;
    assert_eq!(code(&late), "TIMEOUT", "{}", late.output);
    let lies = place.tool(&manifest("shell", "a.sh", ""), ("a.sh", "echo '{\"said\": 5}'"));
    let lie = call(&lies, json!({"text": "x"})).await;
    assert!(lie.is_error && lie.output.contains("something else than its manifest says"), "{}", lie.output);
    let floods = place.tool(&manifest("shell", "a.sh", ""), ("a.sh", "head -c 6000000 /dev/zero"));
    let flood = call(&floods, json!({"text": "x"})).await;
    assert_eq!(code(&flood), "TOO_LARGE", "{}", flood.output);
}

#[test]
fn one_broken_manifest_leaves_the_others_alone() {
    let place = Place::new();
    place.tool(&manifest("shell", "a.sh", ""), ("a.sh", ""));
    let tools = place.directory.path().join("tools");
    let broken = tools.join("broken");
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join("mcp-tool.yaml"), "name: [").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("mcp-tool.yaml"), manifest("shell", "a.sh", "")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), tools.join("link")).unwrap();
    let (found, faults) = find(&tools, place.directory.path());
    assert_eq!((found.len(), faults.len()), (1, 2), "{faults:?}");
    assert!(faults[0].to_string().contains("broken/mcp-tool.yaml"), "{}", faults[0]);
    assert!(faults[1].reason.contains("leads elsewhere"), "{}", faults[1]);
    assert_eq!(find(Path::new("/nonexistent"), Path::new("/")), (vec![], vec![]));
}
