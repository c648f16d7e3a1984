//! What the crate knows about tools: their canonical ids, the older names for them, and what they touch.
//!
//! The canonical vocabulary is `tool.action` (`fs.write`). Names from the other vocabularies are aliases, and a rule
//! written with one name must also govern calls made with another: otherwise a deny could be walked round by
//! calling the same action by its second name.

/// A family of tools that rules can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Family {
    /// Runs commands: `proc.exec`, `bash`.
    Bash,
    /// Changes files: writes, edits, patches, notebook edits, symbol and range deletes, moves, removals.
    Edit,
    /// Looks at files: reads, listings, searches.
    Read,
    /// Reaches the network: `net.*`.
    Net,
    /// Tools of MCP servers: `mcp__server__tool`.
    Mcp,
}

impl Family {
    /// Every family, in the order they are documented.
    pub const ALL: [Self; 5] = [Self::Bash, Self::Edit, Self::Read, Self::Net, Self::Mcp];

    /// The name used in rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "Bash",
            Self::Edit => "Edit",
            Self::Read => "Read",
            Self::Net => "Net",
            Self::Mcp => "Mcp",
        }
    }

    /// The family called `name`, exactly as rules spell it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }
}

/// Whether a tool only looks, or may change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Only looks.
    Reader,
    /// May change something.
    Writer,
}

/// How a tool's subjects are found in its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subjects {
    /// `command`: a string or an argv array.
    Command,
    /// `command`, or the test runner that the project's files choose.
    Runner,
    /// One file or directory.
    Path,
    /// A file or directory with all that is in it.
    Tree,
    /// Source and destination, each with all that is in it.
    Move,
    /// The files a patch touches.
    Patch,
    /// A search: its pattern, and the tree it reads.
    Search,
    /// A listing by pattern: names only, no contents.
    Names,
    /// `url`.
    Url,
    /// `host`: a name that is looked up.
    Host,
    /// `url`, and the file it is saved to.
    Download,
    /// None.
    None,
}

/// One canonical action.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) id: &'static str,
    pub(crate) family: Option<Family>,
    pub(crate) access: Access,
    pub(crate) subjects: Subjects,
    pub(crate) aliases: &'static [&'static str],
}

const fn action(
    id: &'static str,
    family: Option<Family>,
    access: Access,
    subjects: Subjects,
    aliases: &'static [&'static str],
) -> Action {
    Action { id, family, access, subjects, aliases }
}

use Access::{Reader, Writer};

const BASH: Option<Family> = Some(Family::Bash);
const EDIT: Option<Family> = Some(Family::Edit);
const READ: Option<Family> = Some(Family::Read);
const NET: Option<Family> = Some(Family::Net);

