/* What a Darwin addon needs of libSystem and of the loader. Each function gives an object of small numbers, in
   which a wrong constant, offset or register would show. */
#include "module.h"
#include <CommonCrypto/CommonRandom.h>
#include <dirent.h>
#include <dispatch/dispatch.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mach/mach_time.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ---- initialisers, fixups ---- */

static int initialised, initialiser_arguments;
__attribute__((constructor)) static void initialise(int argc, char **argv, char **envp) {
  initialised++;
  initialiser_arguments = argc == 1 && argv[0] != NULL && envp != NULL;
}

static int target = 7;
static int *const pointer_to_target = &target; /* a rebase in read-only data */
/* Binds; a small addend and a large one are written differently. */
static void *const pointers_to_calloc[] = {(void *)calloc, (char *)calloc + 16, (char *)calloc + 70000};
extern int rig_test_weak(void) __attribute__((weak_import));
extern int rig_test_unknown(int);

static napi_value loading(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value o = make_object(env);
  char *const volatile *pointers = (char *const volatile *)pointers_to_calloc; /* read, not computed by the compiler */
  set_number(env, o, "initialised", initialised);
  set_number(env, o, "initialiserArguments", initialiser_arguments);
  set_number(env, o, "rebased", **(int *const volatile *)&pointer_to_target);
  set_number(env, o, "smallAddend", pointers[1] - pointers[0]);
  set_number(env, o, "largeAddend", pointers[2] - pointers[0]);
  set_number(env, o, "weakIsNull", &rig_test_weak == NULL);
  return o;
}

static napi_value call_unknown(napi_env env, napi_callback_info info) {
  (void)info;
  return make_number(env, rig_test_unknown(1));
}

static napi_value crash(napi_env env, napi_callback_info info) {
  (void)info;
  return make_number(env, *(volatile int *)8);
}

/* ---- thread-local variables ---- */

static _Thread_local int local_number = 11;
static _Thread_local _Alignas(64) char local_text[64] = "aligned";
static _Thread_local char local_zeroes[100000];

