//! Other names for actions: callable, not listed, unless the classic profile lists them.

use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::message::ToolSchema;
use hanzo_protocol::tool::{Reach, Tool, ToolContext, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::contract::{BaseHashes, UnifiedTool};
use crate::registry::Profile;

type Mapper = fn(Map<String, Value>) -> Map<String, Value>;

/// A name, the action it means, and how its arguments become that action's.
struct Alias {
    name: &'static str,
    id: &'static str,
    map: Mapper,
}

const fn alias(name: &'static str, id: &'static str) -> Alias {
    Alias { name, id, map: same }
}

const fn mapped(name: &'static str, id: &'static str, map: Mapper) -> Alias {
    Alias { name, id, map }
}

fn same(arguments: Map<String, Value>) -> Map<String, Value> {
    arguments
}

/// `tree` and `find` go through the whole tree.
fn whole_tree(mut arguments: Map<String, Value>) -> Map<String, Value> {
    if let Some(name) = arguments.shift_remove("name") {
        arguments.entry("pattern").or_insert(name);
    }
    if !arguments.contains_key("pattern") {
        arguments.entry("depth").or_insert_with(|| json!(8));
    }
    arguments
}

/// `recursive: true` of other vocabularies' listings.
fn listing(mut arguments: Map<String, Value>) -> Map<String, Value> {
    if arguments.shift_remove("recursive") == Some(Value::Bool(true)) {
        arguments.entry("depth").or_insert_with(|| json!(8));
    }
    arguments
}

/// A tree needs no flag of its own here; `confirm` is still asked for.
fn removal(mut arguments: Map<String, Value>) -> Map<String, Value> {
    arguments.shift_remove("recursive");
    arguments
}

/// Flags of `grep` and of the tools named after it.
fn grep(mut arguments: Map<String, Value>) -> Map<String, Value> {
    for (flag, field) in [("-i", "ignore_case"), ("-C", "context"), ("-A", "context"), ("-B", "context")] {
        if let Some(value) = arguments.shift_remove(flag) {
            arguments.entry(field).or_insert(value);
        }
    }
    for unused in ["-n", "output_mode"] {
        arguments.shift_remove(unused);
    }
    arguments
}

/// `cmd` and `script` for the command, time limits in milliseconds for seconds' ones.
fn shell(mut arguments: Map<String, Value>) -> Map<String, Value> {
    for other in ["cmd", "script"] {
        if let Some(command) = arguments.shift_remove(other) {
            arguments.entry("command").or_insert(command);
        }
    }
    for other in ["workdir", "working_directory", "directory"] {
        if let Some(directory) = arguments.shift_remove(other) {
            arguments.entry("cwd").or_insert(directory);
        }
    }
    for unused in ["description", "explanation"] {
        arguments.shift_remove(unused);
    }
    arguments
}

/// Tools that fetch pages for reading turn them into Markdown.
fn page(mut arguments: Map<String, Value>) -> Map<String, Value> {
    for unused in ["prompt", "description"] {
        arguments.shift_remove(unused);
    }
    arguments.entry("as").or_insert_with(|| json!("markdown"));
    arguments
}

static ALIASES: &[Alias] = &[
    mapped("bash", "proc.exec", shell),
    mapped("shell", "proc.exec", shell),
    mapped("exec", "proc.exec", shell),
    mapped("run_command", "proc.exec", shell),
    mapped("run_shell_command", "proc.exec", shell),
    mapped("execute_command", "proc.exec", shell),
    mapped("shell_exec", "proc.exec", shell),
    mapped("shell_command", "proc.exec", shell),
    mapped("zsh", "proc.exec", shell),
    mapped("cmd", "proc.exec", shell),
    alias("apply_patch", "fs.apply_patch"),
    alias("patch", "fs.apply_patch"),
    alias("edit_file", "fs.apply_patch"),
    alias("edit", "fs.apply_patch"),
    alias("multi_edit", "fs.apply_patch"),
    alias("multiedit", "fs.apply_patch"),
    alias("file_edit", "fs.apply_patch"),
    alias("str_replace", "fs.apply_patch"),
    alias("fs.edit", "fs.apply_patch"),
    alias("fs.patch", "fs.apply_patch"),
    alias("fs.multi_edit", "fs.apply_patch"),
    alias("write_file", "fs.write"),
    alias("write", "fs.write"),
    alias("file_write", "fs.write"),
    alias("create_file", "fs.write"),
    alias("fs.create", "fs.write"),
    mapped("delete_file", "fs.rm", removal),
    mapped("remove_file", "fs.rm", removal),
    mapped("file_delete", "fs.rm", removal),
    mapped("rm", "fs.rm", removal),
    mapped("fs.delete", "fs.rm", removal),
    alias("move_file", "fs.mv"),
    alias("rename_file", "fs.mv"),
    alias("mv", "fs.mv"),
    alias("file_move", "fs.mv"),
    alias("fs.move", "fs.mv"),
    alias("create_directory", "fs.mkdir"),
    alias("mkdir", "fs.mkdir"),
    alias("read_file", "fs.read"),
    alias("read", "fs.read"),
    alias("file_read", "fs.read"),
    alias("cat", "fs.read"),
    alias("stat", "fs.stat"),
    alias("fs.info", "fs.stat"),
    mapped("ls", "fs.list", listing),
    mapped("glob", "fs.list", listing),
    mapped("list_directory", "fs.list", listing),
    mapped("list_dir", "fs.list", listing),
    mapped("file_list", "fs.list", listing),
    mapped("tree", "fs.list", whole_tree),
    mapped("find", "fs.list", whole_tree),
    mapped("fs.tree", "fs.list", whole_tree),
    mapped("fs.find", "fs.list", whole_tree),
    mapped("grep", "fs.search_text", grep),
    mapped("search", "fs.search_text", grep),
    mapped("search_text", "fs.search_text", grep),
    mapped("rg", "fs.search_text", grep),
    mapped("fs.grep", "fs.search_text", grep),
    mapped("fs.search", "fs.search_text", grep),
    alias("http_request", "net.request"),
    alias("curl", "net.request"),
    mapped("web_fetch", "net.request", page),
    mapped("fetch", "net.request", page),
    alias("download", "net.download"),
    alias("open_url", "net.open"),
    alias("dns_lookup", "net.dns"),
    alias("websocket_connect", "net.websocket"),
];

/// Every alias with the canonical `tool.action` it means, for the permission rules to agree with.
pub fn table() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALIASES.iter().map(|alias| (alias.name, alias.id))
}

