//! What a jail costs: a command in a running supervisor and a one-off jail, against plain fork/exec and against bubblewrap,
//! all in the same run.

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}

#[cfg(target_os = "linux")]
#[expect(clippy::print_stdout, reason = "a benchmark's product is what it prints")]
mod linux {
    use std::process::{Command as Plain, Stdio};
    use std::time::Duration;

    use hanzo_benches::{Candidate, Measured, compare, print_table};
    use hanzo_sandbox::jail::{Command, Io, Jail, JailConfig};

    const ROUNDS: usize = 300;
    /// The smallest program there is on every machine that starts nothing else.
    const PROGRAM: [&str; 3] = ["/bin/sh", "-c", ":"];

    /// Set for a run of this program that starts one jail in the workspace it names, and says how long that took.
    const FIRST: &str = "HANZO_BENCH_FIRST_JAIL";
    const FIRST_ROUNDS: usize = 60;

    fn command() -> Command {
        let mut command = Command::new(PROGRAM);
        (command.stdout, command.stderr) = (Io::Null, Io::Null);
        command
    }

    fn plain(argv: &[&str]) -> u64 {
        let status = Plain::new(argv[0]).args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).status();
        u64::from(status.is_ok_and(|status| status.success()))
    }

    /// Bubblewrap with what it has of the same: namespaces, a read-only root, private `/dev`, `/proc` and `/tmp`.
    fn bubblewrap(workspace: &str) -> Vec<String> {
        let options = "bwrap --unshare-all --die-with-parent --new-session --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --bind";
        options.split(' ').chain([workspace, workspace]).chain(PROGRAM).map(str::to_owned).collect()
    }

    pub(super) fn main() {
        hanzo_sandbox::run_personality();
        if let Some(workspace) = std::env::var_os(FIRST) {
            return first_jail(std::path::Path::new(&workspace));
        }
        // A repository, because its protections are part of the cost.
        let workspace =
            std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("jail-{}", std::process::id()));
        std::fs::create_dir(&workspace).expect("the workspace can be made");
        plain(&["git", "init", "--quiet", &workspace.to_string_lossy()]);
        let config = || JailConfig::new(&workspace);
        let jail = Jail::start(config()).expect("the jail starts");
        println!("level: {}", jail.level());
        let bubblewrap = bubblewrap(&workspace.to_string_lossy());
        let bubblewrap: Vec<&str> = bubblewrap.iter().map(String::as_str).collect();
        let has_bubblewrap = plain(&bubblewrap) == 1;
        if !has_bubblewrap {
            println!("bwrap not installed (or does not work here)");
        }

        let run = |jail: &Jail| {
            let report = jail.spawn(command()).and_then(|mut child| child.wait());
            u64::from(report.is_ok_and(|report| report.success()))
        };
        let mut candidates = vec![
            Candidate::new("plain fork/exec", || plain(&PROGRAM)),
            Candidate::new("a command in a running jail", || run(&jail)),
            Candidate::new("a one-off jail", || Jail::start(config()).map_or(0, |jail| run(&jail))),
        ];
        if has_bubblewrap {
            candidates.push(Candidate::new("bubblewrap", || plain(&bubblewrap)));
        }
        let rows = compare(ROUNDS, &mut candidates);
        drop(candidates);
        print_table("One command (`sh -c :`)", None, &rows);
        verdict(&rows);
        first_verdict(&workspace, rows[0].median);
        drop(jail);
        let _ = std::fs::remove_dir_all(workspace);
    }

    /// What a process pays that starts one jail in its life: the nursery that the jail is forked from is started too.
    fn first_jail(workspace: &std::path::Path) {
        let start = std::time::Instant::now();
        let ran = Jail::start(JailConfig::new(workspace))
            .and_then(|jail| jail.spawn(command())?.wait())
            .is_ok_and(|report| report.success());
        println!("{}", if ran { start.elapsed().as_nanos() } else { 0 });
    }

    fn first_verdict(workspace: &std::path::Path, plain: Duration) {
        let mut samples: Vec<Duration> = (0..FIRST_ROUNDS)
            .filter_map(|_| {
                let output = Plain::new("/proc/self/exe").env(FIRST, workspace).output().ok()?;
                let nanos = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
                (nanos > 0).then(|| Duration::from_nanos(nanos))
            })
            .collect();
        samples.sort_unstable();
        if let Some(median) = samples.get(samples.len() / 2) {
            println!("the first jail of a process: {:?} over plain fork/exec", median.saturating_sub(plain));
        }
    }

    fn verdict(rows: &[Measured]) {
        let over = |index: usize| rows[index].median.saturating_sub(rows[0].median);
        println!();
        for (index, limit) in [(1, Duration::from_millis(2)), (2, Duration::from_millis(4))] {
            let held = if over(index) < limit { "held" } else { "MISSED" };
            println!(
                "{}: {:?} over plain fork/exec, limit {limit:?}: {held}",
                rows[index].label,
                over(index)
            );
            if let Some(bubblewrap) = rows.get(3) {
                let held = if rows[index].median < bubblewrap.median { "held" } else { "MISSED" };
                println!("{}: less than bubblewrap: {held}", rows[index].label);
            }
        }
    }
}
