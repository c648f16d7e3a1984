//! Hooks run where commands run: in the jail of the thread.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use hanzo_config::Settings;
use hanzo_hooks::{BoxFuture, Captured, Hook, HookEnd, HookOutput, HookRun, HookSpawner, Hooks, StartError};
use hanzo_protocol::spawn::{ProcessStatus, SpawnRequest, Spawner, Stdin, Streams};

/// The hooks of `settings`, run by `spawner`.
pub fn hooks(settings: &Settings, spawner: Arc<dyn Spawner>) -> Arc<Hooks> {
    // Both types are the settings file's own form.
    let read =
        |hook: &hanzo_config::Hook| serde_json::from_value::<Hook>(serde_json::to_value(hook).ok()?).ok();
    let list = settings.hooks.iter().filter_map(read).collect();
    Arc::new(Hooks::new(list, Arc::new(InJail(spawner))))
}

struct InJail(Arc<dyn Spawner>);

impl HookSpawner for InJail {
    fn run(&self, run: HookRun) -> BoxFuture<'_, Result<HookOutput, StartError>> {
        Box::pin(async move {
            let failed = |error: &dyn std::fmt::Display| StartError { reason: error.to_string() };
            let mut request = SpawnRequest::new(["sh", "-c", &run.command]);
            request.env = run.env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
            request.streams = Streams::Pipes { stdin: Stdin::Pipe };
            request.timeout = Some(run.timeout);
            let mut process = self.0.spawn(request).await.map_err(|error| failed(&error))?;
            let streams = process.streams();
            let input = streams.stdin.take();
            let feed = tokio::task::spawn_blocking(move || {
                // A hook need not read its input.
                input.map(|mut input| input.write_all(&run.stdin))
            });
            let most = run.most_output;
            let outputs = [streams.stdout.take(), streams.stderr.take()]
                .map(|output| tokio::task::spawn_blocking(move || capture(output, most)));
            let end = process.wait().await.map_err(|error| failed(&error))?;
            let [stdout, stderr] = outputs;
            let output = HookOutput {
                end: match end.status {
                    ProcessStatus::Exited(code) => HookEnd::Exited(code),
                    ProcessStatus::Signalled(signal) => HookEnd::Signalled(signal),
                    ProcessStatus::TimedOut => HookEnd::TimedOut,
                    // Whatever else ended it, it did not say yes.
                    _ => HookEnd::Signalled(9),
                },
                stdout: stdout.await.unwrap_or_default(),
                stderr: stderr.await.unwrap_or_default(),
            };
            let _ = feed.await;
            Ok(output)
        })
    }
}

fn capture(output: Option<File>, most: usize) -> Captured {
    let mut captured = Captured::default();
    let Some(mut output) = output else { return captured };
    let mut buffer = [0; 8192];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => return captured,
            Ok(count) => captured.push(&buffer[..count], most),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return captured,
        }
    }
}

#[cfg(test)]
mod tests {
    use hanzo_config::{Environment, LoadInputs};
    use hanzo_hooks::{HookEvent, Notice};
    use hanzo_testkit::plain_spawner::PlainSpawner;

    use super::*;

    #[tokio::test]
    async fn a_notification_hook_of_the_settings_is_run_and_told_what_is_asked() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join(".config/hanzo");
        std::fs::create_dir_all(&directory).unwrap();
        let hook = "[[hooks]]\nevent = 'notification'\ncommand = 'printf \"%s: %s\" \"$HANZO_TOOL_NAME\" \"$HANZO_SUMMARY\" > told'\ntool_pattern = 'fs.*'\n";
        std::fs::write(directory.join("settings.toml"), hook).unwrap();
        let environment: Environment = [("HOME", home.path().to_str().unwrap())].into_iter().collect();
        let config = hanzo_config::load(&LoadInputs::new(home.path(), environment)).unwrap();
        let hooks = hooks(config.settings(), Arc::new(PlainSpawner::new(home.path())));
        assert!(hooks.has(HookEvent::Notification) && !hooks.has(HookEvent::PreToolUse));
        let notice =
            Notice { tool: "fs.write", aliases: Vec::new(), session: "s", summary: Some("write a.txt") };
        assert_eq!(hooks.notify(&notice).await, []);
        assert_eq!(std::fs::read_to_string(home.path().join("told")).unwrap(), "fs.write: write a.txt");
    }
}
