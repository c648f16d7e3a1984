//! `ws`: what the workspace is and what can be done in it. `detect` takes a bounded look at the tree; `help` and `schema` are
//! those of all the thread's tools.

use std::collections::BTreeMap;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::FileUri;
use hanzo_protocol::tool::{Effect, ToolCaller};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::contract::{Action, Answer, Call, Nothing, Target, ToolBuilder, UnifiedTool, place};
use crate::host::Host;
use crate::proc::on_path;
use crate::project::{Limits, Place, Runner, Scan, find_suites};
use crate::registry;

mod vcs;

use vcs::Repository;

/// Languages, build systems and suites that are named.
const MOST: usize = 30;

/// The tool, to be given a host.
pub fn tool() -> ToolBuilder {
    UnifiedTool::builder("ws", "What the workspace is and which tools there are.")
        .action(Detect)
        .action(Capabilities)
        .action(Help)
        .action(Schema)
}

/// Looks at the workspace.
struct Detect;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DetectInput {
    /// Default the workspace
    path: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DetectOutput {
    root: FileUri,
    /// Those with the most files first.
    languages: Vec<Language>,
    /// What builds it.
    build: Vec<Build>,
    /// What tests it; `test` runs them.
    test: Vec<Tested>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vcs: Option<Repository>,
    /// What does the work, by tool.
    backends: BTreeMap<&'static str, Vec<String>>,
    /// Files looked at.
    files_seen: u64,
    /// Whether that was all of them.
    complete: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Language {
    language: &'static str,
    files: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Build {
    uri: FileUri,
    tool: &'static str,
    /// What builds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Tested {
    suite: String,
    runner: Runner,
}

impl Action for Detect {
    const NAME: &'static str = "detect";
    const SUMMARY: &'static str = "languages, build, tests, version control";
    const EXAMPLE: &'static str = "{}";
    type Input = DetectInput;
    type Output = DetectOutput;

    fn effect(&self, _: &DetectInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &DetectInput) -> Vec<Target> {
        input.path.iter().map(Target::read).collect()
    }

    async fn run(&self, call: &Call<'_>, input: DetectInput) -> Result<Answer<DetectOutput>, ToolError> {
        let caller = call.context.caller;
        call.blocking(move |host, cancelled| {
            let start = match &input.path {
                Some(path) => place::parse(path)?,
                None => host.workspace.path().to_owned(),
            };
            let scan = Scan::run(&host.workspace, &start, Limits::default(), cancelled)?;
            crate::fs::taint(host, &scan.root, caller)?;
            let suites = find_suites(&host.workspace, &scan, on_path("cargo-nextest"));
            let mut languages: Vec<Language> =
                scan.languages.iter().map(|(language, files)| Language { language, files: *files }).collect();
            languages.sort_by_key(|language| std::cmp::Reverse(language.files));
            languages.truncate(MOST);
            let builds = scan.places.iter().flat_map(builds).take(MOST).collect();
            let test = suites.into_iter().take(MOST);
            Ok(Answer::new(DetectOutput {
                root: place::uri(&scan.root),
                languages,
                build: builds,
                test: test.map(|suite| Tested { suite: suite.name, runner: suite.runner }).collect(),
                vcs: vcs::find(&host.workspace, &scan.root),
                backends: backends(host),
                files_seen: scan.files,
                complete: scan.complete,
            }))
        })
        .await
    }
}

/// What builds a directory, by the files in it.
fn builds(place: &Place) -> Vec<Build> {
    const KNOWN: &[(&str, &str, Option<&str>)] = &[
        ("Cargo.toml", "cargo", Some("cargo build")),
        ("go.mod", "go", Some("go build ./...")),
        ("pom.xml", "maven", Some("mvn package")),
        ("build.gradle", "gradle", Some("gradle build")),
        ("build.gradle.kts", "gradle", Some("gradle build")),
        ("CMakeLists.txt", "cmake", Some("cmake -B build && cmake --build build")),
        ("meson.build", "meson", Some("meson setup build && meson compile -C build")),
        ("MODULE.bazel", "bazel", Some("bazel build //...")),
        ("WORKSPACE", "bazel", Some("bazel build //...")),
        ("mix.exs", "mix", Some("mix compile")),
        ("build.zig", "zig", Some("zig build")),
        ("dune-project", "dune", Some("dune build")),
        ("stack.yaml", "stack", Some("stack build")),
        ("Package.swift", "swift", Some("swift build")),
        ("Gemfile", "bundler", Some("bundle install")),
        ("composer.json", "composer", Some("composer install")),
        ("Makefile", "make", Some("make")),
        ("makefile", "make", Some("make")),
        ("GNUmakefile", "make", Some("make")),
        ("justfile", "just", Some("just --list")),
        ("Taskfile.yml", "task", Some("task --list")),
        ("flake.nix", "nix", Some("nix build")),
        ("pyproject.toml", "python", None),
        ("setup.py", "python", None),
    ];
    let mut builds: Vec<Build> = Vec::new();
    let mut add = |marker: &str, tool: &'static str, command| {
        if !builds.iter().any(|build: &Build| build.tool == tool) {
            builds.push(Build { uri: place::uri(&place.path.join(marker)), tool, command });
        }
    };
    for (marker, tool, command) in KNOWN {
        // Below another CMakeLists.txt it is a part of it.
        let is_part = *marker == "CMakeLists.txt" && place.depth > 0;
        if place.has(marker) && !is_part {
            add(marker, tool, *command);
        }
    }
    if place.has("package.json") {
        let manager =
            [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];
        let tool = manager.iter().find(|(lock, _)| place.has(lock)).map_or("npm", |(_, tool)| tool);
        add("package.json", tool, None);
    }
    builds
}

/// What does the work of each tool. A language server is named when one is installed; `code` joins them when it can.
fn backends(host: &Host) -> BTreeMap<&'static str, Vec<String>> {
    let of = |tool: &'static str| {
        let known: &[&str] = match tool {
            "code" => &["tree-sitter", "heuristic"],
            "vcs" if on_path("git") => &["git"],
            "vcs" => &[],
            "test" => &["cargo", "pytest", "node", "vitest", "jest", "go", "ctest", "junit"],
            _ => &["built-in"],
        };
        (tool, known.iter().map(ToString::to_string).collect())
    };
    registry::chosen_names(host).map(of).collect()
}

