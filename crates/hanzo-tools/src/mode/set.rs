//! One mode: which actions it leaves in, read from a file.

use std::path::Path;

use globset::{Glob, GlobSet, GlobSetBuilder};
use hanzo_protocol::narrowing::Narrowed;
use hanzo_protocol::tool::{Effect, Reach};
use serde::Deserialize;

/// What no mode leaves out: choosing modes, asking the user, planning and thinking, and knowing where one is. None of it
/// reaches anything.
const ALWAYS: [&str; 5] = ["mode", "plan", "think", "ws", "ui.ask"];
/// The actions that only describe a tool.
const DESCRIBING: [&str; 3] = ["help", "schema", "status"];

/// A mode: a set of actions to keep to, and how to work in it.
#[derive(Debug)]
pub struct Mode {
    /// Its name.
    pub name: String,
    /// What it is for, in a line.
    pub about: String,
    /// Patterns over canonical actions; a bare tool is all its actions.
    pub tools: Vec<String>,
    /// Patterns over actions that are left out again.
    pub without: Vec<String>,
    /// The effects that are left in; absent is every one.
    pub effects: Option<Vec<Effect>>,
    /// The files that may be changed, as globs over paths relative to the workspace; absent is every one.
    pub writes: Option<Vec<String>>,
    /// How to work in it.
    pub guidance: String,
    writable: Option<GlobSet>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    tools: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    effects: Option<Vec<Effect>>,
    writes: Option<Vec<String>>,
    #[serde(default)]
    guidance: String,
}

/// A mode's file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the mode `{name}` cannot be used: {reason}")]
pub struct ModeError {
    /// The mode.
    pub name: String,
    /// What is wrong with its file.
    pub reason: String,
}

impl Mode {
    /// The mode called `name` that `text` describes, in TOML.
    pub fn parse(name: &str, text: &str) -> Result<Self, ModeError> {
        let wrong = |reason: String| ModeError { name: name.to_owned(), reason };
        let File { about, tools, without, effects, writes, guidance } =
            toml::from_str(text).map_err(|fault| wrong(fault.to_string()))?;
        let writable =
            writes.as_deref().map(compile).transpose().map_err(|fault| wrong(fault.to_string()))?;
        Ok(Self { name: name.to_owned(), about, tools, without, effects, writes, guidance, writable })
    }

    /// Whether a call with this reach is left in. `workspace` is what the globs are relative to.
    pub fn check(&self, workspace: &Path, reach: &Reach) -> Result<(), Narrowed> {
        let refuse = |reason: String| {
            Err(Narrowed { action: reach.action.clone(), by: format!("the mode `{}`", self.name), reason })
        };
        let action = reach.action.as_str();
        let describes = action.split_once('.').is_some_and(|(_, own)| DESCRIBING.contains(&own));
        if ALWAYS.iter().any(|pattern| covers(pattern, action)) || (describes && reach.effect == Effect::Read)
        {
            return Ok(());
        }
        let named = self.tools.iter().any(|pattern| covers(pattern, action));
        if !named || self.without.iter().any(|pattern| covers(pattern, action)) {
            return refuse(format!("it is for this: {}", self.about));
        }
        if self.effects.as_ref().is_some_and(|effects| !effects.contains(&reach.effect)) {
            return refuse(format!(
                "it would {}, and the mode is for this: {}",
                reach.effect.verb(),
                self.about
            ));
        }
        let Some(writable) = self.writable.as_ref().filter(|_| reach.effect == Effect::Write) else {
            return Ok(());
        };
        let globs = self.writes.as_deref().unwrap_or_default().join(", ");
        if reach.paths.is_empty() {
            return refuse(format!("it does not say which files it changes, and only {globs} may be"));
        }
        let outside = reach.paths.iter().find(|path| {
            let relative = path.real.strip_prefix(workspace);
            !relative.is_ok_and(|relative| writable.is_match(relative))
        });
        match outside {
            Some(path) => refuse(format!("only {globs} may be changed, not {}", path.given)),
            None => Ok(()),
        }
    }
}

fn compile(globs: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(Glob::new(glob)?);
    }
    set.build()
}

/// Whether `pattern` takes in `action`: `*` stands for anything, and the bare name of a tool for all its actions.
fn covers(pattern: &str, action: &str) -> bool {
    stars(pattern, action) || action.split_once('.').is_some_and(|(tool, _)| stars(pattern, tool))
}

fn stars(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(before) else { return false };
    (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| stars(after, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use hanzo_protocol::tool::{Place, ReachedPath};
    use proptest::prelude::*;

    use super::*;

    fn mode(text: &str) -> Mode {
        Mode::parse("trial", text).unwrap()
    }

    fn writing(path: &str) -> Reach {
        let real = PathBuf::from("/ws").join(path);
        let path = ReachedPath { given: path.into(), real, place: Place::Inside };
        Reach { paths: vec![path], ..Reach::new("fs.write", Effect::Write) }
    }

    #[test]
    fn a_mode_leaves_in_what_it_names_and_nothing_else() {
        let mode = mode("about = 'a'\ntools = ['fs', 'vcs.d*', 'mcp__x__*']\nwithout = ['fs.rm']");
        let check = |action: &str| mode.check(Path::new("/ws"), &Reach::new(action, Effect::Read));
        for action in
            ["fs.read", "vcs.diff", "mcp__x__find", "mode.leave", "plan.update", "proc.help", "ui.ask"]
        {
            assert_eq!(check(action), Ok(()), "{action}");
        }
        for action in ["fs.rm", "vcs.log", "proc.exec", "mcp__y__find", "fsx.read", "agent.run", "ui.click"] {
            assert!(check(action).is_err(), "{action}");
        }
        let writes = Reach::new("vcs.status", Effect::Write);
        assert!(mode.check(Path::new("/ws"), &writes).is_err(), "a name does not make it a description");
    }

    #[test]
    fn effects_and_files_narrow_further() {
        let mode =
            mode("about = 'a'\ntools = ['*']\neffects = ['read', 'write']\nwrites = ['*.md', 'docs/**']");
        let check = |reach: &Reach| mode.check(Path::new("/ws"), reach);
        assert!(check(&Reach::new("fs.read", Effect::Read)).is_ok());
        assert!(check(&Reach::new("proc.exec", Effect::Execute)).is_err());
        assert!(check(&writing("README.md")).is_ok() && check(&writing("docs/a/b.txt")).is_ok());
        assert!(check(&writing("src/main.rs")).is_err());
        assert!(check(&writing("/etc/x.md")).is_err(), "outside the workspace");
        assert!(
            check(&Reach::new("vcs.commit", Effect::Write)).is_err(),
            "it cannot be told what it changes"
        );
        let two = Reach { paths: [writing("a.md").paths, writing("a.rs").paths].concat(), ..writing("a.md") };
        assert!(check(&two).is_err(), "all files have to be");
    }

    #[test]
    fn a_file_with_a_mistake_is_refused() {
        for text in
            ["", "about = 'a'", "about = 'a'\ntools = []\ntool = 1", "about='a'\ntools=[]\nwrites=['[']"]
        {
            assert!(Mode::parse("x", text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_without_a_star_is_only_itself(a in "[a-z.]{0,8}", b in "[a-z.]{0,8}") {
            prop_assert_eq!(stars(&a, &b), a == b);
            let (open, longer) = (format!("{b}*"), format!("{b}x"));
            prop_assert!(stars("*", &b) && stars(&open, &longer));
        }
    }
}
