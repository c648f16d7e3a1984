//! Path checks for Windows, on strings.
//!
//! Windows gives one file many names. These functions refuse the names that cannot be compared safely and bring
//! the others into one form: `C:\a\b` or `\\server\share\a\b`. They are pure, so they are tested on any system;
//! they do not look at links or junctions, which [`Sandbox::check_path`](crate::Sandbox::check_path) does
//! through the file system. There is no descriptor-based layer on Windows: between the check and the use of a
//! path there is a gap, and the level in force says `path-check`.

/// Why a Windows path is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowsPathError {
    /// Nothing there.
    #[error("the path is empty")]
    Empty,
    /// `\\.\…`, `\??\…`, `\\?\GLOBALROOT\…` and other ways past the file system.
    #[error("`{path}` is a device path")]
    Device {
        /// The path.
        path: String,
    },
    /// `C:name` or `\name`: relative to a drive's current directory, which is not ours to know.
    #[error("`{path}` depends on the current drive or its directory")]
    DriveRelative {
        /// The path.
        path: String,
    },
    /// `file:stream`.
    #[error("`{name}` names an alternate data stream")]
    Stream {
        /// The component.
        name: String,
    },
    /// `CON`, `NUL`, `COM1` and the like, with or without an extension.
    #[error("`{name}` is a reserved device name")]
    Reserved {
        /// The component.
        name: String,
    },
    /// Windows drops trailing dots and spaces, so the name is not the file's name.
    #[error("`{name}` ends in a dot or space")]
    Trailing {
        /// The component.
        name: String,
    },
    /// `PROGRA~1`: a second name for a file, which a comparison would miss.
    #[error("`{name}` looks like a short 8.3 name")]
    ShortName {
        /// The component.
        name: String,
    },
    /// A character no name may have.
    #[error("`{name}` contains a character that file names cannot have")]
    Character {
        /// The component.
        name: String,
    },
    /// The path leads out of the workspace.
    #[error("`{path}` is outside `{root}`")]
    Outside {
        /// The path.
        path: String,
        /// The workspace.
        root: String,
    },
}

impl WindowsPathError {
    /// True for a decision about *where* the path leads, or about a name that hides where it leads.
    pub fn is_denial(&self) -> bool {
        !matches!(self, Self::Empty | Self::Character { .. })
    }

    /// What to try, without the word `hint:`.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Empty | Self::Character { .. } => None,
            Self::Device { .. } | Self::Reserved { .. } => Some("use an ordinary file"),
            Self::DriveRelative { .. } => Some("give the whole path, with the drive and a separator"),
            Self::Stream { .. } => Some("leave out the part after the colon"),
            Self::Trailing { .. } => Some("leave out the trailing dot or space"),
            Self::ShortName { .. } => Some("use the long name"),
            Self::Outside { .. } => {
                Some("write beneath the workspace, or add the directory to `sandbox.allow_write`")
            }
        }
    }
}

/// The place a path names: a drive or share, then names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// `C:` or `\\server\share`.
    volume: String,
    names: Vec<String>,
}

impl Place {
    fn text(&self) -> String {
        let mut text = self.volume.clone();
        for name in &self.names {
            text.push('\\');
            text.push_str(name);
        }
        if self.names.is_empty() {
            text.push('\\');
        }
        text
    }

    fn contains(&self, other: &Self) -> bool {
        is_same_name(&self.volume, &other.volume)
            && other.names.len() >= self.names.len()
            && self.names.iter().zip(&other.names).all(|(left, right)| is_same_name(left, right))
    }
}

/// Brings `path` into one absolute form, relative ones being relative to `workspace`, and refuses what leads out of
/// the workspace or hides where it leads.
pub fn resolve(workspace: &str, path: &str) -> Result<String, WindowsPathError> {
    let root = parse_absolute(workspace)?;
    let place = place_in(&root, path)?;
    if root.contains(&place) {
        Ok(place.text())
    } else {
        Err(WindowsPathError::Outside { path: path.to_owned(), root: root.text() })
    }
}

/// Whether `path` is `root` or beneath it. What cannot be told is not.
pub fn is_beneath(root: &str, path: &str) -> bool {
    match (parse_absolute(root), parse_absolute(path)) {
        (Ok(root), Ok(path)) => root.contains(&path),
        _ => false,
    }
}

/// Checks every name in a path, relative or absolute, without asking where it leads.
pub fn check_name(path: &str) -> Result<(), WindowsPathError> {
    let anywhere = Place { volume: "C:".to_owned(), names: Vec::new() };
    match place_in(&anywhere, path) {
        // `..` beyond the invented root is a question of place, not of name.
        Err(WindowsPathError::Outside { .. }) => Ok(()),
        answer => answer.map(|_| ()),
    }
}

