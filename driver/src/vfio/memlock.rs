//! Locked memory: how much this process may pin, and what to say when it is not enough.
//!
//! Memory that a device may reach cannot be paged out, so the kernel counts it against `RLIMIT_MEMLOCK`. Against *whose*
//! is where the two interfaces differ: type1 compares the limit with what **this process** has locked (`VmLck`), iommufd
//! with what **all processes of this user** have pinned. A process with `CAP_IPC_LOCK` in the first user namespace is
//! exempt from both. On many systems the limit is 8 MiB for ordinary users, which is less than one pool of buffers; the
//! kernel's answer is then a bare ENOMEM, which everybody takes for "out of memory". So the sum is done here first, and
//! the message has both numbers and the limit's name.
#![forbid(unsafe_code)]

use core::fmt;

/// Who the locked memory is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accounting {
    /// This process (type1).
    Process,
    /// All processes of this user together (iommufd).
    User,
}

/// The limit, and what is used of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct LockedMemory {
    /// Who it is counted for.
    pub accounting: Accounting,
    /// `RLIMIT_MEMLOCK`, the soft limit; `None` for unlimited.
    pub limit_bytes: Option<u64>,
    /// What counts against it already. For [`Accounting::User`] at least this much: the kernel does not show its sum.
    pub used_bytes: u64,
    /// Whether the limit does not apply to this process (`CAP_IPC_LOCK`).
    pub exempt: bool,
}

/// More locked memory is needed than may be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct MemlockShortage {
    /// What is to be locked now.
    pub needed_bytes: u64,
    /// The state that this was compared with.
    pub state: LockedMemory,
}

impl fmt::Display for MemlockShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit_bytes = self.state.limit_bytes.unwrap_or(u64::MAX);
        let total_bytes = self.needed_bytes.saturating_add(self.state.used_bytes);
        let whose = match self.state.accounting {
            Accounting::Process => "this process",
            Accounting::User => "this user's processes",
        };
        write!(
            f,
            "RLIMIT_MEMLOCK is {} and {} more are needed ({} are held by {whose} already): raise it to {} or more \
             (`ulimit -l {}`, LimitMEMLOCK= in systemd, or memlock in /etc/security/limits.conf), or grant CAP_IPC_LOCK",
            Mebibytes(limit_bytes),
            Mebibytes(self.needed_bytes),
            Mebibytes(self.state.used_bytes),
            Mebibytes(total_bytes),
            total_bytes.div_ceil(1024),
        )
    }
}

/// Bytes as MiB with as many digits as it takes not to say 0 of something.
struct Mebibytes(u64);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (u128::from(self.0) * 100).div_ceil(1 << 20);
        match (hundredths / 100, hundredths % 100) {
            (whole, 0) => write!(f, "{whole} MiB"),
            (whole, part) => write!(f, "{whole}.{part:02} MiB"),
        }
    }
}

impl LockedMemory {
    /// Reads the state of this process (and user) as it is now. Capabilities are the calling thread's, as the kernel
    /// looks at them.
    pub fn now(accounting: Accounting) -> Self {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let used_bytes = match accounting {
            Accounting::Process => field_bytes(&status, "VmLck:"),
            Accounting::User => pinned_by_user(&status),
        };
        Self {
            accounting,
            limit_bytes: rustix::process::getrlimit(rustix::process::Resource::Memlock).current,
            used_bytes,
            exempt: has_ipc_lock(&status) && in_first_user_namespace(),
        }
    }

    /// Whether `needed_bytes` more can be locked.
    pub fn check(self, needed_bytes: u64) -> Result<(), MemlockShortage> {
        match self.limit_bytes {
            Some(limit) if !self.exempt && self.used_bytes.saturating_add(needed_bytes) > limit => {
                Err(MemlockShortage { needed_bytes, state: self })
            }
            _ => Ok(()),
        }
    }
}

/// A field of `/proc/PID/status` that is in KiB.
fn field_bytes(status: &str, name: &str) -> u64 {
    field(status, name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
}

/// What the processes of this one's user have pinned, as far as `/proc` shows it.
fn pinned_by_user(own_status: &str) -> u64 {
    let user = field(own_status, "Uid:");
    let Ok(entries) = std::fs::read_dir("/proc") else { return field_bytes(own_status, "VmPin:") };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok())
        .filter(|status| field(status, "Uid:") == user)
        .fold(0, |sum, status| sum.saturating_add(field_bytes(&status, "VmPin:")))
}

/// Bit 14 of the effective capabilities.
fn has_ipc_lock(status: &str) -> bool {
    field(status, "CapEff:").and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 1 << 14 != 0)
}

/// The kernel asks for the capability in the first user namespace; root in a container has it only in its own.
fn in_first_user_namespace() -> bool {
    std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| is_identity(&map))
}

fn is_identity(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tnvmetal\nUid:\t1000\t1000\t1000\t1000\nVmLck:\t    2048 kB\nVmPin:\t      12 kB\n\
                          CapEff:\t0000000000004000\n";

    fn state(limit_bytes: u64, used_bytes: u64) -> LockedMemory {
        LockedMemory { accounting: Accounting::Process, limit_bytes: Some(limit_bytes), used_bytes, exempt: false }
    }

    #[test]
    fn d13_the_message_has_both_values_in_mib_and_the_limits_name() {
        let shortage = state(4_194_304, 0).check(67_108_864).expect_err("64 MiB are more than 4 MiB");
        let message = shortage.to_string();
        assert!(message.starts_with("RLIMIT_MEMLOCK is 4 MiB and 64 MiB more are needed"), "{message}");
        assert!(message.contains("ulimit -l 65536"), "{message}");
    }

    #[test]
    fn d13_a_limit_below_a_mebibyte_is_not_printed_as_0() {
        let message = state(65536, 0).check(1 << 20).expect_err("too much").to_string();
        assert!(message.starts_with("RLIMIT_MEMLOCK is 0.07 MiB"), "{message}");
    }

    #[test]
    fn what_is_locked_already_counts() {
        assert!(state(8192, 4096).check(4096).is_ok());
        assert!(state(8192, 4097).check(4096).is_err());
        assert!(state(8192, u64::MAX).check(1).is_err());
    }

    #[test]
    fn no_limit_and_exemption_allow_everything() {
        assert!(LockedMemory { limit_bytes: None, ..state(0, 0) }.check(u64::MAX).is_ok());
        assert!(LockedMemory { exempt: true, ..state(0, 0) }.check(u64::MAX).is_ok());
    }

    #[test]
    fn the_fields_of_proc_status_are_read_in_bytes() {
        assert_eq!(field_bytes(STATUS, "VmLck:"), 2 << 20);
        assert_eq!(field_bytes(STATUS, "VmPin:"), 12 << 10);
        assert_eq!(field_bytes(STATUS, "VmNone:"), 0);
        assert!(has_ipc_lock(STATUS));
        assert!(!has_ipc_lock("CapEff:\t0000000000003fff\n"));
    }

    #[test]
    fn root_of_a_container_is_not_exempt() {
        assert!(is_identity("         0          0 4294967295\n"));
        assert!(!is_identity("         0     100000      65536\n"));
        assert!(!is_identity(""));
    }
}
