//! `think`: a scratchpad with a form. It records what a model thinks and says it back shortened, with the questions that go with
//! the kind of thinking; it asks no model and reads no file.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::FileUri;
use hanzo_protocol::tool::Effect;
use hanzo_sandbox::paths::{Access, FileKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::contract::{Action, Answer, Call, Target, ToolBuilder, UnifiedTool, place};

/// Notes kept; the oldest is forgotten first.
const MAX_NOTES: usize = 200;
/// How much of a note is kept.
const MAX_KEPT: usize = 16 << 10;
/// How much of a note is said back.
const MAX_ECHO: usize = 400;
/// How many earlier notes are named.
const MAX_EARLIER: usize = 8;
/// How many snippets and files a review takes.
const MAX_ITEMS: usize = 50;

/// What a thread has thought.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    notes: VecDeque<Note>,
}

/// One recorded note.
#[derive(Debug, Clone)]
struct Note {
    number: u64,
    kind: &'static str,
    text: String,
}

impl Notes {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records `text` and answers its number and the titles of those before it, newest last.
    fn record(&self, kind: &'static str, text: &str) -> Recorded {
        let mut kept = self.kept();
        let skip = kept.notes.len().saturating_sub(MAX_EARLIER);
        let earlier = kept.notes.iter().skip(skip).map(|note| {
            format!("{} ({}): {}", note.number, note.kind, shortened(first_line(&note.text), 80))
        });
        let earlier = earlier.collect();
        kept.last += 1;
        let number = kept.last;
        kept.notes.push_back(Note { number, kind, text: shortened(text, MAX_KEPT) });
        if kept.notes.len() > MAX_NOTES {
            kept.notes.pop_front();
        }
        Recorded { number, characters: text.chars().count(), text: shortened(text, MAX_ECHO), earlier }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(limit)])
}

fn not_empty(field: &str, text: &str) -> Result<(), ToolError> {
    if text.trim().is_empty() {
        let error = ToolError::new(ErrorCode::InvalidArguments, format!("`{field}` is empty"));
        return Err(error.with_details(json!({ "field": field })));
    }
    Ok(())
}

/// The tool, to be given a host.
pub fn tool() -> ToolBuilder {
    UnifiedTool::builder("think", "A scratchpad: records and says back. Changes nothing.")
        .action(Think)
        .action(Critic)
        .action(Review)
}

/// What was recorded.
#[derive(Debug, Serialize, JsonSchema)]
struct Recorded {
    /// Its number in the thread.
    number: u64,
    characters: usize,
    /// The titles of what was recorded before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<String>,
    /// How it begins.
    text: String,
}

/// Records a thought.
struct Think;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ThinkInput {
    thought: String,
    context: Option<String>,
}

impl Action for Think {
    const NAME: &'static str = "think";
    const SUMMARY: &'static str = "record a thought";
    const EXAMPLE: &'static str = r#"{"thought":"The test fails only in parallel, so state is shared."}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[("text", "thought")];
    type Input = ThinkInput;
    type Output = Recorded;

    fn effect(&self, _: &ThinkInput) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, input: ThinkInput) -> Result<Answer<Recorded>, ToolError> {
        not_empty("thought", &input.thought)?;
        let text = match input.context {
            Some(context) => format!("{}\n\ncontext: {context}", input.thought),
            None => input.thought,
        };
        Ok(Answer::new(call.host.notes.record("think", &text)))
    }
}

/// Records an analysis and asks what is wrong with it.
struct Critic;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CriticInput {
    /// What to doubt
    analysis: String,
    context: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CriticOutput {
    #[serde(flatten)]
    recorded: Recorded,
    /// To be answered before going on.
    questions: Vec<&'static str>,
}

const DOUBTS: [&str; 6] = [
    "Which claim here was not checked, and what call would check it?",
    "What input, order or environment makes this wrong?",
    "What else explains the same observations?",
    "What does it break for those who rely on what is there now?",
    "What is the smallest change that would do?",
    "What would show within a minute that it does not work?",
];

impl Action for Critic {
    const NAME: &'static str = "critic";
    const SUMMARY: &'static str = "record an analysis, get the questions to doubt it with";
    const EXAMPLE: &'static str = r#"{"analysis":"A lock around the cache repairs it."}"#;
    type Input = CriticInput;
    type Output = CriticOutput;

    fn effect(&self, _: &CriticInput) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, input: CriticInput) -> Result<Answer<CriticOutput>, ToolError> {
        not_empty("analysis", &input.analysis)?;
        let text = match input.context {
            Some(context) => format!("{}\n\ncontext: {context}", input.analysis),
            None => input.analysis,
        };
        let recorded = call.host.notes.record("critic", &text);
        Ok(Answer::new(CriticOutput { recorded, questions: DOUBTS.to_vec() }))
    }
}

/// What a review looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Focus {
    #[default]
    General,
    Functionality,
    Readability,
    Maintainability,
    Testing,
    Documentation,
    Architecture,
    Security,
    Performance,
}

