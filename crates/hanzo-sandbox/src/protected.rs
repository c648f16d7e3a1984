//! The lists: what is never written although it lies in a writable place, and what is never read at all.
//!
//! One list each, used by the jail (as mounts), by the macOS profile (as rules) and by the path layer (as checks
//! on the descriptor that was really opened). A protected path is one whose *content is later run or believed by
//! somebody outside the jail*: git hooks and configuration, our own project settings, MCP server lists, shell
//! start-up files. They are protected also while missing, because creating one is the attack.
//!
//! Names are compared byte by byte on Linux and without regard to ASCII case on macOS and Windows, where
//! `.GIT/Hooks` is the same directory. (A Linux directory with the `casefold` attribute is not recognised.)

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{
    canonical,
    config::{IsolationMode, SandboxConfig},
};

/// A path nobody confined may write, create, rename or remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Where it is, absolute.
    pub path: PathBuf,
    /// Whether it is a file or a directory, also while it is missing.
    pub kind: ProtectedKind,
    /// What may be done while it is missing.
    pub when_missing: WhenMissing,
}

/// What a protected path is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProtectedKind {
    /// A single file.
    File,
    /// A directory with everything beneath it.
    Directory,
}

/// Whether a mount point may stand in for a missing protected path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenMissing {
    /// An empty file or directory at this place is harmless: a jail may mount over it.
    MayMount,
    /// An empty file here would break the program that owns it (git stops at an empty `commondir`).
    /// The path layer still refuses to create it.
    MustStayMissing,
}

/// Start-up files that a shell outside the jail would run.
const SHELL_FILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".xprofile",
    ".xsessionrc",
];

/// Further start-up files that are read from a home directory.
const HOME_FILES: &[&str] = &[".gitconfig", ".config/git", ".config/fish"];

/// What of a project our own program and its kin run or believe.
pub(crate) const PROJECT_FILES: &[&str] = &[".hanzo", ".mcp.json"];

/// Everything that is run or believed when it lies in a home directory, by its path from there.
pub(crate) fn home_files() -> impl Iterator<Item = &'static str> {
    SHELL_FILES.iter().chain(HOME_FILES).copied()
}

/// Names inside any git directory that decide what git will run or where it looks for that decision.
const GIT_CONTROL: &[&str] = &["hooks", "config", "config.worktree", "commondir"];

/// Everything protected in one writable root, whether it exists or not.
///
/// For a linked worktree or a submodule the `.git` *file* is protected, and so are the control files of the git
/// directory it names.
pub fn protected_in(root: &Path) -> Vec<Protected> {
    let mut found = Vec::new();
    let dot_git = root.join(".git");
    if fs::metadata(&dot_git).is_ok_and(|meta| meta.is_file()) {
        // Pointing `.git` elsewhere gives a new repository, with hooks, to whoever runs git here next.
        found.push(file(dot_git));
        if let Some(dirs) = linked_git_dirs(root) {
            found.extend(git_control_files(&dirs.common_dir));
            if dirs.git_dir != dirs.common_dir {
                found.extend(git_control_files(&dirs.git_dir));
                found.push(file(dirs.git_dir.join("gitdir")));
            }
        }
    } else {
        found.extend(git_control_files(&dot_git));
    }
    found.push(directory(root.join(".hanzo")));
    found.push(file(root.join(".mcp.json")));
    found.push(file(root.join(".gitconfig")));
    found.push(directory(root.join(".config/git")));
    found.push(directory(root.join(".config/fish")));
    found.extend(SHELL_FILES.iter().map(|name| file(root.join(name))));
    found
}

fn git_control_files(git_dir: &Path) -> [Protected; 4] {
    [
        directory(git_dir.join("hooks")),
        file(git_dir.join("config")),
        file(git_dir.join("config.worktree")),
        Protected { when_missing: WhenMissing::MustStayMissing, ..file(git_dir.join("commondir")) },
    ]
}

fn file(path: PathBuf) -> Protected {
    Protected { path, kind: ProtectedKind::File, when_missing: WhenMissing::MayMount }
}

fn directory(path: PathBuf) -> Protected {
    Protected { path, kind: ProtectedKind::Directory, when_missing: WhenMissing::MayMount }
}

/// The directories behind a `.git` *file*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitDirs {
    /// This working tree's own git directory (its index, HEAD, logs).
    pub git_dir: PathBuf,
    /// The repository shared by all working trees (objects, refs, config). The same as `git_dir` in a submodule.
    pub common_dir: PathBuf,
}

