//! The browser of the user at this machine, for `net.open`.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use hanzo_config::Environment;
use hanzo_net::Url;
use hanzo_protocol::BoxFuture;
use hanzo_sandbox::jail::EnvPolicy;
use hanzo_tools::net::Browser;
use tokio::process::Command;

/// How long we look whether the program that opens pages fails. It may be the browser itself, and stay.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a program of the desktop needs to find it.
const DESKTOP: [&str; 11] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "BROWSER",
    "XDG_*",
    "GNOME_*",
    "KDE_*",
    "WSL*",
    "ICEAUTHORITY",
];

/// Opens pages with what the user chose for that. The program is not ours to keep: it is started without pipes to us, in a
/// process group of its own, and lives on when we end.
pub struct DesktopBrowser {
    opener: Vec<OsString>,
    env: EnvPolicy,
}

impl DesktopBrowser {
    /// The one of this desktop, if there is a desktop.
    pub fn find(environment: &Environment) -> Option<Self> {
        let opener: &[&str] = if cfg!(target_os = "macos") {
            &["open"]
        } else if cfg!(windows) {
            &["rundll32", "url.dll,FileProtocolHandler"]
        } else {
            let shown = ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"];
            shown.iter().find_map(|name| environment.get(name))?;
            &["xdg-open"]
        };
        Some(Self::new(opener.iter().map(OsString::from).collect()))
    }

    fn new(opener: Vec<OsString>) -> Self {
        let mut env = EnvPolicy::default();
        env.inherit.extend(DESKTOP.map(str::to_owned));
        Self { opener, env }
    }
}

impl Browser for DesktopBrowser {
    fn open<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let program = self.opener[0].to_string_lossy();
            let mut command = Command::new(&self.opener[0]);
            command
                .args(&self.opener[1..])
                // As WHATWG writes it: it begins with its scheme, so no program takes it for an option.
                .arg(url.as_str())
                .env_clear()
                .envs(self.env.apply(std::env::vars_os(), &[]))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0);
            let mut child =
                command.spawn().map_err(|fault| format!("`{program}` cannot be started: {fault}"))?;
            match tokio::time::timeout(PATIENCE, child.wait()).await {
                Ok(Ok(status)) if !status.success() => Err(format!("`{program}` ended with {status}")),
                Ok(Err(fault)) => Err(format!("`{program}` was lost: {fault}")),
                // It is done, or it is the browser.
                Ok(Ok(_)) | Err(_) => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn sh(script: &str) -> DesktopBrowser {
        // `$0` is the URL.
        DesktopBrowser::new(["sh", "-c", script].map(OsString::from).to_vec())
    }

    fn url() -> Url {
        Url::parse("http://a.test/?q=$(touch x);`id`&b= c").unwrap()
    }

    #[tokio::test]
    async fn the_program_gets_the_url_as_one_argument_and_no_pipe_to_us() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("asked");
        let script = format!("printf '%s|%s' \"$0\" \"$(readlink /proc/self/fd/2)\" > {}", file.display());
        sh(&script).open(&url()).await.unwrap();
        let asked = std::fs::read_to_string(file).unwrap();
        assert_eq!(asked, "http://a.test/?q=$(touch%20x);`id`&b=%20c|/dev/null");
    }

    #[tokio::test]
    async fn a_program_that_fails_or_is_not_there_is_told_and_one_that_stays_is_left() {
        assert!(sh("exit 3").open(&url()).await.unwrap_err().contains("exit status: 3"));
        let missing = DesktopBrowser::new(vec!["hanzo-no-such-program".into()]);
        assert!(missing.open(&url()).await.unwrap_err().contains("cannot be started"));

        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("lives");
        let started = Instant::now();
        sh(&format!("sleep 4; touch {}", file.display())).open(&url()).await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(4), "it is not waited for");
        while !file.exists() {
            assert!(started.elapsed() < Duration::from_secs(20), "it was ended");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    #[test]
    fn there_is_one_where_there_is_a_desktop() {
        let with = |variables: &[(&str, &str)]| DesktopBrowser::find(&variables.iter().copied().collect());
        if cfg!(target_os = "linux") {
            assert!(with(&[("PATH", "/bin")]).is_none());
            assert!(with(&[("DISPLAY", "")]).is_none());
            assert!(with(&[("WAYLAND_DISPLAY", "wayland-0")]).is_some());
        }
    }
}
