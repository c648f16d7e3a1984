//! `hanzo-dev run`: a task from the command line.

use std::collections::VecDeque;
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine as _;
use hanzo_config::LoadInputs;
use hanzo_protocol::engine::{Attendance, EngineError, ThreadOptions};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::message::{Attachment, AttachmentSource};
use hanzo_protocol::tool::ToolCaller;
use serde_json::Value;

use crate::cli::{Global, InputFormat, OutputFormat, RunArgs};
use crate::commands::{recording, settings};
use crate::exit::{Exit, Failure};
use crate::headless::{
    self, AnswerSchema, Continue, Output, Prompt, Surroundings, Tally, Task, ThreadChoice, Verbosity, words,
};
use crate::root::{self, Keep, Root, RootOptions};

/// The most we take from standard input and from one file.
const MAX_INPUT: u64 = 8 * 1024 * 1024;

/// How long we wait for the first byte of a pipe, when there is a prompt already: nobody may ever write to it.
const PIPE_PATIENCE: Duration = Duration::from_secs(3);

/// Runs the task.
pub fn run(global: &Global, args: &RunArgs) -> Result<ExitCode, Failure> {
    let verbosity = verbosity(args);
    root::block_on(async {
        let mut output = Output::standard(args.output_format, verbosity);
        let prepared = prepare(global, args, &mut output);
        let done = match prepared {
            Ok((task, options)) => {
                let limit = args.timeout.map(Duration::from_secs);
                task_in_root(task, options, &mut output, limit).await
            }
            Err(failure) => Err(Unwritten(failure).write(&mut output).await),
        };
        done.map(Into::into)
    })
}

/// A failure from before the task began, of which no result was written yet.
struct Unwritten(Failure);

impl Unwritten {
    async fn write(self, output: &mut Output) -> Failure {
        let result = Tally::default().result(self.0.exit(), Some(self.0.to_string()));
        // The failure itself is what is worth telling.
        let _ = output.result(&result).await;
        self.0
    }
}

/// Opens the engine and runs `task` in it.
pub async fn task_in_root(
    task: Task,
    options: RootOptions,
    output: &mut Output,
    limit: Option<Duration>,
) -> Result<Exit, Failure> {
    let opened = async {
        let stop = root::signals::stop(limit)?;
        Ok((stop, Root::open(options).await?))
    };
    let (stop, root) = match opened.await {
        Ok(opened) => opened,
        Err(failure) => return Err(Unwritten(failure).write(output).await),
    };
    for notice in &root.notices {
        output.notice(notice);
    }
    let explain = |error: EngineError| root.explain(error);
    let sandbox = |thread: ThreadId| root.sandbox_level(thread);
    let around = Surroundings { client: root.client(), explain: &explain, sandbox: &sandbox };
    let done = headless::run(&around, task, output, stop).await;
    root.close().await;
    match done? {
        Exit::Ok => Ok(Exit::Ok),
        exit => Err(Failure::message(exit, words(exit).unwrap_or_default())),
    }
}

fn verbosity(args: &RunArgs) -> Verbosity {
    match (args.quiet, std::io::stderr().is_terminal()) {
        (true, _) => Verbosity::Quiet,
        (false, true) => Verbosity::Progress,
        (false, false) => Verbosity::Warnings,
    }
}

fn prepare(global: &Global, args: &RunArgs, output: &mut Output) -> Result<(Task, RootOptions), Failure> {
    let inputs = settings::inputs(global, settings::trust(false))?;
    let schema = args.json_schema.as_deref().map(AnswerSchema::load).transpose()?;
    let how = if args.fork { Continue::Copy } else { Continue::Itself };
    let thread = match (&args.resume, args.continue_newest) {
        (Some(id), _) => ThreadChoice::Id(id.clone(), how),
        (None, true) => ThreadChoice::Newest(how),
        (None, false) if args.fork => {
            let text = "`--fork` needs a thread to copy\n\nhint: add `--continue` or `--resume ID`";
            return Err(Failure::message(Exit::Usage, text));
        }
        (None, false) => ThreadChoice::New,
    };
    let prompts = prompts(args, &inputs, output)?;
    let first = prompts.front().map(|prompt| prompt.text.as_str()).unwrap_or_default();
    let wrap = args.record.as_deref().map(|file| recording::recorder(file, first, &inputs)).transpose()?;
    let task = Task {
        thread,
        workspace: inputs.workspace_root.clone(),
        agent: args.agent.clone(),
        ephemeral: args.no_store,
        options: options(global, args),
        prompts,
        schema,
    };
    let keep = if args.no_store { Keep::Nothing } else { Keep::Stored };
    Ok((task, RootOptions { inputs, keep, program: "hanzo-dev run", wrap, instead: None }))
}

fn options(global: &Global, args: &RunArgs) -> ThreadOptions {
    ThreadOptions {
        model: global.model.clone(),
        mode: args.mode.map(Into::into),
        posture: args.posture.map(Into::into),
        effort: None,
        attendance: Attendance::Headless,
        caller: ToolCaller::Local,
        max_steps: args.max_turns,
        max_cost: args.max_cost.map(headless::cost),
        allow: args.allow.clone(),
        deny: args.deny.clone(),
    }
}

