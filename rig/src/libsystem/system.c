/* Clocks, randomness, sysconf. */
#include "../darwin.h"
#include "../darwin_abi.h"
#include "libsystem.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

static int host_clock(int clock) {
  switch (clock) {
    case DARWIN_CLOCK_REALTIME: return CLOCK_REALTIME;
    case DARWIN_CLOCK_UPTIME_RAW: return CLOCK_MONOTONIC; /* stops while the machine sleeps */
    case DARWIN_CLOCK_MONOTONIC:
    case DARWIN_CLOCK_MONOTONIC_RAW: return CLOCK_BOOTTIME; /* counts sleep, as Darwin's do */
    case DARWIN_CLOCK_PROCESS_CPUTIME_ID: return CLOCK_PROCESS_CPUTIME_ID;
    case DARWIN_CLOCK_THREAD_CPUTIME_ID: return CLOCK_THREAD_CPUTIME_ID;
    default: return -1;
  }
}

int darwin_clock_gettime(int clock, struct timespec *time) { return darwin_result(clock_gettime(host_clock(clock), time)); }

int darwin_nanosleep(const struct timespec *time, struct timespec *left) { return darwin_result(nanosleep(time, left)); }

/* mach_absolute_time: its unit is the nanosecond on Intel. */
uint64_t darwin_uptime_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ull + now.tv_nsec;
}

long darwin_sysconf(int name) {
  switch (name) {
    case DARWIN__SC_PAGESIZE: return sysconf(_SC_PAGESIZE);
    case DARWIN__SC_NPROCESSORS_ONLN: return sysconf(_SC_NPROCESSORS_ONLN);
    case DARWIN__SC_THREAD_STACK_MIN: return PTHREAD_STACK_MIN;
    default: darwin_errno = darwin_errno_of(EINVAL); return -1;
  }
}

/* CCRandomGenerateBytes: 0 is success. */
int darwin_random_bytes(uint8_t *bytes, size_t size) {
  while (size > 0) {
    ssize_t got = getrandom(bytes, size, 0);
    if (got < 0 && errno != EINTR) return -1;
    if (got > 0) bytes += got, size -= got;
  }
  return 0;
}