/// Follows a `.git` file to the real git directory and common directory, without running git.
///
/// The file alone is not believed: anybody who can write the workspace could name any directory in it and so
/// have it made writable. The git directory must point *back* at this workspace, by its `gitdir` file (linked
/// worktree) or by `core.worktree` (submodule), and both must look like git directories.
pub fn linked_git_dirs(workspace: &Path) -> Option<GitDirs> {
    let dot_git = workspace.join(".git");
    let git_dir = read_pointer(&dot_git, "gitdir:", workspace)?;
    let real_workspace = fs::canonicalize(workspace).ok()?;
    let looks_like_git =
        |dir: &Path| dir.join("HEAD").is_file() && dir.join("objects").is_dir() && dir.join("refs").is_dir();

    if let Some(common_dir) = read_pointer(&git_dir.join("commondir"), "", &git_dir) {
        let back = read_pointer(&git_dir.join("gitdir"), "", &git_dir)?;
        let points_back = back == real_workspace.join(".git");
        let is_registered = git_dir.parent() == Some(&common_dir.join("worktrees"));
        return (points_back && is_registered && looks_like_git(&common_dir))
            .then_some(GitDirs { git_dir, common_dir });
    }
    let config = read_small(&git_dir.join("config"))?;
    let worktree = core_worktree(&config)?;
    let points_back = fs::canonicalize(git_dir.join(worktree)).ok()? == real_workspace;
    (points_back && looks_like_git(&git_dir))
        .then(|| GitDirs { git_dir: git_dir.clone(), common_dir: git_dir })
}

/// Reads a one-line file that names another path, relative to `base`, and resolves it.
fn read_pointer(path: &Path, prefix: &str, base: &Path) -> Option<PathBuf> {
    let text = read_small(path)?;
    let target = text.lines().next()?.strip_prefix(prefix)?.trim();
    if target.is_empty() {
        return None;
    }
    fs::canonicalize(base.join(target)).ok()
}

fn read_small(path: &Path) -> Option<String> {
    const LIMIT: u64 = 1024 * 1024;
    let meta = fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > LIMIT {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// `core.worktree` as git writes it into a submodule's config; other spellings are simply not recognised.
fn core_worktree(config: &str) -> Option<&str> {
    let mut in_core = false;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            in_core = line.eq_ignore_ascii_case("[core]");
        } else if in_core
            && let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("worktree")
        {
            return Some(value.trim());
        }
    }
    None
}

/// The directories that may be written under `config`: one answer for the jail, the macOS profile and the
/// path layer. Mode `off` answers `/`.
pub fn writable_roots(config: &SandboxConfig, workspace: &Path) -> Vec<PathBuf> {
    let mut roots = match config.mode {
        IsolationMode::Off => vec![PathBuf::from(std::path::MAIN_SEPARATOR_STR)],
        IsolationMode::Workspace => {
            let mut roots = vec![workspace.to_owned()];
            if let Some(dirs) = linked_git_dirs(workspace) {
                roots.push(dirs.git_dir);
                roots.push(dirs.common_dir);
            }
            roots
        }
        IsolationMode::Allowlist => config.allowed_paths.iter().map(|path| workspace.join(path)).collect(),
    };
    roots.extend(config.allow_write.iter().map(|path| workspace.join(path)));
    let mut kept: Vec<PathBuf> = Vec::new();
    for root in roots {
        if !kept.contains(&root) {
            kept.push(root);
        }
    }
    kept
}

/// Everything protected under `config`: in the workspace and each `allow_write` root, plus `never_write`, plus the unreadable set
/// (what may not be read may not be replaced either).
pub fn protected_under(config: &SandboxConfig, workspace: &Path) -> Vec<Protected> {
    let mut found = protected_in(workspace);
    let listed: &[PathBuf] =
        if config.mode == IsolationMode::Allowlist { &config.allowed_paths } else { &[] };
    for root in listed.iter().chain(&config.allow_write) {
        for protected in protected_in(&workspace.join(root)) {
            if !found.contains(&protected) {
                found.push(protected);
            }
        }
    }
    for path in config.never_write.iter().chain(&config.unreadable) {
        let path = workspace.join(path);
        let kind = if path.is_file() { ProtectedKind::File } else { ProtectedKind::Directory };
        found.push(Protected { path, kind, when_missing: WhenMissing::MustStayMissing });
    }
    found
}

/// Secrets nobody's agent needs: our own data and credentials, and the usual places other programs keep theirs.
pub fn default_unreadable(home: &Path, config_dir: &Path, data_dir: &Path) -> Vec<PathBuf> {
    const IN_HOME: &[&str] = &[
        ".ssh",
        ".aws",
        ".gnupg",
        ".netrc",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        ".docker",
        ".kube",
        ".config/gh",
        ".config/gcloud",
        ".cargo/credentials",
        ".cargo/credentials.toml",
    ];
    let mut found = vec![data_dir.to_owned(), config_dir.join("credentials.json")];
    found.extend(IN_HOME.iter().map(|name| home.join(name)));
    // `credentials*`: backups and whatever cargo calls its next format.
    for entry in fs::read_dir(home.join(".cargo")).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b"credentials") && !found.contains(&entry.path())
        {
            found.push(entry.path());
        }
    }
    found
}

/// How names are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaseRule {
    /// Byte by byte.
    Sensitive,
    /// ASCII letters of either case are the same.
    Insensitive,
}

impl CaseRule {
    /// What this platform's file systems usually do.
    pub const fn platform() -> Self {
        if cfg!(any(windows, target_os = "macos", target_os = "ios")) {
            Self::Insensitive
        } else {
            Self::Sensitive
        }
    }

