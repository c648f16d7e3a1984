//! `net.request`.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use hanzo_protocol::envelope::{ErrorCode, Intent, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::message::{Attachment, AttachmentSource};
use hanzo_protocol::tool::{Effect, TimeLimit};
use reqwest::Method;
use reqwest::header::{self, HeaderMap, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{self, Content, End, MediaType};
use super::exchange::{self, Order, Redirects};
use super::{Coding, Deadline, Seconds, keep, markdown, parse_url, shown};
use crate::contract::{Action, Answer, Call};

/// How long a request may take, unless the caller says otherwise.
const USUAL: Duration = Duration::from_secs(30);
/// How much of an answer is read, unless the caller says otherwise.
const DEFAULT_BYTES: u64 = 5 << 20;
/// The most that is read into memory at all; more is for `download`.
const MOST_BYTES: u64 = 32 << 20;
/// How much text a result has; the whole is behind a ref.
const MAX_TEXT: usize = 40_000;
/// The largest image that is handed to a model.
const MAX_IMAGE: usize = 5 << 20;
/// How long a header may be in a result, and how many there are at most.
const MAX_HEADER: usize = 1000;
const MAX_HEADERS: usize = 100;

/// The headers that tell something about the answer.
const TELLING: [header::HeaderName; 7] = [
    header::LOCATION,
    header::ETAG,
    header::LAST_MODIFIED,
    header::RETRY_AFTER,
    header::LINK,
    header::ALLOW,
    header::WWW_AUTHENTICATE,
];

/// Sends a request.
pub(super) struct Request;

/// The methods that can be asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Verb {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl Verb {
    fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Head => Method::HEAD,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
            Self::Options => Method::OPTIONS,
        }
    }

    fn only_asks(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options)
    }
}

/// How an answer is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    /// As it came.
    #[default]
    Raw,
    /// Web pages as Markdown, everything else as it came.
    Markdown,
}

/// Which headers of the answer are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Shown {
    /// Those that tell something.
    #[default]
    Telling,
    /// All.
    All,
}

/// The arguments of `net.request`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestInput {
    /// http or https.
    url: String,
    /// GET unless said.
    #[serde(default)]
    method: Verb,
    /// Names and values.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// What to send.
    body: Option<String>,
    /// Web pages: `markdown` to read them.
    #[serde(default, rename = "as")]
    form: Form,
    /// Seconds, 30 unless said.
    timeout: Option<Seconds>,
    /// Most bytes to take.
    max_bytes: Option<u64>,
    /// Which redirections are followed.
    #[serde(default)]
    redirects: Redirects,
    /// Which headers of the answer are shown.
    #[serde(default)]
    show_headers: Shown,
}

