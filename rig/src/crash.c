/* A crash inside an image means nothing to a debugger of this system, which cannot read Mach-O. So the signal's
   handler prints the stack as offsets into the images, which Darwin's tools (or LLVM's) resolve, and lets the
   signal go on to whoever handled it before. */
#include "crash.h"
#include "loader/image.h"
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof SIGNALS[0], DEEPEST = 64 };
static struct sigaction previous[SIGNAL_COUNT];

static void say(const char *text, int length) {
  if (write(STDERR_FILENO, text, length) < 0) return; /* nobody to tell */
}

static void say_place(const void *address) {
  char line[4200];
  const image *im = image_at(address);
  if (im == NULL) return;
  long offset = (const uint8_t *)address - im->base;
  say(line, snprintf(line, sizeof line, "rig:   %s + 0x%lx\n", im->path, offset));
}

static void report(int signal, const siginfo_t *info, const void *instruction) {
  char line[120];
  void *stack[DEEPEST];
  say(line, snprintf(line, sizeof line, "rig: signal %d inside an image, on address %p, at\n", signal, info->si_addr));
  say_place(instruction);
  int depth = backtrace(stack, DEEPEST);
  for (int i = 0; i < depth; i++) {
    if (stack[i] != instruction) say_place(stack[i]);
  }
}

static void hand_on(int number, siginfo_t *info, void *context) {
  for (int i = 0; i < SIGNAL_COUNT; i++) {
    if (SIGNALS[i] != number) continue;
    if (previous[i].sa_flags & SA_SIGINFO) previous[i].sa_sigaction(number, info, context);
    else if (previous[i].sa_handler != SIG_DFL && previous[i].sa_handler != SIG_IGN) previous[i].sa_handler(number);
    else sigaction(number, &previous[i], NULL); /* the instruction runs again, and its fault is then final */
  }
}

static void on_signal(int number, siginfo_t *info, void *context) {
  const void *instruction = (const void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  if (image_at(instruction) != NULL) report(number, info, instruction);
  hand_on(number, info, context);
}

void report_crashes(void) {
  void *warm[1];
  backtrace(warm, 1); /* loads what it needs now: in a handler it must not */
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  for (int i = 0; i < SIGNAL_COUNT; i++) sigaction(SIGNALS[i], &action, &previous[i]);
}
