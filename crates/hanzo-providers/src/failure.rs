//! What sort of failure an answer is. Vendors agree on little: the status is looked at, then the type or code the body
//! names, then the words of the message, because a full context window comes as a 400, a 413 or a 500 with a sentence.

use std::time::{Duration, SystemTime};

use hanzo_backoff::{RetryAfter, is_transient_status};
use hanzo_protocol::message::{ApiError, ApiErrorKind};
use serde_json::Value;

use crate::redact::Redactor;

/// A failure without a status.
pub(crate) fn plain(kind: ApiErrorKind, message: impl Into<String>) -> ApiError {
    ApiError { kind, message: message.into(), status: None, retry_after_ms: None }
}

/// The failure an HTTP response is.
pub(crate) fn from_response(
    status: u16,
    retry_after: Option<Duration>,
    body: &[u8],
    redactor: &Redactor,
) -> ApiError {
    let text = String::from_utf8_lossy(body);
    let told = Told::from_body(&text);
    let kind = kind_of(Some(status), &told);
    let said = redactor.message(&told.message);
    let message = if said.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {said}") };
    let retry_after_ms = retry_after.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
    ApiError { kind, message: with_hint(message, kind, status), status: Some(status), retry_after_ms }
}

/// The failure an event or a document inside an answer is, when it is one.
pub(crate) fn in_answer(value: &Value) -> Option<ApiError> {
    let is_error = value.get("error").is_some_and(|error| !error.is_null())
        || value["object"] == "error"
        || value["type"] == "error";
    if !is_error {
        return None;
    }
    let told = Told::from_value(value);
    let status = told.code.parse().ok().filter(|status| (400..600).contains(status));
    let said = if told.message.is_empty() {
        "the vendor reported an error without words".to_owned()
    } else {
        told.message.clone()
    };
    Some(ApiError { kind: kind_of(status, &told), message: said, status, retry_after_ms: None })
}

