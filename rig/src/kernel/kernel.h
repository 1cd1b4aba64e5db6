/* The simulated Darwin kernel: one process table for the whole process, scripted from JavaScript. Its rules are
   our reading of XNU 11 to 26: each can be overridden for a process, and the world can change between any two
   calls. Everything below is held under kernel_lock. */
#ifndef KERNEL_H
#define KERNEL_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a process is in its life; the order matters. */
#define PHASES(X)                                                                \
  X(reserved)   /* fork has its pid, nothing shows it yet */                     \
  X(embryo)     /* listed, SIDL: libproc describes it, the record leaves it out */ \
  X(live)                                                                        \
  X(exit_begun) /* P_WEXIT, still among the live: a crash handler holds it */    \
  X(exiting)    /* among the exited, no zombie yet */                            \
  X(zombie)

#define PROCESS_NUMBERS(X)                                                      \
  X(pid) X(ppid) X(pgid) X(sid) X(oppid)                                        \
  X(uid) X(ruid) X(svuid) X(gid) X(rgid) X(svgid) /* uid, gid: the effective */ \
  X(stat) X(flag) X(pbflags) X(xstat) X(phase)                                  \
  X(startSec) X(startUsec) X(uniqueid) X(puniqueid) X(idversion)                \
  X(nice) X(tdev) X(tpgid)                                                      \
  X(listed)  /* whether lists name it, whatever its phase */                    \
  X(removed) /* its working directory has been: no path leads there */          \
  X(transit) /* in fork's or exec's activation: reading its record waits */

/* Answers that do not follow from the process: `libproc` is for every flavor without one of its own. */
#define OVERRIDES(X) X(libproc) X(short) X(tbsd) X(uniq) X(directory) X(program) X(record) X(args) X(kill)

#define CONFIG_NUMBERS(X)                                                          \
  X(uid) X(euid) X(gid) X(egid)      /* the caller's */                            \
  X(selfPid) X(selfPpid)             /* 0: the host process's own pid, launchd */  \
  X(slack)                           /* how far a list's estimate is above nprocs */ \
  X(release)                         /* macOS 11 to 26 */                          \
  X(bootSec) X(bootUsec)                                                           \
  X(transitLimitMs)                  /* a wait for a transit that lasts longer gives up */ \
  X(denyList) X(denyPidinfo) X(denySysctl) X(denySignal) /* errno of a sandbox, 0 without one */

/* The calls that hooks and the log know. */
#define CALLS(X) X(proc_listpids) X(proc_pidinfo) X(sysctl) X(sysctlbyname) X(kill) X(getpgid) X(getsid)

#define ENUMERATE_PHASE(name) PHASE_##name,
typedef enum { PHASES(ENUMERATE_PHASE) } phase;
#define ENUMERATE_NUMBER(name) NUMBER_##name,
enum { PROCESS_NUMBERS(ENUMERATE_NUMBER) NUMBER_COUNT, GIVEN_comm = NUMBER_COUNT, GIVEN_name, GIVEN_exe, GIVEN_cwd, GIVEN_arguments };
#define ENUMERATE_OVERRIDE(name) OVERRIDE_##name,
enum { OVERRIDES(ENUMERATE_OVERRIDE) OVERRIDE_COUNT };
#define ENUMERATE_CONFIG(name) CONFIG_##name,
enum { CONFIG_NUMBERS(ENUMERATE_CONFIG) CONFIG_COUNT };
#define ENUMERATE_CALL(name) CALL_##name,
typedef enum { CALLS(ENUMERATE_CALL) CALL_COUNT } call_kind;

extern const char *const phase_names[], *const number_names[], *const override_names[], *const config_names[], *const call_names[];

/* What JavaScript sends, as 64-bit words in this order. */
enum { MAX_PATCHES = 4 };
typedef enum { NATURAL, FORCED, ABSENT, FAILING, SHORTENED } override_mode;
typedef struct {
  int64_t given, mode, value; /* value: the errno or the length; -1: half of the whole */
  int64_t patch_count;
  struct {
    int64_t offset, size, value;
  } patches[MAX_PATCHES];
} override;

#define DECLARE(name) int64_t name;
typedef struct process {
  struct process *next;
  uint64_t given; /* which numbers (and GIVEN_*) a script named: the others have defaults */
  union {
    struct {
      PROCESS_NUMBERS(DECLARE)
    };
    int64_t numbers[NUMBER_COUNT];
  };
  override overrides[OVERRIDE_COUNT];
  char comm[17], name[33];
  char *exe, *cwd; /* the paths of its program and of its working directory, NULL for the defaults */
  uint8_t *arguments; /* as KERN_PROCARGS2 gives them */
  size_t arguments_size;
} process;