static ACTIONS: &[Action] = &[
    action(
        "proc.exec",
        BASH,
        Writer,
        Subjects::Command,
        &[
            "bash",
            "shell",
            "exec",
            "run_command",
            "run_shell_command",
            "execute_command",
            "shell_exec",
            "shell_command",
            "zsh",
            "cmd",
        ],
    ),
    action(
        "fs.apply_patch",
        EDIT,
        Writer,
        Subjects::Patch,
        &[
            "apply_patch",
            "patch",
            "edit_file",
            "edit",
            "multi_edit",
            "multiedit",
            "file_edit",
            "str_replace",
            "notebook_edit",
            "edit_notebook",
            "delete_symbol",
            "delete_range",
            "symbol_delete",
            "range_delete",
            "fs.edit",
            "fs.patch",
            "fs.multi_edit",
            "fs.delete_symbol",
            "fs.delete_range",
            "fs.notebook_edit",
        ],
    ),
    action(
        "fs.write",
        EDIT,
        Writer,
        Subjects::Path,
        &["write_file", "write", "file_write", "create_file", "fs.create"],
    ),
    action(
        "fs.rm",
        EDIT,
        Writer,
        Subjects::Tree,
        &["delete_file", "remove_file", "file_delete", "rm", "fs.delete"],
    ),
    action(
        "fs.mv",
        EDIT,
        Writer,
        Subjects::Move,
        &["move_file", "rename_file", "mv", "file_move", "fs.move"],
    ),
    action("fs.cp", EDIT, Writer, Subjects::Move, &["copy_file", "fs.copy"]),
    action("fs.mkdir", EDIT, Writer, Subjects::Path, &["create_directory", "mkdir"]),
    action("fs.read", READ, Reader, Subjects::Path, &["read_file", "read", "file_read", "cat"]),
    action("fs.stat", READ, Reader, Subjects::Path, &["stat", "fs.info"]),
    action(
        "fs.list",
        READ,
        Reader,
        Subjects::Names,
        &["ls", "glob", "list_directory", "list_dir", "file_list", "tree", "find", "fs.tree", "fs.find"],
    ),
    action(
        "fs.search_text",
        READ,
        Reader,
        Subjects::Search,
        &["grep", "search", "search_text", "rg", "fs.grep", "fs.search"],
    ),
    action("fs.diff", READ, Reader, Subjects::None, &[]),
    action("code.definition", READ, Reader, Subjects::Path, &[]),
    action("code.references", READ, Reader, Subjects::Path, &[]),
    action("code.diagnostics", READ, Reader, Subjects::Path, &[]),
    action("code.hover", READ, Reader, Subjects::Path, &[]),
    action("code.completion", READ, Reader, Subjects::Path, &[]),
    action("code.outline", READ, Reader, Subjects::Path, &[]),
    action("code.search_symbol", READ, Reader, Subjects::None, &["search_symbol"]),
    action("code.query", READ, Reader, Subjects::None, &[]),
    action("code.search", READ, Reader, Subjects::None, &[]),
    action("code.rename", EDIT, Writer, Subjects::Path, &[]),
    action("code.format", EDIT, Writer, Subjects::Path, &[]),
    action("net.request", NET, Writer, Subjects::Url, &["http_request", "web_fetch", "fetch", "curl"]),
    action("net.download", NET, Writer, Subjects::Download, &["download"]),
    action("net.open", NET, Writer, Subjects::Url, &["open_url"]),
    action("net.dns", NET, Writer, Subjects::Host, &["dns_lookup"]),
    action("net.websocket", NET, Writer, Subjects::Url, &["websocket_connect"]),
    action("net.search", NET, Writer, Subjects::None, &["web_search"]),
    action("vcs.status", None, Reader, Subjects::None, &[]),
    action("vcs.diff", None, Reader, Subjects::None, &[]),
    action("vcs.log", None, Reader, Subjects::None, &[]),
    action("vcs.apply", EDIT, Writer, Subjects::Patch, &[]),
    action("proc.ps", None, Reader, Subjects::None, &[]),
    action("proc.logs", None, Reader, Subjects::None, &[]),
    action("test.run", BASH, Writer, Subjects::Runner, &[]),
    action("test.list", READ, Reader, Subjects::Path, &[]),
    action("test.status", None, Reader, Subjects::None, &[]),
    action("ws.detect", READ, Reader, Subjects::Path, &[]),
    action("ws.capabilities", None, Reader, Subjects::None, &[]),
    action("think.think", None, Reader, Subjects::None, &[]),
    action("think.critic", None, Reader, Subjects::None, &[]),
    action("think.review", READ, Reader, Subjects::Path, &[]),
    action("mode.list", None, Reader, Subjects::None, &[]),
    action("mode.show", None, Reader, Subjects::None, &[]),
    action("mode.current", None, Reader, Subjects::None, &[]),
    // It only takes away, so nobody has to be asked.
    action("mode.activate", None, Reader, Subjects::None, &[]),
    action("mode.leave", None, Writer, Subjects::None, &[]),
    action("memory.remember", None, Writer, Subjects::None, &["remember", "memory.create", "memory.update"]),
    action("memory.forget", None, Writer, Subjects::None, &["forget", "memory.delete"]),
    action(
        "memory.recall",
        None,
        Reader,
        Subjects::None,
        &["memory.search", "memory.list", "memory.read", "memory.facts"],
    ),
    // A picture shows what other programs show: no reader's business.
    action("ui.screenshot", None, Writer, Subjects::None, &[]),
    action("ui.click", None, Writer, Subjects::None, &[]),
    action("ui.type", None, Writer, Subjects::None, &[]),
    action("ui.focus", None, Writer, Subjects::None, &[]),
    action("ui.record", None, Writer, Subjects::None, &[]),
    action("ui.stop", None, Writer, Subjects::None, &[]),
    action("ui.session", None, Writer, Subjects::None, &[]),
    action("ui.ask", None, Writer, Subjects::None, &["ask", "ask_user", "plan.ask"]),
    action("plan.exit", None, Writer, Subjects::None, &["exit_plan_mode", "plan.exit_plan_mode"]),
];