/* Fills every register that the access must keep, makes it, and counts those that have changed. */
#define CHECK(register, value) "cmpq $" value ", %%" register "\n je 1f\n incl %0\n 1:\n"
static int count_changed_registers(void) {
  int changed = 0;
  __asm__ volatile(
      "movq $0x1111, %%rcx\n movq $0x2222, %%rdx\n movq $0x3333, %%rsi\n"
      "movq $0x5555, %%r8\n movq $0x6666, %%r9\n movq $0x7777, %%r10\n movq $0x8888, %%r11\n"
      "pcmpeqd %%xmm0, %%xmm0\n movdqa %%xmm0, %%xmm7\n movdqa %%xmm0, %%xmm15\n"
      "movq _local_number@TLVP(%%rip), %%rdi\n callq *(%%rdi)\n"
      CHECK("rcx", "0x1111") CHECK("rdx", "0x2222") CHECK("rsi", "0x3333")
      CHECK("r8", "0x5555") CHECK("r9", "0x6666") CHECK("r10", "0x7777") CHECK("r11", "0x8888")
      "pand %%xmm7, %%xmm0\n pand %%xmm15, %%xmm0\n pmovmskb %%xmm0, %%ecx\n"
      "cmpl $0xffff, %%ecx\n je 1f\n incl %0\n 1:\n"
      : "+r"(changed)
      :
      : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm7", "xmm15", "memory", "cc");
  return changed;
}

typedef struct {
  int changed, number, misaligned, text, zeroes;
} local_report;

static void *report_locals(void *out) {
  local_report *report = out;
  report->changed = count_changed_registers(); /* in a new thread: the slow path */
  report->changed += count_changed_registers();
  report->number = local_number++;
  report->misaligned = (uintptr_t)local_text & 63;
  report->text = strcmp(local_text, "aligned");
  report->zeroes = ++local_zeroes[sizeof local_zeroes - 1];
  return NULL;
}

static napi_value set_locals(napi_env env, const local_report *report) {
  napi_value o = make_object(env);
  set_number(env, o, "changedRegisters", report->changed);
  set_number(env, o, "number", report->number);
  set_number(env, o, "misaligned", report->misaligned);
  set_number(env, o, "text", report->text);
  set_number(env, o, "zeroes", report->zeroes);
  return o;
}

static napi_value locals_here(napi_env env, napi_callback_info info) {
  (void)info;
  local_report report;
  report_locals(&report);
  return set_locals(env, &report);
}

static napi_value locals_in_thread(napi_env env, napi_callback_info info) {
  (void)info;
  local_report report;
  pthread_t thread;
  pthread_create(&thread, NULL, report_locals, &report);
  pthread_join(thread, NULL);
  return set_locals(env, &report);
}

/* ---- locks and threads ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int counter, finished;
static pthread_key_t key;
static int destroyed, kept;

static void destroy(void *value) { __atomic_fetch_add((int *)value, 1, __ATOMIC_SEQ_CST); }

enum { WORKERS = 4, TURNS = 20000 };
static void *work(void *unused) {
  pthread_setspecific(key, &destroyed);
  for (int i = 0; i < TURNS; i++) {
    pthread_mutex_lock(&mutex);
    counter++;
    pthread_mutex_unlock(&mutex);
  }
  pthread_mutex_lock(&mutex);
  kept += pthread_getspecific(key) == &destroyed;
  finished++;
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static void run_workers(void) {
  pthread_t threads[WORKERS];
  pthread_attr_t attributes;
  counter = finished = destroyed = kept = 0;
  pthread_key_create(&key, destroy);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], &attributes, work, NULL);
  pthread_attr_destroy(&attributes);
  pthread_mutex_lock(&mutex);
  while (finished < WORKERS) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  pthread_key_delete(key);
}

static int errorcheck_deadlock(void) {
  pthread_mutexattr_t attributes;
  pthread_mutex_t checked;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&checked, &attributes);
  pthread_mutexattr_destroy(&attributes);
  pthread_mutex_lock(&checked);
  int error = pthread_mutex_lock(&checked);
  pthread_mutex_unlock(&checked);
  pthread_mutex_destroy(&checked);
  return error;
}

static int wait_in_vain(void) {
  struct timespec brief = {0, 2000000};
  pthread_mutex_lock(&mutex);
  int error = pthread_cond_timedwait_relative_np(&cond, &mutex, &brief);
  pthread_mutex_unlock(&mutex);
  return error;
}

/* A condition that is made, not initialised by the compiler, and whose waiter one thread wakes. */
static pthread_cond_t made;
static int woken;

static void *wake(void *unused) {
  pthread_mutex_lock(&mutex);
  woken = 1;
  pthread_cond_signal(&made);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static int wait_for_one(void) {
  pthread_t thread;
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 60;
  pthread_cond_init(&made, NULL);
  woken = 0;
  pthread_mutex_lock(&mutex);
  pthread_create(&thread, NULL, wake, NULL);
  int error = 0;
  while (!woken && error == 0) error = pthread_cond_timedwait(&made, &mutex, &deadline);
  pthread_mutex_unlock(&mutex);
  pthread_join(thread, NULL);
  return error + pthread_cond_destroy(&made);
}

static napi_value locks(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value o = make_object(env);
  run_workers();
  set_number(env, o, "counter", counter);
  set_number(env, o, "kept", kept);
  set_number(env, o, "destroyed", destroyed);
  pthread_mutex_lock(&recursive);
  set_number(env, o, "recursive", pthread_mutex_lock(&recursive));
  pthread_mutex_unlock(&recursive);
  pthread_mutex_unlock(&recursive);
  pthread_mutex_lock(&mutex);
  set_number(env, o, "trylockIsBusy", pthread_mutex_trylock(&mutex) == EBUSY);
  pthread_mutex_unlock(&mutex);
  set_number(env, o, "deadlock", errorcheck_deadlock() == EDEADLK);
  set_number(env, o, "timedOut", wait_in_vain() == ETIMEDOUT);
  set_number(env, o, "wokenError", wait_for_one());
  pthread_mutex_t never = {0};
  set_number(env, o, "neverInitialised", pthread_mutex_lock(&never) == EINVAL);
  return o;
}

static napi_value semaphores(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value o = make_object(env);
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(1);
  set_number(env, o, "taken", dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER));
  set_number(env, o, "empty", dispatch_semaphore_wait(semaphore, DISPATCH_TIME_NOW) != 0);
  set_number(env, o, "timedOut", dispatch_semaphore_wait(semaphore, dispatch_time(DISPATCH_TIME_NOW, 2000000)) != 0);
  dispatch_semaphore_signal(semaphore);
  set_number(env, o, "takenAgain", dispatch_semaphore_wait(semaphore, DISPATCH_TIME_NOW));
  dispatch_semaphore_signal(semaphore);
  dispatch_release(semaphore);
  return o;
}

static napi_value threads(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value o = make_object(env);
  uint64_t id = 0;
  set_number(env, o, "idError", pthread_threadid_np(NULL, &id));
  set_number(env, o, "hasId", id != 0);
  char here;
  char *top = pthread_get_stackaddr_np(pthread_self());
  size_t size = pthread_get_stacksize_np(pthread_self());
  set_number(env, o, "isOnItsStack", &here < top && &here >= top - size);
  set_number(env, o, "isItself", pthread_equal(pthread_self(), pthread_self()) != 0);
  set_number(env, o, "nameError", pthread_setname_np("a name of more than fifteen letters"));
  return o;
}

/* ---- files ---- */

static int set_error(napi_env env, napi_value o, const char *name, long result, int expected) {
  set_number(env, o, name, result == -1 && errno == expected);
  return result == -1;
}

/* files(): in the current directory, which the test empties. */
static napi_value files(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value o = make_object(env);
  struct stat status;
  int file = open("made", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0640);
  struct iovec parts[] = {{"ab", 2}, {"cde", 3}};
  set_number(env, o, "written", write(file, "xyz", 3) + writev(file, parts, 2));
  fstat(file, &status);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  set_number(env, o, "size", status.st_size);
  set_number(env, o, "mode", status.st_mode);
  set_number(env, o, "links", status.st_nlink);
  set_number(env, o, "isRecent", now.tv_sec - status.st_mtimespec.tv_sec < 100);
  close(file);
  set_error(env, o, "existed", open("made", O_CREAT | O_EXCL | O_RDWR, 0640), EEXIST);
  set_error(env, o, "notThere", open("absent", O_RDONLY), ENOENT);
  set_error(env, o, "isNoFolder", open("made", O_RDONLY | O_DIRECTORY), ENOTDIR);
  file = open("made", O_RDONLY);
  char text[9] = "";
  read(file, text, 8);
  set_text(env, o, "text", text);
  close(file);
  set_error(env, o, "isClosed", close(file), EBADF);
  return o;
}

static napi_value folders(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value o = make_object(env);
  DIR *folder = opendir(".");
  struct dirent entry, *next;
  int found = 0, error;
  while ((error = readdir_r(folder, &entry, &next)) == 0 && next != NULL) {
    if (strcmp(entry.d_name, "made") == 0) found = entry.d_type == DT_REG && entry.d_namlen == 4;
  }
  set_number(env, o, "found", found);
  set_number(env, o, "error", error);
  set_number(env, o, "hasFile", dirfd(folder) >= 0);
  closedir(folder);
  errno = 0;
  set_number(env, o, "notThere", opendir("absent") == NULL && errno == ENOENT);
  char path[1024];
  set_text(env, o, "current", getcwd(path, sizeof path));
  return o;
}

/* ---- the rest ---- */

static napi_value system_calls(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value o = make_object(env);
  char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_ANON | MAP_PRIVATE, -1, 0);
  set_number(env, o, "mapped", page != MAP_FAILED && page[8191] == 0);
  munmap(page, 8192);
  struct timespec before, after, brief = {0, 2000000};
  clock_gettime(CLOCK_MONOTONIC, &before);
  uint64_t ticks = mach_absolute_time();
  nanosleep(&brief, NULL);
  clock_gettime(CLOCK_MONOTONIC, &after);
  long long passed = (after.tv_sec - before.tv_sec) * 1000000000ll + after.tv_nsec - before.tv_nsec;
  set_number(env, o, "clockRan", passed >= 2000000);
  set_number(env, o, "ticksRan", mach_absolute_time() - ticks >= 2000000);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  set_number(env, o, "realTime", now.tv_sec);
  set_number(env, o, "pageSize", sysconf(_SC_PAGESIZE));
  errno = 0;
  set_number(env, o, "unknownName", sysconf(12345) == -1 && errno == EINVAL);
  char random[32] = {0}, zeroes[32] = {0};
  set_number(env, o, "random", CCRandomGenerateBytes(random, sizeof random) == 0 && memcmp(random, zeroes, 32) != 0);
  return o;
}

