//! What a manifest's tool may reach. What it does not name it does not get, and what nobody can hold it to it cannot ask for.

use crate::rate::Rate;

/// What a tool may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// What its sandbox has to let through.
    pub walls: Walls,
    /// Variables of the user's that it may see.
    pub variables: Vec<String>,
    pub(super) rate: Option<Rate>,
}

/// What a sandbox lets through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Walls {
    /// The network.
    pub network: Network,
    /// The workspace.
    pub files: Files,
}

/// Whether the network is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Network {
    /// It is not.
    #[default]
    Off,
    /// It is.
    On,
}

/// What may be done in the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Files {
    /// Files may be read.
    #[default]
    Read,
    /// Files may be changed, too.
    Write,
}

impl Permissions {
    /// Reads the strings of a manifest; the error says which of them makes no sense.
    pub fn parse<'a>(strings: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut all = Self::default();
        for string in strings {
            let (kind, what) = string.split_once(':').unwrap_or((string, ""));
            match (kind.trim(), what.trim()) {
                // A sandbox that lets one protocol of the network through lets all of them through.
                ("network", "http" | "https" | "ws" | "wss" | "dns" | "tcp" | "*" | "") => {
                    all.walls.network = Network::On;
                }
                ("filesystem", "read" | "") => {}
                ("filesystem", "write" | "*") => all.walls.files = Files::Write,
                ("env", name) if is_variable(name) => all.variables.push(name.to_owned()),
                ("rate_limit", rate) => {
                    let rate = Rate::parse(rate);
                    all.rate = Some(rate.ok_or_else(|| format!("`{string}` is no rate: write `100/min`"))?);
                }
                _ => {
                    return Err(format!(
                        "`{string}` is not a permission: there are `network:http`, `filesystem:read`, `filesystem:write`, `env:NAME` and `rate_limit:100/min`"
                    ));
                }
            }
        }
        Ok(all)
    }
}

fn is_variable(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_not_given() {
        let nothing = Permissions::parse([]).unwrap();
        assert_eq!(nothing.walls, Walls { network: Network::Off, files: Files::Read });
        let all = ["network:http", "filesystem:write", "env:API_KEY", "rate_limit:100/min"];
        let all = Permissions::parse(all).unwrap();
        assert_eq!(all.walls, Walls { network: Network::On, files: Files::Write });
        assert_eq!((all.variables, all.rate), (vec!["API_KEY".to_owned()], Rate::parse("100/min")));
    }

    #[test]
    fn a_permission_nobody_can_hold_it_to_is_refused() {
        for odd in [
            "everything",
            "network:http://x",
            "env:",
            "env:A B",
            "env:1",
            "rate_limit:fast",
            "process:spawn",
            "",
        ] {
            assert!(Permissions::parse([odd]).is_err(), "{odd}");
        }
    }
}
