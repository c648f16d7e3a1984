//! `--json-schema`: an answer a program can read.

use std::path::Path;

use serde_json::Value;

use crate::exit::{Exit, Failure};

/// The largest schema we read; it goes into the prompt.
const MAX_SCHEMA: u64 = 256 * 1024;

/// How many faults of an answer are told to the model.
const MAX_FAULTS: usize = 5;

/// What an answer must look like.
pub struct AnswerSchema {
    text: String,
    validator: jsonschema::Validator,
}

impl AnswerSchema {
    /// Reads and compiles the schema in `file`.
    pub fn load(file: &Path) -> Result<Self, Failure> {
        let wrong = |what: String| {
            Failure::message(Exit::BadInput, format!("`--json-schema` {}: {what}", file.display()))
        };
        let size = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?.len();
        if size > MAX_SCHEMA {
            return Err(wrong(format!("is larger than {} KiB", MAX_SCHEMA >> 10)));
        }
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let schema: Value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
        let validator =
            jsonschema::validator_for(&schema).map_err(|error| format!("is not a JSON Schema: {error}"))?;
        Ok(Self { text: schema.to_string(), validator })
    }

    /// `prompt` with the demand for JSON.
    pub fn asked_for(&self, prompt: &str) -> String {
        format!(
            "{prompt}\n\nEnd with an answer that is one JSON value and nothing else (no prose, no code fence), valid against this JSON Schema:\n{}",
            self.text
        )
    }

    /// What to say about an answer that is not valid.
    pub fn repair(&self, fault: &str) -> String {
        format!(
            "That answer is not valid: {fault}\nAnswer again with the corrected JSON value and nothing else. The JSON Schema:\n{}",
            self.text
        )
    }

    /// The JSON in `answer`, as text and as a value, or what is wrong with it.
    pub fn check(&self, answer: &str) -> Result<(String, Value), String> {
        let text = without_fence(answer);
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let faults: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(MAX_FAULTS)
            .map(|fault| match fault.instance_path().to_string() {
                root if root.is_empty() => fault.to_string(),
                place => format!("{place}: {fault}"),
            })
            .collect();
        if faults.is_empty() { Ok((text.to_owned(), value)) } else { Err(faults.join("; ")) }
    }
}

/// `answer` without the code fence models like to put around JSON.
fn without_fence(answer: &str) -> &str {
    let answer = answer.trim();
    let fenced = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match fenced.and_then(|inside| inside.split_once('\n')) {
        // The first line is the fence's language, unless it already is JSON.
        Some((language, inside)) if language.trim().chars().all(char::is_alphanumeric) => inside.trim(),
        _ => answer,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> AnswerSchema {
        let text = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        AnswerSchema::parse(&text.to_string()).unwrap()
    }

    #[test]
    fn an_answer_is_taken_with_or_without_a_fence() {
        for answer in ["{\"n\": 1}", " {\"n\": 1}\n", "```json\n{\"n\": 1}\n```", "```\n{\"n\": 1}\n```"] {
            assert_eq!(
                schema().check(answer).unwrap(),
                ("{\"n\": 1}".to_owned(), json!({"n": 1})),
                "{answer}"
            );
        }
    }

    #[test]
    fn a_fault_names_the_place_and_the_reason() {
        assert!(schema().check("sorry").unwrap_err().starts_with("it is not JSON"));
        let fault = schema().check("{\"n\": \"one\"}").unwrap_err();
        assert!(fault.starts_with("/n: ") && fault.contains("integer"), "{fault}");
        assert!(schema().check("{}").unwrap_err().contains("required"));
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        assert!(AnswerSchema::parse("{").is_err_and(|fault| fault.contains("not JSON")));
        assert!(AnswerSchema::parse("{\"type\": 5}").is_err_and(|fault| fault.contains("not a JSON Schema")));
    }
}
