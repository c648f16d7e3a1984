//! `test` with the real runners that have to be installed: pytest, vitest, jest, go, ctest, nextest. `cargo xtask interop`
//! installs what can be, and sets `HANZO_TEST_RUNNERS` to the directory with the packages; without it these say that they were
//! not run. A runner that is not there then is a failure.

use std::path::PathBuf;

use hanzo_testkit::not_run;
use serde_json::json;

use crate::runners::{assert_run, cargo_project, failures, run, world};

fn packages(what: &str) -> Option<PathBuf> {
    let directory = std::env::var_os("HANZO_TEST_RUNNERS").map(PathBuf::from);
    if directory.is_none() {
        not_run(&format!("{what} (`cargo xtask interop`)"));
    }
    directory
}

#[tokio::test]
async fn pytest_is_read_from_its_report() {
    let Some(packages) = packages("pytest") else { return };
    let world = world();
    std::os::unix::fs::symlink(packages.join("python"), world.path(".venv")).unwrap();
    world.write("pyproject.toml", "[tool.pytest.ini_options]\n");
    world.write(
        "tests/test_a.py",
        "import pytest\n\ndef test_ok():\n    pass\n\nclass TestX:\n    def test_bad(self):\n        x = [1, 2]\n        assert x == [1, 3], 'lists'\n\n@pytest.mark.skip\ndef test_skip():\n    pass\n\ndef helper():\n    raise ValueError('deep')\n\ndef test_deep():\n    helper()\n",
    );
    let ran = run(&world, json!({})).await;
    assert_run(
        &world,
        &ran,
        (1, 2, 1),
        &[
            ("tests.test_a.TestX::test_bad", "tests/test_a.py", 8),
            ("tests.test_a::test_deep", "tests/test_a.py", 15),
        ],
    );
    let one = run(&world, json!({"filter": "tests/test_a.py::test_ok"})).await;
    assert_run(&world, &one, (1, 0, 0), &[]);
    let some = run(&world, json!({"filter": "ok or skip", "path": "tests"})).await;
    assert_run(&world, &some, (1, 0, 1), &[]);
    let none = run(&world, json!({"filter": "nothing_like_it"})).await;
    assert_eq!(none["status"], "no_tests", "{none:#}");
    world.write("tests/test_b.py", "import nope_nope\n");
    let broken = run(&world, json!({})).await;
    assert_eq!(broken["status"], "failed", "{broken:#}");
    assert_eq!(failures(&world, &broken)[0].1, "tests/test_b.py", "{broken:#}");
}

const SCRIPT: &str = "test('adds', () => { expect(1 + 1).toBe(2) });\ndescribe('group', () => {\n  test('breaks', () => {\n    expect({a: 1}).toEqual({a: 2});\n  });\n  test.skip('later', () => {});\n});\n";

