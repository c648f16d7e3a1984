//! Symbols against universal-ctags: what it finds in a tree, we find.
//!
//! Without `ctags` there is nothing to compare with, and the test says so. `HANZO_CTAGS_TREES` is a list of directories, separated by colons, that are
//! compared as well as this repository; the shares are printed with `--nocapture`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use hanzo_sandbox::SandboxConfig;
use hanzo_tools::{Selection, toolset};
use serde_json::{Value, json};

use crate::code::SAMPLES;
use crate::support::{Stage, host};

/// Of the symbols ctags finds, this share must be found.
const LEAST: f64 = 0.99;

struct Tag {
    file: String,
    name: String,
    kind: String,
    language: String,
    line: String,
}

impl Tag {
    /// The number of its line, from 0.
    fn index(&self) -> usize {
        self.line.parse::<usize>().unwrap_or(1) - 1
    }
}

/// What ctags finds; `None` when there is none, or another program of that name.
fn tags(root: &Path) -> Option<Vec<Tag>> {
    let version = Command::new("ctags").arg("--version").output().ok()?;
    if !String::from_utf8_lossy(&version.stdout).contains("Universal Ctags") {
        return None;
    }
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

/// Names as both write them: without the mark of a private one, an operator by what it works on, and one that converts by the
/// type it makes.
fn plain(name: &str) -> String {
    if let Some(made) = name.strip_prefix("operator ").filter(|made| made.starts_with(char::is_alphabetic)) {
        return made.trim_start_matches("const ").trim_end_matches([' ', '&', '*']).to_owned();
    }
    let name: String = name.split_whitespace().collect();
    name.strip_prefix("operator").unwrap_or(&name).trim_start_matches('#').to_owned()
}

/// What we find in a file: the names, with all ways to call them, and how many different ones without that.
fn ours(stage: &Stage, file: &str) -> (HashSet<String>, usize) {
    let mut names = HashSet::new();
    let mut last_parts = HashSet::new();
    let mut cursor = Value::Null;
    loop {
        let envelope = stage.code(json!({"action": "outline", "uri": file, "limit": 5000, "cursor": cursor}));
        for symbol in envelope["data"]["symbols"].as_array().into_iter().flatten() {
            let id = symbol["symbol_id"].as_str().unwrap();
            let name = id.split_once('#').unwrap().1.split_once(':').unwrap().1;
            let name = name
                .rsplit_once('~')
                .filter(|(_, end)| end.parse::<u32>().is_ok())
                .map_or(name, |(name, _)| name);
            let name = plain(name);
            names.insert(name.clone());
            last_parts.insert(name.rsplit('.').next().unwrap_or(&name).to_owned());
            // A name may have dots in it: every end of the whole is a way to call it.
            for (at, _) in name.match_indices('.') {
                names.insert(plain(&name[at + 1..]));
            }
        }
        cursor = envelope["meta"]["paging"]["cursor"].clone();
        if cursor.is_null() {
            return (names, last_parts.len());
        }
    }
}

/// Why a tag of ctags is not looked for. All of these are what ctags lists and nobody would call a definition of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Excluded {
    /// `__anon…` and `AnonymousFunction…`: names ctags makes up.
    Nameless,
    /// Labels, parameters, and headers and modules that are only named in an import or include.
    NoDefinition,
    /// Variables of JavaScript and TypeScript that ctags takes for global ones: they are in a function, and stand indented, or
    /// are not declared on their line at all.
    LocalOfScript,
    /// Members of objects that functions make, of which ctags lists every one.
    MemberOfLocal,
    /// `&'static str` is a variable `str` to ctags; `x is T`, `as` and `satisfies` are names to it, and `if (x) {` a method;
    /// in `enum { A = B<C, D>::value }` of C++ it takes `D` for a member.
    Misread,
    /// C and C++: macros that are called where a declaration could be, such as `EIGEN_DENSE_PUBLIC_INTERFACE(A)`, which ctags
    /// takes for functions.
    MacroCall,
    /// C and C++: variables in what `TEST_CASE("…") {` begins, which ctags does not take for a function.
    LocalOfMacro,
}