typedef struct {
  union {
    struct {
      CONFIG_NUMBERS(DECLARE)
    };
    int64_t numbers[CONFIG_COUNT];
  };
  char bootSession[40];
} configuration;

#define HOOK_NUMBERS(X)                                                             \
  X(fn) X(hasFlavor) X(flavor) X(hasPid) X(pid) X(call) X(times) X(after) X(vanish) \
  X(hasTarget) X(target) X(errnoValue) X(delayMs)
#define ENUMERATE_HOOK(name) HOOK_##name,
enum { HOOK_NUMBERS(ENUMERATE_HOOK) HOOK_COUNT };
extern const char *const hook_names[];

typedef struct hook {
  struct hook *next;
  union {
    struct {
      HOOK_NUMBERS(DECLARE)
    };
    int64_t numbers[HOOK_COUNT];
  };
  process *set, *replace, *add;
  int64_t seen, fired;
} hook;

extern pthread_mutex_t kernel_lock;
extern pthread_cond_t kernel_changed; /* a process has changed */
extern configuration config;

/* process.c */
extern process *processes; /* newest first; an exit or an exec moves to the head */
process *find_process(int64_t pid);
bool has_exited(const process *p); /* what proc_find() no longer finds */
bool is_given(const process *p, int number);
void insert_process(process *p); /* takes it; a process of that pid goes */
void remove_process(int64_t pid);
void merge_process(process *p, const process *partial);
process *clone_process(const process *p);
void free_processes(process *list);
void reset_processes(void);
int count_processes(void); /* nprocs: not kernel_task */
const override *override_of(const process *p, int kind);
void apply_patches(const override *o, uint8_t *bytes, size_t size);

/* pidinfo.c: what all flavors share */
typedef struct {
  int number, size, override;
  bool for_everyone; /* else the target's effective uid must be the caller's */
  void (*put)(const process *, uint8_t *);
} flavor;
const override *libproc_override(const process *p, const flavor *f);
/* An errno, or 0: then there is an answer about `p`. The order of the checks is XNU's. */
int check_flavor(const process *p, const flavor *f, const override *o, uint64_t argument, int size);

/* paths.c */
void put_directories(const process *p, uint8_t *record);

/* hooks.c */
void add_hook(hook *h);
void free_hook(hook *h);
void reset_hooks(void);

/* calls.c: every call begins by taking the lock and ends by giving it back */
typedef struct {
  call_kind kind;
  int64_t flavor, pid, argument, size;
} call;
int begin_call(const call *c); /* the errno that a hook wants, or 0 */
int64_t end_call(const call *c, int64_t result, int error);
/* Runs the hooks of one side of a call. The lock may be given back for a while. */
int run_hooks(const call *c, bool after);

typedef struct {
  uint64_t sequence;
  call call;
  int64_t thread, result, error;
} log_entry;
/* The newest entries, oldest first; the caller frees them. */
log_entry *copy_log(size_t *count);
void clear_log(void);

/* What the image asked for and the rig does not know is said once each time, not passed over. */
void say_unknown(const char *what, int64_t number, const char *name);
bool is_self(const process *p);
int64_t self_pid(void);

/* list.c, pidinfo.c, paths.c, sysctl.c, signals.c: libSystem's functions */
int sim_proc_listpids(uint32_t type, uint32_t argument, void *buffer, int size);
int sim_proc_listallpids(void *buffer, int size);
int sim_proc_pidinfo(int pid, int flavor, uint64_t argument, void *buffer, int size);
int sim_proc_pidpath(int pid, void *buffer, uint32_t size);
int sim_stat(const char *path, uint8_t *status);
int sim_sysctl(const int *mib, unsigned length, void *old, size_t *old_size, void *new, size_t new_size);
int sim_sysctlbyname(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
int sim_kill(int pid, int signal);
int sim_getpgid(int pid);
int sim_getsid(int pid);
int sim_getpid(void);
int sim_getppid(void);
uint32_t sim_getuid(void);
uint32_t sim_geteuid(void);
uint32_t sim_getgid(void);
uint32_t sim_getegid(void);

void reset_config(void);

#endif
