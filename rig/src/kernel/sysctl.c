/* sysctl: the kernel record of a process, its arguments, and the boot. */
#include "kernel.h"
#include "record.h"
#include "../darwin_abi.h"
#include <time.h>

/* What is given back: at most as much as fits; an ordinary value that does not fit is ENOMEM. */
typedef struct {
  uint8_t *out;  /* NULL: only the size is asked for */
  size_t *size;  /* in: the room; out: what is there */
} answer;

static int give(const answer *a, const void *value, size_t size) {
  if (a->size == NULL) return 0;
  size_t copied = *a->size < size ? *a->size : size;
  if (a->out == NULL) copied = size;
  else memcpy(a->out, value, copied);
  *a->size = copied;
  return copied < size ? DARWIN_ENOMEM : 0;
}

/* ---- KERN_PROC_PID ---- */

enum { EPROC_SESSION_LEADER = 2, RECORD_SLOP = 5, USUAL_PRIORITY = 31 };

static void put_kinfo(const process *p, uint8_t *record) {
  put64(record, AT_p_starttime_sec, p->startSec);
  put32(record, AT_p_starttime_usec, p->startUsec);
  put32(record, AT_p_flag, p->flag);
  record[AT_p_stat] = p->stat;
  put32(record, AT_p_pid, p->pid);
  put32(record, AT_p_oppid, p->oppid);
  record[AT_p_priority] = USUAL_PRIORITY;
  record[AT_p_nice] = p->nice;
  memcpy(record + AT_p_comm, p->comm, 16);
  put16(record, AT_p_xstat, p->xstat);
  put32(record, AT_p_ruid, p->ruid);
  put32(record, AT_p_svuid, p->svuid);
  put32(record, AT_p_rgid, p->rgid);
  put32(record, AT_p_svgid, p->svgid);
  put32(record, AT_cr_uid, p->uid);
  put16(record, AT_cr_ngroups, 1);
  put32(record, AT_cr_groups, p->gid);
  put32(record, AT_e_ppid, p->ppid);
  put32(record, AT_e_pgid, p->pgid);
  put32(record, AT_e_tdev, p->tdev);
  put32(record, AT_e_tpgid, p->tpgid);
  put16(record, AT_e_flag, p->sid == p->pid ? EPROC_SESSION_LEADER : 0);
}

static bool has_record(const process *p) {
  const override *o = override_of(p, OVERRIDE_record);
  if (p == NULL || o->mode == ABSENT) return false;
  return o->mode == FORCED || p->phase > PHASE_embryo;
}

static void add_milliseconds(struct timespec *time, int64_t milliseconds) {
  int64_t nanoseconds = time->tv_nsec + milliseconds % 1000 * 1000000;
  time->tv_sec += milliseconds / 1000 + nanoseconds / 1000000000;
  time->tv_nsec = nanoseconds % 1000000000;
}

/* XNU sleeps here, and no signal wakes it, while the process forks or executes. The same process, or NULL if it is
   gone by then. An exited process is read without the wait. */
static const process *wait_for_transit(int64_t pid) {
  const process *p = find_process(pid);
  if (p == NULL) return NULL;
  int64_t birth = p->uniqueid;
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  add_milliseconds(&limit, config.transitLimitMs);
  int error = 0;
  while (p != NULL && p->uniqueid == birth && p->transit && has_record(p) && !has_exited(p) && error == 0) {
    error = pthread_cond_timedwait(&kernel_changed, &kernel_lock, &limit);
    p = find_process(pid);
  }
  if (error != 0) say_unknown("the end of a transit of pid", pid, "that outlasted transitLimitMs");
  return p != NULL && p->uniqueid == birth ? p : NULL;
}

static int read_record(int64_t pid, const answer *a) {
  const process *p = wait_for_transit(pid);
  const override *o = override_of(p, OVERRIDE_record);
  if (o->mode == FAILING) return o->value;
  bool present = has_record(p);
  if (a->size == NULL) return 0;
  if (a->out == NULL) { /* a size with slop, also for a process that is not there */
    *a->size = (present + RECORD_SLOP) * SIZE_kinfo_proc;
    return 0;
  }
  size_t room = *a->size;
  *a->size = 0;
  if (!present) return 0; /* success, and nothing given */
  if (room < SIZE_kinfo_proc) return DARWIN_ENOMEM;
  uint8_t record[SIZE_kinfo_proc] = {0};
  put_kinfo(p, record);
  apply_patches(o, record, sizeof record);
  size_t size = sizeof record;
  if (o->mode == SHORTENED) size = o->value < 0 ? sizeof record / 2 : (size_t)o->value;
  if (size > sizeof record) size = sizeof record;
  memcpy(a->out, record, size);
  *a->size = size;
  return 0;
}

