//! What /proc must be before its answers are about the caller's processes, and what it hides.

use super::Kernel;
use super::birth::{ClockSample, Ticks};
use crate::error::{Errno, Error, Meaning, Reason};
use crate::facts::Origin;
use std::sync::atomic::{AtomicI64, Ordering};

/// Facts of the boot and of the checked /proc; they hold for the life of the caller.
#[derive(Debug)]
pub struct Ground {
    /// What all identities share: the boot id, which `subset=pid` hides, and the inodes of the
    /// caller's namespaces.
    pub origin: Origin,
    /// The length of a tick.
    pub ticks: Ticks,
    /// Every user of the host has a number in the caller's user namespace (a map, once written, is
    /// never changed).
    maps_every_user: bool,
    /// The uid that stands for a user without a number here.
    overflow_uid: u32,
    initial_user_namespace: bool,
    /// Major and minor number of the mounted file system, as /proc/self/mountinfo spells them.
    device: String,
    /// CLOCK_REALTIME − CLOCK_BOOTTIME in nanoseconds, as first measured since the last step.
    epoch_offset: AtomicI64,
}

/// `PROC_SUPER_MAGIC` of linux/magic.h.
const PROC_MAGIC: u64 = 0x9fa0;
/// linux/capability.h: may look into any process.
const CAP_SYS_PTRACE: u32 = 19;
/// `PROC_USER_INIT_INO` and `PROC_TIME_INIT_INO` of linux/proc_ns.h.
const INITIAL_USER_NAMESPACE: &str = "4026531837";
const INITIAL_TIME_NAMESPACE: &str = "4026531834";
/// No offset of a real clock.
const NOT_MEASURED: i64 = i64::MIN;
/// `DEFAULT_OVERFLOWUID` of linux/highuid.h.
const DEFAULT_OVERFLOW_UID: u32 = 65534;

impl Ground {
    /// Proves that /proc is a procfs of the caller's own pid namespace and reads what does not
    /// change. `self` alone does not prove it: with set_tid a process can have the same number in
    /// two namespaces, so NSpid must hold one number only.
    ///
    /// # Errors
    /// [`Error::NoGround`] where the answers of /proc would be about other processes.
    pub fn check(kernel: &impl Kernel) -> Result<Self, Error> {
        let magic = kernel.file_system_magic().map_err(|errno| failed("fstatfs", errno))?;
        if magic != PROC_MAGIC {
            let what = "what is mounted at /proc is not a process file system";
            return Err(Error::NoGround { what, reason: Reason::ProcfsUnavailable });
        }
        if !is_own_namespace(kernel)? {
            let what = "/proc belongs to another pid namespace than the caller";
            return Err(Error::NoGround { what, reason: Reason::ForeignProcfs });
        }
        let (major, minor) = kernel.device().map_err(|errno| failed("fstat", errno))?;
        let ticks = Ticks::new(kernel.ticks_per_second());
        let origin = Origin {
            start_time_resolution_micros: ticks.micros(),
            boot_id: text_of(kernel, "sys/kernel/random/boot_id")?,
            pid_namespace: namespace(kernel, "self/ns/pid")?,
            time_namespace: namespace(kernel, "self/ns/time")?
                .filter(|inode| inode != INITIAL_TIME_NAMESPACE),
        };
        Ok(Self {
            origin,
            ticks,
            maps_every_user: maps_every_user(kernel)?,
            overflow_uid: text_of(kernel, "sys/kernel/overflowuid")?
                .and_then(|text| text.parse().ok())
                .unwrap_or(DEFAULT_OVERFLOW_UID),
            initial_user_namespace: namespace(kernel, "self/ns/user")?
                .is_none_or(|inode| inode == INITIAL_USER_NAMESPACE),
            device: format!("{major}:{minor}"),
            epoch_offset: AtomicI64::new(NOT_MEASURED),
        })
    }