/// What is said: the argument, what is piped in, and the files.
fn prompts(args: &RunArgs, inputs: &LoadInputs, output: &mut Output) -> Result<VecDeque<Prompt>, Failure> {
    let piped = piped(args.prompt.is_some(), output)?;
    let mut prompt = Prompt { text: args.prompt.clone().unwrap_or_default(), attachments: Vec::new() };
    let mut prompts = VecDeque::new();
    match args.input_format {
        InputFormat::StreamJson => {
            for (number, line) in piped.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let text = message(line).map_err(|what| {
                    Failure::message(Exit::BadInput, format!("line {} of standard input: {what}", number + 1))
                })?;
                prompts.push_back(Prompt { text, attachments: Vec::new() });
            }
        }
        InputFormat::Text if prompt.text.trim().is_empty() => prompt.text = piped,
        InputFormat::Text if !piped.trim().is_empty() => {
            prompt.text = format!("{}\n\n<stdin>\n{}\n</stdin>", prompt.text, piped.trim_end());
        }
        InputFormat::Text => {}
    }
    for file in &args.files {
        attach(&mut prompt, &inputs.cwd, file)?;
    }
    if !prompt.text.trim().is_empty() || !prompt.attachments.is_empty() {
        prompts.push_front(prompt);
    }
    if prompts.is_empty() {
        let text = "there is nothing to do: no prompt was given\n\nhint: `hanzo-dev run \"what to do\"`, or pipe it in";
        return Err(Failure::message(Exit::BadInput, text));
    }
    Ok(prompts)
}

/// What is piped in, if anything is.
fn piped(has_prompt: bool, output: &mut Output) -> Result<String, Failure> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() || (has_prompt && !comes(&stdin)) {
        if !stdin.is_terminal() {
            output
                .notice("nothing came from standard input, so it is left out; redirect it from `/dev/null`");
        }
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    stdin.by_ref().take(MAX_INPUT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_INPUT {
        let text = format!("standard input has more than {} MiB", MAX_INPUT >> 20);
        return Err(Failure::message(Exit::BadInput, text));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::message(Exit::BadInput, format!("standard input is not UTF-8 text (at byte {place})"))
    })
}

/// Whether something comes, its end included, before our patience is over.
fn comes(stdin: &std::io::Stdin) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limit = Timespec { tv_sec: PIPE_PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let mut fds = [PollFd::new(stdin, PollFlags::IN)];
    // When it cannot be watched, reading it will tell.
    poll(&mut fds, Some(&limit)).map_or(true, |ready| ready > 0)
}

/// The text of a message: `{"type": "user", "text": …}`, or the form other programs write,
/// `{"type": "user", "message": {"role": "user", "content": …}}`.
fn message(line: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("is not JSON: {error}"))?;
    if value["type"] != "user" {
        return Err("is not a message: `type` must be `user`".to_owned());
    }
    let content = if value["text"].is_string() { &value["text"] } else { &value["message"]["content"] };
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            Ok(texts.join("\n"))
        }
        _ => Err("has no `text`".to_owned()),
    }
}

/// Puts a file into the prompt.
fn attach(prompt: &mut Prompt, directory: &Path, file: &Path) -> Result<(), Failure> {
    let shown = file.display();
    let wrong = |what: String| Failure::message(Exit::BadInput, format!("`--file {shown}`: {what}"));
    let path = directory.join(file);
    let metadata = std::fs::metadata(&path).map_err(|error| wrong(error.to_string()))?;
    if !metadata.is_file() {
        return Err(wrong("is not a file".to_owned()));
    }
    if metadata.len() > MAX_INPUT {
        return Err(wrong(format!("has more than {} MiB", MAX_INPUT >> 20)));
    }
    let bytes = std::fs::read(&path).map_err(|error| wrong(error.to_string()))?;
    let ending = path.extension().map(std::ffi::OsStr::to_ascii_lowercase).unwrap_or_default();
    let media_type = match ending.to_str() {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("pdf") => "application/pdf",
        _ => {
            let text =
                String::from_utf8(bytes).map_err(|_| wrong("is neither text nor an image".to_owned()))?;
            prompt.text = format!("{}\n\n<file path=\"{shown}\">\n{}\n</file>", prompt.text, text.trim_end());
            return Ok(());
        }
    };
    prompt.attachments.push(Attachment {
        media_type: media_type.to_owned(),
        name: Some(shown.to_string()),
        source: AttachmentSource::Inline { base64: base64::engine::general_purpose::STANDARD.encode(bytes) },
    });
    Ok(())
}

/// What to say about a format, for `replay`.
pub fn watched(format: OutputFormat) -> Verbosity {
    match format {
        OutputFormat::Text => Verbosity::Cards,
        _ => Verbosity::Warnings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_message_are_read() {
        assert_eq!(message(r#"{"type":"user","text":"hi"}"#).unwrap(), "hi");
        let other = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#;
        assert_eq!(message(other).unwrap(), "hi");
        for bad in ["x", "{}", r#"{"type":"user"}"#, r#"{"type":"result","text":"hi"}"#] {
            assert!(message(bad).is_err(), "{bad}");
        }
    }
}
