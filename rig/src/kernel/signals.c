/* kill, and who we and others are. No signal ever leaves the simulation. */
#include "kernel.h"
#include "../darwin_abi.h"
#include <unistd.h>

enum { HIGHEST_SIGNAL = 31, LAUNCHD = 1 };

/* cansignal(): a uid of ours, real or effective, is the target's real or saved one. */
static bool may_signal(const process *p) {
  if (config.euid == 0) return true;
  return config.uid == p->ruid || config.uid == p->svuid || config.euid == p->ruid || config.euid == p->svuid;
}

static int signal_process(const process *p) {
  const override *o = override_of(p, OVERRIDE_kill);
  if (o->mode == FAILING) return o->value;
  if (p == NULL || p->phase == PHASE_reserved || o->mode == ABSENT) return DARWIN_ESRCH;
  if (o->mode == FORCED || has_exited(p)) return 0; /* an exited one: without asking who we are */
  if (config.denySignal != 0 && !is_self(p)) return config.denySignal;
  bool shielded = p->pid == LAUNCHD && config.release >= 26; /* also from root */
  return shielded || !may_signal(p) ? DARWIN_EPERM : 0;
}

static int signal_group(int64_t group) {
  bool found = false, allowed = false;
  for (const process *p = processes; p != NULL; p = p->next) {
    if (p->pgid != group) continue;
    found = true;
    allowed |= !has_exited(p) && may_signal(p);
  }
  if (!found) return DARWIN_ESRCH;
  return allowed ? (int)config.denySignal : DARWIN_EPERM;
}

static int signal_target(int pid, int signal) {
  if (signal < 0 || signal > HIGHEST_SIGNAL) return DARWIN_EINVAL;
  if (pid > 0) return signal_process(find_process(pid));
  if (pid < -1) return signal_group(-(int64_t)pid);
  return config.denySignal; /* our own group, or everyone */
}

int sim_kill(int pid, int signal) {
  const call c = {CALL_kill, signal, pid, signal, 0};
  int error = begin_call(&c);
  if (error == 0) error = signal_target(pid, signal);
  return end_call(&c, error != 0 ? -1 : 0, error);
}

int64_t self_pid(void) { return config.selfPid != 0 ? config.selfPid : getpid(); }

/* Finds no exited process: proc_find(). */
static int read_id(call_kind kind, int pid, int number) {
  const call c = {.kind = kind, .pid = pid != 0 ? pid : self_pid()};
  int error = begin_call(&c);
  const process *p = find_process(c.pid);
  bool found = p != NULL && p->phase != PHASE_reserved && !has_exited(p);
  if (error == 0 && !found) error = DARWIN_ESRCH;
  return end_call(&c, error != 0 ? -1 : p->numbers[number], error);
}

int sim_getpgid(int pid) { return read_id(CALL_getpgid, pid, NUMBER_pgid); }
int sim_getsid(int pid) { return read_id(CALL_getsid, pid, NUMBER_sid); }

/* Asked too often to be of interest: neither hooks nor log. */
int sim_getpid(void) { return self_pid(); }
int sim_getppid(void) { return config.selfPpid != 0 ? config.selfPpid : LAUNCHD; }
uint32_t sim_getuid(void) { return config.uid; }
uint32_t sim_geteuid(void) { return config.euid; }
uint32_t sim_getgid(void) { return config.gid; }
uint32_t sim_getegid(void) { return config.egid; }
