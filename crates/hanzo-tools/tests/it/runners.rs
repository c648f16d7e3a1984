//! `test` with runners that are usually there (cargo, node, Python's), with scripts in their place, and with runners that
//! misbehave. Those that have to be installed are in `oracle_runners`.

use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::spawn::{Confinement, Process, SpawnError, SpawnRequest, Spawner};
use hanzo_protocol::tool::{Effect, ReachConfinement, TimeLimit};
use hanzo_testkit::not_run;
use hanzo_testkit::plain_spawner::PlainSpawner;
use serde_json::{Value, json};

use crate::world::{World, eventually, runs};

/// Without what the cargo that runs these tests tells its children: a project of a test has a target directory of its own.
struct Clean(PlainSpawner, std::path::PathBuf);

impl Spawner for Clean {
    fn confinement(&self) -> Confinement {
        self.0.confinement()
    }

    fn spawn(&self, mut request: SpawnRequest) -> BoxFuture<'_, Result<Box<dyn Process>, SpawnError>> {
        request.env.push(("CARGO_TARGET_DIR".into(), self.1.clone().into_os_string()));
        for name in ["RUSTFLAGS", "NODE_OPTIONS", "PYTEST_ADDOPTS", "NEXTEST_PROFILE"] {
            request.env.push((name.into(), "".into()));
        }
        self.0.spawn(request)
    }
}

/// A workspace whose processes have a clean environment.
pub fn world() -> World {
    World::made(|_| {}, |workspace| Arc::new(Clean(PlainSpawner::new(workspace), workspace.join("target"))))
}

/// Whether a program is there; says so when a test cannot run without it.
pub fn there(program: &str, arguments: &[&str]) -> bool {
    let output = std::process::Command::new(program).args(arguments).output();
    let there = output.is_ok_and(|output| output.status.success());
    if !there {
        not_run(&format!("`{program} {}` to work", arguments.join(" ")));
    }
    there
}

fn counts(run: &Value) -> (u64, u64, u64) {
    let count = |name: &str| run[name].as_u64().unwrap();
    (count("pass"), count("fail"), count("skip"))
}

/// The failures as name, file below the workspace and line.
pub fn failures(world: &World, run: &Value) -> Vec<(String, String, u64)> {
    let root = format!("file://{}/", world.workspace.display());
    let of = |failure: &Value| {
        let uri = failure["uri"].as_str().unwrap_or_default();
        let name = failure["name"].as_str().unwrap().to_owned();
        let line = failure["range"]["start"]["line"].as_u64().unwrap_or(9999);
        (name, uri.strip_prefix(&root).unwrap_or(uri).to_owned(), line)
    };
    let mut all: Vec<_> = run["failure_locations"].as_array().unwrap().iter().map(of).collect();
    all.sort();
    all
}

/// Runs to the end, whatever it takes.
pub async fn run(world: &World, mut arguments: Value) -> Value {
    arguments["action"] = json!("run");
    arguments["wait"] = json!(300);
    world.ok("test", arguments).await
}

pub fn assert_run(world: &World, run: &Value, expected: (u64, u64, u64), failed: &[(&str, &str, u64)]) {
    assert_eq!(counts(run), expected, "{run:#}");
    let failed: Vec<_> =
        failed.iter().map(|(name, file, line)| ((*name).to_owned(), (*file).to_owned(), *line)).collect();
    assert_eq!(failures(world, run), failed, "{run:#}");
    let status = if failed.is_empty() { "passed" } else { "failed" };
    assert_eq!(run["status"], status, "{run:#}");
}

pub fn cargo_project(world: &World) {
    world
        .write("Cargo.toml", "[package]\nname = 'trial'\nversion = '0.1.0'\nedition = '2021'\n[workspace]\n");
    world.write(
        "src/lib.rs",
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn good() {}\n    #[test]\n    fn bad() {\n        assert_eq!(1 + 1, 3, \"sum\");\n    }\n    #[test]\n    #[ignore]\n    fn later() {}\n}\n",
    );
}

