/* Hooks: what changes in the world right before or after a call. */
#include "kernel.h"
#include <stdlib.h>
#include <unistd.h>

#define NAME_OF(name) #name,
const char *const hook_names[] = {HOOK_NUMBERS(NAME_OF) NULL};

static hook *hooks; /* in the order of their addition */

void add_hook(hook *h) {
  hook **at = &hooks;
  while (*at != NULL) at = &(*at)->next;
  *at = h;
}

void free_hook(hook *h) {
  free_processes(h->set);
  free_processes(h->replace);
  free_processes(h->add);
  free(h);
}

void reset_hooks(void) {
  while (hooks != NULL) {
    hook *next = hooks->next;
    free_hook(hooks);
    hooks = next;
  }
}

static bool is_meant(const hook *h, const call *c, bool after) {
  return h->fn == (int64_t)c->kind && h->after == after && (!h->hasFlavor || h->flavor == c->flavor) &&
         (!h->hasPid || h->pid == c->pid);
}

/* Whether it is this call's turn: from the `call`th on, `times` times (for ever if negative). */
static bool is_due(hook *h) {
  h->seen++;
  if (h->seen < h->call || (h->times >= 0 && h->fired >= h->times)) return false;
  h->fired++;
  return true;
}

static void act(const hook *h, const call *c) {
  int64_t target = h->hasTarget ? h->target : c->pid;
  if (h->vanish) remove_process(target);
  process *p = find_process(target);
  if (h->set != NULL && p != NULL) merge_process(p, h->set);
  if (h->replace != NULL) {
    process *successor = clone_process(h->replace); /* another birth: a unique id of its own */
    if (!is_given(successor, NUMBER_pid)) successor->pid = target;
    insert_process(successor);
  }
  for (const process *added = h->add; added != NULL; added = added->next) insert_process(clone_process(added));
}

int run_hooks(const call *c, bool after) {
  int error = 0;
  int64_t delay = 0;
  for (hook *h = hooks; h != NULL; h = h->next) {
    if (!is_meant(h, c, after) || !is_due(h)) continue;
    act(h, c);
    if (h->errnoValue != 0) error = h->errnoValue;
    delay += h->delayMs;
  }
  if (delay > 0) { /* without the lock: others go on meanwhile */
    pthread_mutex_unlock(&kernel_lock);
    usleep(delay * 1000);
    pthread_mutex_lock(&kernel_lock);
  }
  return error;
}
