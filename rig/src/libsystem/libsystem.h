/* The replacements of libSystem's functions: those whose structures, constants or errors differ from glibc's.
   Each is named like Darwin's function, with darwin_ before it. */
#ifndef LIBSYSTEM_H
#define LIBSYSTEM_H
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

/* errno.c */
int *darwin_errno_address(void);
int darwin_strerror_r(int error, char *text, size_t size);

/* files.c */
int darwin_open(const char *path, int flags, int mode);
int darwin_close(int file);
ssize_t darwin_read(int file, void *bytes, size_t size);
ssize_t darwin_write(int file, const void *bytes, size_t size);
ssize_t darwin_writev(int file, const struct iovec *parts, int count);
int darwin_fstat(int file, uint8_t *out);
char *darwin_getcwd(char *path, size_t size);
DIR *darwin_opendir(const char *path);
int darwin_readdir_r(DIR *directory, uint8_t *entry, uint8_t **result);
int darwin_closedir(DIR *directory);

/* memory.c */
void *darwin_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
int darwin_munmap(void *address, size_t size);
void darwin_memset_pattern16(void *bytes, const void *pattern, size_t size);
size_t darwin_strlcpy(char *to, const char *from, size_t size);
size_t darwin_strlcpy_chk(char *to, const char *from, size_t size, size_t room);
extern uintptr_t darwin_stack_guard;

/* system.c */
int darwin_clock_gettime(int clock, struct timespec *time);
int darwin_nanosleep(const struct timespec *time, struct timespec *left);
uint64_t darwin_uptime_nanoseconds(void);
long darwin_sysconf(int name);
int darwin_random_bytes(uint8_t *bytes, size_t size);

/* dynamic.c */
void *darwin_dlsym(void *handle, const char *name);
void *darwin_dlopen(const char *path, int flags);
int darwin_dladdr(const void *address, Dl_info *info);
uint32_t darwin_zero(void);
void *darwin_null(void);

/* locks.c; a Darwin object holds a host object behind a signature */
typedef struct darwin_mutex darwin_mutex;
typedef struct darwin_cond darwin_cond;
int darwin_mutex_init(darwin_mutex *mutex, const pthread_mutexattr_t *attributes);
int darwin_mutex_destroy(darwin_mutex *mutex);
int darwin_mutex_lock(darwin_mutex *mutex);
int darwin_mutex_trylock(darwin_mutex *mutex);
int darwin_mutex_unlock(darwin_mutex *mutex);
int darwin_mutexattr_settype(pthread_mutexattr_t *attributes, int type);
int darwin_cond_init(darwin_cond *cond, const void *attributes);
int darwin_cond_destroy(darwin_cond *cond);
int darwin_cond_signal(darwin_cond *cond);
int darwin_cond_broadcast(darwin_cond *cond);
int darwin_cond_wait(darwin_cond *cond, darwin_mutex *mutex);
int darwin_cond_timedwait(darwin_cond *cond, darwin_mutex *mutex, const struct timespec *deadline);
int darwin_cond_timedwait_relative(darwin_cond *cond, darwin_mutex *mutex, const struct timespec *time);

/* threads.c */
int darwin_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument);
int darwin_pthread_join(pthread_t thread, void **result);
int darwin_pthread_detach(pthread_t thread);
int darwin_attr_setstacksize(pthread_attr_t *attributes, size_t size);
int darwin_setname(const char *name);
int darwin_threadid(pthread_t thread, uint64_t *id);
void *darwin_get_stackaddr(pthread_t thread);
size_t darwin_get_stacksize(pthread_t thread);
int darwin_key_create(unsigned long *key, void (*destructor)(void *));
int darwin_key_delete(unsigned long key);
void *darwin_getspecific(unsigned long key);
int darwin_setspecific(unsigned long key, const void *value);

/* dispatch.c */
typedef struct darwin_semaphore darwin_semaphore;
darwin_semaphore *darwin_semaphore_create(long value);
long darwin_semaphore_signal(darwin_semaphore *semaphore);
long darwin_semaphore_wait(darwin_semaphore *semaphore, uint64_t deadline);
uint64_t darwin_dispatch_time(uint64_t when, int64_t nanoseconds);
void darwin_release(darwin_semaphore *semaphore);

#endif
