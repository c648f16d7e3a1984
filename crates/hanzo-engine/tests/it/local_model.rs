//! A digest by a real model, when `HANZO_LOCAL_MODEL_URL` names a server that speaks OpenAI's protocol; `cargo xtask test
//! --with-local-model` starts one. Without the variable there is nothing to ask, and the test says so.

use futures_util::StreamExt as _;
use hanzo_engine::fold::{Cause, DigestBy, Limits, apply, plan};
use hanzo_engine::tokens::Estimator;
use hanzo_protocol::message::StreamEvent;
use hanzo_providers::{ProviderConfig, Registry};
use hanzo_testkit::not_run;
use serde_json::json;

use crate::items::{Maker, digests, users};

#[tokio::test]
async fn a_real_model_writes_a_digest_that_is_applied() {
    let Ok(url) = std::env::var("HANZO_LOCAL_MODEL_URL") else {
        return not_run("a model server (`cargo xtask test --with-local-model`)");
    };
    let client =
        Registry::standard().build(ProviderConfig::new("local", "openai").with_base_url(url)).unwrap();
    let mut maker = Maker::new();
    let mut items = vec![maker.user("Rename the function `load` to `open_settings` everywhere.")];
    for file in ["main", "settings", "tests"] {
        items.push(maker.agent("I read the file and change it."));
        let arguments = json!({"action": "read", "path": format!("src/{file}.rs")});
        items.push(maker.call("fs.read", &arguments, &"let settings = load(path);\n".repeat(60)));
    }
    items.push(maker.agent("All three files are changed, the tests pass."));
    let limits = Limits::new(Some(2_000), 0.8).unwrap();
    let planned = plan(&items, &limits, &Estimator::new(), 200, Cause::Due).unwrap();

    let mut stream = client.send_message(&planned.request("local"));
    let mut summary = String::new();
    loop {
        match stream.next().await.unwrap() {
            StreamEvent::ContentDelta { text } => summary.push_str(&text),
            StreamEvent::MessageStop { .. } => break,
            StreamEvent::Error(error) => panic!("{error}"),
            _ => {}
        }
    }
    println!("{summary}");
    assert!(!summary.trim().is_empty());
    let folded = planned.finish(Some(&summary)).unwrap();
    assert_eq!(folded.by, DigestBy::Model);
    assert!(folded.tokens_after < folded.tokens_before, "{folded:?}");
    let compaction = maker.of(folded.content());
    apply(&mut items, &folded, compaction);
    assert_eq!((digests(&items).len(), users(&items).len()), (1, 1));
}