/* ---- KERN_PROCARGS2 ---- */

enum { LONGEST_ARGUMENTS = 1 << 20 }; /* ARG_MAX; XNU refuses to be offered more room */

static int read_arguments(int64_t pid, const answer *a) {
  const process *p = find_process(pid);
  const override *o = override_of(p, OVERRIDE_args);
  if (o->mode == FAILING) return o->value;
  if (p == NULL || p->phase <= PHASE_embryo || has_exited(p) || o->mode == ABSENT) return DARWIN_EINVAL;
  if (a->out != NULL && a->size != NULL && *a->size > sizeof(int32_t) + LONGEST_ARGUMENTS) return DARWIN_EINVAL;
  bool mine = config.euid == 0 || p->uid == config.euid || o->mode == FORCED;
  if (!mine || p->arguments == NULL) return DARWIN_EINVAL;
  give(a, p->arguments, p->arguments_size); /* cut short without an error */
  return 0;
}

/* ---- the rest ---- */

static int read_boot_time(const answer *a) {
  struct {
    int64_t seconds;
    int32_t microseconds, padding;
  } time = {config.bootSec, config.bootUsec, 0};
  return give(a, &time, sizeof time);
}

static int read_mib(const int *mib, unsigned length, const answer *a) {
  bool kern = length >= 2 && mib[0] == DARWIN_CTL_KERN;
  if (kern && length == 2 && mib[1] == DARWIN_KERN_BOOTTIME) return read_boot_time(a);
  if (kern && length == 3 && mib[1] == DARWIN_KERN_PROCARGS2) return read_arguments(mib[2], a);
  if (kern && length == 4 && mib[1] == DARWIN_KERN_PROC && mib[2] == DARWIN_KERN_PROC_PID) return read_record(mib[3], a);
  say_unknown("sysctl", length >= 2 ? mib[1] : -1, "");
  return DARWIN_ENOENT;
}

static int read_named(const char *name, const answer *a) {
  if (strcmp(name, "kern.boottime") == 0) return read_boot_time(a);
  if (strcmp(name, "kern.bootsessionuuid") == 0) return give(a, config.bootSession, strlen(config.bootSession) + 1);
  say_unknown("sysctlbyname", 0, name);
  return DARWIN_ENOENT;
}

static int refusal(const void *new) {
  return new != NULL ? DARWIN_EPERM : (int)config.denySysctl;
}

static int finish(const call *c, const answer *a, int error) {
  int64_t given = a->size == NULL ? 0 : (int64_t)*a->size;
  end_call(c, error != 0 ? -1 : given, error);
  return error != 0 ? -1 : 0;
}

static int64_t room_of(const size_t *size) { return size == NULL ? -1 : (int64_t)*size; }

int sim_sysctl(const int *mib, unsigned length, void *old, size_t *old_size, void *new, size_t new_size) {
  (void)new_size;
  call c = {.kind = CALL_sysctl, .flavor = length >= 2 ? mib[1] : 0, .size = room_of(old_size)};
  if (length >= 3) c.argument = mib[2];
  if (length == 4) c.pid = mib[3];
  else if (length == 3 && mib[1] == DARWIN_KERN_PROCARGS2) c.pid = mib[2];
  const answer a = {old, old_size};
  int error = begin_call(&c);
  if (error == 0) error = refusal(new);
  if (error == 0) error = read_mib(mib, length, &a);
  return finish(&c, &a, error);
}

int sim_sysctlbyname(const char *name, void *old, size_t *old_size, void *new, size_t new_size) {
  (void)new_size;
  const call c = {.kind = CALL_sysctlbyname, .size = room_of(old_size)};
  const answer a = {old, old_size};
  int error = begin_call(&c);
  if (error == 0) error = refusal(new);
  if (error == 0) error = read_named(name, &a);
  return finish(&c, &a, error);
}
