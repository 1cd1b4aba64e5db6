/* proc_listpids: all pids under one lock, the live ones newest first, then the exited ones newest exit first. What
   does not fit is left out and nothing says so: first the exited, then the tail of the live (launchd, kernel_task). */
#include "kernel.h"
#include "../darwin_abi.h"

static bool is_listed(const process *p) {
  return is_given(p, NUMBER_listed) ? p->listed : p->phase != PHASE_reserved;
}

static int put_pids(int32_t *out, int room) {
  int count = 0;
  for (int exited = 0; exited <= 1; exited++) {
    for (const process *p = processes; p != NULL && count < room; p = p->next) {
      if (has_exited(p) == exited && is_listed(p)) out[count++] = p->pid;
    }
  }
  return count;
}

/* Bytes; 0 with errno if it fails. */
int sim_proc_listpids(uint32_t type, uint32_t argument, void *buffer, int size) {
  const call c = {CALL_proc_listpids, type, 0, argument, size};
  int error = begin_call(&c);
  int estimate = count_processes() + config.slack; /* counts what a list leaves out, too */
  if (error == 0) error = config.denyList;
  if (error != 0) return end_call(&c, 0, error);
  if (type != DARWIN_PROC_ALL_PIDS) {
    say_unknown("proc_listpids type", type, "");
    return end_call(&c, 0, 0); /* XNU lists nothing for a type that it does not know */
  }
  if (buffer == NULL) return end_call(&c, estimate * 4, 0);
  if (size < 4) return end_call(&c, 0, DARWIN_ENOMEM);
  int room = size / 4 < estimate ? size / 4 : estimate;
  return end_call(&c, put_pids(buffer, room) * 4, 0);
}

/* A count, not bytes. */
int sim_proc_listallpids(void *buffer, int size) { return sim_proc_listpids(DARWIN_PROC_ALL_PIDS, 0, buffer, size) / 4; }
