//! `ask`: a question to the user. In a thread nobody watches, the model is told so and goes on with an assumption, which is
//! recorded as one.

use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::engine::Attendance;
use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::QuestionId;
use hanzo_protocol::item::{Answer, AnsweredBy, Item, ItemContent, Question};
use hanzo_protocol::message::ToolSchema;
use hanzo_protocol::tool::{Effect, Reach, TimeLimit, Tool, ToolContext, ToolResult};
use serde::Deserialize;
use serde_json::{Value, json};

use super::schema;
use crate::thread::desk::Desk;
use crate::thread::journal::{Beside, Journal};
use crate::thread::state::new_item;

/// What a model is told when nobody can answer.
const NOBODY: &str = "nobody is there to answer; choose the most sensible option and say so";

pub(super) struct AskTool {
    schema: ToolSchema,
    journal: Arc<Journal>,
    desk: Arc<Desk>,
    attendance: Attendance,
}

#[derive(Deserialize)]
struct Input {
    question: String,
    #[serde(default)]
    choices: Vec<String>,
}

impl AskTool {
    pub(super) fn new(journal: Arc<Journal>, desk: Arc<Desk>, attendance: Attendance) -> Self {
        let description = "Ask the user one question and wait for the answer. Only for what the user must decide and what \
                           cannot be found out with the other tools.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "The question, complete in itself"},
                "choices": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Answers to choose from; leave out for free text",
                },
            },
            "required": ["question"],
        });
        Self { schema: schema("ask", description, &parameters), journal, desk, attendance }
    }

    async fn ask(&self, input: Input) -> ToolResult {
        let asked = put(&self.journal, &self.desk, self.attendance, input.question, input.choices).await;
        match asked {
            Ok(Some(answer)) => ToolResult::success(format!("the user answered: {answer}")),
            Ok(None) => ToolResult::success(NOBODY),
            Err(reason) => ToolResult::failure(reason),
        }
    }
}

/// Asks the user of a thread and keeps question and answer in it. `None` when nobody is there; the error is a sentence.
pub(crate) async fn put(
    journal: &Journal,
    desk: &Desk,
    attendance: Attendance,
    text: String,
    choices: Vec<String>,
) -> Result<Option<String>, String> {
    let question_id = QuestionId::new();
    let question = Question { question_id, text, choices, answer: None };
    let item = new_item(journal.thread, journal.turn(), ItemContent::Question(question.clone()));
    let answer = match attendance {
        Attendance::Headless => None,
        Attendance::Attended => {
            let waiting = desk.question(question_id);
            let stored = journal.write(std::slice::from_ref(&item), Beside::default()).await;
            stored.map_err(|error| format!("the question could not be stored: {error}"))?;
            journal.hub.emit_upwards(&EventContent::QuestionAsked { question: question.clone() });
            waiting.answer().await
        }
    };
    let by = if answer.is_some() { AnsweredBy::User } else { AnsweredBy::ModelAssumption };
    let text = answer.clone().unwrap_or_else(|| NOBODY.to_owned());
    let answered = Question { answer: Some(Answer { text, by }), ..question };
    let item = Item { content: ItemContent::Question(answered), ..item };
    let stored = journal.write(&[item], Beside::default()).await;
    stored.map_err(|error| format!("the answer could not be stored: {error}"))?;
    Ok(answer)
}

impl Tool for AskTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn reach(&self, _: &Value) -> Reach {
        // A person takes the time a person takes.
        Reach { time_limit: TimeLimit::Own, ..Reach::new("ask", Effect::Read) }
    }

    fn execute<'a>(&'a self, _: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            match serde_json::from_value::<Input>(arguments) {
                Ok(input) if !input.question.trim().is_empty() => self.ask(input).await,
                Ok(_) => ToolResult::failure("INVALID_ARGUMENTS: `question` is empty"),
                Err(error) => ToolResult::failure(format!("INVALID_ARGUMENTS: {error}")),
            }
        })
    }
}
