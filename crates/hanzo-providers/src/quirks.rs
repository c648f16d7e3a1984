//! What vendors of one protocol do differently, as data. Presets and the `extra` options of the settings are read into
//! [`Quirks`]; no code asks which vendor it talks to.

use serde::Deserialize;
use serde_json::{Map, Value};

use hanzo_protocol::message::Effort;

/// How a vendor deviates from the protocol it speaks. Every field has the protocol's own behaviour as its default.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", default, deny_unknown_fields)]
pub struct Quirks {
    /// How the credential is sent; the kind's own way when absent.
    pub auth: Option<Auth>,
    /// What follows the base URL; the kind's own path when absent.
    pub path: Option<String>,
    /// `openai`: the field for the most tokens to answer with.
    pub max_tokens_field: String,
    /// The most tokens to answer with when the request names none. `anthropic` needs a number and takes 8192.
    pub max_tokens: Option<u64>,
    /// Whether the vendor takes a temperature.
    pub temperature: Support,
    /// `openai`: whether `stream_options` may be sent, without which most vendors report no usage.
    pub stream_options: Support,
    /// `openai`: the role of the standing instructions, `system` or `developer`.
    pub system_role: String,
    /// How the effort is told.
    pub effort: EffortParameter,
    /// What the vendor calls the efforts, where it differs: `{ minimal = "low" }`.
    pub effort_names: EffortNames,
    /// `openai`: the field in which reasoning goes back to the vendor.
    pub reasoning_echo: ReasoningEcho,
    /// `openai`: a `tool_choice` to send along with tools.
    pub tool_choice: Option<Value>,
    /// `openai`: a `parallel_tool_calls` to send along with tools.
    pub parallel_tool_calls: Option<bool>,
    /// `openai`: whether a result names its tool.
    pub tool_result_name: Support,
    /// Whether images and documents may be sent. Where not, the model is told that one was left out.
    pub attachments: Support,
    /// `anthropic`: whether to mark what the vendor should cache.
    pub cache_control: Support,
    /// `anthropic`: features in test to ask for.
    pub betas: Vec<String>,
    /// More fields of the request, such as the routing of a broker.
    pub body: Map<String, Value>,
    /// Quirks of some models, by name; `*` stands for any text. All that fit apply, later ones over earlier ones.
    pub models: Vec<ModelQuirks>,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            auth: None,
            path: None,
            max_tokens_field: "max_tokens".to_owned(),
            max_tokens: None,
            temperature: Support::Yes,
            stream_options: Support::Yes,
            system_role: "system".to_owned(),
            effort: EffortParameter::Unsupported,
            effort_names: EffortNames::default(),
            reasoning_echo: ReasoningEcho::Never,
            tool_choice: None,
            parallel_tool_calls: None,
            tool_result_name: Support::No,
            attachments: Support::Yes,
            cache_control: Support::Yes,
            betas: Vec::new(),
            body: Map::new(),
            models: Vec::new(),
        }
    }
}

/// Quirks of the models whose name fits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ModelQuirks {
    /// The name; `*` stands for any text.
    pub r#match: String,
    /// The quirks that differ.
    #[serde(flatten)]
    pub quirks: Map<String, Value>,
}

/// Whether a vendor takes something. Written as a boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "bool")]
pub enum Support {
    /// It does.
    Yes,
    /// It does not.
    No,
}

impl From<bool> for Support {
    fn from(supported: bool) -> Self {
        if supported { Self::Yes } else { Self::No }
    }
}

impl Support {
    pub(crate) fn is_there(self) -> bool {
        self == Self::Yes
    }
}

/// How a credential is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// `Authorization: Bearer …`
    Bearer,
    /// `x-api-key: …`
    XApiKey,
    /// `api-key: …`
    ApiKey,
    /// Not at all.
    None,
}

/// How the effort is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortParameter {
    /// It cannot be told.
    Unsupported,
    /// `openai`: `"reasoning_effort": "low"`
    ReasoningEffort,
    /// `openai`: `"reasoning": {"effort": "low"}`
    ReasoningObject,
    /// `openai`: `"thinking": {"type": "enabled"}`, disabled for the least effort.
    ThinkingSwitch,
    /// `openai`: `"enable_thinking": true`, false for the least effort.
    EnableThinking,
    /// `anthropic`: `"thinking": {"type": "enabled", "budget_tokens": 4096}`, none for the least effort.
    ThinkingBudget,
    /// `anthropic`: `"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}`
    Adaptive,
}

