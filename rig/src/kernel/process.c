/* The process table: what a process is if a script does not say, and how it changes. */
#include "kernel.h"
#include "../darwin_abi.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_OF(name) #name,
const char *const number_names[] = {PROCESS_NUMBERS(NAME_OF) NULL};
const char *const override_names[] = {OVERRIDES(NAME_OF) NULL};
const char *const config_names[] = {CONFIG_NUMBERS(NAME_OF) NULL};
/* With - where C has _. */
const char *const phase_names[] = {"reserved", "embryo", "live", "exit-begun", "exiting", "zombie", NULL};

pthread_mutex_t kernel_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t kernel_changed = PTHREAD_COND_INITIALIZER;
configuration config;
process *processes;

enum { PIDS = 99999, LAUNCHD = 1 }; /* XNU's pids end at 99998 */
static process *by_pid[PIDS];
static int64_t next_uniqueid;

void reset_config(void) {
  config = (configuration){
      .uid = 501, .euid = 501, .gid = 20, .egid = 20,
      .slack = 20, .release = 15, .bootSec = 1700000000, .transitLimitMs = 60000,
      .bootSession = "8E2E1C1B-5B6F-4E57-9D5E-0A1B2C3D4E5F",
  };
}

process *find_process(int64_t pid) { return pid >= 0 && pid < PIDS ? by_pid[pid] : NULL; }
bool has_exited(const process *p) { return p->phase >= PHASE_exiting; }
bool is_given(const process *p, int number) { return p->given >> number & 1; }
bool is_self(const process *p) { return p->pid == self_pid(); }

int count_processes(void) {
  int count = 0;
  for (const process *p = processes; p != NULL; p = p->next) count += p->pid != 0;
  return count;
}

static void free_process(process *p) {
  free(p->arguments);
  free(p->exe);
  free(p->cwd);
  free(p);
}

void free_processes(process *list) {
  while (list != NULL) {
    process *next = list->next;
    free_process(list);
    list = next;
  }
}

static char *copy_text(const char *text) { return text == NULL ? NULL : strdup(text); }

process *clone_process(const process *p) {
  process *copy = malloc(sizeof *copy);
  *copy = *p;
  copy->next = NULL;
  if (p->arguments != NULL) {
    copy->arguments = malloc(p->arguments_size);
    memcpy(copy->arguments, p->arguments, p->arguments_size);
  }
  copy->exe = copy_text(p->exe);
  copy->cwd = copy_text(p->cwd);
  return copy;
}

static void attach(process *p) {
  p->next = processes;
  processes = p;
  by_pid[p->pid] = p;
}

static void detach(process *p) {
  process **at = &processes;
  while (*at != p) at = &(*at)->next;
  *at = p->next;
  by_pid[p->pid] = NULL;
}

static void move_to_head(process *p) {
  detach(p);
  attach(p);
}

/* The parent's exit: its living children become launchd's, its zombies go, and what it traced returns to its own
   parent (exit step E7). */
static void leave_children(const process *parent) {
  if (parent->pid <= LAUNCHD) return;
  for (process *p = processes, *next; p != NULL; p = next) {
    next = p->next;
    if (p->ppid != parent->pid || p == parent) continue;
    if (p->phase == PHASE_zombie) {
      detach(p);
      free_process(p);
    } else if (p->flag & DARWIN_P_TRACED && p->oppid != 0) {
      p->ppid = p->oppid;
      p->oppid = 0;
      p->flag &= ~(int64_t)DARWIN_P_TRACED;
    } else {
      p->ppid = LAUNCHD;
    }
  }
}

void remove_process(int64_t pid) {
  process *p = find_process(pid);
  if (p == NULL) return;
  if (p->phase != PHASE_zombie) leave_children(p);
  detach(p);
  free_process(p);
  pthread_cond_broadcast(&kernel_changed);
}

void reset_processes(void) {
  free_processes(processes);
  processes = NULL;
  memset(by_pid, 0, sizeof by_pid);
  next_uniqueid = LAUNCHD + 1;
  pthread_cond_broadcast(&kernel_changed);
}

static phase phase_of(const process *p) {
  if (p->stat == DARWIN_SZOMB) return PHASE_zombie;
  if (p->flag & DARWIN_P_WEXIT) return PHASE_exiting;
  return p->stat == DARWIN_SIDL ? PHASE_embryo : PHASE_live;
}

static int64_t stat_of(phase phase) {
  if (phase == PHASE_zombie) return DARWIN_SZOMB;
  return phase <= PHASE_embryo ? DARWIN_SIDL : DARWIN_SRUN; /* nothing in XNU assigns SSLEEP */
}

