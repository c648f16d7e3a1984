//! Servers that are programs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hanzo_mcp::client::{Phase, ResourceContent, ServerTrust, Switch};
use hanzo_protocol::item::Taint;
use hanzo_protocol::tool::{Effect, ReachConsent, Tool as _, ToolContext};
use serde_json::json;

use super::stage::{Heard, call, context, parts, phase, program, settled, stage, tool, until};

#[tokio::test]
async fn the_example_server_is_listed_and_called() {
    let manager = settled(parts(vec![program("words", "words", &[])])).await;
    assert_eq!(phase(&manager, "words"), Phase::Connected);
    let tools = manager.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.schema().name.as_str()).collect();
    assert_eq!(names, ["mcp__words__echo", "mcp__words__wordcount"]);
    assert_eq!(tools[0].schema().description, "[MCP:words] Says the text back");

    let said = call(&manager, "mcp__words__echo", json!({"text": "one two"})).await;
    assert_eq!((said.output.as_str(), said.is_error, said.taint), ("one two", false, Some(Taint::Mcp)));
    let counted = call(&manager, "mcp_words_wordcount", json!({"text": "one two  three"})).await;
    assert_eq!(counted.envelope.unwrap()["data"]["structuredContent"], json!({"words": 3}));
    let wrong = call(&manager, "mcp__words__echo", json!({"text": 5})).await;
    assert!(wrong.is_error && wrong.output.contains("must be a string"), "{wrong:?}");

    let status = &manager.status()[0];
    assert_eq!((status.counts, status.protocol.as_deref()), (Some((2, 0, 0)), Some("2026-07-28")));
    assert!(status.latency.is_some() && status.error.is_none());
    let report = manager.report();
    assert_eq!(report["configured"], json!([{"name": "words", "transport": "stdio"}]));
    let connected =
        json!([{"name": "words", "tools_count": 2, "tools": ["echo", "wordcount"], "connected": true}]);
    assert_eq!(report["connected"], connected);
}

#[tokio::test]
async fn an_older_server_is_greeted_the_older_way() {
    let manager = settled(parts(vec![stage("old", &[]), stage("picky", &["picky"])])).await;
    for server in ["old", "picky"] {
        assert_eq!(phase(&manager, server), Phase::Connected, "{:?}", manager.status());
        let said = call(&manager, &format!("mcp__{server}__echo"), json!({"text": "x"})).await;
        assert_eq!(said.output, "x");
    }
    assert_eq!(manager.status()[0].protocol.as_deref(), Some("2025-11-25"));
}

#[tokio::test]
async fn a_hint_is_believed_only_from_a_trusted_server() {
    let mut trusted = stage("friend", &[]);
    trusted.trust = ServerTrust::Trusted;
    let manager = settled(parts(vec![trusted, stage("stranger", &[])])).await;
    let effect = |name: &str| tool(&manager, name).reach(&json!({})).effect;
    assert_eq!(effect("mcp__friend__echo"), Effect::Read);
    assert_eq!(effect("mcp__friend__slow"), Effect::Network, "it did not say so");
    assert_eq!(effect("mcp__stranger__echo"), Effect::Network);
}

#[tokio::test]
async fn calls_of_one_server_overlap() {
    let manager = Arc::new(settled(parts(vec![stage("s", &[])])).await);
    let begun = Instant::now();
    let calls = (0..16).map(|_| {
        let manager = Arc::clone(&manager);
        tokio::spawn(async move { call(&manager, "mcp__s__slow", json!({"ms": 400})).await.output })
    });
    for answer in calls.collect::<Vec<_>>() {
        assert_eq!(answer.await.unwrap(), "done");
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(400 * 16 / 2), "16 calls of 0.4 s took {took:?}");
}

