//! `hanzo-dev threads`: what was said, kept and taken along.

use std::io::Read as _;
use std::path::Path;

use hanzo_protocol::engine::{
    ExportFormat, Request, Response, ThreadAt, ThreadExport, ThreadList, ThreadRead, ThreadSummary,
};
use hanzo_protocol::ids::ThreadId;

use crate::cli::{ExportArg, Global, ThreadsCommand};
use crate::commands::settings;
use crate::commands::with_engine::{call, open, thread};
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::root::{self, Root};

/// The largest file that is imported.
const MAX_IMPORT: u64 = 1 << 30;

/// Runs the command.
pub fn run(global: &Global, command: &ThreadsCommand, printer: &mut Printer) -> Result<(), Failure> {
    root::block_on(async {
        let root = open(global, "hanzo-dev threads", printer).await?;
        let done = match command {
            ThreadsCommand::List { all, search, limit, json } => {
                let workspace = match all {
                    true => None,
                    false => Some(settings::inputs(global, settings::trust(false))?.workspace_root),
                };
                let filter =
                    ThreadList { workspace, search: search.clone(), cursor: None, limit: Some(*limit) };
                list(&root, filter, *json, printer).await
            }
            ThreadsCommand::Show { id, json } => show(&root, id, *json, printer).await,
            ThreadsCommand::Export { id, format, output } => {
                let format = match format {
                    ExportArg::Jsonl => ExportFormat::Jsonl,
                    ExportArg::Markdown => ExportFormat::Markdown,
                };
                let text = export(&root, thread(&root, id).await?, format).await?;
                match output {
                    Some(file) => std::fs::write(file, text).map_err(|error| {
                        Failure::message(Exit::Failure, format!("cannot write {}: {error}", file.display()))
                    }),
                    None => printer.raw(text.as_bytes()),
                }
            }
            ThreadsCommand::Import { file } => import(&root, file, printer).await,
            ThreadsCommand::Delete { id } => delete(&root, id, printer).await,
        };
        root.close().await;
        done
    })
}

async fn list(root: &Root, filter: ThreadList, json: bool, printer: &mut Printer) -> Result<(), Failure> {
    let everywhere = filter.workspace.is_none();
    let Response::ThreadList(page) = call(root, Request::ThreadList(filter)).await? else {
        return Err(unexpected());
    };
    if json {
        return printer.json(&page.entries);
    }
    if page.entries.is_empty() {
        let hint = if everywhere { "" } else { "; `--all` lists those of every workspace" };
        printer.note(&format!("there are no threads here{hint}"));
    }
    for thread in &page.entries {
        let place = if everywhere { format!("  {}", thread.workspace.display()) } else { String::new() };
        printer.line(&format!("{}  {:.0}  {}{place}", thread.id, thread.updated_at, title(thread)))?;
    }
    if page.next.is_some() {
        printer.note(&format!("these are the newest {}; `--limit` shows more", page.entries.len()));
    }
    Ok(())
}

fn title(thread: &ThreadSummary) -> String {
    let line = thread.title.lines().next().unwrap_or_default();
    if line.is_empty() { "(no title)".to_owned() } else { line.chars().take(80).collect() }
}

async fn show(root: &Root, id: &str, json: bool, printer: &mut Printer) -> Result<(), Failure> {
    let id = thread(root, id).await?;
    if !json {
        let text = export(root, id, ExportFormat::Markdown).await?;
        return printer.line(text.trim_end());
    }
    let mut items = Vec::new();
    let mut cursor = None;
    loop {
        let read = ThreadRead { thread_id: id, cursor, limit: Some(1000) };
        let Response::ThreadRead(page) = call(root, Request::ThreadRead(read)).await? else {
            return Err(unexpected());
        };
        items.extend(page.entries);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return printer.json(&items),
        }
    }
}

async fn export(root: &Root, thread_id: ThreadId, format: ExportFormat) -> Result<String, Failure> {
    match call(root, Request::ThreadExport(ThreadExport { thread_id, format })).await? {
        Response::ThreadExport(exported) => Ok(exported.text),
        _ => Err(unexpected()),
    }
}

async fn import(root: &Root, file: &Path, printer: &mut Printer) -> Result<(), Failure> {
    let wrong = |what: &dyn std::fmt::Display| {
        Failure::message(Exit::BadInput, format!("cannot import {}: {what}", file.display()))
    };
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().take(MAX_IMPORT).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(MAX_IMPORT).read_to_string(&mut text))
    };
    read.map_err(|error| wrong(&error))?;
    let imported = hanzo_store::export::import(root.store(), &text).await.map_err(|error| wrong(&error))?;
    if let Some(was) = imported.was {
        printer.note(&format!("there is a thread {was} already, so this one has another id"));
    }
    printer.line(&imported.thread.to_string())
}

async fn delete(root: &Root, id: &str, printer: &mut Printer) -> Result<(), Failure> {
    let thread_id = thread(root, id).await?;
    call(root, Request::ThreadDelete(ThreadAt { thread_id })).await?;
    printer.note(&format!("deleted {thread_id}"));
    Ok(())
}

fn unexpected() -> Failure {
    Failure::message(Exit::Failure, "the engine answered another question")
}
