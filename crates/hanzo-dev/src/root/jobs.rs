//! A thread's processes as the engine lists them.

use std::sync::Weak;

use hanzo_engine::parts::{JobInfo, JobStatus, Jobs};
use hanzo_protocol::spawn::ProcessStatus;
use hanzo_tools::Host;
use hanzo_tools::proc::{JobSummary, Phase};

/// The processes of a host's tools. It holds the host weakly, for the processes end with it and a listing is no reason to
/// let them go on.
pub struct HostJobs(pub Weak<Host>);

impl Jobs for HostJobs {
    fn list(&self) -> Vec<JobInfo> {
        let jobs = self.0.upgrade().map(|host| host.jobs.list()).unwrap_or_default();
        jobs.iter().map(|job| info(job.summary())).collect()
    }
}

fn info(summary: JobSummary) -> JobInfo {
    let (status, exit_code) = match &summary.phase {
        Phase::Running => (JobStatus::Running, None),
        Phase::Over(over) => match over.status {
            ProcessStatus::Exited(code) => (JobStatus::Exited, Some(code)),
            ProcessStatus::Signalled(signal) => (JobStatus::Killed, Some(128 + signal)),
            ProcessStatus::TimedOut => (JobStatus::TimedOut, None),
            _ => (JobStatus::Killed, None),
        },
    };
    JobInfo {
        id: summary.id.to_string(),
        command: summary.command,
        status,
        exit_code,
        duration_ms: u64::try_from(summary.duration.as_millis()).unwrap_or(u64::MAX),
        output_bytes: summary.output_bytes,
        detached: summary.detached,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hanzo_protocol::spawn::Spawner;
    use hanzo_sandbox::SandboxConfig;
    use hanzo_sandbox::paths::Workspace;
    use hanzo_testkit::blobs::MemoryBlobs;
    use hanzo_testkit::plain_spawner::PlainSpawner;
    use hanzo_tools::ToolOptions;
    use hanzo_tools::proc::{Launch, Wait};

    use super::*;

    #[tokio::test]
    async fn processes_are_listed_as_they_are_and_end_with_their_host() {
        let place = tempfile::tempdir().unwrap();
        let workspace = Arc::new(Workspace::open(place.path(), &SandboxConfig::default()).unwrap());
        let spawner: Arc<dyn Spawner> = Arc::new(PlainSpawner::new(place.path()));
        let options = ToolOptions::new(place.path().join("tools"));
        let host =
            Arc::new(Host::new(workspace, Arc::clone(&spawner), Arc::new(MemoryBlobs::default()), options));
        let jobs = HostJobs(Arc::downgrade(&host));
        assert_eq!(jobs.list(), []);

        let ended = Launch::new(["sh", "-c", "printf four; exit 3"]);
        host.jobs.run(&spawner, ended, None).await.unwrap();
        let running = Launch { wait: Wait::None, ..Launch::new(["sleep", "600"]) };
        host.jobs.run(&spawner, running, None).await.unwrap();
        let listed = jobs.list();
        let seen: Vec<_> = listed.iter().map(|job| (job.status, job.exit_code, job.output_bytes)).collect();
        assert_eq!(seen, [(JobStatus::Exited, Some(3), 4), (JobStatus::Running, None, 0)]);
        assert_eq!(listed[1].command, "sleep 600");
        assert!(listed[1].id.starts_with("proc_2_"), "{}", listed[1].id);

        drop(host);
        assert_eq!(jobs.list(), [], "the listing does not keep the processes alive");
    }
}