    /// Whether processes that exist can be missing from the list that the caller gets. Mount options
    /// can change at any time, so each full census asks; mounts can be many, so it asks the cheapest
    /// question first that decides.
    ///
    /// # Errors
    /// A read that failed.
    pub fn hides_processes(&self, kernel: &impl Kernel) -> Result<bool, Error> {
        if self.traces_all(kernel)? {
            return Ok(false);
        }
        let mounts = read_file(kernel, "self/mountinfo")?;
        // A procfs that is mounted nowhere any more, or outside a changed root, may hide anything.
        let policy = parse_mount_policy(&mounts, &self.device).unwrap_or(Policy::UNKNOWN);
        Ok(policy.hides && !self.is_exempt(kernel, policy)?)
    }

    /// Whether the caller may look into every process, so that no policy hides any: it has
    /// CAP_SYS_PTRACE in the initial user namespace (elsewhere a process of an outer one can stay
    /// hidden), and pid 1, not being the caller, is visible, so no security module confines it to
    /// processes of its own.
    fn traces_all(&self, kernel: &impl Kernel) -> Result<bool, Error> {
        let capabilities = kernel.effective_capabilities().map_err(|e| failed("capget", e))?;
        let capable = capabilities >> CAP_SYS_PTRACE & 1 == 1 && self.initial_user_namespace;
        if !capable || kernel.own_pid() == 1 {
            return Ok(false);
        }
        match kernel.directory_uid(1) {
            Ok(_) => Ok(true),
            Err(errno) if errno.meaning() != Meaning::Failed => Ok(false),
            Err(errno) => Err(failed("fstatat", errno)),
        }
    }

    /// A group counts in the initial user namespace only: elsewhere its number is another group's.
    fn is_exempt(&self, kernel: &impl Kernel, policy: Policy) -> Result<bool, Error> {
        let Some(group) = policy.exempt_group.filter(|_| self.initial_user_namespace) else {
            return Ok(false);
        };
        let status = read_file(kernel, "thread-self/status")?;
        is_member(&status, group).ok_or(malformed("/proc/thread-self/status"))
    }

    /// What to add to microseconds since boot for microseconds since the Unix epoch.
    ///
    /// Only a step of the wall clock moves the offset. Measured twice it differs by some nanoseconds,
    /// which could round to two ticks, so the first measurement is kept until another is surely half a
    /// tick away: one process has one `startTimeMicros` in all calls of the caller.
    pub fn epoch_offset_micros(&self, sample: ClockSample) -> i64 {
        let (measured, error) = sample.offset_nanos();
        let kept = self.epoch_offset.load(Ordering::Relaxed);
        let half_tick = u64::from(self.ticks.micros()) * 1000 / 2;
        let moved =
            kept == NOT_MEASURED || measured.abs_diff(kept) > half_tick.saturating_add(error);
        if moved {
            self.epoch_offset.store(measured, Ordering::Relaxed);
        }
        self.ticks.round_down_micros(if moved { measured } else { kept })
    }

    /// The uid that says nothing in the caller's user namespace, if there is one: user_namespaces(7)
    /// shows every user without a number there as the overflow uid.
    ///
    /// # Errors
    /// A read that failed.
    pub fn meaningless_uid(&self, kernel: &impl Kernel) -> Result<Option<u32>, Error> {
        let every = self.maps_every_user || maps_every_user(kernel)?;
        Ok((!every).then_some(self.overflow_uid))
    }
}

fn is_own_namespace(kernel: &impl Kernel) -> Result<bool, Error> {
    let own = kernel.own_pid();
    let number = match kernel.read_link("self") {
        Ok(target) => target.parse().ok(),
        Err(errno) if errno.meaning() == Meaning::Absent => None,
        Err(errno) => return Err(failed("readlinkat", errno)),
    };
    if number != Some(own) {
        return Ok(false);
    }
    let status = read_file(kernel, "self/status")?;
    let numbers = status_field(&status, "NSpid").ok_or(Error::NoGround {
        what: "/proc does not tell pid namespaces apart (NSpid, Linux 4.1)",
        reason: Reason::ProcfsUnavailable,
    })?;
    Ok(numbers.split_ascii_whitespace().map(str::parse).eq([Ok(own)]))
}

