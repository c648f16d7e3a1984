//! Resources: the files of the workspace, content behind refs, the workspace's threads, and what other servers offer. Files and refs are
//! read by the same tool as everybody's, and what other servers offer by a call as well, through the gate.

use hanzo_protocol::engine::{
    ExportFormat, Request, Response, ThreadExport, ThreadList, ThreadSummary, ToolCallRequest,
};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::message::{Attachment, AttachmentSource};
use hanzo_protocol::primitives::FileUri;
use hanzo_protocol::tool::ToolResult;
use rmcp::ErrorData;
use rmcp::model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use super::calls::failed;
use super::connection::{Connection, unexpected};
use super::framing::MAX_MESSAGE;
use super::others::{self, OtherResource};

/// How the URI of kept content begins. The ref itself is the URI.
pub(super) const REF_SCHEME: &str = "blob:";
const FILE_SCHEME: &str = "file://";
const THREAD_SCHEME: &str = "thread:///";
/// How many entries a page has.
const PAGE: u32 = 200;
/// Cursors of the listings that follow each other.
const FILES: &str = "files:";
const THREADS: &str = "threads:";
const OTHERS: &str = "others:";
/// How many pages of threads are looked through for one of them.
const MOST_PAGES: usize = 50;

/// What can be read without being listed.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("file://{+path}", "file")
            .with_description("A file of the workspace, by its absolute path"),
        ResourceTemplate::new("blob:{+hash}", "ref")
            .with_description("The whole of a result that was shortened, by the ref it names"),
        ResourceTemplate::new("thread:///{id}", "thread")
            .with_description("A thread of this workspace, as Markdown")
            .with_mime_type("text/markdown"),
    ]
}

/// A page of resources: first files, then threads, then those of others.
pub(super) async fn list(
    connection: &Connection,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let wrong = || ErrorData::invalid_params("this cursor was not given out here", None);
    let (resources, next) = match cursor {
        None => files(connection, None).await?,
        Some(OTHERS) => (connection.others().map(others::list).unwrap_or_default(), None),
        Some(cursor) => match (cursor.strip_prefix(FILES), cursor.strip_prefix(THREADS)) {
            (Some(page), _) => files(connection, Some(page)).await?,
            (_, Some(page)) => threads(connection, Some(page).filter(|page| !page.is_empty())).await?,
            _ => return Err(wrong()),
        },
    };
    let mut page = ListResourcesResult::with_all_items(resources);
    page.next_cursor = next;
    Ok(page)
}

