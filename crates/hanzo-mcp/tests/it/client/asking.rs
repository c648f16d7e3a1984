//! What servers ask of us.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use hanzo_mcp::client::host::{
    Elicitation, ElicitationAnswer, ElicitationForm, Elicitor, LogSink, Sampled, Sampler, Sampling,
};
use hanzo_protocol::BoxFuture;
use hanzo_protocol::tool::Tool as _;
use serde_json::{Value, json};

use super::stage::{Heard, call, context, parts, settled, stage, tool};

struct Person {
    asked: Mutex<Vec<Elicitation>>,
    answer: ElicitationAnswer,
}

impl Elicitor for Person {
    fn elicit(&self, request: Elicitation) -> BoxFuture<'_, ElicitationAnswer> {
        self.asked.lock().unwrap().push(request);
        Box::pin(async move {
            // Longer than the server's time limit: while a person thinks, the clock stands.
            tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
            self.answer.clone()
        })
    }
}

#[tokio::test]
async fn a_servers_question_goes_to_the_user_of_the_thread_that_called_it() {
    let person = Arc::new(Person {
        asked: Mutex::default(),
        answer: ElicitationAnswer::Accept(json!({"name": "Ada"})),
    });
    let mut config = stage("s", &[]);
    config.timeout = std::time::Duration::from_secs(1);
    let mut parts = parts(vec![config]);
    parts.elicitor = Some(person.clone());
    let manager = settled(parts).await;
    let context = context();
    let result = tool(&manager, "mcp__s__elicit").execute(&context, json!({})).await;
    let answer: Value = serde_json::from_str(&result.output).unwrap();
    assert_eq!(
        answer,
        json!({"action": "accept", "content": {"name": "Ada", "age": 7}}),
        "defaults are filled in"
    );
    let asked = person.asked.lock().unwrap();
    assert_eq!((asked[0].server.as_str(), asked[0].message.as_str()), ("s", "who?"));
    assert_eq!(asked[0].thread, Some(context.thread));
    assert!(
        matches!(&asked[0].form, ElicitationForm::Fields(schema) if schema["required"] == json!(["name"]))
    );
}

#[tokio::test]
async fn without_anybody_to_ask_the_answer_is_no() {
    let manager = settled(parts(vec![stage("s", &[])])).await;
    let elicited = call(&manager, "mcp__s__elicit", json!({})).await;
    assert!(elicited.output.contains("decline"), "{}", elicited.output);
    let sampled = call(&manager, "mcp__s__sample", json!({})).await;
    assert!(sampled.output.contains("error"), "{}", sampled.output);
}

struct Model;

impl Sampler for Model {
    fn sample(&self, request: Sampling) -> BoxFuture<'_, Result<Sampled, String>> {
        Box::pin(async move {
            let text = format!("{} ({} tokens at most)", request.messages[0].text, request.max_tokens);
            Ok(Sampled { model: "m".into(), text, cut: false })
        })
    }
}

#[tokio::test]
async fn a_server_may_have_a_model_asked_and_the_workspace_named() {
    let mut parts = parts(vec![stage("s", &[])]);
    parts.sampler = Some(Arc::new(Model));
    parts.roots = vec![PathBuf::from("/some/where")];
    let manager = settled(parts).await;
    let sampled = call(&manager, "mcp__s__sample", json!({})).await;
    assert!(sampled.output.contains("say hi (10 tokens at most)"), "{}", sampled.output);
    let roots: Value =
        serde_json::from_str(&call(&manager, "mcp__s__roots", json!({})).await.output).unwrap();
    assert_eq!(roots["roots"], json!([{"uri": "file:///some/where", "name": "where"}]));
}

impl LogSink for Heard {
    fn log(&self, server: &str, level: &str, line: &str) {
        self.0.lock().unwrap().push(format!("{server} {level} {line}"));
    }
}

#[tokio::test]
async fn what_servers_log_is_heard_and_cleaned() {
    let heard = Arc::new(Heard::default());
    let mut parts = parts(vec![stage("s", &[])]);
    parts.log = Some(heard.clone());
    let manager = settled(parts).await;
    call(&manager, "mcp__s__log", json!({})).await;
    call(&manager, "mcp__s__crash", json!({})).await;
    let all = heard.all();
    assert!(all.contains(&"s warning mind[31m the gap".to_owned()), "{all:?}");
    assert!(all.contains(&"s stderr stage: told to crash".to_owned()), "{all:?}");
}