fn read_file(kernel: &impl Kernel, path: &str) -> Result<Vec<u8>, Error> {
    kernel.read_file(path).map_err(|failed| failed.into_error(None))
}

/// The value of one `Name:\tvalue` line.
fn status_field<'a>(status: &'a [u8], name: &str) -> Option<&'a str> {
    status.split(|&byte| byte == b'\n').find_map(|line| {
        let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
        std::str::from_utf8(value).ok().map(str::trim)
    })
}

/// The inode in a link such as `pid:[4026531836]`; `None` on a kernel without that namespace.
fn namespace(kernel: &impl Kernel, path: &str) -> Result<Option<String>, Error> {
    match kernel.read_link(path) {
        Ok(link) => {
            let inode = link.split_once(":[").and_then(|(_, rest)| rest.strip_suffix(']'));
            let inode = inode.filter(|inode| inode.parse::<u64>().is_ok());
            inode.map(|inode| Some(inode.to_owned())).ok_or(malformed("a link of /proc/self/ns"))
        }
        Err(errno) if errno.meaning() == Meaning::Absent => Ok(None),
        Err(errno) => Err(failed("readlinkat", errno)),
    }
}

/// A file outside the pid directories; `None` where the mount does not have it.
fn text_of(kernel: &impl Kernel, path: &str) -> Result<Option<String>, Error> {
    match kernel.read_file(path) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(|text| Some(text.trim().to_owned()))
            .map_err(|_| malformed("a file of /proc/sys")),
        Err(failed) if failed.meaning() != Meaning::Failed => Ok(None),
        Err(failed) => Err(failed.into_error(None)),
    }
}

fn maps_every_user(kernel: &impl Kernel) -> Result<bool, Error> {
    match kernel.read_file("self/uid_map") {
        Ok(map) => covers_every_id(&map).ok_or(malformed("/proc/self/uid_map")),
        // A kernel without user namespaces.
        Err(failed) if failed.meaning() == Meaning::Absent => Ok(true),
        Err(failed) => Err(failed.into_error(None)),
    }
}

/// user_namespaces(7): lines of inside, outside, length; −1 is no user, so 2³² − 1 are all.
fn covers_every_id(map: &[u8]) -> Option<bool> {
    let mut total = 0_u64;
    for line in std::str::from_utf8(map).ok()?.lines() {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u32>);
        let (Some(Ok(_)), Some(Ok(_)), Some(Ok(length)), None) =
            (numbers.next(), numbers.next(), numbers.next(), numbers.next())
        else {
            return None;
        };
        total = total.checked_add(length.into())?;
    }
    Some(total >= u64::from(u32::MAX))
}

/// The `hidepid=` and `gid=` options of a procfs mount (proc(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    hides: bool,
    /// Members of this group see everything all the same; no group does under `hidepid=ptraceable`.
    exempt_group: Option<u32>,
}

impl Policy {
    /// What is not known to be shown may be hidden.
    const UNKNOWN: Self = Self { hides: true, exempt_group: None };
}

/// Finds a mount of the file system in /proc/self/mountinfo (proc_pid_mountinfo(5)): its device is the
/// third field, its super options are the last, and all its mounts have the same.
fn parse_mount_policy(mounts: &[u8], device: &str) -> Option<Policy> {
    let of_device = |line: &&[u8]| {
        line.split(|&byte| byte == b' ').nth(2).is_some_and(|field| field == device.as_bytes())
    };
    let mount = mounts.split(|&byte| byte == b'\n').find(of_device)?;
    let options = mount.rsplit(|&byte| byte == b' ').next()?;
    let mut hidepid = &b"off"[..];
    let mut gid = 0; // the kernel's default; it prints none then
    for option in options.split(|&byte| byte == b',') {
        if let Some(value) = option.strip_prefix(b"hidepid=") {
            hidepid = value;
        } else if let Some(value) = option.strip_prefix(b"gid=") {
            gid = std::str::from_utf8(value).ok()?.parse().ok()?;
        }
    }
    Some(match hidepid {
        b"0" | b"off" | b"1" | b"noaccess" => Policy { hides: false, exempt_group: None },
        b"2" | b"invisible" => Policy { hides: true, exempt_group: Some(gid) },
        _ => Policy::UNKNOWN, // ptraceable, or what a later kernel adds
    })
}