#[tokio::test]
async fn cargo_test_is_read_from_its_text() {
    if !there("cargo", &["--version"]) {
        return;
    }
    let world = world();
    cargo_project(&world);
    world.write("tests/it.rs", "#[test]\nfn crash() {\n    std::process::abort()\n}\n");
    let ran = run(&world, json!({"suite": "cargo"})).await;
    assert_eq!((counts(&ran), ran["status"].as_str()), ((1, 2, 1), Some("failed")), "{ran:#}");
    let failed = failures(&world, &ran);
    assert_eq!(failed[0], ("tests/it.rs".into(), "tests/it.rs".into(), 0), "{ran:#}");
    assert_eq!(failed[1], ("tests::bad".into(), "src/lib.rs".into(), 6), "{ran:#}");
    let messages = ran["failure_locations"].to_string();
    assert!(messages.contains("SIGABRT") && messages.contains("sum"), "{messages}");

    let filtered = run(&world, json!({"suite": "cargo", "filter": "good", "parallel": 1})).await;
    assert_run(&world, &filtered, (1, 0, 0), &[]);

    world.write("src/lib.rs", "pub fn broken() -> u8 {\n    missing\n}\n");
    let broken = run(&world, json!({"suite": "cargo"})).await;
    assert_eq!(broken["status"], "build_failed", "{broken:#}");
    assert_eq!(failures(&world, &broken)[0], ("build".into(), "src/lib.rs".into(), 1), "{broken:#}");
}

