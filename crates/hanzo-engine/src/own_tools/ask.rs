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
        let question_id = QuestionId::new();
        let question = Question { question_id, text: input.question, choices: input.choices, answer: None };
        let item =
            new_item(self.journal.thread, self.journal.turn(), ItemContent::Question(question.clone()));
        let answer = match self.attendance {
            Attendance::Headless => None,
            Attendance::Attended => {
                let waiting = self.desk.question(question_id);
                if let Err(error) = self.journal.write(std::slice::from_ref(&item), Beside::default()).await {
                    return ToolResult::failure(format!("the question could not be stored: {error}"));
                }
                self.journal.hub.emit_upwards(&EventContent::QuestionAsked { question: question.clone() });
                waiting.answer().await
            }
        };
        let (answer, by) = match answer {
            Some(text) => (text, AnsweredBy::User),
            None => (NOBODY.to_owned(), AnsweredBy::ModelAssumption),
        };
        let answered = Question { answer: Some(Answer { text: answer.clone(), by }), ..question };
        let item = Item { content: ItemContent::Question(answered), ..item };
        if let Err(error) = self.journal.write(&[item], Beside::default()).await {
            return ToolResult::failure(format!("the answer could not be stored: {error}"));
        }
        ToolResult::success(match by {
            AnsweredBy::User => format!("the user answered: {answer}"),
            AnsweredBy::ModelAssumption => answer,
        })
    }
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