/// Gid: real, effective, saved and file system group; the kernel compares the last, and Groups.
fn is_member(status: &[u8], group: u32) -> Option<bool> {
    let own = status_field(status, "Gid")?.split_ascii_whitespace().nth(3)?;
    let groups = status_field(status, "Groups")?.split_ascii_whitespace();
    Some(groups.chain([own]).any(|member| member.parse() == Ok(group)))
}

fn failed(syscall: &'static str, errno: Errno) -> Error {
    Error::System { syscall, errno, pid: None }
}

fn malformed(what: &'static str) -> Error {
    Error::Malformed { what, pid: None }
}

#[cfg(test)]
mod tests {
    use super::{Policy, covers_every_id, is_member, parse_mount_policy, status_field};

    const MOUNTS: &str = "\
21 26 0:20 / /sys rw,nosuid - sysfs sysfs rw
22 26 0:21 / /proc rw,relatime shared:5 - proc proc rw
122 26 0:51 / /mnt/a\\040b rw shared:1 master:2 - proc hidepid=2 rw,gid=1000,hidepid=invisible
123 26 0:52 / /proc rw - proc proc rw,hidepid=ptraceable,gid=7
124 26 0:53 / /proc rw - proc proc rw,hidepid=noaccess
125 26 0:54 / /proc rw - proc proc rw,hidepid=2,subset=pid
126 26 0:55 / /proc rw - proc proc rw,hidepid=novel
";

    #[test]
    fn the_options_of_our_own_file_system_count() {
        let policy = |device| parse_mount_policy(MOUNTS.as_bytes(), device);
        let open = Some(Policy { hides: false, exempt_group: None });
        let closed = Some(Policy::UNKNOWN);
        assert_eq!(policy("0:21"), open);
        assert_eq!(policy("0:51"), Some(Policy { hides: true, exempt_group: Some(1000) }));
        assert_eq!(policy("0:52"), closed);
        assert_eq!(policy("0:53"), open);
        assert_eq!(policy("0:54"), Some(Policy { hides: true, exempt_group: Some(0) }));
        assert_eq!(policy("0:55"), closed);
        assert_eq!(policy("0:2"), None);
        assert_eq!(policy("21"), None);
    }

    #[test]
    fn members_of_the_group() {
        let member = |gids: &str, groups: &str, group| {
            is_member(format!("Gid:\t{gids}\nGroups:\t{groups} \n").as_bytes(), group)
        };
        assert_eq!(member("5 5 5 5", "7 8", 8), Some(true));
        assert_eq!(member("5 5 5 6", "", 6), Some(true));
        assert_eq!(member("6 6 6 5", "", 6), Some(false));
        assert_eq!(member("5 5 5 5", "78", 7), Some(false));
        assert_eq!(member("5 5", "7", 7), None);
        assert_eq!(is_member(b"Gid:\t1 1 1 1\n", 1), None);
    }

    #[test]
    fn user_maps() {
        assert_eq!(covers_every_id(b"         0          0 4294967295\n"), Some(true));
        assert_eq!(covers_every_id(b"0 100000 65536\n65536 200000 4294901759\n"), Some(true));
        assert_eq!(covers_every_id(b"0 1000 1\n"), Some(false));
        assert_eq!(covers_every_id(b""), Some(false));
        assert_eq!(covers_every_id(b"0 1000\n"), None);
        assert_eq!(covers_every_id(b"0 1000 1 1\n"), None);
    }

    #[test]
    fn a_name_cannot_pose_as_a_field() {
        let status = b"Name:\tNSpid:\\t5\nUmask:\t0022\nNSpid:\t8679\t1\n";
        assert_eq!(status_field(status, "NSpid"), Some("8679\t1"));
        assert_eq!(status_field(status, "NSpi"), None);
    }
}
