//! What MCP servers ask: the user through questions of the thread whose call made them ask, and a model when the user agrees.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use hanzo_engine::parts::Models;
use hanzo_mcp::client::elicitation::{Field, FieldKind, fields, read};
use hanzo_mcp::client::host::{
    Elicitation, ElicitationAnswer, ElicitationForm, Elicitor, Sampled, Sampler, Sampling, Speaker,
};
use hanzo_mcp::client::text::{clean, line};
use hanzo_protocol::BoxFuture;
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::message::{Message, ModelRequest, Role, StopReason, StreamEvent};
use serde_json::{Map, Value};

use super::mcp::EngineCell;

/// What refuses a form.
const DECLINE: &str = "Decline";
/// What agrees to it.
const AGREE: &str = "Allow once";
/// How often a field is asked for that was answered with something it cannot be.
const MOST_TRIES: usize = 3;

/// Answers servers with the help of the engine.
#[derive(Default)]
pub struct Asks {
    /// The engine, once there is one.
    pub engine: EngineCell,
    models: Mutex<HashMap<ThreadId, Arc<dyn Models>>>,
}

impl Asks {
    /// The models of each thread.
    pub fn models(&self) -> MutexGuard<'_, HashMap<ThreadId, Arc<dyn Models>>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, thread: Option<ThreadId>, question: String, choices: Vec<String>) -> Option<String> {
        self.engine.get()?.ask_user(thread?, question, choices).await
    }

    async fn form(&self, request: &Elicitation, schema: &Value) -> ElicitationAnswer {
        let intro = format!("The MCP server `{}` asks: {}", line(&request.server, 100), request.message);
        let form = fields(schema);
        if form.is_empty() {
            let choices = vec!["Yes".to_owned(), DECLINE.to_owned()];
            return match self.ask(request.thread, intro, choices).await.as_deref() {
                Some("Yes") => ElicitationAnswer::Accept(Value::Object(Map::new())),
                Some(_) => ElicitationAnswer::Decline,
                None => ElicitationAnswer::Cancel,
            };
        }
        let mut answers = Map::new();
        for field in form {
            match self.field(request, &intro, &field).await {
                Ok(Some(value)) => {
                    answers.insert(field.name, value);
                }
                Ok(None) => {}
                Err(answer) => return answer,
            }
        }
        ElicitationAnswer::Accept(Value::Object(answers))
    }

    async fn field(
        &self,
        request: &Elicitation,
        intro: &str,
        field: &Field,
    ) -> Result<Option<Value>, ElicitationAnswer> {
        let mut choices: Vec<String> = match &field.kind {
            FieldKind::Boolean => vec!["Yes".to_owned(), "No".to_owned()],
            FieldKind::Choice(choices) => choices.iter().map(|(_, shown)| shown.clone()).collect(),
            _ => Vec::new(),
        };
        let free = choices.is_empty();
        choices.push(DECLINE.to_owned());
        let hint = match &field.kind {
            FieldKind::Choices(choices) => {
                let shown: Vec<&str> = choices.iter().map(|(_, shown)| shown.as_str()).collect();
                format!(" (some of {}, with commas between them)", shown.join(", "))
            }
            _ if free => format!(" (or `{DECLINE}`)"),
            _ => String::new(),
        };
        let mut fault = String::new();
        for _ in 0..MOST_TRIES {
            let question = format!("{intro}\n{}{hint}{fault}", field.question);
            let offered = if free { Vec::new() } else { choices.clone() };
            let answer =
                self.ask(request.thread, question, offered).await.ok_or(ElicitationAnswer::Cancel)?;
            if answer.eq_ignore_ascii_case(DECLINE) {
                return Err(ElicitationAnswer::Decline);
            }
            match read(field, &answer) {
                Ok(value) => return Ok(value),
                Err(reason) => fault = format!("\n{reason}"),
            }
        }
        Err(ElicitationAnswer::Cancel)
    }
}

impl Elicitor for Asks {
    fn elicit(&self, request: Elicitation) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async move {
            match &request.form {
                ElicitationForm::Fields(schema) => self.form(&request, schema).await,
                ElicitationForm::Url(url) => {
                    let question = format!(
                        "The MCP server `{}` asks you to open {} yourself: {}",
                        line(&request.server, 100),
                        line(url, 500),
                        request.message
                    );
                    let choices = vec!["Done".to_owned(), DECLINE.to_owned()];
                    match self.ask(request.thread, question, choices).await.as_deref() {
                        Some("Done") => ElicitationAnswer::Accept(Value::Null),
                        Some(_) => ElicitationAnswer::Decline,
                        None => ElicitationAnswer::Cancel,
                    }
                }
            }
        })
    }
}

impl Sampler for Asks {
    fn sample(&self, request: Sampling) -> BoxFuture<'_, Result<Sampled, String>> {
        Box::pin(async move {
            let thread = request.thread.ok_or("no thread's call made this request")?;
            let models = self.models().get(&thread).cloned().ok_or("the thread is closed")?;
            let model = models.resolve(None).map_err(|error| error.message)?;
            let shown: Vec<String> = request.messages.iter().map(|turn| clean(&turn.text, 500)).collect();
            let question = format!(
                "The MCP server `{}` wants the model `{}` to be asked, at your expense: {}",
                line(&request.server, 100),
                model.reference,
                clean(&shown.join("\n"), 2_000),
            );
            let choices = vec![AGREE.to_owned(), DECLINE.to_owned()];
            if self.ask(Some(thread), question, choices).await.as_deref() != Some(AGREE) {
                return Err("the user did not allow it".to_owned());
            }
            let system = request.system.into_iter().map(|text| Message::new(Role::System, text));
            let said = request.messages.into_iter().map(|turn| {
                let role = match turn.speaker {
                    Speaker::User => Role::User,
                    Speaker::Assistant => Role::Assistant,
                };
                Message::new(role, turn.text)
            });
            let asked = ModelRequest {
                model: model.name.clone(),
                messages: system.chain(said).collect(),
                tools: Vec::new(),
                temperature: request.temperature.map(f64::from),
                max_tokens: Some(request.max_tokens.into()),
                effort: None,
            };
            let mut stream = model.client.send_message(&asked);
            let mut text = String::new();
            while let Some(event) = stream.next().await {
                match event {
                    StreamEvent::ContentDelta { text: more } => text.push_str(&more),
                    StreamEvent::MessageStop { reason, .. } => {
                        return Ok(Sampled { model: model.name, text, cut: reason == StopReason::MaxTokens });
                    }
                    StreamEvent::Error(error) => return Err(error.to_string()),
                    _ => {}
                }
            }
            Err("the model's answer broke off".to_owned())
        })
    }
}