static napi_value linking(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value o = make_object(env);
  Dl_info here = {0};
  set_number(env, o, "knowsProcPidinfo", dlsym(RTLD_DEFAULT, "proc_pidinfo") != NULL);
  set_number(env, o, "knowsNoEpoll", dlsym(RTLD_DEFAULT, "epoll_wait") == NULL);
  set_number(env, o, "foundItself", dladdr(&target, &here));
  set_text(env, o, "path", here.dli_fname);
  set_number(env, o, "foundTheStack", dladdr(&here, &here));
  set_number(env, o, "opensNothing", dlopen("/usr/lib/libSystem.B.dylib", RTLD_NOW) == NULL);
  set_number(env, o, "pinned", dlopen(here.dli_fname, RTLD_NOLOAD | RTLD_NODELETE) != NULL);
  return o;
}

static napi_value texts(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value o = make_object(env);
  char text[64], small[4];
  set_number(env, o, "known", strerror_r(EAGAIN, text, sizeof text));
  set_text(env, o, "again", text);
  set_number(env, o, "unknown", strerror_r(9999, text, sizeof text) == EINVAL);
  set_text(env, o, "strange", text);
  set_number(env, o, "tooLong", strerror_r(EAGAIN, small, sizeof small) == ERANGE);
  set_number(env, o, "copied", strlcpy(small, "abcdef", sizeof small));
  set_text(env, o, "cut", small);
  return o;
}

void export_runtime(napi_env env, napi_value exports) {
  add_function(env, exports, "loading", loading);
  add_function(env, exports, "callUnknown", call_unknown);
  add_function(env, exports, "crash", crash);
  add_function(env, exports, "localsHere", locals_here);
  add_function(env, exports, "localsInThread", locals_in_thread);
  add_function(env, exports, "locks", locks);
  add_function(env, exports, "semaphores", semaphores);
  add_function(env, exports, "threads", threads);
  add_function(env, exports, "files", files);
  add_function(env, exports, "folders", folders);
  add_function(env, exports, "systemCalls", system_calls);
  add_function(env, exports, "linking", linking);
  add_function(env, exports, "texts", texts);
}
