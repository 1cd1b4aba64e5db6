/* Dispatch semaphores: what Rust parks its threads with on Darwin. */
#include "libsystem.h"
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

struct darwin_semaphore {
  sem_t host;
};

static const uint64_t NOW = 0, FOREVER = ~0ull; /* <dispatch/time.h> */
enum { TIMED_OUT = 49 };                       /* KERN_OPERATION_TIMED_OUT */

darwin_semaphore *darwin_semaphore_create(long value) {
  if (value < 0) return NULL;
  darwin_semaphore *semaphore = malloc(sizeof *semaphore);
  sem_init(&semaphore->host, 0, value);
  return semaphore;
}

/* Darwin says whether it woke a thread; nobody asks. */
long darwin_semaphore_signal(darwin_semaphore *semaphore) {
  sem_post(&semaphore->host);
  return 0;
}

/* A time is nanoseconds of uptime. */
uint64_t darwin_dispatch_time(uint64_t when, int64_t nanoseconds) {
  if (when == FOREVER) return FOREVER;
  uint64_t from = when == NOW ? darwin_uptime_nanoseconds() : when;
  return nanoseconds < 0 && (uint64_t)-nanoseconds >= from ? 1 : from + nanoseconds;
}

long darwin_semaphore_wait(darwin_semaphore *semaphore, uint64_t deadline) {
  struct timespec until = {deadline / 1000000000, deadline % 1000000000};
  int result;
  do {
    if (deadline == NOW) result = sem_trywait(&semaphore->host);
    else if (deadline == FOREVER) result = sem_wait(&semaphore->host);
    else result = sem_clockwait(&semaphore->host, CLOCK_MONOTONIC, &until);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : TIMED_OUT;
}

/* Nobody here retains one, so the first release is the last. */
void darwin_release(darwin_semaphore *semaphore) {
  sem_destroy(&semaphore->host);
  free(semaphore);
}
