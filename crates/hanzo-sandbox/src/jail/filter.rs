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

/// The filter of a jail, compiled once; installed for each command.
///
/// Installing it is one of the larger costs of a command: the kernel translates it and runs it once for every system call
/// there is, to remember those that always pass. So it is a search tree, with the rules that look at arguments behind it.
pub(crate) fn build(setup: &Setup, namespaces: bool) -> io::Result<BpfProgram> {
    let rules = argument_rules(setup, namespaces)?;
    let mut leaves: Vec<(u32, Leaf)> = rules.keys().map(|call| (call_number(*call), Leaf::Rules)).collect();
    leaves.extend(always_denied().into_iter().map(|call| (call_number(call), Leaf::Errno(libc::EPERM))));
    if setup.cores.is_some() {
        // Who was given some processors could give himself the others.
        leaves.push((call_number(libc::SYS_sched_setaffinity), Leaf::Errno(libc::EPERM)));
    }
    leaves.extend(never_heard_of().into_iter().map(|call| (call_number(call), Leaf::Errno(libc::ENOSYS))));
    leaves.sort_unstable_by_key(|(call, _)| *call);
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch()?).map_err(other)?;
    let mut program = prologue()?;
    search(&leaves, &mut program)?;
    let end = program.len();
    for (at, instruction) in program.iter_mut().enumerate() {
        if instruction.code == code(libc::BPF_JMP | libc::BPF_JA) {
            instruction.k = u32::try_from(end - at - 1).map_err(other)?;
        }
    }
    program.extend(BpfProgram::try_from(filter).map_err(other)?);
    Ok(program)
}

fn call_number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn code(code: u32) -> u16 {
    u16::try_from(code).unwrap_or(0)
}

fn instruction(operation: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code(operation), jt, jf, k }
}

fn answer(action: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, action)
}

/// What a number in the search tree leads to.
#[derive(Clone, Copy)]
enum Leaf {
    /// To the compiled rules behind the tree.
    Rules,
    /// To this error.
    Errno(i32),
}

/// Another architecture's calls have other numbers and end the process; on x86-64 every call exists a second time under
/// the x32 numbering, which no comparison below would match.
fn prologue() -> io::Result<BpfProgram> {
    let arch = match arch()? {
        TargetArch::x86_64 => 0xc000_003e,
        TargetArch::aarch64 => 0xc000_00b7,
        TargetArch::riscv64 => 0xc000_00f3,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let mut out = vec![
        instruction(load, 0, 0, 4),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, arch),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        instruction(load, 0, 0, 0),
    ];
    if cfg!(target_arch = "x86_64") {
        out.push(instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_BIT));
        out.push(answer(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()));
    }
    Ok(out)
}

