//! The seccomp filters: system calls no build, test or server needs, and which have been ways out of sandboxes.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use super::config::{Network, UnixSockets};
use super::orders::Setup;

/// Raw packets under their oldest name.
const SOCK_PACKET: i32 = 10;
/// Set in the number of every x32 call.
const X32_BIT: u32 = 0x4000_0000;

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

fn other(error: impl std::error::Error) -> io::Error {
    io::Error::other(error.to_string())
}

fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> io::Result<SeccompRule> {
    // All compared arguments are ints to the kernel, which ignores the upper half. A filter that looked at it could be
    // passed by setting a bit there.
    let conditions = conditions
        .iter()
        .map(|(index, op, value)| {
            SeccompCondition::new(*index, SeccompCmpArgLen::Dword, op.clone(), *value).map_err(other)
        })
        .collect::<io::Result<Vec<_>>>()?;
    SeccompRule::new(conditions).map_err(other)
}

/// Answered with EPERM whatever the arguments.
fn always_denied() -> Vec<c_long> {
    let mut calls = vec![
        // Another process' memory and registers.
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_process_madvise,
        libc::SYS_kcmp,
        libc::SYS_pidfd_getfd,
        // Keys live in the kernel, outside every namespace.
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        // Large kernel surfaces with a history.
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        // Mounts and namespaces: capabilities are gone, but a new user namespace would bring them back.
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_unshare,
        libc::SYS_setns,
        // Opens a file by inode, past every directory.
        libc::SYS_open_by_handle_at,
        // The machine itself.
        libc::SYS_kexec_load,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_quotactl,
        libc::SYS_acct,
        libc::SYS_syslog,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_adjtimex,
        libc::SYS_clock_adjtime,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_vhangup,
        libc::SYS_nfsservctl,
        libc::SYS_lookup_dcookie,
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([libc::SYS_kexec_file_load, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt]);
    calls
}

/// Answered with ENOSYS, so that callers take their older way: `clone3` hides its flags behind a pointer no filter can
/// follow, and io_uring does file and socket work that no filter sees.
fn never_heard_of() -> Vec<c_long> {
    vec![libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register]
}

fn arch() -> io::Result<TargetArch> {
    std::env::consts::ARCH.try_into().map_err(other)
}

fn errno(number: i32) -> SeccompAction {
    SeccompAction::Errno(number.unsigned_abs())
}

fn number(value: impl TryInto<u64>) -> u64 {
    value.try_into().unwrap_or(u64::MAX)
}

fn argument_rules(setup: &Setup, namespaces: bool) -> io::Result<Rules> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let mut rules = Rules::new();
    let namespace_flags = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    for flag in namespace_flags {
        let flag = u64::from(flag.cast_unsigned());
        rules.entry(libc::SYS_clone).or_default().push(rule(&[(0, MaskedEq(flag), flag)])?);
    }
    // Typing into the terminal we hand out: what is typed runs in the user's shell after us.
    for request in [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD, libc::TIOCCONS] {
        rules.entry(libc::SYS_ioctl).or_default().push(rule(&[(1, Eq, number(request) & 0xffff_ffff)])?);
    }

    let (unix, inet, inet6, netlink) =
        (number(libc::AF_UNIX), number(libc::AF_INET), number(libc::AF_INET6), number(libc::AF_NETLINK));
    let kind = 0xf;
    let sockets = rules.entry(libc::SYS_socket).or_default();
    // Every family but these: packet, vsock, bluetooth, kernel crypto and forty more.
    sockets.push(rule(&[(0, Ne, unix), (0, Ne, inet), (0, Ne, inet6), (0, Ne, netlink)])?);
    // Only the routing family, which runtimes ask for the list of interfaces; without capabilities it can only read.
    sockets.push(rule(&[(0, Eq, netlink), (2, Ne, number(libc::NETLINK_ROUTE))])?);
    for raw in [libc::SOCK_RAW, SOCK_PACKET] {
        sockets.push(rule(&[(0, Ne, netlink), (1, MaskedEq(kind), number(raw))])?);
    }
    if setup.unix_sockets == UnixSockets::PairsOnly {
        // A pathname socket is reached through the file system, where a read-only mount does not stop `connect`, and the
        // filter cannot see whom `connect` names. So there is no unix socket to connect with.
        sockets.push(rule(&[(0, Eq, unix)])?);
        // A pair of datagram sockets can still be pointed elsewhere, a pair of streams cannot.
        rules.entry(libc::SYS_socketpair).or_default().push(rule(&[(
            1,
            MaskedEq(kind),
            number(libc::SOCK_DGRAM),
        )])?);
    }
    if setup.network == Network::Off && !namespaces {
        // Without a network namespace there is no loopback of our own either.
        let sockets = rules.entry(libc::SYS_socket).or_default();
        sockets.push(rule(&[(0, Eq, inet)])?);
        sockets.push(rule(&[(0, Eq, inet6)])?);
    }
    rules.entry(libc::SYS_socketpair).or_default().push(rule(&[(0, Ne, unix)])?);
    Ok(rules)
}

/// The filters of a jail, compiled once; installed for each command.
pub(crate) fn build(setup: &Setup, namespaces: bool) -> io::Result<Vec<BpfProgram>> {
    let mut denied = argument_rules(setup, namespaces)?;
    for call in always_denied() {
        denied.insert(call, Vec::new());
    }
    let unknown: Rules = never_heard_of().into_iter().map(|call| (call, Vec::new())).collect();
    let mut programs = Vec::new();
    for (rules, action) in [(denied, errno(libc::EPERM)), (unknown, errno(libc::ENOSYS))] {
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch()?).map_err(other)?;
        programs.push(BpfProgram::try_from(filter).map_err(other)?);
    }
    if let Some(first) = programs.first_mut() {
        first.splice(0..0, foreign_numbers());
    }
    Ok(programs)
}

/// On x86-64 every call exists a second time under the x32 numbering, which the filter's comparisons would miss.
fn foreign_numbers() -> Vec<sock_filter> {
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    let instruction =
        |code: u32, jt, jf, k| sock_filter { code: u16::try_from(code).unwrap_or(0), jt, jf, k };
    vec![
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_BIT),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}
