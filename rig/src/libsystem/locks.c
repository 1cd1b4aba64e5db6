/* Mutexes and condition variables. Darwin's static initialisers are a signature alone, so an object of theirs
   becomes a host object at its first use. */
#include "../darwin.h"
#include "../darwin_abi.h"
#include "libsystem.h"
#include <errno.h>
#include <stdlib.h>

/* <pthread/pthread_impl.h>: what the static initialisers hold. */
enum {
  STATIC_MUTEX = 0x32aaaba7,
  STATIC_ERRORCHECK_MUTEX = 0x32aaaba1,
  STATIC_RECURSIVE_MUTEX = 0x32aaaba2,
  STATIC_COND = 0x3cb0b1bb,
};
static const uint64_t HOST_OBJECT = 0x5249472d4f424a31; /* ours */

struct darwin_mutex {
  uint64_t signature;
  pthread_mutex_t host;
};
/* Darwin's is too small to hold the host's. */
struct darwin_cond {
  uint64_t signature;
  pthread_cond_t *host;
};
_Static_assert(sizeof(darwin_mutex) <= SIZE_pthread_mutex_t, "a mutex fits");
_Static_assert(sizeof(darwin_cond) <= SIZE_pthread_cond_t, "a condition fits");
_Static_assert(sizeof(pthread_mutexattr_t) <= SIZE_pthread_mutexattr_t, "mutex attributes fit");

static pthread_mutex_t first_use = PTHREAD_MUTEX_INITIALIZER;

static uint64_t signature_of(const uint64_t *signature) { return __atomic_load_n(signature, __ATOMIC_ACQUIRE); }
static void sign(uint64_t *signature) { __atomic_store_n(signature, HOST_OBJECT, __ATOMIC_RELEASE); }

static void make_mutex(darwin_mutex *mutex, int kind) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, kind);
  pthread_mutex_init(&mutex->host, &attributes);
  pthread_mutexattr_destroy(&attributes);
  sign(&mutex->signature);
}

/* NULL for what was never initialised. */
static pthread_mutex_t *host_mutex(darwin_mutex *mutex) {
  if (signature_of(&mutex->signature) == HOST_OBJECT) return &mutex->host;
  pthread_mutex_lock(&first_use);
  switch (mutex->signature) {
    case STATIC_MUTEX: make_mutex(mutex, PTHREAD_MUTEX_NORMAL); break;
    case STATIC_ERRORCHECK_MUTEX: make_mutex(mutex, PTHREAD_MUTEX_ERRORCHECK); break;
    case STATIC_RECURSIVE_MUTEX: make_mutex(mutex, PTHREAD_MUTEX_RECURSIVE); break;
    default: break;
  }
  pthread_mutex_unlock(&first_use);
  return signature_of(&mutex->signature) == HOST_OBJECT ? &mutex->host : NULL;
}

int darwin_mutex_init(darwin_mutex *mutex, const pthread_mutexattr_t *attributes) {
  int error = pthread_mutex_init(&mutex->host, attributes);
  if (error == 0) sign(&mutex->signature);
  return darwin_error(error);
}

static int on_mutex(int (*act)(pthread_mutex_t *), darwin_mutex *mutex) {
  pthread_mutex_t *host = host_mutex(mutex);
  return darwin_error(host == NULL ? EINVAL : act(host));
}

int darwin_mutex_lock(darwin_mutex *mutex) { return on_mutex(pthread_mutex_lock, mutex); }
int darwin_mutex_trylock(darwin_mutex *mutex) { return on_mutex(pthread_mutex_trylock, mutex); }
int darwin_mutex_unlock(darwin_mutex *mutex) { return on_mutex(pthread_mutex_unlock, mutex); }

int darwin_mutex_destroy(darwin_mutex *mutex) {
  int error = on_mutex(pthread_mutex_destroy, mutex);
  if (error == 0) mutex->signature = 0;
  return error;
}

int darwin_mutexattr_settype(pthread_mutexattr_t *attributes, int type) {
  switch (type) {
    case DARWIN_PTHREAD_MUTEX_NORMAL: return darwin_error(pthread_mutexattr_settype(attributes, PTHREAD_MUTEX_NORMAL));
    case DARWIN_PTHREAD_MUTEX_ERRORCHECK: return darwin_error(pthread_mutexattr_settype(attributes, PTHREAD_MUTEX_ERRORCHECK));
    case DARWIN_PTHREAD_MUTEX_RECURSIVE: return darwin_error(pthread_mutexattr_settype(attributes, PTHREAD_MUTEX_RECURSIVE));
    default: return darwin_error(EINVAL);
  }
}

static void make_cond(darwin_cond *cond) {
  cond->host = malloc(sizeof *cond->host);
  pthread_cond_init(cond->host, NULL);
  sign(&cond->signature);
}

static pthread_cond_t *host_cond(darwin_cond *cond) {
  if (signature_of(&cond->signature) == HOST_OBJECT) return cond->host;
  pthread_mutex_lock(&first_use);
  if (cond->signature == STATIC_COND) make_cond(cond);
  pthread_mutex_unlock(&first_use);
  return signature_of(&cond->signature) == HOST_OBJECT ? cond->host : NULL;
}

int darwin_cond_init(darwin_cond *cond, const void *attributes) {
  (void)attributes; /* Darwin knows none that change a wait */
  make_cond(cond);
  return 0;
}

int darwin_cond_destroy(darwin_cond *cond) {
  if (signature_of(&cond->signature) != HOST_OBJECT) return 0;
  int error = pthread_cond_destroy(cond->host);
  if (error == 0) {
    free(cond->host);
    cond->signature = 0;
  }
  return darwin_error(error);
}

static int on_cond(int (*act)(pthread_cond_t *), darwin_cond *cond) {
  pthread_cond_t *host = host_cond(cond);
  return darwin_error(host == NULL ? EINVAL : act(host));
}

int darwin_cond_signal(darwin_cond *cond) { return on_cond(pthread_cond_signal, cond); }
int darwin_cond_broadcast(darwin_cond *cond) { return on_cond(pthread_cond_broadcast, cond); }

/* Without a deadline it waits for ever. */
static int wait_until(darwin_cond *cond, darwin_mutex *mutex, clockid_t clock, const struct timespec *deadline) {
  pthread_cond_t *host = host_cond(cond);
  pthread_mutex_t *held = host_mutex(mutex);
  if (host == NULL || held == NULL) return darwin_error(EINVAL);
  return darwin_error(deadline == NULL ? pthread_cond_wait(host, held) : pthread_cond_clockwait(host, held, clock, deadline));
}

int darwin_cond_wait(darwin_cond *cond, darwin_mutex *mutex) { return wait_until(cond, mutex, CLOCK_REALTIME, NULL); }

int darwin_cond_timedwait(darwin_cond *cond, darwin_mutex *mutex, const struct timespec *deadline) {
  return wait_until(cond, mutex, CLOCK_REALTIME, deadline);
}

int darwin_cond_timedwait_relative(darwin_cond *cond, darwin_mutex *mutex, const struct timespec *time) {
  const long second = 1000000000;
  struct timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += time->tv_sec;
  deadline.tv_nsec += time->tv_nsec;
  if (deadline.tv_nsec >= second) {
    deadline.tv_sec++;
    deadline.tv_nsec -= second;
  }
  return wait_until(cond, mutex, CLOCK_MONOTONIC, &deadline);
}