    fn same(self, left: &OsStr, right: &OsStr) -> bool {
        match self {
            Self::Sensitive => left == right,
            Self::Insensitive => left.eq_ignore_ascii_case(right),
        }
    }

    /// Whether `path` is `root` or lies beneath it, by whole components.
    pub fn is_beneath(self, root: &Path, path: &Path) -> bool {
        let mut path = path.components();
        root.components()
            .all(|want| path.next().is_some_and(|have| self.same(want.as_os_str(), have.as_os_str())))
    }

    /// The same for paths that have been put together from their components.
    fn is_plainly_beneath(self, root: &Path, path: &Path) -> bool {
        let (root, path) = (root.as_os_str().as_encoded_bytes(), path.as_os_str().as_encoded_bytes());
        let Some((start, rest)) = path.split_at_checked(root.len()) else { return false };
        let same = match self {
            Self::Sensitive => start == root,
            Self::Insensitive => start.eq_ignore_ascii_case(root),
        };
        let is_separator =
            |byte: Option<&u8>| byte.is_some_and(|byte| std::path::is_separator(char::from(*byte)));
        same && (rest.is_empty()
            || root.is_empty()
            || is_separator(rest.first())
            || is_separator(root.last()))
    }
}

/// A list of paths with where they really are, to compare real locations against.
#[derive(Clone, Debug)]
pub struct PathSet {
    named: Vec<PathBuf>,
    real: Vec<PathBuf>,
    /// All of them, in the same order, without what does not matter: to compare them byte by byte.
    plain: Vec<PathBuf>,
    case: CaseRule,
}

impl PathSet {
    /// Takes absolute paths and resolves the links in them as they are now.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>, case: CaseRule) -> Self {
        Self::of(paths.into_iter().collect(), case)
    }

    fn of(named: Vec<PathBuf>, case: CaseRule) -> Self {
        let real = resolve_all(&named);
        let plain = named.iter().chain(&real).map(|path| path.components().collect()).collect();
        Self { named, real, plain, case }
    }

    /// The same list with its links resolved again.
    #[must_use]
    pub fn resolved_again(&self) -> Self {
        Self::of(self.named.clone(), self.case)
    }

    /// The entry that is `location` or contains it.
    pub fn covering(&self, location: &Path) -> Option<&Path> {
        // This runs for every look at a file, and taking each path apart would be most of the look.
        let location: PathBuf = location.components().collect();
        let at = self.plain.iter().position(|entry| self.case.is_plainly_beneath(entry, &location))?;
        self.entries().nth(at)
    }

    /// An entry that lies strictly beneath `location`: moving `location` would move it.
    pub fn inside(&self, location: &Path) -> Option<&Path> {
        self.entries()
            .find(|entry| self.case.is_beneath(location, entry) && !self.case.is_beneath(entry, location))
    }

    /// Every entry, as named and as resolved.
    pub fn entries(&self) -> impl Iterator<Item = &Path> {
        self.named.iter().chain(&self.real).map(PathBuf::as_path)
    }

    /// How names are compared.
    pub fn case(&self) -> CaseRule {
        self.case
    }
}

/// Most entries share a few parents, which are resolved once: this runs for every write.
fn resolve_all(named: &[PathBuf]) -> Vec<PathBuf> {
    let mut parents: HashMap<&Path, Option<PathBuf>> = HashMap::new();
    let mut found = Vec::new();
    for path in named {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let parent = parents.entry(parent).or_insert_with(|| canonical::resolve(parent));
        let Some(mut real) = parent.as_ref().map(|parent| parent.join(name)) else { continue };
        if real.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            let Some(target) = canonical::resolve(&real) else { continue };
            // Both: the link itself may not be replaced, and what it leads to may not be changed.
            found.push(std::mem::replace(&mut real, target));
        }
        found.push(real);
    }
    found.retain(|real| !named.contains(real));
    found
}

/// Whether `relative` (beneath a writable root) is a control file of *any* git directory in it: nested
/// repositories, submodules and the directories of linked worktrees as well.
pub fn is_git_control(relative: &Path, case: CaseRule) -> bool {
    let names: Vec<&OsStr> = relative
        .components()
        .filter_map(|component| if let Component::Normal(name) = component { Some(name) } else { None })
        .collect();
    let is = |name: &OsStr, list: &[&str]| list.iter().any(|entry| case.same(name, OsStr::new(entry)));
    names.iter().enumerate().filter(|(_, name)| is(name, &[".git"])).any(|(at, _)| {
        match names.get(at + 1..).unwrap_or_default() {
            [first, ..] if is(first, GIT_CONTROL) => true,
            [first, rest @ ..] if is(first, &["modules", "worktrees"]) => {
                rest.iter().any(|name| is(name, GIT_CONTROL) || is(name, &["gitdir"]))
            }
            _ => false,
        }
    })
}

/// Whether the last component of `path` is `.git`.
pub fn is_dot_git(path: &Path, case: CaseRule) -> bool {
    path.file_name().is_some_and(|name| case.same(name, OsStr::new(".git")))
}