/// How long the response's headers ask us to wait.
pub(crate) fn retry_after(headers: &reqwest::header::HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // A finer form some vendors send beside the standard one.
    if let Some(milliseconds) = text("retry-after-ms").and_then(|value| value.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let value = text("retry-after")?;
    let now = SystemTime::now();
    if let Some(wish) = RetryAfter::parse(value, now) {
        return Some(wish.delay(now));
    }
    // Not allowed, but seen: seconds with a fraction.
    value.trim().parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// What a body says about a failure.
#[derive(Debug, Default)]
struct Told {
    message: String,
    kind: String,
    code: String,
}

impl Told {
    fn from_body(text: &str) -> Self {
        match serde_json::from_str::<Value>(text) {
            Ok(value) => {
                let told = Self::from_value(&value);
                if told.message.is_empty() { Self { message: text.to_owned(), ..told } } else { told }
            }
            Err(_) if is_html(text) => Self {
                message: title(text).unwrap_or("a web page in place of an answer").to_owned(),
                ..Self::default()
            },
            Err(_) => Self { message: text.to_owned(), ..Self::default() },
        }
    }

    fn from_value(value: &Value) -> Self {
        // Gemini's compatible endpoint wraps its error in a list.
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let error = match &value["error"] {
            Value::Null => value,
            error => error,
        };
        let string = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let first = |candidates: &[&Value]| {
            candidates.iter().map(|value| string(value)).find(|text| !text.is_empty()).unwrap_or_default()
        };
        let mut message =
            first(&[&error["message"], error, &value["message"], &value["detail"], &error["detail"]]);
        if let Some(details) = value["detail"].as_array() {
            // FastAPI: a list of what is wrong with which field.
            message =
                details.iter().filter_map(|detail| detail["msg"].as_str()).collect::<Vec<_>>().join("; ");
        }
        // A broker's own words say little; what the vendor behind it said is in here.
        if let Some(raw) = error["metadata"]["raw"].as_str() {
            message = format!("{message}: {raw}");
        }
        Self {
            message,
            kind: first(&[&error["type"], &error["status"], &value["type"]]),
            code: first(&[&error["code"], &value["code"], &value["status_code"]]),
        }
    }

    fn names(&self, words: &[&str]) -> bool {
        let (kind, code) = (self.kind.to_ascii_lowercase(), self.code.to_ascii_lowercase());
        words.iter().any(|word| kind.contains(word) || code.contains(word))
    }

    fn says(&self, words: &[&str]) -> bool {
        let message = self.message.to_ascii_lowercase();
        words.iter().any(|word| message.contains(word))
    }
}

fn is_html(text: &str) -> bool {
    let start = text.trim_start().get(..15).unwrap_or(text).to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

fn title(html: &str) -> Option<&str> {
    let after = html.split_once("<title>")?.1;
    after.split_once("</title>").map(|(title, _)| title)
}

const OVERFLOW_CODES: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "context_window",
    "request_too_large",
    "string_above_max_length",
];
const OVERFLOW_WORDS: &[&str] = &[
    "maximum context length",
    "context length exceeded",
    "context_length_exceeded",
    "exceeds the context window",
    "context window exceeds",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "exceeds the available context size",
    "exceed context limit",
    "exceeds the model's max",
    "exceeds the limit of",
    "input token count",
    "maximum prompt length",
    "reduce the length of the messages",
    "greater than the context length",
    "larger than the maximum context",
];
const QUOTA_CODES: &[&str] = &[
    "insufficient_quota",
    "billing",
    "insufficient_balance",
    "quota_exceeded",
    "payment",
    "credits_exhausted",
];
const QUOTA_WORDS: &[&str] = &[
    "exceeded your current quota",
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "insufficient_quota",
    "out of credits",
    "run out of credits",
    "billing details",
    "billing hard limit",
    "requires more credits",
    "add more credits",
];

fn kind_of(status: Option<u16>, told: &Told) -> ApiErrorKind {
    use ApiErrorKind::{Auth, BadRequest, ContextOverflow, Malformed, Network, Overloaded, Quota, Rate};
    // What can be done about it matters more than the number: these two hide behind several.
    if told.names(OVERFLOW_CODES) || (told.says(OVERFLOW_WORDS) && status != Some(429)) {
        return ContextOverflow;
    }
    if told.names(QUOTA_CODES) || (told.says(QUOTA_WORDS) && status.is_none_or(|status| status < 500)) {
        return Quota;
    }
    match status {
        Some(401 | 403) => Auth,
        Some(402) => Quota,
        Some(413) => ContextOverflow,
        Some(429) => Rate,
        Some(408) => Network,
        Some(status) if is_transient_status(status) => Overloaded,
        // Some vendors send every failure as a 400 and tell the sort in the body.
        Some(400) if told.names(&["rate_limit"]) => Rate,
        Some(400) if told.names(&["overloaded", "capacity"]) => Overloaded,
        Some(400) if told.names(&["authentication", "invalid_api_key"]) => Auth,
        Some(_) => BadRequest,
        None if told.names(&[
            "overloaded",
            "api_error",
            "server_error",
            "internal",
            "unavailable",
            "capacity",
        ]) =>
        {
            Overloaded
        }
        None if told.names(&["rate_limit", "resource_exhausted", "too_many_requests"]) => Rate,
        None if told.names(&["authentication", "permission", "invalid_api_key"]) => Auth,
        None if told.names(&["invalid_request", "not_found", "badrequest"]) => BadRequest,
        None if told.names(&["timeout"]) || told.says(&["timed out", "timeout"]) => Network,
        None if told.says(&["overloaded", "try again"]) => Overloaded,
        None if told.says(&["rate limit"]) => Rate,
        None => Malformed,
    }
}

fn with_hint(message: String, kind: ApiErrorKind, status: u16) -> String {
    let hint = match (kind, status) {
        (ApiErrorKind::Auth, _) => "check the provider's API key and what it may be used for",
        (ApiErrorKind::Quota, _) => "the account has no credit left: add some, or use another provider",
        (_, 404) => "check the model's name and the provider's `base_url`",
        (_, 300..400) => "the address answers with a redirection: set `base_url` to where the API really is",
        _ => return message,
    };
    format!("{message}\n\nhint: {hint}")
}

#[cfg(test)]
mod tests {
    use ApiErrorKind::{Auth, BadRequest, ContextOverflow, Malformed, Network, Overloaded, Quota, Rate};
    use serde_json::json;

    use super::*;

    fn kind(status: u16, body: &str) -> ApiErrorKind {
        from_response(status, None, body.as_bytes(), &Redactor::default()).kind
    }

    #[test]
    fn failures_are_sorted_by_what_can_be_done_about_them() {
        for (status, body, expected) in [
            // OpenAI
            (
                401,
                r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                Auth,
            ),
            (
                429,
                r#"{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}"#,
                Rate,
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Quota,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#,
                ContextOverflow,
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'temperature'","type":"invalid_request_error"}}"#,
                BadRequest,
            ),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#,
                BadRequest,
            ),
            (500, r#"{"error":{"message":"The server had an error","type":"server_error"}}"#, Overloaded),
            // Anthropic
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                ContextOverflow,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API"}}"#,
                Quota,
            ),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Overloaded,
            ),
            (403, r#"{"type":"error","error":{"type":"permission_error","message":"no"}}"#, Auth),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                ContextOverflow,
            ),
            // Deviations
            (402, r#"{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}"#, Quota),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
                ContextOverflow,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]"#,
                BadRequest,
            ),
            (422, r#"{"detail":[{"loc":["body","x"],"msg":"field required"}]}"#, BadRequest),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096","code":40303}"#,
                ContextOverflow,
            ),
            (502, "<html><head><title>502 Bad Gateway</title></head></html>", Overloaded),
            (503, "", Overloaded),
            (408, "", Network),
            (501, "", BadRequest),
            (302, "", BadRequest),
        ] {
            assert_eq!(kind(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn the_vendors_words_are_found_in_every_common_shape() {
        for (body, expected) in [
            (json!({"error": "model 'x' not found"}), "model 'x' not found"),
            (json!({"error": {"message": "a"}}), "a"),
            (json!({"message": "b"}), "b"),
            (json!({"detail": "c"}), "c"),
            (json!({"detail": [{"msg": "d"}, {"msg": "e"}]}), "d; e"),
            (json!([{"error": {"message": "f"}}]), "f"),
            (
                json!({"error": {"message": "Provider returned error", "metadata": {"raw": "too hot"}}}),
                "Provider returned error: too hot",
            ),
        ] {
            assert_eq!(Told::from_body(&body.to_string()).message, expected);
        }
        assert_eq!(Told::from_body("<!DOCTYPE html><title>Sign in</title>").message, "Sign in");
    }

    #[test]
    fn an_error_inside_an_answer_is_told_from_an_answer() {
        assert_eq!(in_answer(&json!({"choices": [], "error": null})), None);
        let kind = |value: Value| in_answer(&value).unwrap().kind;
        assert_eq!(kind(json!({"error": {"message": "x", "code": 429}})), Rate);
        assert_eq!(
            kind(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})),
            Overloaded
        );
        assert_eq!(kind(json!({"object": "error", "message": "boom", "code": 500})), Overloaded);
        assert_eq!(kind(json!({"error": "what"})), Malformed);
    }

    #[test]
    fn a_message_holds_no_credential_and_says_what_to_try() {
        let body = r#"{"error":{"message":"Incorrect API key provided: secret-value-1. \u001b[31m"}}"#;
        let error = from_response(401, None, body.as_bytes(), &Redactor::new(["secret-value-1"]));
        assert_eq!(
            error.message,
            "HTTP 401: Incorrect API key provided: ***. [31m\n\nhint: check the provider's API key and what it may be used for"
        );
    }

    #[test]
    fn waiting_times_are_read_in_all_their_forms() {
        let read = |name: &'static str, value: &str| {
            let mut headers = reqwest::header::HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(read("retry-after", "3"), Some(Duration::from_secs(3)));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(read("retry-after", "1.5"), Some(Duration::from_millis(1500)));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(read("retry-after", "soon"), None);
        assert_eq!(read("retry-after-ms", "-5"), None);
    }
}
