//! `/mcp`: the servers, how they are, and what can be done with one.

use hanzo_protocol::engine::{List, ListKind, Request};
use hanzo_protocol::item::NoticeLevel;
use serde::Deserialize;
use serde_json::Value;

use super::{App, Asked, Choice, Command, Dialog};
use crate::dialog::{Entry, Picker};
use crate::text;

/// A server as the engine lists it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Server {
    name: String,
    transport: String,
    status: String,
    error: Option<String>,
    tools_count: Option<u64>,
    prompts_count: Option<u64>,
    resources_count: Option<u64>,
    latency_ms: Option<u64>,
}

impl Server {
    fn detail(&self) -> String {
        let count = |count: Option<u64>, word: &str| {
            count.map(|count| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
        };
        let parts = [
            Some(self.status.clone()),
            count(self.tools_count, "tool"),
            count(self.prompts_count.filter(|count| *count > 0), "prompt"),
            count(self.resources_count.filter(|count| *count > 0), "resource"),
            self.latency_ms.map(|took| format!("{took} ms")),
            self.error.as_deref().map(text::one_line),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

impl App {
    pub(super) fn list_servers(&mut self, commands: &mut Vec<Command>) {
        let list = |thread_id| Request::List(List { kind: ListKind::McpServers, thread_id: Some(thread_id) });
        self.call(Asked::McpServers, list, commands);
    }

    pub(super) fn pick_server(&mut self, servers: Vec<Value>) {
        let read = |server: Value| serde_json::from_value::<Server>(server).ok();
        let servers: Vec<Server> = servers.into_iter().filter_map(read).collect();
        if servers.is_empty() {
            let words = "No MCP server is configured\n\nhint: `hanzo-dev mcp add NAME -- COMMAND` adds one";
            self.tell(NoticeLevel::Info, words);
            return;
        }
        let entry = |server: Server| Entry {
            label: server.name.clone(),
            detail: server.detail(),
            value: Choice::Server(server),
        };
        let entries = servers.into_iter().map(entry).collect();
        self.dialogs.push_back(Dialog::Pick(Picker::new("MCP servers", entries)));
    }

    pub(super) fn ask_about_server(&mut self, server: &Server) {
        let entry =
            |label: &str, detail: &str, value| Entry { label: label.into(), detail: detail.into(), value };
        let control = |what| Choice::Control(what, server.name.clone());
        let mut entries = vec![entry("Never mind", "", Choice::Nothing)];
        if server.status == "disabled" {
            entries.push(entry("Enable it", "until hanzo-dev ends", control("enable")));
        } else {
            entries.push(entry("Reconnect", "ends the connection and makes another", control("reconnect")));
            entries.push(entry(
                "Disable it",
                "its tools are gone from the next turn on, until hanzo-dev ends",
                control("disable"),
            ));
        }
        let mut notes =
            vec![format!("{}: {}", server.transport, Server { error: None, ..server.clone() }.detail())];
        notes.extend(server.error.clone());
        let picker = Picker::new(format!("MCP server {}", server.name), entries).with_notes(notes);
        self.dialogs.push_back(Dialog::Pick(picker));
    }
}
