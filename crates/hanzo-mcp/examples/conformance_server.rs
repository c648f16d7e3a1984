//! The server the official conformance suite is run against: the tools, prompts and resources it asks for by name, behind the same HTTP
//! router, guards and limits as our own server. Only ever a test.
//!
//! `cargo run -p hanzo-mcp --example conformance_server -- 127.0.0.1:3211`, or `stdio` instead of the address.
#![expect(clippy::print_stderr, reason = "it says where it listens")]
#![expect(deprecated, reason = "the suite tests what the newest protocol has left behind, too")]

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use hanzo_mcp::server::direct::Direct;
use hanzo_mcp::server::http::{self, HttpOptions};
use hanzo_mcp::server::stdio;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CreateMessageRequestParams, ElicitRequestParams, ErrorCode, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, InputRequiredResult, InputResponses, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam, Prompt,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceTemplate,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

#[derive(Clone)]
struct Fixture;

impl Direct for Fixture {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3211".to_owned());
    if place == "stdio" {
        stdio::serve(Fixture).await;
        return Ok(());
    }
    let options = HttpOptions::default();
    let listener = http::bind(place.parse()?, &options).await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    http::serve(listener, || Fixture, options, CancellationToken::new()).await?;
    Ok(())
}

/// A value of the protocol, written as the suite writes it.
fn made<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

fn content(blocks: &Value) -> Result<CallToolResponse, ErrorData> {
    made::<CallToolResult>(json!({"resultType": "complete", "content": blocks})).map(Into::into)
}

fn says(words: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    content(&json!([text(words)]))
}

fn schema(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn elicit(message: &str, properties: &Value, required: &[&str]) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema(properties, required)}})
}

fn sample(prompt: &str, most: u32) -> Value {
    json!({"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": text(prompt)}], "maxTokens": most}})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

fn needs(requests: &Value, state: Option<&str>) -> Result<InputRequiredResult, ErrorData> {
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        result["requestState"] = json!(seal(state));
    }
    made(result)
}

/// A state nobody else can make.
fn seal(state: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(format!("only the fixture knows this/{state}")).into();
    let mut sealed = format!("{state}.");
    for byte in digest {
        // Writing to a text cannot fail.
        let _ = write!(sealed, "{byte:02x}");
    }
    sealed
}

fn unseal(sealed: &str) -> Result<&str, ErrorData> {
    let state = sealed.split('.').next().unwrap_or_default();
    if seal(state) == sealed {
        return Ok(state);
    }
    Err(ErrorData::invalid_params("the request state is not one of ours", None))
}

fn word<'a>(responses: &'a InputResponses, key: &str, field: &str) -> Option<&'a str> {
    responses.get(key)?.get("content")?.get(field)?.as_str()
}