/// The answer of `net.request`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RequestOutput {
    /// The HTTP status.
    status: u16,
    /// Where the answer came from, when that is not what was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Where the request was sent on the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    redirects: Vec<String>,
    /// The media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    /// Bytes that were taken.
    size: u64,
    /// Headers of the answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    /// The title of a page that was turned into Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// What is not as one would expect.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Where the whole is kept, for `fs.read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    r#ref: Option<String>,
    /// The text, or its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Action for Request {
    const NAME: &'static str = "request";
    const SUMMARY: &'static str = "HTTP";
    const EXAMPLE: &'static str = r#"{"url":"https://example.com/","as":"markdown"}"#;
    const WORST: Effect = Effect::Network;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] =
        &[("uri", "url"), ("data", "body"), ("format", "as")];
    const HIDDEN: &'static [&'static str] = &["redirects", "show_headers", "timeout", "max_bytes"];
    const QUIET: &'static [&'static str] = &["url", "headers", "body", "method"];
    const INTENTS: Option<&'static [Intent]> =
        Some(&[Intent::Inspect, Intent::Apply, Intent::Verify, Intent::Ship]);
    type Input = RequestInput;
    type Output = RequestOutput;

    fn effect(&self, _: &RequestInput) -> Effect {
        Effect::Network
    }

    fn time_limit(&self, _: &RequestInput) -> TimeLimit {
        TimeLimit::Own
    }

    async fn run(&self, call: &Call<'_>, input: RequestInput) -> Result<Answer<RequestOutput>, ToolError> {
        if call.intent == Some(Intent::Inspect) && !input.method.only_asks() {
            return Err(ToolError::new(
                ErrorCode::Denied,
                "a request of this method may change something, which a call to inspect may not",
            ));
        }
        let url = parse_url(&input.url, &["http", "https"])?;
        let deadline = Deadline::after(input.timeout, USUAL)?;
        let most = input.max_bytes.unwrap_or(DEFAULT_BYTES).min(MOST_BYTES);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut headers = exchange::headers(&input.headers)?;
        if let Some(body) = &input.body {
            headers.entry(header::CONTENT_TYPE).or_insert_with(|| body_type(body));
        }
        let order = Order {
            url: url.clone(),
            method: input.method.method(),
            headers,
            body: input.body,
            redirects: input.redirects,
            coding: Coding::Expand,
        };
        let arrived = exchange::send(call, order, deadline).await?;
        let status = arrived.response.status().as_u16();
        let headers = shown_headers(arrived.response.headers(), input.show_headers);
        let media = arrived.response.headers().get(header::CONTENT_TYPE);
        let media = MediaType::parse(&media.map(text_of).unwrap_or_default());
        let body =
            body::read(arrived.response, &arrived.url, most, deadline, call.host.options.net.idle).await?;
        let mut notes: Vec<String> = arrived.held.map(str::to_owned).into_iter().collect();
        if body.end == End::Cut {
            notes.push(format!("there is more than the {most} bytes that were taken; see `max_bytes`"));
        }
        let mut output = RequestOutput {
            status,
            url: (arrived.url != url).then(|| shown(&arrived.url)),
            redirects: arrived.hops,
            media_type: Some(media.essence.clone()).filter(|essence| !essence.is_empty()),
            size: body.bytes.len() as u64,
            headers,
            title: None,
            note: None,
            r#ref: None,
            text: None,
        };
        let mut attachments = Vec::new();
        match body::decode(&body.bytes, &media, body.end) {
            _ if body.bytes.is_empty() => {}
            Content::Binary => {
                notes.push("this is no text".to_owned());
                if media.is_image() && body.end == End::Whole && body.bytes.len() <= MAX_IMAGE {
                    let base64 = base64::engine::general_purpose::STANDARD.encode(&body.bytes);
                    let source = AttachmentSource::Inline { base64 };
                    attachments.push(Attachment { media_type: media.essence.clone(), name: None, source });
                }
                output.r#ref = Some(keep(call, &body.bytes).await?);
            }
            Content::Text { mut text, broken } => {
                if let Some(charset) = broken {
                    notes.push(format!("some bytes are not {charset} and were replaced"));
                }
                if input.form == Form::Markdown && media.is_html() {
                    let base = arrived.url.clone();
                    let page = call.blocking(move |_, _| Ok(markdown::convert(&text, &base))).await?;
                    output.title = page.title;
                    text = page.markdown;
                }
                if text.len() > MAX_TEXT {
                    output.r#ref = Some(keep(call, text.as_bytes()).await?);
                    notes.push(format!("the text has {} bytes; all of it is behind `ref`", text.len()));
                    text.truncate(text.floor_char_boundary(MAX_TEXT));
                }
                output.text = Some(text);
            }
        }
        output.note = (!notes.is_empty()).then(|| notes.join("; "));
        let mut answer = Answer::new(output).tainted(Some(Taint::Network));
        answer.attachments = attachments;
        Ok(answer)
    }
}

/// What a body is when the caller does not say.
fn body_type(body: &str) -> HeaderValue {
    let json = body.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok();
    HeaderValue::from_static(if json { "application/json" } else { "text/plain; charset=utf-8" })
}

fn text_of(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn shown_headers(headers: &HeaderMap, which: Shown) -> BTreeMap<String, String> {
    let mut all = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        if which == Shown::Telling && !TELLING.contains(name) {
            continue;
        }
        let mut value = text_of(value);
        if value.len() > MAX_HEADER {
            value.truncate(value.floor_char_boundary(MAX_HEADER));
            value.push('…');
        }
        if all.len() < MAX_HEADERS || all.contains_key(name.as_str()) {
            let line = all.entry(name.as_str().to_owned()).or_default();
            if !line.is_empty() {
                line.push_str(", ");
            }
            line.push_str(&value);
        }
    }
    all
}
