/* What all simulated calls share: the lock, the hooks on both sides, the log, errno; and the table of their names. */
#include "kernel.h"
#include "../darwin.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NAME_OF(name) #name,
const char *const call_names[] = {CALLS(NAME_OF) NULL};

enum { LOG_SIZE = 65536 };
static log_entry entries[LOG_SIZE]; /* a ring */
static uint64_t logged;

int begin_call(const call *c) {
  pthread_mutex_lock(&kernel_lock);
  return run_hooks(c, false);
}

int64_t end_call(const call *c, int64_t result, int error) {
  entries[logged % LOG_SIZE] = (log_entry){logged, *c, gettid(), result, error};
  logged++;
  run_hooks(c, true);
  pthread_mutex_unlock(&kernel_lock);
  if (error != 0) darwin_errno = error;
  return result;
}

log_entry *copy_log(size_t *count) {
  *count = logged < LOG_SIZE ? logged : LOG_SIZE;
  log_entry *copy = malloc((*count + 1) * sizeof *copy);
  for (size_t i = 0; i < *count; i++) copy[i] = entries[(logged - *count + i) % LOG_SIZE];
  return copy;
}

void clear_log(void) { logged = 0; }

void say_unknown(const char *what, int64_t number, const char *name) {
  fprintf(stderr, "rig: %s %lld %s is not simulated\n", what, (long long)number, name);
}

#define SIMULATED(name) {"_" #name, (void *)sim_##name}
const darwin_export kernel_exports[] = {
    SIMULATED(proc_listpids), SIMULATED(proc_listallpids), SIMULATED(proc_pidinfo), SIMULATED(proc_pidpath),
    {"_stat$INODE64", (void *)sim_stat},
    SIMULATED(sysctl), SIMULATED(sysctlbyname),
    SIMULATED(kill), SIMULATED(getpgid), SIMULATED(getsid), SIMULATED(getpid), SIMULATED(getppid),
    SIMULATED(getuid), SIMULATED(geteuid), SIMULATED(getgid), SIMULATED(getegid),
    {NULL, NULL},
};
