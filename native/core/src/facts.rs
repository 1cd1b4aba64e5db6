//! The facts of a process as plain records. No I/O, no policy.

/// A kernel's short name, as bytes. Those of programs fit without an allocation.
pub type Name = smallvec::SmallVec<[u8; 16]>;

/// Whether the effective user of a process is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The same effective user.
    Same,
    /// Another user.
    Different,
    /// Not observed, or not expressible in the caller's user namespace.
    Unknown,
}

/// What the scheduler may do with a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Running, or asleep in any way.
    Running,
    /// Stopped by job control or by a tracer.
    Stopped,
    /// Dead and not yet reaped.
    Zombie,
}

/// One row of a census. An absent fact was not observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The pid, in the caller's pid namespace.
    pub pid: u32,
    /// The effective user against the caller's.
    pub owner: Owner,
    /// The real parent; 0 where the kernel says that there is none to be seen.
    pub parent_pid: Option<u32>,
    /// The process group; never 0.
    pub process_group_id: Option<u32>,
    /// The session; never 0.
    pub session_id: Option<u32>,
    /// The effective user id.
    pub uid: Option<u32>,
    /// The kernel's short name, as bytes.
    pub name: Option<Name>,
    /// What the scheduler may do with it.
    pub state: Option<State>,
    /// Its teardown has begun; it will not run user code again.
    pub exiting: bool,
    /// Which process it is.
    pub identity: Option<Identity>,
    /// What it runs, where that was asked for.
    pub command: Option<Box<Command>>,
}

impl Snapshot {
    /// The row of a process of which nothing is known but that it exists.
    #[must_use]
    pub const fn bare(pid: u32) -> Self {
        Self {
            pid,
            owner: Owner::Unknown,
            parent_pid: None,
            process_group_id: None,
            session_id: None,
            uid: None,
            name: None,
            state: None,
            exiting: false,
            identity: None,
            command: None,
        }
    }
}

/// What a process runs, all of it of one program. Bytes are the kernel's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The file of the program; `None` for a kernel thread and where it is refused or has no path.
    pub executable: Option<Vec<u8>>,
    /// The arguments, the program's name first.
    pub arguments: Vec<Vec<u8>>,
    /// The text that the arguments were split from, where a system has one.
    pub line: Option<Vec<u8>>,
    /// The working directory; `None` as for the program, and where it was not read whole.
    pub working_directory: Option<Vec<u8>>,
    /// The values of the variables that were asked for and are set, by the place of the key.
    pub environment: Vec<(usize, Vec<u8>)>,
}

impl Command {
    /// Its bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let paths = [&self.executable, &self.line, &self.working_directory].into_iter().flatten();
        let values = self.environment.iter().map(|(_, value)| value);
        paths.chain(&self.arguments).chain(values).map(Vec::len).fold(0, usize::saturating_add)
    }
}

/// Which process a pid was, when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The pid, in the caller's pid namespace.
    pub pid: u32,
    /// The real parent; 0 where the kernel says that there is none to be seen.
    pub parent_pid: u32,
    /// Birth in microseconds since the Unix epoch.
    pub start_time_micros: i64,
    /// Birth in microseconds since boot; negative before the zero of a time namespace.
    pub start_time_since_boot_micros: Option<i64>,
    /// A number that the kernel gives to one process a boot, in the order of births.
    pub unique_id: Option<u64>,
    /// No thread of it will ever run again.
    pub exited: bool,
}

/// The facts that all identities of one call share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The granularity of `start_time_micros`.
    pub start_time_resolution_micros: u32,
    /// The boot that the kernel is in.
    pub boot_id: Option<String>,
    /// The caller's pid namespace.
    pub pid_namespace: Option<String>,
    /// The caller's time namespace, if it is not the initial one.
    pub time_namespace: Option<String>,
}
