/* All that an image can import. Where the ABIs agree a name is bound to glibc's own function. A name is here because
   our addon, the compilers or the rig's tests import it; an image that needs another is told which (`unresolved`). */
#include "../darwin.h"
#include "../loader/image.h"
#include "libsystem.h"
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#define SAME(name) {"_" #name, (void *)name}
#define OURS(name, function) {"_" #name, (void *)function}
/* $INODE64 is the variant with 64-bit inode numbers, $NOCANCEL the one that is no cancellation point. */
#define OURS_INODE64(name, function) {"_" #name "$INODE64", (void *)function}
#define OURS_NOCANCEL(name, function) {"_" #name "$NOCANCEL", (void *)function}

extern void __stack_chk_fail(void), __bzero(void *, size_t);
extern void *__memcpy_chk(), *__memmove_chk(), *__memset_chk();

const darwin_export libsystem_exports[] = {
    /* memory and strings */
    SAME(malloc), SAME(calloc), SAME(realloc), SAME(free), SAME(posix_memalign),
    SAME(memcpy), SAME(memmove), SAME(memset), SAME(memcmp), SAME(strlen), SAME(strcmp),
    OURS(mmap, darwin_mmap), OURS(munmap, darwin_munmap),

    /* called by compilers, and by the checked forms of Apple's headers */
    SAME(bcmp), SAME(bzero), SAME(__bzero), OURS(memset_pattern16, darwin_memset_pattern16),
    SAME(__memcpy_chk), SAME(__memmove_chk), SAME(__memset_chk),
    OURS(strlcpy, darwin_strlcpy), OURS(__strlcpy_chk, darwin_strlcpy_chk),
    SAME(__stack_chk_fail), OURS(__stack_chk_guard, &darwin_stack_guard),

    /* errors, process */
    OURS(__error, darwin_errno_address), OURS(strerror_r, darwin_strerror_r),
    SAME(abort), SAME(getenv), SAME(pause),

    /* files */
    OURS(open, darwin_open), OURS(read, darwin_read), OURS(write, darwin_write), OURS(writev, darwin_writev),
    OURS(close, darwin_close), OURS_NOCANCEL(close, darwin_close),
    OURS_INODE64(fstat, darwin_fstat), OURS(getcwd, darwin_getcwd),
    OURS_INODE64(opendir, darwin_opendir), OURS_INODE64(readdir_r, darwin_readdir_r), OURS(closedir, darwin_closedir),
    SAME(dirfd),

    /* time, system */
    OURS(clock_gettime, darwin_clock_gettime), OURS(mach_absolute_time, darwin_uptime_nanoseconds),
    OURS(nanosleep, darwin_nanosleep), OURS(sysconf, darwin_sysconf),
    OURS(CCRandomGenerateBytes, darwin_random_bytes),

    /* locks */
    OURS(pthread_mutex_init, darwin_mutex_init), OURS(pthread_mutex_destroy, darwin_mutex_destroy),
    OURS(pthread_mutex_lock, darwin_mutex_lock), OURS(pthread_mutex_trylock, darwin_mutex_trylock),
    OURS(pthread_mutex_unlock, darwin_mutex_unlock),
    SAME(pthread_mutexattr_init), SAME(pthread_mutexattr_destroy), OURS(pthread_mutexattr_settype, darwin_mutexattr_settype),
    OURS(pthread_cond_init, darwin_cond_init), OURS(pthread_cond_destroy, darwin_cond_destroy),
    OURS(pthread_cond_signal, darwin_cond_signal), OURS(pthread_cond_broadcast, darwin_cond_broadcast),
    OURS(pthread_cond_wait, darwin_cond_wait), OURS(pthread_cond_timedwait, darwin_cond_timedwait),
    OURS(pthread_cond_timedwait_relative_np, darwin_cond_timedwait_relative),
    OURS(dispatch_semaphore_create, darwin_semaphore_create), OURS(dispatch_semaphore_signal, darwin_semaphore_signal),
    OURS(dispatch_semaphore_wait, darwin_semaphore_wait), OURS(dispatch_time, darwin_dispatch_time),
    OURS(dispatch_release, darwin_release),

    /* threads */
    OURS(pthread_create, darwin_pthread_create), OURS(pthread_join, darwin_pthread_join),
    OURS(pthread_detach, darwin_pthread_detach),
    SAME(pthread_attr_init), SAME(pthread_attr_destroy), OURS(pthread_attr_setstacksize, darwin_attr_setstacksize),
    SAME(pthread_self), SAME(pthread_equal), SAME(sched_yield),
    OURS(pthread_setname_np, darwin_setname), OURS(pthread_threadid_np, darwin_threadid),
    OURS(pthread_get_stackaddr_np, darwin_get_stackaddr), OURS(pthread_get_stacksize_np, darwin_get_stacksize),
    OURS(pthread_key_create, darwin_key_create), OURS(pthread_key_delete, darwin_key_delete),
    OURS(pthread_getspecific, darwin_getspecific), OURS(pthread_setspecific, darwin_setspecific),
    OURS(_tlv_atexit, darwin_tlv_atexit),

    /* the dynamic linker */
    OURS(dlsym, darwin_dlsym), OURS(dlopen, darwin_dlopen), OURS(dladdr, darwin_dladdr),
    OURS(_dyld_image_count, darwin_zero), OURS(_dyld_get_image_name, darwin_null),
    OURS(_dyld_get_image_header, darwin_null), OURS(_dyld_get_image_vmaddr_slide, darwin_null),

    /* unwinding, with frames that unwind.c registered */
    SAME(_Unwind_Backtrace), SAME(_Unwind_RaiseException), SAME(_Unwind_Resume), SAME(_Unwind_DeleteException),
    SAME(_Unwind_GetIP), SAME(_Unwind_GetIPInfo), SAME(_Unwind_SetIP), SAME(_Unwind_SetGR),
    SAME(_Unwind_GetLanguageSpecificData), SAME(_Unwind_GetRegionStart),
    SAME(_Unwind_GetTextRelBase), SAME(_Unwind_GetDataRelBase),
    {NULL, NULL},
};

/* dyld's own two names are bound like any others, but nothing ever calls them: there is no lazy binding here, and
   tlv.c replaces every descriptor's thunk. */
static void never_called(void) { abort(); }

static void *find_in(const darwin_export *table, const char *name) {
  for (; table->name != NULL; table++) {
    if (strcmp(table->name, name) == 0) return table->function;
  }
  return NULL;
}

void *darwin_symbol(const char *name) {
  void *function = find_in(kernel_exports, name);
  if (function == NULL) function = find_in(libsystem_exports, name);
  if (function != NULL) return function;
  if (strcmp(name, "dyld_stub_binder") == 0 || strcmp(name, "__tlv_bootstrap") == 0) return (void *)never_called;
  /* The rest of Node-API's names (node_api_*) ask about the module's file, and would get the rig's. */
  if (strncmp(name, "_napi_", strlen("_napi_")) == 0) return dlsym(RTLD_DEFAULT, name + 1);
  return NULL;
}
