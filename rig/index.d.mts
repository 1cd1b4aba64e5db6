// The types of index.mjs: what a script for the simulated kernel may say.

/** A number, or the name of one of Darwin's errors: "ESRCH". */
export type Errno = number | string;

/** A call's answer that does not follow from the process. */
export type Override =
  | "natural"
  | "ok" // as if nothing forbade it
  | "absent" // ESRCH; of the record and the arguments: not there
  | "short" // half of the structure
  | {
      readonly errno?: Errno;
      /** How many bytes it claims to give. */
      readonly len?: number;
      /** [offset, size, value] of fields that are other than the process's. */
      readonly patch?: readonly (readonly [offset: number, size: number, value: number | bigint])[];
    };

export type Phase = "reserved" | "embryo" | "live" | "exit-begun" | "exiting" | "zombie";

/** Everything but the pid has a default. uid and gid are the effective ones; flag is p_flag. */
export interface SimProcess {
  readonly pid: number;
  readonly ppid?: number;
  readonly pgid?: number;
  readonly sid?: number;
  /** The real parent, while the process is traced. */
  readonly oppid?: number;
  readonly uid?: number;
  readonly ruid?: number;
  readonly svuid?: number;
  readonly gid?: number;
  readonly rgid?: number;
  readonly svgid?: number;
  readonly stat?: number;
  readonly flag?: number;
  /** pbsi_flags, if they shall not follow from `flag`. */
  readonly pbflags?: number;
  readonly xstat?: number;
  /** By default follows from `stat` and `flag`. */
  readonly phase?: Phase;
  readonly startSec?: number;
  readonly startUsec?: number;
  readonly uniqueid?: number | bigint;
  readonly puniqueid?: number | bigint;
  /** A change is an exec. */
  readonly idversion?: number;
  readonly nice?: number;
  readonly tdev?: number;
  readonly tpgid?: number;
  readonly comm?: string;
  readonly name?: string;
  /** Where its program is: proc_pidpath's answer. `path` is what exec was given. */
  readonly exe?: string;
  /** Its working directory; `/` by default. */
  readonly cwd?: string;
  /** No path leads to its working directory any more. */
  readonly removed?: boolean;
  /** For KERN_PROCARGS2, which fails without `argv`. */
  readonly argv?: readonly string[];
  readonly path?: string;
  readonly env?: readonly string[];
  /** Whether lists name it, whatever its phase. */
  readonly listed?: boolean;
  /** In fork's or exec's activation: a read of its record waits until this ends. */
  readonly transit?: boolean;
  /** Every flavor of proc_pidinfo that has no override of its own. */
  readonly libproc?: Override;
  readonly short?: Override;
  readonly tbsd?: Override;
  readonly uniq?: Override;
  readonly directory?: Override;
  readonly program?: Override;
  readonly record?: Override;
  readonly args?: Override;
  readonly kill?: Override;
}

export type Changes = Partial<SimProcess>;

export type CallName = "proc_listpids" | "proc_pidinfo" | "sysctl" | "sysctlbyname" | "kill" | "getpgid" | "getsid";

/** What happens beside a call. */
export interface Hook {
  readonly fn: CallName;
  /** proc_pidinfo's flavor (11: proc_pidpath), sysctl's second number, the signal, the list's type. */
  readonly flavor?: number;
  readonly pid?: number;
  /** From which such call on; 1 is the first. */
  readonly call?: number;
  /** How often; -1 is for ever. */
  readonly times?: number;
  /** After the call, unless there is an errno. */
  readonly when?: "before" | "after";
  /** The process that it is about, if not the call's. */
  readonly target?: number;
  readonly set?: Changes;
  /** Another birth at the same pid. */
  readonly replace?: Changes;
  readonly add?: SimProcess | readonly SimProcess[];
  readonly vanish?: boolean;
  /** Instead of the call. */
  readonly errno?: Errno;
  readonly delayMs?: number;
}

export interface Config {
  readonly uid?: number;
  /** By default `uid`. */
  readonly euid?: number;
  readonly gid?: number;
  readonly egid?: number;
  /** By default the host process's own. */
  readonly selfPid?: number;
  readonly selfPpid?: number;
  readonly slack?: number;
  /** The macOS release, 11 to 26. */
  readonly release?: number;
  readonly bootSec?: number;
  readonly bootUsec?: number;
  readonly bootSession?: string;
  readonly transitLimitMs?: number;
  readonly denyList?: Errno;
  readonly denyPidinfo?: Errno;
  readonly denySysctl?: Errno;
  readonly denySignal?: Errno;
}

/** Processes stand in the order of their birth. */
export type Script =
  | readonly SimProcess[]
  | { readonly config?: Config; readonly processes?: readonly SimProcess[]; readonly hooks?: readonly Hook[] };

export interface LogEntry {
  readonly fn: CallName;
  readonly seq: number;
  readonly tid: number;
  readonly flavor: number;
  readonly pid: number;
  readonly arg: number;
  /** The room that the caller offered, in bytes; -1 where it gave none. */
  readonly size: number;
  /** Bytes given; 0 or -1 on an error. */
  readonly ret: number;
  readonly errno: number;
}

/** The one kernel of this process, which all realms share. */
export declare const sim: {
  /** Replaces everything: configuration, processes, hooks; clears the log. */
  set(script: Script): void;
  add(processes: SimProcess | readonly SimProcess[]): void;
  patch(pid: number, changes: Changes): void;
  remove(pid: number): void;
  hooks(hooks: readonly Hook[]): void;
  /** The newest 65,536 calls, oldest first. */
  log(): LogEntry[];
  clearLog(): void;
};

export declare function load(file: string, script?: Script): unknown;
export declare function info(file: string): {
  imports: string[];
  /** A call of one of these aborts: assert that there are none. */
  unresolved: string[];
  weakMissing: string[];
  chainedFixups: boolean;
  /** Whether it has asked never to be unloaded: dlopen(itself, RTLD_NOLOAD | RTLD_NODELETE). */
  pinned: boolean;
  rebases: number;
  binds: number;
  initialisers: number;
  unwindEntries: number;
  threadLocalBytes: number;
};
export declare function stats(): { images: number; registrations: number; threadLocalBlocks: number };
export declare function isMachO(path: string): boolean;
/** Returns what undoes it. */
export declare function install(as?: { platform?: NodeJS.Platform; arch?: NodeJS.Architecture }): () => void;

export declare const FLAVOR: Readonly<
  Record<
    | "PROC_PIDTBSDINFO"
    | "PROC_PIDVNODEPATHINFO"
    | "PROC_PIDPATHINFO"
    | "PROC_PIDT_SHORTBSDINFO"
    | "PROC_PIDUNIQIDENTIFIERINFO"
    | "PROC_PIDT_BSDINFOWITHUNIQID"
    | "KERN_PROC"
    | "KERN_PROCARGS2"
    | "KERN_BOOTTIME",
    number
  >
>;
export declare const FLAG: Readonly<
  Record<"P_CONTROLT" | "P_LP64" | "P_CONTINUED" | "P_SYSTEM" | "P_TRACED" | "P_WEXIT" | "P_EXEC" | "P_TRANSLATED", number>
>;