/// The canonical `tool.action` of an alias.
pub fn canonical(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|alias| alias.name == name).map(|alias| alias.id)
}

/// An action under another name.
#[derive(Debug)]
pub struct AliasTool {
    schema: ToolSchema,
    tool: Arc<UnifiedTool>,
    action: String,
    map: Mapper,
    base_hashes: BaseHashes,
}

impl AliasTool {
    fn arguments(&self, arguments: &Value) -> Value {
        let Value::Object(members) = arguments else { return arguments.clone() };
        let mut members = (self.map)(members.clone());
        members.insert("action".into(), self.action.clone().into());
        if self.is_shell() {
            // Other vocabularies wait longer for a command than `proc.exec` does (C22).
            let wait = self.tool.host().options.proc.bash_wait();
            members.entry("wait").or_insert_with(|| json!(wait.as_secs_f64()));
        }
        members.into()
    }

    /// Whether it is `bash`, `shell` and so on, and not another spelling of `proc.exec`.
    fn is_shell(&self) -> bool {
        self.tool.name() == "proc" && self.action == "exec" && !self.schema.name.starts_with("proc")
    }
}

impl Tool for AliasTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn reach(&self, arguments: &Value) -> Reach {
        self.tool.reach(&self.arguments(arguments))
    }

    fn remind(&self, result: &ToolResult) {
        self.tool.remind(result);
    }

    fn execute<'a>(&'a self, context: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult> {
        let arguments = self.arguments(&arguments);
        Box::pin(self.tool.run(context, arguments, self.base_hashes))
    }
}

/// Every other name the tools can be called by.
pub(crate) fn all(tools: &[Arc<UnifiedTool>], profile: Profile) -> Vec<(String, AliasTool)> {
    let base_hashes = match profile {
        Profile::Unified => BaseHashes::Given,
        Profile::Classic => BaseHashes::FromLedger,
    };
    let mut names = Vec::new();
    for tool in tools {
        for action in tool.action_names().into_iter().chain(["help", "schema", "status"]) {
            for separator in [".", "_"] {
                let name = format!("{}{separator}{action}", tool.name());
                names.push((name.clone(), make(&name, tool, action, same, base_hashes)));
            }
        }
    }
    for alias in ALIASES {
        let Some((tool, action)) = find(tools, alias.id) else { continue };
        names.push((alias.name.to_owned(), make(alias.name, tool, action, alias.map, base_hashes)));
    }
    names
}

