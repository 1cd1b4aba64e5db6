/* Paths: of a process's program and of its working directory; and stat, which finds a file behind each. */
#include "kernel.h"
#include "record.h"
#include "../darwin.h"
#include "../darwin_abi.h"

/* Each path leads to a file of its own, whatever the host has there. */
static uint64_t inode_at(const char *path) {
  uint64_t sum = 14695981039346656037u;
  for (; *path != '\0'; path++) sum = (sum ^ (uint8_t)*path) * 1099511628211u;
  return sum >> 8;
}

/* build_path(): from the end of the path to its beginning, name by name, while there is room. The end is what is
   given if that fails, and only the return value says so. */
static int build_path(const char *path, char *out, size_t room) {
  size_t from = strlen(path), end = from;
  while (from > 0) {
    size_t name = from - 1;
    while (name > 0 && path[name] != '/') name--;
    if (end - name > room - 1) break;
    from = name;
  }
  memcpy(out, path + from, end - from + 1);
  return from > 0 ? DARWIN_ENOSPC : 0;
}

/* The kernel passes over what build_path() says here. */
void put_directories(const process *p, uint8_t *record) {
  const char *path = p->cwd == NULL ? "/" : p->cwd;
  put16(record, AT_vst_mode, DARWIN_S_IFDIR | 0755);
  put64(record, AT_vst_ino, inode_at(path));
  put64(record, AT_vst_birthtime, config.bootSec);
  put64(record, AT_vst_birthtimensec, inode_at(path) % 1000000000);
  build_path(path, (char *)record + AT_pvi_cdir_path, DARWIN_MAXPATHLEN);
}

static int put_program_path(const process *p, char *out, uint32_t size) {
  if (p->pid == 0) return DARWIN_ESRCH; /* it runs no file */
  return build_path(p->exe == NULL ? "/usr/bin/true" : p->exe, out, size);
}

/* The length of the path; 0 with errno if there is none. */
int sim_proc_pidpath(int pid, void *buffer, uint32_t size) {
  static const flavor FLAVOR = {DARWIN_PROC_PIDPATHINFO, DARWIN_MAXPATHLEN, OVERRIDE_program, true, NULL};
  const call c = {CALL_proc_pidinfo, FLAVOR.number, pid, 0, size};
  int error = begin_call(&c);
  char path[DARWIN_PROC_PIDPATHINFO_MAXSIZE] = "";
  if (error == 0 && size > sizeof path) error = DARWIN_EOVERFLOW;
  if (error != 0) return end_call(&c, 0, error);
  const process *p = find_process(pid);
  error = check_flavor(p, &FLAVOR, libproc_override(p, &FLAVOR), 0, size);
  if (error == 0) error = put_program_path(p, path, size);
  if (error == 0) memcpy(buffer, path, size);
  return end_call(&c, error != 0 ? 0 : strlen(path), error);
}

static bool is_removed(const char *path) {
  for (const process *p = processes; p != NULL; p = p->next) {
    if (p->removed && p->cwd != NULL && strcmp(p->cwd, path) == 0) return true;
  }
  return false;
}

/* Of a directory. It is no call of the kernel's that hooks and the log know. */
int sim_stat(const char *path, uint8_t *status) {
  pthread_mutex_lock(&kernel_lock);
  bool missing = *path != '/' || is_removed(path);
  memset(status, 0, SIZE_stat);
  put16(status, AT_st_mode, DARWIN_S_IFDIR | 0755);
  put64(status, AT_st_ino, inode_at(path));
  put64(status, AT_st_birthtimespec, config.bootSec);
  put64(status, AT_st_birthtimespec + 8, inode_at(path) % 1000000000);
  pthread_mutex_unlock(&kernel_lock);
  if (missing) darwin_errno = DARWIN_ENOENT;
  return missing ? -1 : 0;
}