#[tokio::test]
async fn jest_and_vitest_are_read_from_their_json() {
    let Some(packages) = packages("jest and vitest") else { return };
    for runner in ["jest", "vitest"] {
        let world = world();
        std::os::unix::fs::symlink(packages.join("node_modules"), world.path("node_modules")).unwrap();
        world.write("package.json", format!(r#"{{"devDependencies": {{"{runner}": "*"}}}}"#));
        let imports = if runner == "vitest" { "import {test, expect, describe} from 'vitest';" } else { "" };
        world.write("a.test.js", format!("{imports}\n{SCRIPT}"));
        let ran = run(&world, json!({})).await;
        assert_run(&world, &ran, (1, 1, 1), &[("group breaks", "a.test.js", 4)]);
        let filtered = run(&world, json!({"filter": "adds", "parallel": 1, "path": "a.test.js"})).await;
        assert_eq!(
            (filtered["pass"].as_u64(), filtered["fail"].as_u64()),
            (Some(1), Some(0)),
            "{filtered:#}"
        );
        world.write("b.test.js", "syntax error here(\n");
        let broken = run(&world, json!({"path": "b.test.js"})).await;
        assert_eq!(
            (broken["status"].as_str(), broken["fail"].as_u64()),
            (Some("failed"), Some(1)),
            "{broken:#}"
        );
        assert_eq!(failures(&world, &broken)[0].1, "b.test.js", "{broken:#}");
    }
}

#[tokio::test]
async fn go_is_read_from_its_events() {
    if packages("go").is_none() {
        return;
    }
    let world = world();
    world.write("go.mod", "module example.org/trial\n");
    world.write(
        "calc/calc_test.go",
        "package calc\n\nimport \"testing\"\n\nfunc TestOk(t *testing.T) {}\n\nfunc TestGroup(t *testing.T) {\n\tt.Run(\"one\", func(t *testing.T) {\n\t\tt.Errorf(\"off by %d\", 1)\n\t})\n\tt.Run(\"two\", func(t *testing.T) {})\n}\n\nfunc TestLater(t *testing.T) { t.Skip(\"later\") }\n",
    );
    let ran = run(&world, json!({})).await;
    assert_run(&world, &ran, (2, 1, 1), &[("example.org/trial/calc.TestGroup/one", "calc/calc_test.go", 8)]);
    let filtered = run(&world, json!({"filter": "TestOk", "parallel": 2, "path": "calc"})).await;
    assert_run(&world, &filtered, (1, 0, 0), &[]);
    world.write(
        "broken/b_test.go",
        "package broken\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) { missing() }\n",
    );
    let broken = run(&world, json!({})).await;
    assert_eq!(broken["status"], "build_failed", "{broken:#}");
    let failed = failures(&world, &broken);
    assert!(
        failed.contains(&("example.org/trial/broken".into(), "broken/b_test.go".into(), 4)),
        "{broken:#}"
    );
}

#[tokio::test]
async fn ctest_writes_junit() {
    if packages("ctest").is_none() {
        return;
    }
    let world = world();
    world.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.21)\nproject(trial NONE)\nenable_testing()\nadd_test(NAME good COMMAND true)\nadd_test(NAME bad COMMAND sh -c \"echo check.c:3: no; exit 1\")\nadd_test(NAME later COMMAND true)\nset_tests_properties(later PROPERTIES DISABLED TRUE)\n",
    );
    world.write("check.c", "\n\n\n\n");
    let built = world.ok("proc", json!({"action": "exec", "command": "cmake -B build"})).await;
    assert_eq!(built["exit_code"], 0, "{built:#}");
    let ran = run(&world, json!({})).await;
    assert_run(&world, &ran, (1, 1, 1), &[("bad", "check.c", 2)]);
    let filtered = run(&world, json!({"filter": "good", "parallel": 2})).await;
    assert_run(&world, &filtered, (1, 0, 0), &[]);
}

#[tokio::test]
async fn nextest_writes_junit_and_cargo_runs_what_it_does_not() {
    if packages("nextest").is_none() {
        return;
    }
    let world = world();
    cargo_project(&world);
    world.write("tests/it.rs", "#[test]\nfn crash() {\n    std::process::abort()\n}\n");
    let ran = run(&world, json!({})).await;
    assert_eq!(ran["suite"], "nextest", "{ran:#}");
    assert_run(
        &world,
        &ran,
        (1, 2, 1),
        &[("trial::it::crash", "", 9999), ("trial::tests::bad", "src/lib.rs", 6)],
    );
    let unit = run(&world, json!({"suite": "unit", "filter": "good", "parallel": 1})).await;
    assert_eq!((unit["pass"].as_u64(), unit["status"].as_str()), (Some(1), Some("passed")), "{unit:#}");
    let none = run(&world, json!({"filter": "nothing_like_it"})).await;
    assert_eq!(none["status"], "no_tests", "{none:#}");
    world.write(
        "src/lib.rs",
        "/// ```\n/// assert!(trial::yes());\n/// ```\npub fn yes() -> bool {\n    false\n}\n",
    );
    let doc = run(&world, json!({"suite": "doc"})).await;
    assert_eq!(
        (doc["fail"].as_u64(), failures(&world, &doc)[0].1.as_str()),
        (Some(1), "src/lib.rs"),
        "{doc:#}"
    );
    world.write("src/lib.rs", "pub fn broken() -> u8 {\n    missing\n}\n");
    let broken = run(&world, json!({})).await;
    assert_eq!(broken["status"], "build_failed", "{broken:#}");
    assert_eq!(failures(&world, &broken)[0].2, 1, "{broken:#}");
}