async fn files(
    connection: &Connection,
    page: Option<&str>,
) -> Result<(Vec<Resource>, Option<String>), ErrorData> {
    let mut arguments = json!({"action": "list", "path": ".", "pattern": "**/*", "limit": PAGE});
    if let Some(page) = page {
        arguments["cursor"] = json!(page);
    }
    let listed = tool(connection, arguments).await?;
    let envelope = data(&listed)?;
    let entries = envelope["data"]["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let uris =
        entries.iter().filter(|entry| entry["kind"] == "file").filter_map(|entry| entry["uri"].as_str());
    let resources = uris.map(|uri| Resource::new(uri, uri.rsplit('/').next().unwrap_or(uri))).collect();
    let next = match envelope["meta"]["paging"]["cursor"].as_str() {
        Some(cursor) => format!("{FILES}{cursor}"),
        None => THREADS.to_owned(),
    };
    Ok((resources, Some(next)))
}

async fn threads(
    connection: &Connection,
    page: Option<&str>,
) -> Result<(Vec<Resource>, Option<String>), ErrorData> {
    let (summaries, next) = thread_page(connection, page.map(str::to_owned)).await?;
    let resource = |summary: ThreadSummary| {
        let title = if summary.title.is_empty() { "untitled thread".to_owned() } else { summary.title };
        Resource::new(format!("{THREAD_SCHEME}{}", summary.id), title).with_mime_type("text/markdown")
    };
    let others = || connection.others().map(|_| OTHERS.to_owned());
    let next = next.map(|next| format!("{THREADS}{next}")).or_else(others);
    Ok((summaries.into_iter().map(resource).collect(), next))
}

async fn thread_page(
    connection: &Connection,
    cursor: Option<String>,
) -> Result<(Vec<ThreadSummary>, Option<String>), ErrorData> {
    let workspace = connection.any_thread().await.map_err(|error| failed(&error))?.workspace.clone();
    let list = ThreadList { workspace: Some(workspace), search: None, cursor, limit: Some(PAGE) };
    let answer = connection.engine.call(Request::ThreadList(list)).await.map_err(|error| failed(&error))?;
    let Response::ThreadList(page) = answer else { return Err(failed(&unexpected())) };
    Ok((page.entries, page.next))
}

/// Reads a resource.
pub(super) async fn read(connection: &Connection, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = if let Some(id) = uri.strip_prefix(THREAD_SCHEME) {
        thread(connection, id, uri).await?
    } else if uri.starts_with(FILE_SCHEME) {
        let file: FileUri = uri.parse().map_err(|_| missing(uri))?;
        file_contents(connection, &file.to_path().display().to_string(), uri).await?
    } else if uri.starts_with(REF_SCHEME) {
        file_contents(connection, uri, uri).await?
    } else {
        return Err(missing(uri));
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn thread(connection: &Connection, id: &str, uri: &str) -> Result<ResourceContents, ErrorData> {
    let thread_id: ThreadId = id.parse().map_err(|_| missing(uri))?;
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let (summaries, next) = thread_page(connection, cursor).await?;
        if summaries.iter().any(|summary| summary.id == thread_id) {
            let export = ThreadExport { thread_id, format: ExportFormat::Markdown };
            let answer = connection
                .engine
                .call(Request::ThreadExport(export))
                .await
                .map_err(|error| failed(&error))?;
            let Response::ThreadExport(exported) = answer else { return Err(failed(&unexpected())) };
            return Ok(ResourceContents::text(exported.text, uri).with_mime_type("text/markdown"));
        }
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    Err(missing(uri))
}

/// What a call that read a resource of another server found.
pub(super) async fn others_contents(
    connection: &Connection,
    uri: &str,
    other: OtherResource,
    result: ToolResult,
) -> Result<ResourceContents, ErrorData> {
    match result.attachments.first() {
        Some(Attachment { media_type, source: AttachmentSource::Inline { base64 }, .. })
            if !result.is_error =>
        {
            Ok(ResourceContents::blob(base64, uri).with_mime_type(media_type))
        }
        Some(_) if !result.is_error => {
            Err(ErrorData::invalid_params(format!("`{uri}` is too large to be sent"), None))
        }
        _ => {
            let contents = ResourceContents::text(text_of(connection, result).await?, uri);
            Ok(match other.mime_type {
                Some(kind) => contents.with_mime_type(kind),
                None => contents,
            })
        }
    }
}

/// The whole text of a call that went well, also where the gate cut it.
pub(super) async fn text_of(connection: &Connection, result: ToolResult) -> Result<String, ErrorData> {
    let envelope = data(&result)?;
    let Some(whole) = envelope["meta"]["full_output"].as_str() else {
        return Ok(envelope["data"]["text"].as_str().unwrap_or_default().to_owned());
    };
    match file_contents(connection, whole, whole).await? {
        ResourceContents::TextResourceContents { text, .. } => Ok(text),
        _ => Err(ErrorData::internal_error("what was kept of it is not text", None)),
    }
}

/// A file or kept content, page by page.
async fn file_contents(
    connection: &Connection,
    path: &str,
    uri: &str,
) -> Result<ResourceContents, ErrorData> {
    let mut text = String::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut arguments = json!({"action": "read", "path": path});
        if let Some(cursor) = &cursor {
            arguments["cursor"] = json!(cursor);
        }
        let read = tool(connection, arguments).await?;
        let envelope =
            data(&read).map_err(|error| match read.envelope.as_ref().map(|it| &it["error"]["code"]) {
                Some(code) if code == "NOT_FOUND" => missing(uri),
                _ => error,
            })?;
        if let Some(kind) = envelope["data"]["binary"].as_str() {
            return match read.attachments.first().map(|attachment| &attachment.source) {
                Some(AttachmentSource::Inline { base64 }) => {
                    Ok(ResourceContents::blob(base64, uri).with_mime_type(kind))
                }
                _ => Err(ErrorData::invalid_params(
                    format!("`{uri}` is not text ({kind}) and cannot be sent"),
                    None,
                )),
            };
        }
        let Some(part) = envelope["data"]["text"].as_str() else {
            return Err(ErrorData::invalid_params(format!("`{uri}` is not a file"), None));
        };
        text.push_str(part);
        cursor = envelope["meta"]["paging"]["cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return Ok(ResourceContents::text(text, uri).with_mime_type("text/plain"));
        }
        if text.len() > MAX_MESSAGE {
            let message =
                format!("`{uri}` is too large to be sent at once; read it in parts with the tool `fs`");
            return Err(ErrorData::invalid_params(message, None));
        }
    }
}

async fn tool(connection: &Connection, arguments: Value) -> Result<ToolResult, ErrorData> {
    let thread_id = connection.any_thread().await.map_err(|error| failed(&error))?.id;
    let request = ToolCallRequest { thread_id, tool: "fs".to_owned(), arguments, item_id: None };
    match connection.engine.call(Request::ToolCall(request)).await.map_err(|error| failed(&error))? {
        Response::ToolCall(result) => Ok(result),
        _ => Err(failed(&unexpected())),
    }
}

/// The envelope of a call that went well.
fn data(result: &ToolResult) -> Result<&Value, ErrorData> {
    match &result.envelope {
        Some(envelope) if !result.is_error => Ok(envelope),
        _ => Err(ErrorData::invalid_params(
            result.error.clone().unwrap_or_else(|| result.output.clone()),
            None,
        )),
    }
}

fn missing(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("there is no resource `{uri}`"), Some(json!({ "uri": uri })))
}
