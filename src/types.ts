// The public shapes. All values are frozen plain data.

/** The effective user (Windows: the token's user) of a process against the caller's. */
export type ProcessOwner = "same" | "different" | "unknown";

/** What the scheduler may do with a process; asleep in any way is `"running"`. The set is closed. */
export type ProcessState = "running" | "stopped" | "zombie";

/** Which process a pid was when it was read. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The real parent, also while a debugger is attached; 0 where the kernel shows none. */
  readonly parentPid: number;
  /** Birth in µs since the Unix epoch: for people and for ordering. A clock step moves it. */
  readonly startTimeMicros: number;
  /** The granularity of the births: 10,000 on most Linux systems (1e6 / CLK_TCK). */
  readonly startTimeResolutionMicros: number;
  /**
   * Birth in µs since boot, which no clock step moves. Linux only. Negative where a time namespace
   * puts its zero after the birth.
   */
  readonly startTimeSinceBootMicros?: number;
  /** The boot: boot_id (random(4)). Absent where /proc is mounted with `subset=pid`, and on Windows. */
  readonly bootId?: string;
  /**
   * A number that the kernel gives to one process a boot, as decimal text: on Linux 6.9 or later the
   * inode of its pidfd, in single reads only. Absent where the kernel or a sandbox has none to give.
   */
  readonly uniqueId?: string;
  /** The inode of the caller's pid namespace (pid_namespaces(7)), as decimal text. */
  readonly pidNamespace?: string;
  /** The inode of the caller's time namespace (time_namespaces(7)), if it is not the initial one. */
  readonly timeNamespace?: string;
  /** No thread of it will ever run again: it is a zombie. `false` while it is exiting. */
  readonly exited: boolean;
}

/**
 * One process. A fact that was not observed is an absent key; a process of which nothing else is
 * known is exactly `{ pid, owner: "unknown" }`. All facts of a row belong to one process.
 */
export interface ProcessSnapshot {
  /** In the caller's pid namespace. */
  readonly pid: number;
  readonly owner: ProcessOwner;
  /**
   * The real parent, also while a debugger is attached; 0 where the kernel shows none. On Windows the creator, whose
   * pid may be nobody's or a stranger's by now.
   */
  readonly parentPid?: number;
  /** Absent for kernel threads, for a group outside the caller's pid namespace, and on Windows. */
  readonly processGroupId?: number;
  /** Absent like `processGroupId`. */
  readonly sessionId?: number;
  /** The effective user id. Absent where the caller's user namespace has no number for the user, and on Windows. */
  readonly uid?: number;
  /**
   * The kernel's short name (`comm`, at most 15 bytes for a program, more for a kernel thread; on Windows the image
   * name). Bytes that are not UTF-8 read as U+FFFD, a byte order mark stays; control characters are the name's own:
   * escape them for output.
   */
  readonly name?: string;
  readonly state?: ProcessState;
  /** The kernel has begun to tear the process down; it will not run user code again. */
  readonly exiting?: true;
  readonly identity?: ProcessIdentity;
  /**
   * Only with `includeCommand`. Absent where there is none (a zombie), where it or a variable that was asked for
   * is refused, too long or not whole, and where the process did not answer in time.
   */
  readonly command?: ProcessCommand;
}

/**
 * What a process runs, all of it of one program. Bytes that are not UTF-8 read as U+FFFD, a byte order mark stays.
 * Texts are the process's own and can be secret: escape them for output, and keep them out of logs.
 */
export interface ProcessCommand {
  /**
   * The file of the program. Linux: as its mount namespace has it, with " (deleted)" behind it once it is unlinked.
   * macOS: where the kernel finds a file now. Windows: the path of Win32's, or the kernel's own where the volume has
   * none. Absent for a kernel thread and where it is refused or has no path.
   */
  readonly executable?: string;
  /**
   * As the kernel shows it now: a program can rewrite it. Empty for a kernel thread. Windows: `commandLine`, split by
   * the rules of Microsoft's C run time.
   */
  readonly argv: readonly string[];
  /** The one text that a program is started with. Windows only. */
  readonly commandLine?: string;
  /**
   * The working directory. Absent for a kernel thread and where it is refused or not read whole; on macOS where no path
   * leads to it.
   */
  readonly cwd?: string;
  /** Of the variables that were asked for, those that are set, in the order of the keys. Windows: as they are now. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Whether two identities are of one process. */
export type IdentityComparison = "same" | "different" | "unknown";

/** What became of the process of a kept identity. */
export type IdentityState = "live" | "exited" | "reused" | "gone" | "unknown";

/** The boot and the pid namespace that the identities of this process are of. */
export interface BootIdentity {
  readonly bootId: string;
  readonly pidNamespace?: string;
}

/**
 * Why a chain of ancestors ends where it does.
 *
 * - `root`: the last has no parent that this pid namespace shows.
 * - `through-pid`: the last has the pid that was asked for.
 * - `missing-parent`: the parent has ended (where a system keeps its pid, as Windows does).
 * - `recycled-parent`: the same, and its pid is now a process's that was born after the last of the chain.
 * - `unreadable-parent`: the kernel refuses to describe the parent.
 * - `max-depth`: the chain has as many processes as were asked for.
 * - `cycle`: the parent is in the chain already.
 */
export type AncestryStop =
  | "root"
  | "through-pid"
  | "missing-parent"
  | "recycled-parent"
  | "unreadable-parent"
  | "max-depth"
  | "cycle";

/** A process and its ancestors at one instant. */
export interface ProcessAncestry {
  /** From the asked process upwards. Never empty. */
  readonly chain: readonly ProcessIdentity[];
  /** `false` for `unreadable-parent`, `max-depth` and `cycle`: there is more above that the chain does not show. */
  readonly complete: boolean;
  readonly stoppedBy: AncestryStop;
}