/// The action called `name`, by its canonical id or by an alias.
pub(crate) fn find(name: &str) -> Option<&'static Action> {
    ACTIONS.iter().find(|a| a.id == name).or_else(|| ACTIONS.iter().find(|a| a.aliases.contains(&name)))
}

/// Every name by which the action `id` can be called: its canonical id and its aliases. Empty for actions the crate does not know.
///
/// ```
/// assert!(hanzo_permissions::names_of("proc.exec").contains(&"bash"));
/// ```
pub fn names_of(id: &str) -> Vec<&'static str> {
    find(id)
        .map(|action| std::iter::once(action.id).chain(action.aliases.iter().copied()).collect())
        .unwrap_or_default()
}

/// The names that are read from every `tool.action` of which the tool part is known.
const AXES: &[&str] = &[
    "ws", "fs", "code", "proc", "test", "vcs", "net", "ui", "llm", "memory", "history", "think", "plan",
    "mode", "browser", "db", "hanzo",
];

/// Whether `name` is a tool of which an action is chosen by the `action` argument.
pub(crate) fn is_axis(name: &str) -> bool {
    AXES.contains(&name)
}

/// The actions every tool has and that only describe it.
pub(crate) fn is_description(action: &str) -> bool {
    matches!(action, "help" | "schema" | "status")
}

/// Every name a rule may use, for suggestions.
pub(crate) fn known_names() -> impl Iterator<Item = &'static str> {
    let ids = ACTIONS.iter().flat_map(|a| std::iter::once(a.id).chain(a.aliases.iter().copied()));
    Family::ALL.into_iter().map(Family::name).chain(AXES.iter().copied()).chain(ids)
}

/// Tools that need a fresh approval by a human every time, in every posture.
pub(crate) fn needs_fresh_approval(id: &str) -> bool {
    matches!(id, "memory.remember" | "memory.forget")
}

/// Calls that *are* a question to the user: no posture may answer them.
pub(crate) fn is_user_decision(id: &str) -> bool {
    matches!(id, "ui.ask" | "plan.exit" | "mode.leave")
}

/// Every way to read `mcp__server__tool` as a server and a tool.
///
/// Names may themselves contain `__`, so there can be several. A caller who loosens (allow) must accept only what
/// holds for all of them; a caller who tightens (deny) takes any.
pub(crate) fn mcp_splits(name: &str) -> Vec<(&str, &str)> {
    let Some(rest) = name.strip_prefix("mcp__") else { return Vec::new() };
    rest.match_indices("__")
        .map(|(at, separator)| (&rest[..at], &rest[at + separator.len()..]))
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_at_code_is_reading() {
        for name in ["search_symbol", "definition", "references", "outline", "query", "diagnostics", "search"]
        {
            let action =
                find(&format!("code.{name}")).unwrap_or_else(|| panic!("code.{name} is not in the table"));
            assert_eq!((action.access, action.family), (Reader, READ), "code.{name}");
        }
    }
}
