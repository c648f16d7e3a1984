//! Which tools there are, and the set a thread gets.

use std::sync::{Arc, LazyLock};

use hanzo_protocol::tool::{Tool, ToolSet};

use crate::alias;
use crate::contract::{ToolBuilder, UnifiedTool};
use crate::host::Host;

/// The built-in tools, in the order in which they are advertised. A new tool is registered by a line here.
const BUILT_IN: &[fn() -> ToolBuilder] = &[
    crate::fs::tool,
    crate::proc::tool,
    crate::code::tool,
    crate::vcs::tool,
    crate::test::tool,
    crate::ws::tool,
    crate::think::tool,
    crate::mode::tool,
    crate::net::tool,
    #[cfg(feature = "ui")]
    crate::ui::tool,
];

/// The tools a model is shown unless `enabled` says which. The others can be called, and cost nothing in every request.
const SHOWN: &[&str] = &["fs", "proc", "code", "vcs", "test"];

/// Which tools a thread gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Names of tools (`fs`), actions (`fs.read`) or aliases (`read_file`) to leave in; empty for all, of which the usual ones
    /// are listed.
    pub enabled: Vec<String>,
    /// Which names are listed.
    pub profile: Profile,
    /// Whether other names than the listed ones can be called.
    pub names: Names,
}

/// Which names a model is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// `fs`, `proc`, `vcs`, with actions.
    #[default]
    Unified,
    /// `read_file`, `edit_file`, `bash` and so on.
    Classic,
}

/// Whether other names than the listed ones can be called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Names {
    /// They can, and mean the same.
    #[default]
    WithAliases,
    /// `strict`: they cannot.
    Strict,
}

impl Selection {
    /// The entries of `enabled` that name nothing there is, for a warning.
    pub fn unknown(&self) -> Vec<&str> {
        let tools: Vec<ToolBuilder> = BUILT_IN.iter().map(|make| make()).collect();
        let known = |entry: &str| {
            let canonical = alias::canonical(entry).unwrap_or(entry);
            let (tool, action) = split(canonical);
            tools.iter().any(|builder| {
                builder.name() == tool && action.is_none_or(|action| builder.action_names().contains(&action))
            })
        };
        self.enabled.iter().map(String::as_str).filter(|entry| !known(entry)).collect()
    }

    /// Whether a model is told of the tool.
    fn lists(&self, tool: &str) -> bool {
        !self.enabled.is_empty() || SHOWN.contains(&tool)
    }

    fn has(&self, tool: &str, action: &str) -> bool {
        self.enabled.is_empty()
            || self.enabled.iter().any(|entry| {
                let (wanted, only) = split(alias::canonical(entry).unwrap_or(entry));
                wanted == tool && only.is_none_or(|only| only == action)
            })
    }
}

/// The names of all built-in tools, in the order in which they are advertised.
pub fn tool_names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> =
        LazyLock::new(|| BUILT_IN.iter().map(|make| make().name()).collect());
    &NAMES
}

fn split(id: &str) -> (&str, Option<&str>) {
    id.split_once('.').map_or((id, None), |(tool, action)| (tool, Some(action)))
}

/// All unified tools.
pub fn unified(host: &Arc<Host>) -> Vec<Arc<UnifiedTool>> {
    selected(host, &Selection::default())
}

/// The names of the tools of the thread of `host`, without making them.
pub(crate) fn chosen_names(host: &Host) -> impl Iterator<Item = &'static str> {
    static NAMES: LazyLock<Vec<&'static str>> =
        LazyLock::new(|| BUILT_IN.iter().map(|make| make().name()).collect());
    let selection = host.selection.get();
    NAMES.iter().copied().filter(move |tool| {
        let names = |entry: &String| split(alias::canonical(entry).unwrap_or(entry)).0 == *tool;
        selection.is_none_or(|chosen| chosen.enabled.is_empty() || chosen.enabled.iter().any(names))
    })
}

/// The tools of the thread of `host`, as far as they were chosen.
pub(crate) fn chosen(host: &Arc<Host>) -> Vec<Arc<UnifiedTool>> {
    selected(host, host.selection.get().unwrap_or(&Selection::default()))
}

fn selected(host: &Arc<Host>, selection: &Selection) -> Vec<Arc<UnifiedTool>> {
    BUILT_IN
        .iter()
        .map(|make| {
            let builder = make();
            let name = builder.name();
            builder.only(|action| selection.has(name, action))
        })
        .filter(|builder| !builder.action_names().is_empty())
        .map(|builder| Arc::new(builder.build(Arc::clone(host))))
        .collect()
}

/// The tools of a thread: those of the profile are listed, all other names can be called unless that is switched off.
pub fn toolset(host: &Arc<Host>, selection: &Selection) -> ToolSet {
    // What a process that died left half done is put right before anybody looks. It cannot be reported here; the next edit
    // runs into whatever keeps it from working, and says so.
    let _ = crate::fs::recover(host);
    // Made once for a host; a second set of it shows the same tools in `ws.help`.
    let _ = host.selection.set(selection.clone());
    let tools = selected(host, selection);
    let mut set = ToolSet::default();
    match selection.profile {
        Profile::Unified => {
            for tool in tools.iter().filter(|tool| selection.lists(tool.name())) {
                set.insert(Arc::clone(tool) as Arc<dyn Tool>);
            }
        }
        Profile::Classic => {
            for tool in alias::classic(&tools) {
                set.insert(Arc::new(tool));
            }
        }
    }
    if selection.names == Names::WithAliases {
        for tool in &tools {
            if set.get(tool.name()).is_none() {
                set.insert_unlisted(tool.name(), Arc::clone(tool) as Arc<dyn Tool>);
            }
        }
        for (name, tool) in alias::all(&tools, selection.profile) {
            if set.get(&name).is_none() {
                set.insert_unlisted(&name, Arc::new(tool) as Arc<dyn Tool>);
            }
        }
    }
    set
}
