//! Servers that fail, hang, lie and lose their way.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use hanzo_mcp::client::{Manager, Phase, ServerConfig, StdioConfig, TransportConfig};
use hanzo_protocol::tool::Tool as _;
use serde_json::json;

use super::stage::{call, parts, phase, program, settled, stage, tool, until};

#[tokio::test]
async fn a_crash_is_told_at_once_and_mended() {
    let manager = settled(parts(vec![stage("s", &[]), stage("other", &[])])).await;
    let begun = Instant::now();
    let crashed = call(&manager, "mcp__s__crash", json!({})).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(crashed.is_error, "{crashed:?}");
    assert!(
        crashed.output.contains("code 3") && crashed.output.contains("told to crash"),
        "{}",
        crashed.output
    );
    assert_eq!(call(&manager, "mcp__other__echo", json!({"text": "fine"})).await.output, "fine");
    assert_eq!(call(&manager, "mcp__s__echo", json!({"text": "again"})).await.output, "again");
    assert_eq!(phase(&manager, "s"), Phase::Connected);
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why_and_is_tried_again() {
    let missing =
        TransportConfig::Stdio(StdioConfig { argv: vec!["/nonexistent/server".into()], env: vec![] });
    let servers = vec![stage("dies", &["die"]), ServerConfig::new("missing", missing), stage("works", &[])];
    let manager = settled(parts(servers)).await;
    let status = manager.status();
    // On a slow machine it may be tried again already; why it failed stands until it works.
    assert!(matches!(status[0].phase, Phase::Failed | Phase::Connecting), "{:?}", status[0]);
    let why = status[0].error.as_deref().unwrap();
    assert!(why.contains("code 5") && why.contains("no licence found"), "{why}");
    assert!(status[1].error.as_deref().unwrap().contains("/nonexistent/server"), "{status:?}");
    assert_eq!(status[2].phase, Phase::Connected);
    until(&manager, |manager| phase(manager, "dies") == Phase::Connecting).await;
}

#[tokio::test]
async fn a_hanging_server_holds_up_nobody() {
    let hangs = |number: usize| {
        let mut config = stage(&format!("hangs{number}"), &["hang"]);
        config.timeout = Duration::from_millis(1500);
        config
    };
    let mut servers: Vec<ServerConfig> = (0..10).map(hangs).collect();
    servers.push(program("words", "words", &[]));
    let begun = Instant::now();
    let manager = Manager::start(parts(servers));
    assert!(begun.elapsed() < Duration::from_millis(100), "starting waits for nobody: {:?}", begun.elapsed());
    until(&manager, |manager| phase(manager, "words") == Phase::Connected).await;
    assert_eq!(call(&manager, "mcp__words__echo", json!({"text": "hi"})).await.output, "hi");
    // Whoever wants the first lists waits for those that come and not for those that do not.
    let begun = Instant::now();
    manager.first_lists(begun + Duration::from_millis(50)).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    until(&manager, |manager| phase(manager, "hangs0") == Phase::Failed).await;
    let why = manager.status()[0].error.clone().unwrap();
    assert!(why.contains("did not answer our greeting within 1 s"), "{why}");
}

#[tokio::test]
async fn the_first_list_of_a_server_is_there_for_whoever_waits_for_it() {
    let manager = Manager::start(parts(vec![program("words", "words", &[])]));
    assert!(manager.tools().is_empty(), "nothing is known of it yet");
    manager.first_lists(Instant::now() + Duration::from_secs(20)).await;
    assert!(manager.tool("mcp__words__echo").is_some());
    // From then on it is known, and nobody waits.
    let begun = Instant::now();
    manager.first_lists(begun + Duration::from_secs(20)).await;
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn a_call_has_its_servers_time_and_no_more() {
    let mut config = stage("s", &[]);
    config.timeout = Duration::from_secs(1);
    let manager = settled(parts(vec![config])).await;
    let begun = Instant::now();
    let late = call(&manager, "mcp__s__slow", json!({"ms": 30_000})).await;
    assert!(late.is_error && late.output.contains("TIMEOUT"), "{}", late.output);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(call(&manager, "mcp__s__echo", json!({"text": "still here"})).await.output, "still here");
}

#[tokio::test]
async fn lines_that_are_no_messages_are_passed_over() {
    let manager = settled(parts(vec![stage("s", &["junk"])])).await;
    assert_eq!(call(&manager, "mcp__s__echo", json!({"text": "through"})).await.output, "through");
}

#[tokio::test]
async fn a_message_that_is_too_large_is_dropped_and_the_next_one_read() {
    let mut config = stage("s", &[]);
    config.timeout = Duration::from_secs(2);
    let manager = settled(parts(vec![config])).await;
    let lost = call(&manager, "mcp__s__huge", json!({})).await;
    assert!(
        lost.is_error && lost.output.contains("TIMEOUT"),
        "{}",
        &lost.output[..200.min(lost.output.len())]
    );
    // On a busy machine the server still writes for a while what nobody wants to read.
    for _ in 0..20 {
        let next = call(&manager, "mcp__s__echo", json!({"text": "next"})).await;
        if !next.is_error {
            assert_eq!(next.output, "next");
            return;
        }
        assert!(next.output.contains("TIMEOUT"), "{}", next.output);
    }
    panic!("nothing is read any more");
}

#[tokio::test]
async fn a_list_without_end_is_not_followed() {
    let manager = settled(parts(vec![stage("s", &["pages"])])).await;
    let status = &manager.status()[0];
    assert_eq!(status.phase, Phase::Connected);
    assert!((100..=500).contains(&manager.tools().len()), "{}", manager.tools().len());
    assert!(status.notes.iter().any(|note| note.contains("do not end")), "{:?}", status.notes);
}

#[tokio::test]
async fn what_a_server_says_about_its_tools_is_cleaned_repaired_and_reported() {
    let manager = settled(parts(vec![stage("s", &[])])).await;
    let bare = tool(&manager, "mcp__s__bare");
    assert_eq!(bare.schema().description, "[MCP:s] hides[31m this");
    assert_eq!(bare.schema().parameters.get(), r#"{"type":"object","properties":{}}"#);
    let echo = tool(&manager, "mcp__s__echo");
    assert_eq!(
        echo.schema().parameters.get(),
        r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#
    );
    assert!(manager.tool("mcp__s__bad").is_none(), "its arguments cannot be a string");
    let notes = manager.status()[0].notes.join("\n");
    for part in [
        "`bad` is left out",
        "`required` belongs",
        "`str` is written `string`",
        "`bare`: $: there is no schema",
    ] {
        assert!(notes.contains(part), "{part} in {notes}");
    }
    let image = call(&manager, "mcp__s__bare", json!({})).await;
    assert_eq!(
        (image.attachments.len(), image.envelope.unwrap()["data"]["structuredContent"]["n"].as_u64()),
        (1, Some(1))
    );
}

#[tokio::test]
async fn a_command_with_dots_never_runs() {
    let argv: Vec<OsString> = vec!["/bin/../bin/sh".into(), "-c".into(), "true".into()];
    let config = TransportConfig::Stdio(StdioConfig { argv, env: vec![] });
    let manager = settled(parts(vec![ServerConfig::new("s", config)])).await;
    let why = manager.status()[0].error.clone().unwrap();
    assert!(why.contains("`..`"), "{why}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_ends_with_its_manager_and_so_does_what_it_started() {
    let manager = settled(parts(vec![stage("s", &[])])).await;
    let pids = call(&manager, "mcp__s__pid", json!({})).await.output;
    let pids: Vec<&str> = pids.split(' ').collect();
    let alive = |pid: &str| {
        // One that ended and was not waited for yet runs no more.
        let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']) && !rest.is_empty())
    };
    assert!(pids.len() == 2 && pids.iter().all(|pid| alive(pid)), "{pids:?}");
    drop(manager);
    for _ in 0..100 {
        if !pids.iter().any(|pid| alive(pid)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("something of {pids:?} is still there");
}
