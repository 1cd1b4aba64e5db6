/* Threads and their keys. A pthread_t is a pointer-sized value on both systems. */
#include "../darwin.h"
#include "../darwin_abi.h"
#include "libsystem.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>

_Static_assert(sizeof(pthread_attr_t) <= SIZE_pthread_attr_t, "thread attributes fit");
_Static_assert(SIZE_pthread_key_t == sizeof(unsigned long), "a key is a long on Darwin");

int darwin_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  return darwin_error(pthread_create(thread, attributes, body, argument));
}

int darwin_pthread_join(pthread_t thread, void **result) { return darwin_error(pthread_join(thread, result)); }
int darwin_pthread_detach(pthread_t thread) { return darwin_error(pthread_detach(thread)); }

/* The least stack is smaller on Darwin. */
int darwin_attr_setstacksize(pthread_attr_t *attributes, size_t size) {
  size_t least = PTHREAD_STACK_MIN;
  return darwin_error(pthread_attr_setstacksize(attributes, size < least ? least : size));
}

/* Names only the calling thread; the host's names are shorter. */
int darwin_setname(const char *name) {
  char cut[16];
  darwin_strlcpy(cut, name, sizeof cut);
  return darwin_error(pthread_setname_np(pthread_self(), cut));
}

/* Of the calling thread only. */
int darwin_threadid(pthread_t thread, uint64_t *id) {
  if (thread != 0 && !pthread_equal(thread, pthread_self())) return darwin_error(ESRCH);
  *id = gettid();
  return 0;
}

static void *stack_of(pthread_t thread, size_t *size) {
  pthread_attr_t attributes;
  void *lowest = NULL;
  *size = 0;
  if (pthread_getattr_np(thread, &attributes) != 0) return NULL;
  pthread_attr_getstack(&attributes, &lowest, size);
  pthread_attr_destroy(&attributes);
  return lowest;
}

/* The highest address, as stacks grow downwards. */
void *darwin_get_stackaddr(pthread_t thread) {
  size_t size;
  char *lowest = stack_of(thread, &size);
  return lowest + size;
}

size_t darwin_get_stacksize(pthread_t thread) {
  size_t size;
  stack_of(thread, &size);
  return size;
}

/* The host's keys are ints. */
int darwin_key_create(unsigned long *key, void (*destructor)(void *)) {
  pthread_key_t host;
  int error = pthread_key_create(&host, destructor);
  if (error == 0) *key = host;
  return darwin_error(error);
}
int darwin_key_delete(unsigned long key) { return darwin_error(pthread_key_delete(key)); }
void *darwin_getspecific(unsigned long key) { return pthread_getspecific(key); }
int darwin_setspecific(unsigned long key, const void *value) { return darwin_error(pthread_setspecific(key, value)); }