/// Says what can be done.
struct Capabilities;

#[derive(Debug, Serialize, JsonSchema)]
struct CapabilitiesOutput {
    /// Language servers that are installed. None is used yet.
    lsp: Vec<&'static str>,
    /// The version control in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    vcs: Option<&'static str>,
    sandbox: Sandbox,
    /// What does the work, by tool.
    backends: BTreeMap<&'static str, Vec<String>>,
    /// Test runners that are installed.
    test_runners: Vec<&'static str>,
    /// The modes that are active.
    modes: Vec<String>,
}

/// What confines programs.
#[derive(Debug, Serialize, JsonSchema)]
struct Sandbox {
    /// `full`, `landlock+seccomp` or `path-check`.
    level: String,
    network: bool,
    /// Where programs may write; not told to callers from elsewhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    writable: Vec<String>,
    /// Whether the user can be asked to run a program outside.
    way_out: bool,
}

/// Servers by the program that is one.
const SERVERS: &[&str] = &[
    "rust-analyzer",
    "pyright-langserver",
    "pylsp",
    "typescript-language-server",
    "vtsls",
    "gopls",
    "clangd",
    "jdtls",
    "lua-language-server",
    "ruby-lsp",
    "zls",
    "bash-language-server",
];

impl Action for Capabilities {
    const NAME: &'static str = "capabilities";
    const SUMMARY: &'static str = "sandbox, backends, language servers";
    const EXAMPLE: &'static str = "{}";
    type Input = Nothing;
    type Output = CapabilitiesOutput;

    fn effect(&self, _: &Nothing) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, _: Nothing) -> Result<Answer<CapabilitiesOutput>, ToolError> {
        let is_local = call.context.caller == ToolCaller::Local;
        call.blocking(move |host, _| {
            let confinement = host.spawner.confinement();
            let there = |names: &[&'static str]| names.iter().copied().filter(|name| on_path(name)).collect();
            let writable = confinement.writable.iter().map(|path| path.display().to_string());
            let root = host.workspace.path();
            Ok(Answer::new(CapabilitiesOutput {
                lsp: there(SERVERS),
                vcs: vcs::find(&host.workspace, root).map(|repository| repository.kind),
                sandbox: Sandbox {
                    level: confinement.level.clone(),
                    network: confinement.network,
                    writable: if is_local { writable.collect() } else { Vec::new() },
                    way_out: host.outside.is_some(),
                },
                backends: backends(host),
                test_runners: there(&["cargo", "cargo-nextest", "pytest", "node", "go", "ctest"]),
                modes: host.modes.names(),
            }))
        })
        .await
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfTool {
    /// Default all
    tool: Option<String>,
}

/// The tools a caller means.
fn tools(call: &Call<'_>, wanted: Option<&str>) -> Result<Vec<std::sync::Arc<UnifiedTool>>, ToolError> {
    let mut tools = registry::chosen(call.host);
    if let Some(wanted) = wanted {
        let known: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        if !known.contains(&wanted) {
            let error = ToolError::new(ErrorCode::UnknownTool, format!("there is no tool `{wanted}`"));
            return Err(error.with_details(json!({ "available": known })));
        }
        tools.retain(|tool| tool.name() == wanted);
    }
    Ok(tools)
}

/// The manual of all tools.
struct Help;

#[derive(Debug, Serialize, JsonSchema)]
struct HelpOutput {
    /// Markdown.
    text: String,
}

impl Action for Help {
    const NAME: &'static str = "help";
    const SUMMARY: &'static str = "the manual of all tools, or of one";
    const EXAMPLE: &'static str = r#"{"tool":"test"}"#;
    type Input = OfTool;
    type Output = HelpOutput;

    fn effect(&self, _: &OfTool) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, input: OfTool) -> Result<Answer<HelpOutput>, ToolError> {
        let pages: Vec<String> = tools(call, input.tool.as_deref())?.iter().map(|tool| tool.page()).collect();
        Ok(Answer::new(HelpOutput { text: pages.join("\n") }))
    }
}

/// The schemas of all tools.
struct Schema;

#[derive(Debug, Serialize, JsonSchema)]
struct SchemaOutput {
    /// By tool: `actions`, by name, with `input` and `output`.
    tools: Map<String, Value>,
}

impl Action for Schema {
    const NAME: &'static str = "schema";
    const SUMMARY: &'static str = "the JSON Schemas of all tools, or of one";
    const EXAMPLE: &'static str = r#"{"tool":"test"}"#;
    type Input = OfTool;
    type Output = SchemaOutput;

    fn effect(&self, _: &OfTool) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, input: OfTool) -> Result<Answer<SchemaOutput>, ToolError> {
        let tools = tools(call, input.tool.as_deref())?;
        let tools = tools.iter().map(|tool| (tool.name().to_owned(), tool.schemas())).collect();
        Ok(Answer::new(SchemaOutput { tools }))
    }
}