/// The lines of a tree's files, each read once.
struct Sources {
    root: PathBuf,
    files: RefCell<HashMap<String, Rc<Vec<String>>>>,
}

impl Sources {
    fn lines(&self, file: &str) -> Rc<Vec<String>> {
        let read = || {
            let text = std::fs::read(self.root.join(file)).unwrap_or_default();
            let lines = text.split(|byte| *byte == b'\n');
            Rc::new(lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect())
        };
        Rc::clone(self.files.borrow_mut().entry(file.to_owned()).or_insert_with(read))
    }

    fn line_of(&self, tag: &Tag) -> String {
        self.lines(&tag.file).get(tag.index()).cloned().unwrap_or_default()
    }
}

fn excluded(sources: &Sources, tag: &Tag) -> Option<Excluded> {
    if tag.name.is_empty() || tag.name.starts_with("__anon") || tag.name.starts_with("AnonymousFunction") {
        return Some(Excluded::Nameless);
    }
    match (tag.language.as_str(), tag.kind.as_str()) {
        // `import a.b as c` names what another file defines.
        (_, "label" | "header" | "unknown" | "parameter" | "local")
        | ("Python", "namespace" | "module")
        | ("Go", "packageName") => Some(Excluded::NoDefinition),
        ("Rust", "variable") if sources.line_of(tag).contains(&format!("'static {}", tag.name)) => {
            Some(Excluded::Misread)
        }
        ("C" | "C++", kind) => excluded_in_c(sources, tag, kind),
        ("JavaScript" | "TypeScript", kind) => excluded_in_script(&sources.line_of(tag), tag, kind),
        _ => None,
    }
}

fn excluded_in_c(sources: &Sources, tag: &Tag, kind: &str) -> Option<Excluded> {
    let is_macro = |name: &str| {
        name.contains('_')
            && name.chars().all(|letter| letter.is_uppercase() || letter.is_numeric() || letter == '_')
    };
    let line = sources.line_of(tag);
    let before = line.split(&tag.name).next().unwrap_or_default();
    match kind {
        "function" | "prototype" | "member" if is_macro(&tag.name) => {
            before.split_whitespace().all(is_macro).then_some(Excluded::MacroCall)
        }
        "enumerator" => {
            // It is a value that the name of a member stands before, or another of a list in angle brackets.
            let value = before.rsplit('{').next().unwrap_or_default();
            (value.contains('<') || value.contains('(')).then_some(Excluded::Misread)
        }
        "variable" => {
            let lines = sources.lines(&tag.file);
            let above = &lines[..tag.index().min(lines.len())];
            let begin =
                above.iter().rev().find(|line| line.starts_with(|letter: char| letter.is_alphabetic()));
            let name = begin.and_then(|line| line.split('(').next()).unwrap_or_default();
            let is_indented = line.starts_with(char::is_whitespace);
            (is_indented && (is_macro(name) || name == "TEST")).then_some(Excluded::LocalOfMacro)
        }
        _ => None,
    }
}

fn excluded_in_script(line: &str, tag: &Tag, kind: &str) -> Option<Excluded> {
    let words: Vec<&str> =
        line.split(|letter: char| !(letter.is_alphanumeric() || "_$".contains(letter))).collect();
    let follows = |keys: &[&str]| words.windows(2).any(|pair| keys.contains(&pair[0]) && pair[1] == tag.name);
    let is_indented = line.starts_with(char::is_whitespace);
    match kind {
        "constant" | "variable" if is_indented || !follows(&["const", "let", "var"]) => {
            Some(Excluded::LocalOfScript)
        }
        "property" | "field" if tag.language == "JavaScript" || !line.contains(&format!("{}:", tag.name)) => {
            Some(Excluded::MemberOfLocal)
        }
        "class" if !line.contains("class") => Some(Excluded::Misread),
        "alias" if !follows(&["type"]) || line.contains("import") => Some(Excluded::Misread),
        "enum" if !follows(&["enum"]) => Some(Excluded::Misread),
        "method" if matches!(tag.name.as_str(), "if" | "extends" | "new") => Some(Excluded::Misread),
        _ => None,
    }
}

