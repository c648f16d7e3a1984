//! Which workspaces the user trusts, and in what state: a file in the user's configuration directory, where nothing that
//! an agent runs can write.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hanzo_config::{LoadInputs, Trust, TrustDigest};
use hanzo_engine::parts::TrustKeeper;
use hanzo_protocol::BoxFuture;
use hanzo_protocol::engine::{EngineError, EngineErrorKind, WorkspaceTrust};

use super::rules::write_private;

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remembered {
    /// The trusted workspaces, and the digest of what was trusted in each; empty where nothing needed it.
    Workspaces(BTreeMap<PathBuf, String>),
    /// It cannot be read, so nobody is trusted.
    Broken {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// The file of trusted workspaces.
pub struct TrustFile {
    inputs: LoadInputs,
}

impl TrustFile {
    /// The file that belongs to the settings of `inputs`.
    pub fn new(inputs: LoadInputs) -> Self {
        Self { inputs }
    }

    /// What is remembered about `workspace`.
    pub fn trust(&self, workspace: &Path) -> Trust {
        let digest = match self.remembered() {
            Remembered::Workspaces(mut all) => all.remove(workspace),
            Remembered::Broken { .. } => None,
        };
        digest.map_or(Trust::Untrusted, |digest| Trust::Remembered(TrustDigest::remembered(digest)))
    }

    /// All that is remembered.
    pub fn remembered(&self) -> Remembered {
        let Some(path) = self.path() else { return Remembered::Workspaces(BTreeMap::new()) };
        let read = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Remembered::Workspaces(BTreeMap::new());
            }
            Err(error) => Err(error.to_string()),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
        };
        match read {
            Ok(all) => Remembered::Workspaces(all),
            Err(reason) => Remembered::Broken { path, reason },
        }
    }

    fn path(&self) -> Option<PathBuf> {
        Some(self.inputs.config_dir.as_ref()?.join("trust.json"))
    }

    /// Trusts a workspace whose settings have the digest that was shown, or distrusts it.
    pub fn decide(&self, decision: &WorkspaceTrust) -> Result<(), EngineError> {
        let refuse = |kind, message: String| EngineError { kind, message };
        let path = self.path().ok_or_else(|| {
            refuse(
                EngineErrorKind::InvalidParams,
                "nothing says where your settings belong; set `HOME`".into(),
            )
        })?;
        let mut inputs = self.inputs.clone();
        inputs.cwd.clone_from(&decision.workspace);
        inputs.workspace_root.clone_from(&decision.workspace);
        inputs.trust = Trust::Trusted;
        let config = hanzo_config::load(&inputs)
            .map_err(|error| refuse(EngineErrorKind::InvalidParams, error.to_string()))?;
        // A project may bring along agents and commands without a setting that waits for trust.
        let found = config.trust_digest().map_or("", TrustDigest::as_str);
        if decision.trusted && found != decision.digest {
            let text = "the workspace's settings have changed since they were shown; look again";
            return Err(refuse(EngineErrorKind::Conflict, text.to_owned()));
        }
        let mut all = match self.remembered() {
            Remembered::Workspaces(all) => all,
            // Nobody is trusted by it, and what the user says now has to be kept.
            Remembered::Broken { .. } => BTreeMap::new(),
        };
        if decision.trusted {
            all.insert(decision.workspace.clone(), decision.digest.clone());
        } else {
            all.remove(&decision.workspace);
        }
        write(&path, &all).map_err(|error| {
            refuse(EngineErrorKind::Store, format!("cannot write {}: {error}", path.display()))
        })
    }
}

impl TrustKeeper for TrustFile {
    fn set<'a>(&'a self, decision: &'a WorkspaceTrust) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move { self.decide(decision) })
    }
}

fn write(path: &Path, all: &BTreeMap<PathBuf, String>) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let temporary = directory.join(format!(".trust-{}.tmp", hanzo_protocol::ids::TraceId::new()));
    write_private(&temporary, &serde_json::to_vec_pretty(all)?)?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use hanzo_config::Environment;

    use super::*;

    #[test]
    fn trust_is_remembered_for_what_was_shown_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("w");
        std::fs::create_dir_all(workspace.join(".hanzo")).unwrap();
        let settings = workspace.join(".hanzo/settings.toml");
        std::fs::write(&settings, "approval = \"yolo\"\n").unwrap();
        let environment: Environment = [("HOME", home.path().to_str().unwrap())].into_iter().collect();
        let inputs = LoadInputs::new(&workspace, environment);
        let file = TrustFile::new(inputs.clone());
        assert_eq!(file.trust(&workspace), Trust::Untrusted);

        let shown = hanzo_config::load(&inputs).unwrap().trust_digest().unwrap().to_string();
        let decision = |digest: &str, trusted| WorkspaceTrust {
            workspace: workspace.clone(),
            digest: digest.to_owned(),
            trusted,
        };
        assert_eq!(file.decide(&decision("sha256:0", true)).unwrap_err().kind, EngineErrorKind::Conflict);
        file.decide(&decision(&shown, true)).unwrap();
        assert_eq!(file.trust(&workspace), Trust::Remembered(TrustDigest::remembered(&shown)));
        file.decide(&decision("", false)).unwrap();
        assert_eq!(file.trust(&workspace), Trust::Untrusted);
    }
}