fn place_in(root: &Place, path: &str) -> Result<Place, WindowsPathError> {
    if path.is_empty() {
        return Err(WindowsPathError::Empty);
    }
    if is_absolute(path) {
        return parse_absolute(path);
    }
    let mut place = root.clone();
    walk(&mut place, path, &unified(path), Dots::Meaningful)?;
    Ok(place)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dots {
    /// `.` and `..` mean what they usually do.
    Meaningful,
    /// After `\\?\` they are names, and names that cannot exist.
    Literal,
}

fn walk(place: &mut Place, whole: &str, rest: &str, dots: Dots) -> Result<(), WindowsPathError> {
    // Names first, all of them: a `..` must not hide a bad name that comes after it.
    for name in rest.split('\\').filter(|name| !name.is_empty()) {
        if !matches!(name, "." | "..") || dots == Dots::Literal {
            check_component(name)?;
        }
    }
    for name in rest.split('\\') {
        match name {
            "" | "." => {}
            ".." => {
                if place.names.pop().is_none() {
                    return Err(WindowsPathError::Outside { path: whole.to_owned(), root: place.text() });
                }
            }
            name => place.names.push(name.to_owned()),
        }
    }
    Ok(())
}

/// Windows takes both separators, except after `\\?\`.
fn unified(path: &str) -> String {
    path.replace('/', "\\")
}

fn is_absolute(path: &str) -> bool {
    let path = unified(path);
    path.starts_with('\\') || path.as_bytes().get(1) == Some(&b':')
}

fn parse_absolute(path: &str) -> Result<Place, WindowsPathError> {
    let device = || WindowsPathError::Device { path: path.to_owned() };
    if path.is_empty() {
        return Err(WindowsPathError::Empty);
    }
    let text = unified(path);
    if let Some(verbatim) = text.strip_prefix(r"\\?\") {
        // With `/` in it this is either not verbatim at all or contains a name with a slash.
        if path.contains('/') {
            return Err(device());
        }
        let unc = verbatim.get(..4).filter(|start| start.eq_ignore_ascii_case(r"UNC\"));
        return match unc.and_then(|_| verbatim.get(4..)) {
            Some(share) => parse_share(path, share, Dots::Literal),
            None => parse_drive(verbatim, path, Dots::Literal).map_err(|error| match error {
                WindowsPathError::DriveRelative { .. } => device(),
                other => other,
            }),
        };
    }
    if text.starts_with(r"\\.\") || text.starts_with(r"\??\") || text == r"\\." || text == r"\\?" {
        return Err(device());
    }
    match text.strip_prefix(r"\\") {
        Some(share) => parse_share(path, share, Dots::Meaningful),
        None => parse_drive(&text, path, Dots::Meaningful),
    }
}

fn parse_drive(text: &str, whole: &str, dots: Dots) -> Result<Place, WindowsPathError> {
    let relative = || WindowsPathError::DriveRelative { path: whole.to_owned() };
    let (letter, rest) = text.split_once(':').ok_or_else(relative)?;
    let is_letter = letter.len() == 1 && letter.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !is_letter || !rest.starts_with('\\') {
        return Err(relative());
    }
    let mut place = Place { volume: format!("{}:", letter.to_ascii_uppercase()), names: Vec::new() };
    walk(&mut place, whole, rest, dots)?;
    Ok(place)
}

fn parse_share(whole: &str, text: &str, dots: Dots) -> Result<Place, WindowsPathError> {
    let mut parts = text.splitn(3, '\\');
    let (server, share) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_name = |part: &str| !part.is_empty() && !matches!(part, "." | ".." | "?");
    if !is_name(server) || !is_name(share) {
        return Err(WindowsPathError::Device { path: whole.to_owned() });
    }
    let mut place = Place { volume: format!(r"\\{server}\{share}"), names: Vec::new() };
    walk(&mut place, whole, parts.next().unwrap_or_default(), dots)?;
    Ok(place)
}

fn check_component(name: &str) -> Result<(), WindowsPathError> {
    let owned = || name.to_owned();
    if name.contains(':') {
        return Err(WindowsPathError::Stream { name: owned() });
    }
    if name.chars().any(|c| (c as u32) < 0x20 || matches!(c, '<' | '>' | '"' | '|' | '?' | '*' | '/')) {
        return Err(WindowsPathError::Character { name: owned() });
    }
    if name.ends_with(['.', ' ']) {
        return Err(WindowsPathError::Trailing { name: owned() });
    }
    if is_reserved(name) {
        return Err(WindowsPathError::Reserved { name: owned() });
    }
    if is_short(name) {
        return Err(WindowsPathError::ShortName { name: owned() });
    }
    Ok(())
}

/// `NUL`, `nul.txt` and `NUL .txt` are all the device.
fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end_matches(' ').to_ascii_uppercase();
    if matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let Some(number) = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT")) else { return false };
    let mut digits = number.chars();
    // The superscripts one, two and three count as digits here.
    matches!((digits.next(), digits.next()), (Some('0'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}'), None))
}

/// The form of generated short names: at most eight characters ending in `~` and digits, and a short extension.
/// A long name may look like this as well; it is refused too, because the two cannot be told apart as text.
fn is_short(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let Some((start, digits)) = stem.rsplit_once('~') else { return false };
    stem.chars().count() <= 8
        && !start.is_empty()
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && extension.chars().count() <= 3
}

/// NTFS compares by upper case, one character at a time.
fn is_same_name(left: &str, right: &str) -> bool {
    left.chars().flat_map(char::to_uppercase).eq(right.chars().flat_map(char::to_uppercase))
}