/// What was found in the files of one language.
#[derive(Default)]
struct Share {
    /// Names of a file that ctags finds, and that count.
    theirs: usize,
    /// Of those, the ones we find.
    common: usize,
    /// Names of a file that we find.
    ours: usize,
    excluded: BTreeMap<Excluded, usize>,
}

/// Compares a tree. `least_tags` is how many tags make a share worth judging. What is wrong.
fn compare(root: &Path, tags: &[Tag], least_tags: usize) -> Vec<String> {
    let data = tempfile::tempdir().unwrap();
    let host = host(root, data.path(), &SandboxConfig::default());
    let tools = toolset(&host, &Selection::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (root, outside) = (root.to_owned(), root.to_owned());
    let stage = Stage { dir: data, root, outside, data: PathBuf::new(), host, tools, runtime };
    let sources = Sources { root: stage.root.clone(), files: RefCell::default() };
    let mut files: HashMap<String, HashSet<String>> = HashMap::new();
    let mut counted: HashSet<(&str, &str)> = HashSet::new();
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    let mut missing: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for tag in tags {
        let share = shares.entry(tag.language.clone()).or_default();
        if let Some(reason) = excluded(&sources, tag) {
            *share.excluded.entry(reason).or_default() += 1;
            continue;
        }
        let names = files.entry(tag.file.clone()).or_insert_with(|| {
            let (names, count) = ours(&stage, &tag.file);
            share.ours += count;
            names
        });
        if !counted.insert((&tag.file, &tag.name)) {
            continue;
        }
        share.theirs += 1;
        if names.contains(&plain(&tag.name)) {
            share.common += 1;
        } else {
            let place = format!("{}:{} {}", tag.file, tag.line, tag.name);
            missing.entry((tag.language.clone(), tag.kind.clone())).or_default().push(place);
        }
    }
    let mut wrong = Vec::new();
    for (language, share) in &shares {
        let Share { theirs, common, ours, excluded } = share;
        // Of what either finds, how much each does.
        let both = theirs + ours - common;
        #[expect(clippy::cast_precision_loss, reason = "a share is read to four digits")]
        let of = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        let shown = format!(
            "{} {language}: {common} of the {theirs} that ctags finds ({:.2} %); of what either finds, we {:.2} %, ctags {:.2} %; not looked for: {excluded:?}",
            stage.root.display(),
            of(*common, *theirs) * 100.0,
            of(*ours, both) * 100.0,
            of(*theirs, both) * 100.0,
        );
        eprintln!("{shown}");
        if *theirs >= least_tags && (of(*common, *theirs) < LEAST || ours < theirs) {
            wrong.push(shown);
        }
    }
    for ((language, kind), places) in missing {
        let shown: Vec<&str> = places.iter().step_by(places.len().div_ceil(6)).map(String::as_str).collect();
        eprintln!("  {language} {kind}: {} missing, such as {}", places.len(), shown.join(" | "));
    }
    wrong
}

#[test]
fn what_ctags_finds_is_found() {
    let samples = tempfile::tempdir().unwrap();
    for (name, text, _) in SAMPLES {
        std::fs::write(samples.path().join(name), text).unwrap();
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let trees = std::env::var("HANZO_CTAGS_TREES").unwrap_or_default();
    let trees = trees.split(':').filter(|tree| !tree.is_empty()).map(|tree| (PathBuf::from(tree), 200));
    // Every tag of the samples, which have all eight languages, must be found; real trees may hold what only ctags takes for one.
    for (tree, least_tags) in [(samples.path().to_owned(), 1), (own, 200)].into_iter().chain(trees) {
        let Some(tags) = tags(&tree) else {
            eprintln!("NOT RUN: there is no Universal Ctags (`ctags`)");
            return;
        };
        let wrong = compare(&tree, &tags, least_tags);
        assert!(
            wrong.is_empty(),
            "fewer than {LEAST} of what ctags finds, or less than it:\n{}",
            wrong.join("\n")
        );
    }
}