fn tools() -> Vec<Tool> {
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_error_handling",
        "test_tool_with_progress",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_reconnection",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_tampered_state",
        "test_input_required_result_capabilities",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_logging_tool",
    ];
    let string = |about: &str| json!({"type": "string", "description": about});
    let mut all: Vec<(&str, Value)> =
        plain.iter().map(|name| (*name, json!({"type": "object", "properties": {}}))).collect();
    all.push(("test_sampling", schema(&json!({"prompt": string("What to ask")}), &["prompt"])));
    all.push(("test_elicitation", schema(&json!({"message": string("What to show")}), &["message"])));
    let mut region = string("Sent as a header too");
    region["x-mcp-header"] = json!("Region");
    all.push(("test_custom_header", schema(&json!({ "region": region }), &["region"])));
    all.push((
        "json_schema_2020_12_tool",
        json!({
            "$schema": DIALECT,
            "type": "object",
            "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        }),
    ));
    let tool = |(name, schema): (&str, Value)| {
        let schema = schema.as_object().cloned().unwrap_or_default();
        Tool::new(name.to_owned(), format!("For the conformance suite: {name}"), Arc::new(schema))
    };
    all.into_iter().map(tool).collect()
}

impl Fixture {
    async fn progress(context: &RequestContext<RoleServer>) {
        for step in [0.0, 50.0, 100.0] {
            if let Some(token) = context.meta.get_progress_token() {
                let shown = ProgressNotificationParam::new(token, step).with_total(100.0);
                let _ = context.peer.notify_progress(shown).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn log(context: &RequestContext<RoleServer>) {
        // Since 2026-07-28 a request says whether it wants to be told.
        let meta = json!(context.meta);
        let modern = meta.get("io.modelcontextprotocol/protocolVersion").is_some();
        if modern && meta.get("io.modelcontextprotocol/logLevel").is_none() {
            return;
        }
        for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(line));
            let _ = context.peer.notify_logging_message(message).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn ask(
        context: &RequestContext<RoleServer>,
        message: &str,
        schema: Value,
    ) -> Result<Value, ErrorData> {
        let form: ElicitRequestParams =
            made(json!({"mode": "form", "message": message, "requestedSchema": schema}))?;
        let answer = context.peer.create_elicitation(form).await;
        let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(json!(answer))
    }

    /// The tools that ask by their result.
    fn rounds(
        name: &str,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let none = InputResponses::new();
        let given = request.input_responses.as_ref().unwrap_or(&none);
        let name_form = || elicit("What is your name?", &json!({"name": {"type": "string"}}), &["name"]);
        let state = || request.request_state.as_deref().map(unseal).transpose();
        let confirm = || elicit("Please confirm", &json!({"ok": {"type": "boolean"}}), &["ok"]);
        let short = name.strip_prefix("test_input_required_result_")?;
        Some((|| match short {
            "elicitation" => match word(given, "user_name", "name") {
                Some(name) => says(format!("Hello, {name}!")),
                None => needs(&json!({"user_name": name_form()}), None).map(Into::into),
            },
            "sampling" => match given.get("capital_question") {
                Some(answer) => says(format!(
                    "The model said: {}",
                    answer["content"]["text"].as_str().unwrap_or_default()
                )),
                None => {
                    needs(&json!({"capital_question": sample("What is the capital of France?", 100)}), None)
                        .map(Into::into)
                }
            },
            "list_roots" => match given.get("client_roots") {
                Some(answer) => says(format!("The roots are {}", answer["roots"])),
                None => needs(&json!({"client_roots": roots()}), None).map(Into::into),
            },
            "request_state" | "tampered_state" => match state()? {
                Some(_) if given.contains_key("confirm") => says("state-ok"),
                _ => needs(&json!({"confirm": confirm()}), Some("confirming")).map(Into::into),
            },
            "multiple_inputs" => {
                let all = ["user_name", "greeting", "client_roots"];
                if state()?.is_some() && all.iter().all(|key| given.contains_key(*key)) {
                    return says("All three arrived");
                }
                let requests = json!({"user_name": name_form(), "greeting": sample("Generate a greeting", 50), "client_roots": roots()});
                needs(&requests, Some("multiple")).map(Into::into)
            }
            "multi_round" => match state()? {
                Some("one") if given.contains_key("step1") => {
                    let form = elicit(
                        "Step 2: What is your favorite color?",
                        &json!({"color": {"type": "string"}}),
                        &["color"],
                    );
                    needs(&json!({ "step2": form }), Some("two")).map(Into::into)
                }
                Some("two") if given.contains_key("step2") => says("Both steps are done"),
                _ => {
                    let form =
                        elicit("Step 1: What is your name?", &json!({"name": {"type": "string"}}), &["name"]);
                    needs(&json!({ "step1": form }), Some("one")).map(Into::into)
                }
            },
            "capabilities" => {
                let client = context.client_capabilities().unwrap_or_default();
                let mut requests = json!({});
                if client.elicitation.is_some() {
                    requests["form"] = name_form();
                }
                if client.sampling.is_some() {
                    requests["model"] = sample("Say hello", 50);
                }
                needs(&requests, None).map(Into::into)
            }
            _ => Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None)),
        })())
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_logging()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("hanzo-conformance", "0.0.0"))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        if let Some(answer) = Self::rounds(&name, &request, &context) {
            return answer;
        }
        let argument = |key: &str| {
            let value = request.arguments.as_ref().and_then(|arguments| arguments.get(key));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
        match name.as_str() {
            "test_simple_text" => says("This is a simple text response for testing."),
            "test_image_content" => content(&json!([image])),
            "test_audio_content" => content(&json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}])),
            "test_embedded_resource" => content(&json!([{"type": "resource", "resource": {
                "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}}])),
            "test_multiple_content_types" => content(&json!([text("Multiple content types test:"), image, {"type": "resource", "resource": {
                "uri": "test://mixed-content-resource", "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}"}}])),
            "test_tool_with_logging" | "test_logging_tool" => {
                Self::log(&context).await;
                says("The log messages were sent")
            }
            "test_tool_with_progress" => {
                Self::progress(&context).await;
                says("The progress was told")
            }
            "test_error_handling" => made::<CallToolResult>(
                json!({"resultType": "complete", "content": [text("This tool intentionally returns an error for testing")], "isError": true}),
            )
            .map(Into::into),
            "test_sampling" => {
                let params: CreateMessageRequestParams = made(sample(&argument("prompt"), 100)["params"].clone())?;
                let answer = context.peer.create_message(params).await;
                let answer = json!(answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?);
                says(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))
            }
            "test_elicitation" => {
                let field = |about: &str| json!({"type": "string", "description": about});
                let fields = json!({"username": field("User's response"), "email": field("User's email address")});
                let answer = Self::ask(&context, &argument("message"), schema(&fields, &["username", "email"])).await?;
                says(format!("User response: action: {}, content: {}", answer["action"], answer["content"]))
            }
            "test_elicitation_sep1034_defaults" => {
                let fields = json!({
                    "name": {"type": "string", "default": "John Doe"},
                    "age": {"type": "integer", "default": 30},
                    "score": {"type": "number", "default": 95.5},
                    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                    "verified": {"type": "boolean", "default": true},
                });
                let answer = Self::ask(&context, "Please look through the defaults", schema(&fields, &[])).await?;
                says(format!("Elicitation completed: action={}, content={}", answer["action"], answer["content"]))
            }
            "test_elicitation_sep1330_enums" => {
                let titled = |value: &str, title: &str| json!({"const": value, "title": title});
                let fields = json!({
                    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                    "titledSingle": {"type": "string", "oneOf": [titled("value1", "First Option"), titled("value2", "Second Option"), titled("value3", "Third Option")]},
                    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
                    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
                    "titledMulti": {"type": "array", "items": {"anyOf": [titled("value1", "First Choice"), titled("value2", "Second Choice"), titled("value3", "Third Choice")]}},
                });
                let answer = Self::ask(&context, "Please choose", schema(&fields, &[])).await?;
                says(format!("Elicitation completed: action={}, content={}", answer["action"], answer["content"]))
            }
            "test_reconnection" => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                says("The stream was not needed")
            }
            "test_streaming_elicitation" => {
                if request.input_responses.is_some() {
                    return says("The answer arrived");
                }
                let form = elicit("What is your name?", &json!({"name": {"type": "string"}}), &["name"]);
                needs(&json!({ "user_name": form }), None).map(Into::into)
            }
            "test_custom_header" => says(format!("The region is {}", argument("region"))),
            "json_schema_2020_12_tool" => says("The schema was kept"),
            "test_missing_capability" => {
                let sampling = context.client_capabilities().is_some_and(|client| client.sampling.is_some());
                if sampling { says("The client can be asked") } else {
                    let data = json!({"requiredCapabilities": {"sampling": {}}});
                    Err(ErrorData::new(ErrorCode(-32021), "the client has to offer sampling", Some(data)))
                }
            }
            _ => Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None)),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = |name: &str| json!({"name": name, "description": format!("The argument {name}"), "required": true});
        let prompt = |(name, arguments): (&str, Value)| {
            made::<Prompt>(
                json!({"name": name, "description": format!("For the conformance suite: {name}"), "arguments": arguments}),
            )
        };
        let prompts = [
            ("test_simple_prompt", json!([])),
            ("test_prompt_with_arguments", json!([argument("arg1"), argument("arg2")])),
            ("test_prompt_with_embedded_resource", json!([argument("resourceUri")])),
            ("test_prompt_with_image", json!([])),
            ("test_input_required_result_prompt", json!([])),
        ];
        let prompts: Result<Vec<Prompt>, ErrorData> = prompts.into_iter().map(prompt).collect();
        Ok(ListPromptsResult::with_all_items(prompts?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let argument = |key: &str| {
            let value = request.arguments.as_ref().and_then(|arguments| arguments.get(key));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let user = |content: Value| json!({"role": "user", "content": content});
        let messages = match request.name.as_str() {
            "test_simple_prompt" => json!([user(text("This is a simple prompt for testing."))]),
            "test_prompt_with_arguments" => {
                let words = format!(
                    "Prompt with arguments: arg1='{}', arg2='{}'",
                    argument("arg1"),
                    argument("arg2")
                );
                json!([user(text(words))])
            }
            "test_prompt_with_embedded_resource" => json!([
                user(
                    json!({"type": "resource", "resource": {"uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing."}})
                ),
                user(text("Please process the embedded resource above.")),
            ]),
            "test_prompt_with_image" => json!([
                user(json!({"type": "image", "data": PNG, "mimeType": "image/png"})),
                user(text("Please analyze the image above.")),
            ]),
            "test_input_required_result_prompt" => {
                let none = InputResponses::new();
                let given = request.input_responses.as_ref().unwrap_or(&none);
                let Some(context) = word(given, "user_context", "context") else {
                    let form = elicit(
                        "What context should the prompt use?",
                        &json!({"context": {"type": "string"}}),
                        &["context"],
                    );
                    return needs(&json!({ "user_context": form }), None).map(Into::into);
                };
                json!([user(text(format!("The context is {context}")))])
            }
            name => return Err(ErrorData::invalid_params(format!("there is no prompt `{name}`"), None)),
        };
        made::<GetPromptResult>(json!({"resultType": "complete", "messages": messages})).map(Into::into)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |name: &str, kind: &str| {
            Resource::new(format!("test://{name}"), name)
                .with_description("For the conformance suite")
                .with_mime_type(kind)
        };
        Ok(ListResourcesResult::with_all_items(vec![
            resource("static-text", "text/plain"),
            resource("static-binary", "image/png"),
            resource("watched-resource", "text/plain"),
        ]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("test://template/{id}/data", "template")
            .with_description("For the conformance suite")
            .with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            ("test://static-text" | "test://watched-resource", _) => {
                json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
            }
            ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
            (_, Some(id)) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
            }
            _ => {
                return Err(ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri }))));
            }
        };
        made::<ReadResourceResult>(json!({"resultType": "complete", "contents": [contents]})).map(Into::into)
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        made(
            json!({"resultType": "complete", "completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": false}}),
        )
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }
}