fn node_project(world: &World) {
    world.write("package.json", r#"{"scripts": {"test": "node --test"}}"#);
    world.write(
        "a.test.mjs",
        "import test from 'node:test';\nimport assert from 'node:assert';\ntest('adds', () => assert.equal(1 + 1, 2));\ntest('group', async (t) => {\n  await t.test('breaks', () => {\n    assert.deepEqual({a: 1}, {a: 2});\n  });\n  await t.test('later', {skip: true}, () => {});\n});\n",
    );
}

#[tokio::test]
async fn node_writes_junit() {
    if !there(
        "node",
        &["--test", "--test-reporter=junit", "--test-reporter-destination=/dev/null", "/dev/null"],
    ) {
        return;
    }
    let world = world();
    node_project(&world);
    let list = world.ok("test", json!({"action": "list"})).await;
    assert_eq!(list["suites"][0]["suite"], "node", "{list:#}");
    let ran = run(&world, json!({})).await;
    assert_run(&world, &ran, (1, 1, 1), &[("breaks", "a.test.mjs", 5)]);
    assert_eq!(ran["suite"], "node");
    let filtered = run(&world, json!({"filter": "adds", "path": "a.test.mjs", "parallel": 1})).await;
    assert_eq!(
        (filtered["fail"].as_u64(), filtered["status"].as_str()),
        (Some(0), Some("passed")),
        "{filtered:#}"
    );
    world.write("crash.test.mjs", "process.abort()\n");
    let crashed = run(&world, json!({"path": "crash.test.mjs"})).await;
    assert_eq!((counts(&crashed), crashed["status"].as_str()), ((0, 1, 0), Some("failed")), "{crashed:#}");
}

/// What a runner says is taken from its report: a script in the place of one writes it.
fn fake(world: &World, script: &str) {
    let path = world.write(
        "node_modules/.bin/jest",
        format!(
            "#!/bin/sh\nfor word; do case $word in --outputFile=*) out=${{word#*=}};; esac; done\n{script}\n"
        ),
    );
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.write("package.json", r#"{"devDependencies": {"jest": "*"}}"#);
}

const FINE: &str = r#"echo '{"testResults":[{"name":"x","status":"passed","assertionResults":[{"fullName":"a","status":"passed"}]}]}' > "$out""#;

#[tokio::test]
async fn a_runner_that_hangs_is_stopped_and_says_what_it_did() {
    let world = world();
    fake(&world, "echo begun; exec sleep 7654321");
    let hung = run(&world, json!({"timeout": 0.3})).await;
    assert_eq!((counts(&hung), hung["status"].as_str()), ((0, 0, 0), Some("timed_out")), "{hung:#}");
    assert!(hung["output"].as_str().unwrap().contains("begun"), "{hung:#}");
    eventually("the runner's end", || !runs("7654321")).await;
}

#[tokio::test]
async fn a_long_run_goes_to_the_background_and_status_waits_for_it() {
    let world = world();
    fake(&world, &format!("while [ ! -e go ]; do sleep 0.02; done; {FINE}"));
    let begun = world.ok("test", json!({"action": "run", "wait": 0.05})).await;
    assert_eq!(
        (begun["status"].as_str(), begun["run_id"].as_str()),
        (Some("running"), Some("run_1")),
        "{begun:#}"
    );
    let still = world.ok("test", json!({"action": "status", "run_id": "run_1"})).await;
    assert_eq!(still["status"], "running");
    world.write("go", "");
    for name in [json!("run_1"), begun["proc_id"].clone(), json!(null)] {
        let done = world.ok("test", json!({"action": "status", "run_id": name, "wait": 30})).await;
        assert_run(&world, &done, (1, 0, 0), &[]);
    }
    let (code, _) = world.error("test", json!({"action": "status", "run_id": "run_9"})).await;
    assert_eq!(code, "NOT_FOUND");
    let killed = world.ok("test", json!({"action": "run", "wait": 0, "path": "package.json"})).await;
    std::fs::remove_file(world.path("go")).unwrap();
    let _ = world.ok("proc", json!({"action": "kill", "proc_id": killed["proc_id"]})).await;
    let dead = world.ok("test", json!({"action": "status", "run_id": killed["run_id"]})).await;
    assert!(["killed", "passed"].contains(&dead["status"].as_str().unwrap()), "{dead:#}");
}

#[tokio::test]
async fn a_runner_that_floods_keeps_its_results_and_its_output_behind_refs() {
    let world = world();
    fake(
        &world,
        &format!("yes 'all work and no play' | head -c 3000000; yes oops | head -c 300000 >&2; {FINE}"),
    );
    let flooded = run(&world, json!({})).await;
    assert_run(&world, &flooded, (1, 0, 0), &[]);
    assert!(flooded.to_string().len() < 2000, "{}", flooded.to_string().len());
    let logs = world
        .ok("proc", json!({"action": "logs", "proc_id": flooded["stdout_ref"], "since": 2_000_000}))
        .await;
    assert_eq!(logs["size"], 3_000_000);
}

#[tokio::test]
async fn a_runner_that_crashes_or_lies_is_no_success() {
    for (script, status, words) in [
        ("kill -SEGV $$", "killed", ""),
        ("echo 'cannot find module'; exit 1", "error", "cannot find module"),
        ("echo '{\"testResults\":[{\"name\":' > \"$out\"", "error", "not what was expected"),
        ("ln -s /etc/passwd \"$out\"", "error", "cannot be read"),
        ("mkfifo \"$out\"", "error", "cannot be read"),
        ("echo '{\"testResults\":[]}' > \"$out\"", "no_tests", ""),
        (
            "echo '{\"testResults\":[{\"assertionResults\":[{\"fullName\":\"a\",\"status\":\"passed\"}]}]}' > \"$out\"; exit 3",
            "error",
            "",
        ),
        ("echo '{\"testResults\":[{\"status\":\"failed\",\"message\":\"x\"}]}' > \"$out\"", "failed", "x"),
    ] {
        let world = world();
        fake(&world, script);
        let ran = run(&world, json!({})).await;
        assert_eq!(ran["status"], status, "{script}: {ran:#}");
        assert!(ran.to_string().contains(words), "{script}: {ran:#}");
    }
}

#[tokio::test]
async fn anything_that_writes_junit_is_read_and_old_reports_are_not() {
    let world = world();
    world.write("build/old/TEST-old.xml", "<testsuite><testcase name='stale'/></testsuite>");
    std::fs::File::options()
        .write(true)
        .open(world.path("build/old/TEST-old.xml"))
        .unwrap()
        .set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(1))
        .unwrap();
    world.write("src/a.c", "\n\n\n");
    let report = "<testsuites><testsuite name='s'><testcase classname='c' name='a'/><testcase classname='c' name='b'><failure message='no'>src/a.c:2: no &amp; never</failure></testcase><testcase name='d'><skipped/></testcase></testsuite></testsuites>";
    world.write("report.txt", report);
    let command = "mkdir -p build/new && cp report.txt build/new/TEST-1.xml && cp report.txt build/new/TEST-2.xml; exit 1";
    let ran = run(&world, json!({"command": command, "report": "build/**/TEST-*.xml"})).await;
    assert_run(&world, &ran, (2, 2, 2), &[("c::b", "src/a.c", 1), ("c::b", "src/a.c", 1)]);
    assert_eq!(ran["failure_locations"][0]["message"], "src/a.c:2: no & never");
    let nothing = run(&world, json!({"command": "true", "report": "build/old/*.xml"})).await;
    assert_eq!((counts(&nothing), nothing["status"].as_str()), ((0, 0, 0), Some("error")), "{nothing:#}");
    assert!(nothing["notes"][0].as_str().unwrap().contains("older"), "{nothing:#}");
    for wrong in [
        json!({"action": "run", "command": "true"}),
        json!({"action": "run", "report": "x.xml"}),
        json!({"action": "run", "command": "true", "report": "../x.xml"}),
        json!({"action": "run", "command": "true", "report": "/etc/*.xml"}),
        json!({"action": "run", "command": "true", "report": "x.xml", "filter": "a"}),
    ] {
        assert_eq!(world.error("test", wrong.clone()).await.0, "INVALID_ARGUMENTS", "{wrong}");
    }
}

#[tokio::test]
async fn suites_are_found_in_their_directories_and_have_to_be_named_when_there_are_several() {
    let world = world();
    let (code, message) = world.error("test", json!({"action": "run"})).await;
    assert_eq!(code, "NOT_FOUND");
    assert!(message.contains("JUnit"), "{message}");
    world.write("web/package.json", r#"{"devDependencies": {"vitest": "1"}}"#);
    world.write("web/packages/a/package.json", r#"{"devDependencies": {"vitest": "1"}}"#);
    world.write("api/pyproject.toml", "[tool.pytest.ini_options]\n");
    world.write("api/tests/test_a.py", "");
    world.write("go/go.mod", "module example.org/x\n");
    world.write("native/CMakeLists.txt", "enable_testing()\n");
    world.write("node_modules/x/package.json", r#"{"devDependencies": {"jest": "1"}}"#);
    let list = world.ok("test", json!({"action": "list"})).await;
    let suites: Vec<&str> =
        list["suites"].as_array().unwrap().iter().map(|suite| suite["suite"].as_str().unwrap()).collect();
    assert_eq!(suites, ["api:pytest", "go:go", "native:ctest", "web:vitest"], "{list:#}");
    let (code, message) = world.error("test", json!({"action": "run"})).await;
    assert_eq!(code, "AMBIGUOUS", "{message}");
    let (code, message) = world.error("test", json!({"action": "run", "suite": "native"})).await;
    assert_eq!(code, "UNAVAILABLE");
    assert!(message.contains("cmake --build"), "{message}");
    assert_eq!(world.error("test", json!({"action": "run", "suite": "unit"})).await.0, "NOT_FOUND");
    let option = json!({"action": "run", "suite": "go", "filter": "-exec=rm"});
    assert_eq!(world.error("test", option).await.0, "INVALID_ARGUMENTS");
    let inner = world.ok("test", json!({"action": "list", "path": "api/tests/test_a.py"})).await;
    assert_eq!(inner["suites"][0]["uri"], format!("file://{}/api", world.workspace.display()), "{inner:#}");
}

#[test]
fn a_run_is_an_execution_that_ends_itself_and_the_rest_only_looks() {
    let world = World::new();
    let run = world.reach("test", &json!({"action": "run", "path": "src"}));
    assert_eq!(
        (run.action.as_str(), run.effect, run.time_limit),
        ("test.run", Effect::Execute, TimeLimit::Own)
    );
    assert_eq!(run.confinement, ReachConfinement::Inside);
    let outside = world.reach("test", &json!({"action": "run", "unconfined": true}));
    assert_eq!(outside.confinement, ReachConfinement::Outside);
    for action in ["list", "status"] {
        assert_eq!(world.reach("test", &json!({ "action": action })).effect, Effect::Read);
    }
    assert_eq!(world.reach("test", &json!({"action": "run", "filter": 7})).effect, Effect::Execute);
}