/// What a vendor calls the efforts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EffortNames {
    /// For the least.
    pub minimal: Option<String>,
    /// For a little.
    pub low: Option<String>,
    /// For the usual.
    pub medium: Option<String>,
    /// For the most.
    pub high: Option<String>,
}

impl EffortNames {
    pub(crate) fn name(&self, effort: Effort) -> &str {
        let (name, usual) = match effort {
            Effort::Minimal => (&self.minimal, "minimal"),
            Effort::Low => (&self.low, "low"),
            Effort::Medium => (&self.medium, "medium"),
            Effort::High => (&self.high, "high"),
        };
        name.as_deref().unwrap_or(usual)
    }
}

/// The field in which reasoning goes back to an OpenAI-compatible vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEcho {
    /// It does not go back.
    Never,
    /// `reasoning_content`, for messages that call tools.
    ReasoningContent,
    /// `reasoning`, for messages that call tools.
    Reasoning,
    /// `reasoning_details`, as it came.
    ReasoningDetails,
}

impl Quirks {
    /// Reads quirks from options; what is none of them is an error.
    pub fn from_options(options: &Map<String, Value>) -> Result<Self, String> {
        let quirks: Self =
            serde_json::from_value(Value::Object(options.clone())).map_err(|error| error.to_string())?;
        // A mistake in the quirks of a model is found now, not at its first request.
        for model in &quirks.models {
            Self::overlaid(options, std::slice::from_ref(&model))?;
        }
        Ok(quirks)
    }

    fn overlaid(options: &Map<String, Value>, models: &[&ModelQuirks]) -> Result<Self, String> {
        let mut merged = options.clone();
        merged.remove("models");
        for model in models {
            merged.extend(model.quirks.clone());
        }
        serde_json::from_value(Value::Object(merged)).map_err(|error| {
            format!("models, `{}`: {error}", models.last().map_or("", |model| &model.r#match))
        })
    }
}

/// The quirks of one provider, for each of its models.
#[derive(Debug, Clone)]
pub(crate) struct QuirkBook {
    options: Map<String, Value>,
    base: Quirks,
}

impl QuirkBook {
    pub(crate) fn new(options: Map<String, Value>) -> Result<Self, String> {
        let base = Quirks::from_options(&options)?;
        Ok(Self { options, base })
    }

    pub(crate) fn base(&self) -> &Quirks {
        &self.base
    }

    /// The quirks in force for `model`.
    pub(crate) fn of(&self, model: &str) -> std::borrow::Cow<'_, Quirks> {
        let fitting: Vec<&ModelQuirks> =
            self.base.models.iter().filter(|quirks| fits(&quirks.r#match, model)).collect();
        if fitting.is_empty() {
            return std::borrow::Cow::Borrowed(&self.base);
        }
        // Each overlay was read once when the book was made; together they are as readable.
        let merged = Quirks::overlaid(&self.options, &fitting).unwrap_or_else(|_| self.base.clone());
        std::borrow::Cow::Owned(merged)
    }
}

/// Whether `name` is `pattern`, in which `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(options) => options,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name) in
            [("gpt-5*", "gpt-5-mini"), ("*", ""), ("a*b*c", "aXbYc"), ("x", "x"), ("*/r1", "d/r1")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("gpt-5*", "gpt-4"), ("x", "xy"), ("a*b", "ab c"), ("", "x"), ("ab*b", "ab")]
        {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn quirks_of_a_model_lie_over_those_of_the_vendor() {
        let book = QuirkBook::new(options(json!({
            "max_tokens": 10, "temperature": false,
            "models": [{"match": "big*", "max_tokens": 20}, {"match": "*-thinking", "effort": "reasoning_effort"}],
        })))
        .unwrap();
        assert_eq!(book.of("small").max_tokens, Some(10));
        let both = book.of("big-thinking");
        assert_eq!((both.max_tokens, both.effort), (Some(20), EffortParameter::ReasoningEffort));
        assert_eq!(both.temperature, Support::No);
    }

    #[test]
    fn a_mistake_is_named_when_the_provider_is_built() {
        let unknown = QuirkBook::new(options(json!({"max_token": 1}))).unwrap_err();
        assert!(unknown.contains("max_token"), "{unknown}");
        let nested = QuirkBook::new(options(json!({"models": [{"match": "x", "efort": 1}]}))).unwrap_err();
        assert!(nested.contains("efort") && nested.contains('x'), "{nested}");
    }
}
