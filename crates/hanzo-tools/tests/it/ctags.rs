//! Symbols against universal-ctags: what it finds in a tree, we find.
//!
//! Without `ctags` there is nothing to compare with. `HANZO_CTAGS_TREES` is a list of directories, separated by colons, that are
//! compared as well as this repository; the shares are printed with `--nocapture`.
#![expect(clippy::print_stderr, reason = "the shares are what the test is run for by hand")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hanzo_sandbox::SandboxConfig;
use hanzo_tools::{Selection, toolset};
use serde_json::{Value, json};

use crate::support::{Stage, host};

/// Of the symbols ctags finds, this share must be found.
const LEAST: f64 = 0.98;

struct Tag {
    file: String,
    name: String,
    kind: String,
    language: String,
    line: String,
}

fn tags(root: &Path) -> Option<Vec<Tag>> {
    let output = Command::new("ctags")
        .current_dir(root)
        .args(["-R", "--exclude=target", "--exclude=node_modules", "--exclude=.git", "-x"])
        .args(["--languages=Rust,JavaScript,TypeScript,Python,Go,Java,C,C++", "--fields=+l"])
        .arg("--_xformat=%F\t%N\t%K\t%l\t%n")
        .arg(".")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let tags = text.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let mut field = || fields.next().map(str::to_owned);
        Some(Tag { file: field()?, name: field()?, kind: field()?, language: field()?, line: field()? })
    });
    Some(tags.collect())
}

/// Names as both write them: without the mark of a private one, and an operator by what it works on.
fn plain(name: &str) -> String {
    let name: String = name.split_whitespace().collect();
    name.strip_prefix("operator").unwrap_or(&name).trim_start_matches('#').to_owned()
}

/// What we find in a file: the names, the last part of a dotted one as well.
fn ours(stage: &Stage, file: &str) -> HashSet<String> {
    let mut names = HashSet::new();
    let mut cursor = Value::Null;
    loop {
        let envelope =
            stage.code(json!({"action": "outline", "uri": file, "limit": 20000, "cursor": cursor}));
        for symbol in envelope["data"]["symbols"].as_array().into_iter().flatten() {
            let id = symbol["symbol_id"].as_str().unwrap();
            let name = id.split_once('#').unwrap().1.split_once(':').unwrap().1;
            let name = name
                .rsplit_once('~')
                .filter(|(_, end)| end.parse::<u32>().is_ok())
                .map_or(name, |(name, _)| name);
            let name = plain(name);
            names.insert(name.clone());
            // A name may have dots in it: every end of the whole is a way to call it.
            for (at, _) in name.match_indices('.') {
                names.insert(plain(&name[at + 1..]));
            }
        }
        cursor = envelope["meta"]["paging"]["cursor"].clone();
        if cursor.is_null() {
            return names;
        }
    }
}

/// ctags takes the lifetime of `&'static str` for a variable called `str`.
fn is_lifetime(root: &Path, tag: &Tag) -> bool {
    tag.language == "Rust"
        && tag.kind == "variable"
        && std::fs::read_to_string(root.join(&tag.file)).is_ok_and(|text| {
            let line = tag
                .line
                .parse::<usize>()
                .ok()
                .and_then(|line| text.lines().nth(line - 1))
                .unwrap_or_default();
            line.contains(&format!("'static {}", tag.name))
        })
}

/// What ctags lists and nobody looks for by name: references, labels, what has no name, and what an include guard is.
fn counts(root: &Path, tag: &Tag) -> bool {
    let has_name =
        !tag.name.starts_with("__anon") && !tag.name.starts_with("AnonymousFunction") && !tag.name.is_empty();
    // It lists the variables of functions and what they hold as if they were global; those begin no line.
    let is_script = matches!(tag.language.as_str(), "JavaScript" | "TypeScript");
    let line = || {
        let text = std::fs::read_to_string(root.join(&tag.file)).unwrap_or_default();
        tag.line
            .parse::<usize>()
            .ok()
            .and_then(|line| text.lines().nth(line - 1))
            .unwrap_or_default()
            .to_owned()
    };
    let is_local = is_script
        && match tag.kind.as_str() {
            "constant" | "variable" => {
                let line = line();
                let words: Vec<&str> =
                    line.split(|letter: char| !(letter.is_alphanumeric() || "_$".contains(letter))).collect();
                let is_declared = ["const", "let", "var"]
                    .iter()
                    .any(|word| words.windows(2).any(|pair| pair[0] == *word && pair[1] == tag.name));
                line.starts_with(char::is_whitespace) || !is_declared
            }
            "property" | "field" => {
                tag.language == "JavaScript" || !line().contains(&format!("{}:", tag.name))
            }
            "class" => !line().contains("class"),
            "alias" => !line().contains(&format!("type {}", tag.name)) || line().contains("import"),
            // It takes `if (x) {` for a method at times.
            "method" => matches!(tag.name.as_str(), "if" | "extends" | "new"),
            _ => false,
        };
    has_name
        && !is_local
        && !matches!(tag.kind.as_str(), "label" | "header" | "unknown" | "parameter" | "local")
}

fn compare(root: &Path) -> bool {
    let Some(tags) = tags(root) else { return true };
    let data = tempfile::tempdir().unwrap();
    let host = host(root, data.path(), &SandboxConfig::default());
    let tools = toolset(&host, &Selection::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (root, outside) = (root.to_owned(), root.to_owned());
    let stage = Stage { dir: data, root, outside, data: PathBuf::new(), host, tools, runtime };
    let mut files: HashMap<String, HashSet<String>> = HashMap::new();
    let mut shares: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut missing: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for tag in tags.iter().filter(|tag| counts(&stage.root, tag) && !is_lifetime(&stage.root, tag)) {
        let names = files.entry(tag.file.clone()).or_insert_with(|| ours(&stage, &tag.file));
        let share = shares.entry(tag.language.clone()).or_default();
        share.1 += 1;
        if names.contains(&plain(&tag.name)) {
            share.0 += 1;
        } else {
            let place = format!("{}:{} {}", tag.file, tag.line, tag.name);
            missing.entry((tag.language.clone(), tag.kind.clone())).or_default().push(place);
        }
    }
    let mut good = true;
    for (language, (found, all)) in &shares {
        #[expect(clippy::cast_precision_loss, reason = "a share is read to four digits")]
        let share = *found as f64 / *all as f64;
        eprintln!("{} {language}: {found} of {all} ({:.2} %)", stage.root.display(), share * 100.0);
        good &= share >= LEAST || *all < 200;
    }
    for ((language, kind), places) in missing {
        let shown: Vec<&str> = places.iter().step_by(places.len().div_ceil(6)).map(String::as_str).collect();
        eprintln!("  {language} {kind}: {} missing, such as {}", places.len(), shown.join(" | "));
    }
    good
}

#[test]
fn what_ctags_finds_is_found() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let trees = std::env::var("HANZO_CTAGS_TREES").unwrap_or_default();
    let trees = trees.split(':').filter(|tree| !tree.is_empty()).map(PathBuf::from);
    let short: Vec<PathBuf> = std::iter::once(own).chain(trees).filter(|tree| !compare(tree)).collect();
    assert!(short.is_empty(), "fewer than {LEAST} of the symbols in {short:?}");
}