impl Focus {
    fn questions(self) -> &'static [&'static str] {
        match self {
            Self::General => &[
                "Does it do what was asked, all of it and nothing else?",
                "What happens with empty, huge and malformed input?",
                "Which test would fail if it broke?",
                "What would surprise the next reader?",
            ],
            Self::Functionality => &[
                "Is every case of the task handled, errors included?",
                "What happens at the limits: none, one, many, the largest?",
                "Is state left whole when it fails half-way or runs twice?",
            ],
            Self::Readability => &[
                "Do names say what things are?",
                "Can each function be understood without the others?",
                "Does any comment restate the code, or any trick lack its reason?",
            ],
            Self::Maintainability => &[
                "What has to change together, and does it stand together?",
                "Is anything said twice that could come to disagree?",
                "Which decision would be dear to undo?",
            ],
            Self::Testing => &[
                "Was each test seen to fail for the right reason?",
                "Do the tests watch behaviour or the implementation?",
                "Which failure in use would no test notice?",
            ],
            Self::Documentation => &[
                "Does it say what it is for before how it works?",
                "Are the examples run, or at least true?",
                "What does a user have to know that stands nowhere?",
            ],
            Self::Architecture => &[
                "Do the arrows between parts point one way?",
                "Could a part be tested, replaced and understood alone?",
                "Is the boundary where things change for different reasons?",
            ],
            Self::Security => &[
                "Where does untrusted input become a path, a command, a query or code?",
                "What does a caller get that they were not given?",
                "Are secrets kept out of logs, errors and files that others read?",
            ],
            Self::Performance => &[
                "What grows with the input, and how fast?",
                "What is done again that could be kept, and kept for ever that should go?",
                "What was measured, and under what load?",
            ],
        }
    }
}

/// Records work to be reviewed and gives the questions for it.
struct Review;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReviewInput {
    /// What was done
    work_description: String,
    #[serde(default)]
    focus: Focus,
    code_snippets: Option<Vec<String>>,
    file_paths: Option<Vec<String>>,
    context: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReviewOutput {
    #[serde(flatten)]
    recorded: Recorded,
    focus: Focus,
    /// To be answered about each file and snippet.
    questions: Vec<&'static str>,
    /// The files to look at.
    files: Vec<Reviewed>,
    /// How the snippets begin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    snippets: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Reviewed {
    uri: FileUri,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Why it cannot be reviewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl Action for Review {
    const NAME: &'static str = "review";
    const SUMMARY: &'static str = "record work done, get the questions to review it with";
    const EXAMPLE: &'static str =
        r#"{"work_description":"The cache is locked now.","focus":"testing","file_paths":["src/cache.rs"]}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] =
        &[("work", "work_description"), ("paths", "file_paths"), ("snippets", "code_snippets")];
    type Input = ReviewInput;
    type Output = ReviewOutput;

    /// Other vocabularies write the focus in capitals.
    fn prepare(mut arguments: Map<String, Value>) -> Map<String, Value> {
        if let Some(Value::String(focus)) = arguments.get_mut("focus") {
            focus.make_ascii_lowercase();
        }
        arguments
    }

    fn effect(&self, _: &ReviewInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &ReviewInput) -> Vec<Target> {
        input.file_paths.iter().flatten().map(Target::read).collect()
    }

    async fn run(&self, call: &Call<'_>, input: ReviewInput) -> Result<Answer<ReviewOutput>, ToolError> {
        not_empty("work_description", &input.work_description)?;
        let (paths, snippets) =
            (input.file_paths.unwrap_or_default(), input.code_snippets.unwrap_or_default());
        for (field, count) in [("file_paths", paths.len()), ("code_snippets", snippets.len())] {
            if count > MAX_ITEMS {
                let text = format!("`{field}` has {count} entries; at most {MAX_ITEMS} are reviewed at once");
                return Err(ToolError::new(ErrorCode::InvalidArguments, text));
            }
        }
        let files = call
            .blocking(move |host, cancelled| {
                let mut files = Vec::new();
                for given in &paths {
                    cancelled.check()?;
                    let path = place::parse(given)?;
                    let real = host.workspace.locate(&path, Access::Read);
                    let uri = place::uri(&real.unwrap_or_else(|_| place::resolve(&host.workspace, &path)));
                    let (size, problem) = match host.workspace.stat(&path) {
                        Ok(found) if found.kind == FileKind::File => (Some(found.len), None),
                        Ok(_) => (None, Some("it is no file".to_owned())),
                        Err(error) => (None, Some(place::failure(&error).message)),
                    };
                    files.push(Reviewed { uri, size, problem });
                }
                Ok(files)
            })
            .await?;
        let mut text = input.work_description;
        if let Some(context) = input.context {
            text = format!("{text}\n\ncontext: {context}");
        }
        Ok(Answer::new(ReviewOutput {
            recorded: call.host.notes.record("review", &text),
            focus: input.focus,
            questions: input.focus.questions().to_vec(),
            files,
            snippets: snippets.iter().map(|snippet| shortened(first_line(snippet), 120)).collect(),
        }))
    }
}