#define DEFAULT(name, value) \
  if (!is_given(p, NUMBER_##name)) p->name = (value)

static void complete_birth(process *p) {
  DEFAULT(startSec, config.bootSec + 60 + p->pid);
  DEFAULT(uniqueid, p->pid <= LAUNCHD ? p->pid : next_uniqueid);
  if (p->uniqueid >= next_uniqueid) next_uniqueid = p->uniqueid + 1;
  const process *parent = find_process(p->ppid);
  DEFAULT(puniqueid, parent == NULL ? LAUNCHD : parent->uniqueid);
  DEFAULT(idversion, p->uniqueid * 2 + 1);
}

static void complete(process *p) {
  DEFAULT(uid, config.euid);
  DEFAULT(ruid, p->uid);
  DEFAULT(svuid, p->uid);
  DEFAULT(gid, 20);
  DEFAULT(rgid, p->gid);
  DEFAULT(svgid, p->gid);
  DEFAULT(ppid, p->pid > LAUNCHD ? LAUNCHD : 0);
  DEFAULT(pgid, p->pid);
  DEFAULT(sid, p->pgid);
  DEFAULT(tdev, -1);
  DEFAULT(flag, DARWIN_P_LP64 | DARWIN_P_EXEC);
  complete_birth(p);
  DEFAULT(stat, is_given(p, NUMBER_phase) ? stat_of(p->phase) : DARWIN_SRUN);
  DEFAULT(phase, phase_of(p));
  if (p->phase >= PHASE_exit_begun) p->flag |= DARWIN_P_WEXIT;
  if (!is_given(p, GIVEN_comm)) snprintf(p->comm, sizeof p->comm, "p%d", (int)p->pid);
  if (!is_given(p, GIVEN_name)) snprintf(p->name, sizeof p->name, "%s", p->comm);
}

void insert_process(process *p) {
  remove_process(p->pid);
  complete(p);
  attach(p);
  pthread_cond_broadcast(&kernel_changed);
}

static void merge_phase(process *p, const process *partial) {
  bool stat_given = is_given(partial, NUMBER_stat), flag_given = is_given(partial, NUMBER_flag);
  if (!is_given(partial, NUMBER_phase)) {
    if (stat_given || flag_given) p->phase = phase_of(p);
    return;
  }
  bool odd = p->stat == DARWIN_SZOMB || p->stat == DARWIN_SIDL; /* a stopped process stays so while it exits */
  if (!stat_given && (p->phase == PHASE_zombie || odd)) p->stat = stat_of(p->phase);
  if (p->phase >= PHASE_exit_begun) p->flag |= DARWIN_P_WEXIT;
  else if (!flag_given) p->flag &= ~(int64_t)DARWIN_P_WEXIT;
}

static void replace_text(char **text, const char *by) {
  free(*text);
  *text = copy_text(by);
}

/* All but the pid may change. */
void merge_process(process *p, const process *partial) {
  process before = *p;
  for (int i = 0; i < NUMBER_COUNT; i++) {
    if (i != NUMBER_pid && is_given(partial, i)) p->numbers[i] = partial->numbers[i];
  }
  for (int i = 0; i < OVERRIDE_COUNT; i++) {
    if (partial->overrides[i].given) p->overrides[i] = partial->overrides[i];
  }
  if (is_given(partial, GIVEN_comm)) memcpy(p->comm, partial->comm, sizeof p->comm);
  if (is_given(partial, GIVEN_name)) memcpy(p->name, partial->name, sizeof p->name);
  if (is_given(partial, GIVEN_exe)) replace_text(&p->exe, partial->exe);
  if (is_given(partial, GIVEN_cwd)) replace_text(&p->cwd, partial->cwd);
  if (is_given(partial, GIVEN_arguments)) {
    free(p->arguments);
    p->arguments_size = partial->arguments_size;
    p->arguments = malloc(p->arguments_size);
    memcpy(p->arguments, partial->arguments, p->arguments_size);
  }
  p->given |= partial->given;
  merge_phase(p, partial);
  bool exited_now = has_exited(p) && !has_exited(&before);
  /* An exec gives a new idversion, and since macOS 13 a new place in the list. */
  bool executed = !has_exited(p) && p->idversion != before.idversion && config.release >= 13;
  if (exited_now || executed) move_to_head(p);
  if (p->phase == PHASE_zombie && before.phase != PHASE_zombie) leave_children(p);
  pthread_cond_broadcast(&kernel_changed);
}

static const override NO_OVERRIDE = {0};

const override *override_of(const process *p, int kind) {
  return p == NULL ? &NO_OVERRIDE : &p->overrides[kind];
}

void apply_patches(const override *o, uint8_t *bytes, size_t size) {
  for (int64_t i = 0; i < o->patch_count; i++) {
    size_t offset = o->patches[i].offset, width = o->patches[i].size;
    if (offset + width <= size) memcpy(bytes + offset, &o->patches[i].value, width);
  }
}