fn find<'a>(tools: &'a [Arc<UnifiedTool>], id: &'a str) -> Option<(&'a Arc<UnifiedTool>, &'a str)> {
    let (name, action) = id.split_once('.')?;
    let tool = tools.iter().find(|tool| tool.name() == name && tool.action_names().contains(&action))?;
    Some((tool, action))
}

fn make(
    name: &str,
    tool: &Arc<UnifiedTool>,
    action: &str,
    map: Mapper,
    base_hashes: BaseHashes,
) -> AliasTool {
    let parameters = RawValue::from_string(json!({"type": "object"}).to_string()).expect("it is JSON");
    let description = format!("Another name for {}.{action}", tool.name());
    let schema = ToolSchema { name: name.into(), description, parameters };
    AliasTool { schema, tool: Arc::clone(tool), action: action.into(), map, base_hashes }
}

/// A tool as the classic profile lists it.
struct Classic {
    name: &'static str,
    about: &'static str,
    parameters: fn() -> Value,
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

static CLASSIC: &[Classic] = &[
    Classic {
        name: "read_file",
        about: "Read a file. Lines count from 0.",
        parameters: || {
            let number = json!({"type": "integer"});
            object(&json!({"path": {"type": "string"}, "offset": number, "limit": number}), &["path"])
        },
    },
    Classic {
        name: "write_file",
        about: "Create a file, or overwrite one that was read.",
        parameters: || {
            object(&json!({"path": {"type": "string"}, "content": {"type": "string"}}), &["path", "content"])
        },
    },
    Classic {
        name: "edit_file",
        about: "Replace old_text, which occurs exactly once, by new_text. Read the file first.",
        parameters: || {
            let text = json!({"type": "string"});
            object(
                &json!({"path": text, "old_text": text, "new_text": text, "replace_all": {"type": "boolean"}}),
                &["path", "old_text", "new_text"],
            )
        },
    },
    Classic {
        name: "multi_edit",
        about: "Several replacements in one file, all or none. Read the file first.",
        parameters: || {
            let text = json!({"type": "string"});
            let edit = object(&json!({"old_text": text, "new_text": text}), &["old_text", "new_text"]);
            object(&json!({"path": text, "edits": {"type": "array", "items": edit}}), &["path", "edits"])
        },
    },
    Classic {
        name: "move_file",
        about: "Move or rename; the new name must be free.",
        parameters: || {
            object(&json!({"path": {"type": "string"}, "to": {"type": "string"}}), &["path", "to"])
        },
    },
    Classic {
        name: "bash",
        about: "Run a shell command in the workspace.",
        parameters: || {
            object(&json!({"command": {"type": "string"}, "timeout": {"type": "integer"}}), &["command"])
        },
    },
    Classic {
        name: "ls",
        about: "List a directory.",
        parameters: || object(&json!({"path": {"type": "string"}, "depth": {"type": "integer"}}), &[]),
    },
    Classic {
        name: "glob",
        about: "Find files by glob, such as **/*.rs",
        parameters: || {
            object(&json!({"pattern": {"type": "string"}, "path": {"type": "string"}}), &["pattern"])
        },
    },
    Classic {
        name: "grep",
        about: "Search files by regex.",
        parameters: || {
            let text = json!({"type": "string"});
            object(
                &json!({"pattern": text, "path": text, "glob": text, "ignore_case": {"type": "boolean"}, "context": {"type": "integer"}}),
                &["pattern"],
            )
        },
    },
];

/// The tools of the classic profile. Edits take their base hash from what the thread last read, so a stale one is refused here
/// as well.
pub(crate) fn classic(tools: &[Arc<UnifiedTool>]) -> Vec<AliasTool> {
    let make_one = |classic: &Classic| {
        let alias = ALIASES.iter().find(|alias| alias.name == classic.name)?;
        let (tool, action) = find(tools, alias.id)?;
        let mut made = make(classic.name, tool, action, alias.map, BaseHashes::FromLedger);
        classic.about.clone_into(&mut made.schema.description);
        made.schema.parameters =
            RawValue::from_string((classic.parameters)().to_string()).expect("a JSON value is JSON text");
        Some(made)
    };
    CLASSIC.iter().filter_map(make_one).collect()
}