/// Appends a binary search. Jumps to the rules are written as `JA` without a distance, which is known only at the end.
fn search(leaves: &[(u32, Leaf)], out: &mut BpfProgram) -> io::Result<()> {
    if leaves.len() <= 2 {
        for (call, leaf) in leaves {
            out.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, *call));
            out.push(match leaf {
                Leaf::Rules => instruction(libc::BPF_JMP | libc::BPF_JA, 0, 0, 0),
                Leaf::Errno(number) => answer(libc::SECCOMP_RET_ERRNO | number.unsigned_abs()),
            });
        }
        out.push(answer(libc::SECCOMP_RET_ALLOW));
        return Ok(());
    }
    let (left, right) = leaves.split_at(leaves.len() / 2);
    let mut lower = BpfProgram::new();
    search(left, &mut lower)?;
    let distance = u8::try_from(lower.len()).map_err(other)?;
    out.push(instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, distance, 0, right[0].0));
    out.append(&mut lower);
    search(right, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jail::Facilities;

    /// What the filter answers, by walking it as the kernel would.
    fn run(program: &[sock_filter], arch: u32, call: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(call.to_ne_bytes());
        data.extend(arch.to_ne_bytes());
        data.extend(0u64.to_ne_bytes());
        for argument in arguments {
            data.extend(argument.to_ne_bytes());
        }
        let (mut at, mut value) = (0, 0u32);
        loop {
            let step = &program[at];
            let jump = |taken: bool| usize::from(if taken { step.jt } else { step.jf });
            at += 1;
            match u32::from(step.code) {
                0x20 => value = u32::from_ne_bytes(data[step.k as usize..][..4].try_into().unwrap()),
                0x54 => value &= step.k,
                0x06 => return step.k,
                0x05 => at += step.k as usize,
                0x15 => at += jump(value == step.k),
                0x35 => at += jump(value >= step.k),
                0x25 => at += jump(value > step.k),
                other => panic!("unexpected instruction {other:#x}"),
            }
        }
    }

    fn setup(network: Network, unix_sockets: UnixSockets) -> Setup {
        Setup {
            roots: Vec::new(),
            protected: Vec::new(),
            unreadable: Vec::new(),
            network,
            unix_sockets,
            facilities: Facilities::default(),
            proc_is_covered: false,
            cores: None,
            tmp: "/t".into(),
        }
    }

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const EPERM: u32 = libc::SECCOMP_RET_ERRNO + 1;
    const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO + 38;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn every_number_gets_the_answer_of_its_list() {
        let program = build(&setup(Network::Off, UnixSockets::PairsOnly), true).unwrap();
        let ask = |call: u32, arguments| run(&program, 0xc000_003e, call, arguments);
        let (denied, unknown) = (always_denied(), never_heard_of());
        for call in 0..600 {
            let wide = c_long::from(call);
            let by_argument =
                [libc::SYS_clone, libc::SYS_ioctl, libc::SYS_socket, libc::SYS_socketpair].contains(&wide);
            let expected = if denied.contains(&wide) {
                EPERM
            } else if unknown.contains(&wide) {
                ENOSYS
            } else {
                ALLOW
            };
            if !by_argument {
                assert_eq!(ask(call, [0; 6]), expected, "call {call}");
            }
            assert_eq!(ask(call | X32_BIT, [0; 6]), ENOSYS, "x32 call {call}");
            assert_eq!(
                run(&program, 0x4000_0003, call, [0; 6]),
                libc::SECCOMP_RET_KILL_PROCESS,
                "i386 call {call}"
            );
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn arguments_decide_where_they_must() {
        let closed = build(&setup(Network::Off, UnixSockets::PairsOnly), true).unwrap();
        let open = build(&setup(Network::Off, UnixSockets::Any), true).unwrap();
        let poor = build(&setup(Network::Off, UnixSockets::PairsOnly), false).unwrap();
        let ask = |program: &BpfProgram, call: c_long, a: u64, b: u64, c: u64| {
            run(program, 0xc000_003e, call_number(call), [a, b, c, 0, 0, 0])
        };
        let cloexec = number(libc::SOCK_CLOEXEC);
        for (family, kind, protocol, in_closed, in_open, in_poor) in [
            (1, 1, 0, EPERM, ALLOW, EPERM),
            (2, 1 | cloexec, 0, ALLOW, ALLOW, EPERM),
            (10, 2, 0, ALLOW, ALLOW, EPERM),
            (2 | 1 << 32, 3, 1, EPERM, EPERM, EPERM),
            (16, 3, 0, ALLOW, ALLOW, ALLOW),
            (16, 3, 16, EPERM, EPERM, EPERM),
            (17, 3, 0, EPERM, EPERM, EPERM),
            (40, 1, 0, EPERM, EPERM, EPERM),
        ] {
            for (program, expected) in [(&closed, in_closed), (&open, in_open), (&poor, in_poor)] {
                let got = ask(program, libc::SYS_socket, family, kind, protocol);
                assert_eq!(got, expected, "socket({family}, {kind}, {protocol})");
            }
        }
        assert_eq!(ask(&closed, libc::SYS_socketpair, 1, 1 | cloexec, 0), ALLOW);
        assert_eq!(ask(&closed, libc::SYS_socketpair, 1, 2 | cloexec, 0), EPERM);
        let sigchld = number(libc::SIGCHLD);
        assert_eq!(ask(&closed, libc::SYS_clone, sigchld, 0, 0), ALLOW);
        assert_eq!(ask(&closed, libc::SYS_clone, sigchld | number(libc::CLONE_NEWUSER), 0, 0), EPERM);
        assert_eq!(ask(&closed, libc::SYS_ioctl, 0, libc::TIOCSTI | 1 << 40, 0), EPERM);
        assert_eq!(ask(&closed, libc::SYS_ioctl, 0, libc::TIOCGWINSZ, 0), ALLOW);
    }
}