#[tokio::test]
async fn a_call_nobody_waits_for_is_cancelled_at_the_server() {
    let manager = settled(parts(vec![stage("s", &[])])).await;
    let slow = tokio::time::timeout(
        Duration::from_millis(100),
        call(&manager, "mcp__s__slow", json!({"ms": 60_000})),
    );
    assert!(slow.await.is_err());
    for _ in 0..100 {
        if call(&manager, "mcp__s__cancelled", json!({})).await.output == "1" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the server was never told");
}

#[tokio::test]
async fn progress_is_shown_and_keeps_a_call_alive() {
    let mut config = stage("s", &[]);
    config.timeout = Duration::from_millis(900);
    let manager = settled(parts(vec![config])).await;
    let heard = Arc::new(Heard::default());
    let context = ToolContext { output: Some(heard.clone()), ..context() };
    let result = tool(&manager, "mcp__s__progress").execute(&context, json!({"ms": 500})).await;
    assert_eq!(result.output, "done", "1.5 s of work with a limit of 0.9 s between signs of life");
    assert_eq!(heard.all(), ["[1/3] working\n", "[2/3] working\n", "[3/3] working\n"]);
}

#[tokio::test]
async fn another_list_of_tools_is_noticed_and_kept_for_the_next_run() {
    let data = tempfile::tempdir().unwrap();
    let here = |servers| {
        let mut parts = parts(servers);
        parts.data = Some(data.path().to_owned());
        parts
    };
    let manager = settled(here(vec![stage("s", &[])])).await;
    let before = manager.revision();
    assert!(manager.tool("mcp__s__grown0").is_none());
    call(&manager, "mcp__s__grow", json!({})).await;
    until(&manager, |manager| manager.tool("mcp__s__grown0").is_some()).await;
    assert!(manager.revision() > before);
    manager.shutdown().await;

    // The next run offers it before the server was asked anything.
    let manager = hanzo_mcp::client::Manager::start(here(vec![stage("s", &[])]));
    assert!(manager.tool("mcp__s__grown0").is_some());
    assert_ne!(phase(&manager, "s"), Phase::Connected);
    // A call waits for the server; what the server no longer has is gone then.
    assert_eq!(call(&manager, "mcp__s__echo", json!({"text": "hi"})).await.output, "hi");
    until(&manager, |manager| manager.tool("mcp__s__grown0").is_none()).await;
}

#[tokio::test]
async fn a_tool_that_changed_since_it_was_allowed_is_asked_about_again() {
    let data = tempfile::tempdir().unwrap();
    let run = async |modes: &[&str]| {
        let mut parts = parts(vec![stage("s", modes)]);
        parts.data = Some(data.path().to_owned());
        settled(parts).await
    };
    let manager = run(&[]).await;
    let echo = tool(&manager, "mcp__s__echo");
    assert_eq!(echo.reach(&json!({})).consent, ReachConsent::Usual, "a new tool is for the rules to judge");
    echo.execute(&context(), json!({"text": "x"})).await;
    manager.shutdown().await;

    let manager = run(&["other"]).await;
    let echo = tool(&manager, "mcp__s__echo");
    assert!(echo.changed());
    let ReachConsent::Fresh(reason) = echo.reach(&json!({})).consent else { panic!("it was not noticed") };
    assert!(reason.contains("`s`") && reason.contains("`echo`"), "{reason}");
    assert!(!tool(&manager, "mcp__s__slow").changed());
    echo.execute(&context(), json!({"text": "x"})).await;
    assert!(!echo.changed(), "it was let through as it is now");
}

#[tokio::test]
async fn prompts_are_commands_and_resources_are_read() {
    let manager = settled(parts(vec![stage("my server", &[])])).await;
    let prompts = manager.prompts();
    assert_eq!(prompts[0].command, "mcp__my_server__greet");
    assert_eq!(manager.prompt("mcp__my_server__greet", "Ada Lovelace").await.unwrap(), "Hello Ada Lovelace");
    assert!(manager.prompt("mcp__my_server__greet", "").await.unwrap_err().to_string().contains("`who`"));
    assert!(manager.prompt("mcp__x__y", "").await.is_err());

    let one = manager.resource("my server", "stage://one").await.unwrap();
    assert_eq!(one, ResourceContent::Text("first".into()));
    assert!(manager.resource("my server", "stage://two").await.is_err());
    assert!(manager.resource("nobody", "stage://one").await.is_err());
}

#[tokio::test]
async fn names_of_one_server_do_not_reach_another() {
    let manager = settled(parts(vec![stage("a", &[]), stage("a.b", &[]), stage("a b", &[])])).await;
    // Both of the others come out as `a_b`; one has the name and the other another.
    assert_eq!(tool(&manager, "mcp__a__echo").server(), "a");
    let first = tool(&manager, "mcp__a_b__echo");
    let second = tool(&manager, "mcp__a_b__echo_2");
    let mut both = [first.server(), second.server()];
    both.sort_unstable();
    assert_eq!(both, ["a b", "a.b"]);
    let status = manager.status().into_iter().find(|status| status.name == second.server()).unwrap();
    assert!(status.notes.iter().any(|note| note.contains("mcp__a_b__echo_2")), "{:?}", status.notes);
}

#[tokio::test]
async fn a_server_is_switched_off_and_on_and_connected_anew() {
    let mut spare = stage("spare", &[]);
    spare.switch = Switch::Off;
    let manager = settled(parts(vec![stage("used", &[]), spare])).await;
    let count = |server: &str| manager.tools().iter().filter(|tool| tool.server() == server).count();
    let all = count("used");
    assert!(all > 0 && count("spare") == 0, "what is off is not started");
    assert_eq!((phase(&manager, "spare"), manager.names()), (Phase::Off, vec!["used".to_owned()]));
    let refused = manager.resource("spare", "stage://one").await.unwrap_err().to_string();
    assert!(refused.contains("switched off"), "{refused}");

    manager.switch("spare", Switch::On).unwrap();
    assert_eq!(manager.settled_status("spare").await.unwrap().phase, Phase::Connected);
    assert_eq!(count("spare"), all);
    let before = manager.revision();
    manager.switch("used", Switch::Off).unwrap();
    assert_eq!(manager.settled_status("used").await.unwrap().phase, Phase::Off);
    assert!(count("used") == 0 && manager.revision() > before, "its tools are withdrawn");
    assert!(manager.prompts().iter().all(|prompt| prompt.server == "spare"));

    // Connecting anew switches it on, and works for one that is connected as well.
    for _ in 0..2 {
        manager.reconnect("used").unwrap();
        assert_eq!(manager.settled_status("used").await.unwrap().phase, Phase::Connected);
        assert_eq!(count("used"), all);
        let one = manager.resource("used", "stage://one").await.unwrap();
        assert_eq!(one, ResourceContent::Text("first".into()));
    }
    assert!(manager.reconnect("nobody").is_err() && manager.switch("nobody", Switch::Off).is_err());
    manager.shutdown().await;
}
