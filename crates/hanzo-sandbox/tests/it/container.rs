//! Container detection on made-up roots.

use std::{ffi::OsString, fs, path::Path};

use hanzo_sandbox::{Container, detect_container};
use tempfile::TempDir;

fn no_env(_: &str) -> Option<OsString> {
    None
}

fn kubernetes(name: &str) -> Option<OsString> {
    (name == "KUBERNETES_SERVICE_HOST").then(|| "10.96.0.1".into())
}

fn root_with(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

fn with_cgroup(text: &str) -> Option<Container> {
    detect_container(root_with(&[("proc/1/cgroup", text)]).path(), &no_env)
}

const ID: &str = "3f2a9c8be1d04c5f9a7b6e2d1c0f8e7d6c5b4a39281706f5e4d3c2b1a0998877";

#[test]
fn cgroup_text_names_the_runtime() {
    for (line, want) in [
        (format!("12:pids:/docker/{ID}\n1:name=systemd:/docker/{ID}\n"), Container::Docker),
        (format!("0::/system.slice/docker-{ID}.scope\n"), Container::Docker),
        (format!("0::/user.slice/user-1000.slice/libpod-{ID}.scope/container\n"), Container::Podman),
        (format!("4:memory:/libpod_parent/libpod-{ID}\n"), Container::Podman),
        (format!("0::/machine.slice/libpod-conmon-{ID}.scope\n"), Container::Podman),
        (format!("11:cpu:/kubepods/besteffort/pod1234/{ID}\n"), Container::K8s),
        (format!("0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-{ID}.scope\n"), Container::K8s),
        // A node that runs pods with docker: the pod is the better answer, wherever its line is.
        (format!("2:cpu:/docker/{ID}\n1:memory:/kubepods/pod1/{ID}\n"), Container::K8s),
        (format!("3:cpu:/docker/{ID}/kubelet/kubepods/pod9/{ID}\n"), Container::K8s),
    ] {
        assert_eq!(with_cgroup(&line), Some(want), "{line}");
    }
}

#[test]
fn a_host_is_not_a_container() {
    for text in [
        "0::/\n",
        "0::/init.scope\n",
        "",
        "garbage",
        "0::/user.slice/user-1000.slice/session-2.scope\n",
        // Things a person might have, that only sound like it.
        "0::/system.slice/docker.service\n",
        "0::/user.slice/my-docker-notes.scope\n",
        "0::/user.slice/docker-notes.scope\n",
        "0::/user.slice/libpod-notes.scope\n",
        "0::/user.slice/notkubepods\n",
        "1:name=docker:/\n",
    ] {
        assert_eq!(with_cgroup(text), None, "{text:?}");
    }
    assert_eq!(detect_container(Path::new("/nonexistent"), &no_env), None);
}

#[test]
fn evidence_counts_in_order() {
    let podman_cgroup = format!("0::/libpod-{ID}.scope\n");
    let all = root_with(&[("proc/1/cgroup", &podman_cgroup), (".dockerenv", ""), ("run/.containerenv", "")]);
    assert_eq!(detect_container(all.path(), &kubernetes), Some(Container::Podman), "cgroup first");

    let files = root_with(&[("proc/1/cgroup", "0::/\n"), (".dockerenv", ""), ("run/.containerenv", "")]);
    assert_eq!(detect_container(files.path(), &kubernetes), Some(Container::Docker), "then .dockerenv");

    let podman = root_with(&[("run/.containerenv", "engine=\"podman-4.3.1\"\n")]);
    assert_eq!(detect_container(podman.path(), &kubernetes), Some(Container::Podman), "then .containerenv");

    let empty = root_with(&[]);
    assert_eq!(detect_container(empty.path(), &kubernetes), Some(Container::K8s), "the environment last");
    assert_eq!(detect_container(empty.path(), &|_| Some(OsString::new())), None, "an empty value is nothing");
}

#[test]
fn what_cannot_be_read_is_no_evidence() {
    // A directory where the file should be, and bytes that are not UTF-8.
    let root = root_with(&[("proc/1/cgroup/x", ""), (".dockerenv", "")]);
    assert_eq!(detect_container(root.path(), &no_env), Some(Container::Docker));
    let bytes = tempfile::tempdir().unwrap();
    fs::create_dir_all(bytes.path().join("proc/1")).unwrap();
    fs::write(bytes.path().join("proc/1/cgroup"), b"0::/\xff\xfe\n1:cpu:/docker/x\n").unwrap();
    assert_eq!(detect_container(bytes.path(), &no_env), Some(Container::Docker));
}

#[test]
fn names_are_those_of_the_interface() {
    let names = [Container::Docker, Container::Podman, Container::K8s].map(|c| c.to_string());
    assert_eq!(names, ["docker", "podman", "k8s"]);
}
