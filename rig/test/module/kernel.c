/* The process calls, with Apple's structures: what Darwin code sees of the simulated kernel. */
#include "module.h"
#include <errno.h>
#include <libproc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/proc_info.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <unistd.h>

/* proc_info_private.h, which is not public. */
enum { PROC_PIDUNIQIDENTIFIERINFO = 17, PROC_PIDT_BSDINFOWITHUNIQID = 18 };
struct proc_uniqidentifierinfo {
  uint8_t p_uuid[16];
  uint64_t p_uniqueid, p_puniqueid;
  int32_t p_idversion, p_orig_ppidversion;
  uint64_t p_reserve2, p_reserve3;
};
_Static_assert(sizeof(struct proc_uniqidentifierinfo) == 56, "as in XNU");

/* listPids(bytes): { count, errno, pids } */
static napi_value list_pids(napi_env env, napi_callback_info info) {
  long long arguments[MOST_ARGUMENTS];
  read_numbers(env, info, arguments);
  int *pids = calloc(1, arguments[0] + sizeof *pids);
  errno = 0;
  int count = proc_listallpids(pids, (int)arguments[0]);
  napi_value object = make_object(env), array;
  set_number(env, object, "count", count);
  set_number(env, object, "errno", errno);
  napi_create_array(env, &array);
  for (int i = 0; i < count; i++) napi_set_element(env, array, i, make_number(env, pids[i]));
  napi_set_named_property(env, object, "pids", array);
  free(pids);
  return object;
}

/* listBytes(type, bytes): what proc_listpids gives, which counts bytes */
static napi_value list_bytes(napi_env env, napi_callback_info info) {
  long long arguments[MOST_ARGUMENTS];
  read_numbers(env, info, arguments);
  int pids[1024];
  return make_number(env, proc_listpids((uint32_t)arguments[0], 0, pids, (int)arguments[1]));
}

/* estimate(): { count, errno } */
static napi_value estimate(napi_env env, napi_callback_info info) {
  (void)info;
  errno = 0;
  napi_value object = make_object(env);
  set_number(env, object, "count", proc_listallpids(NULL, 0));
  set_number(env, object, "errno", errno);
  return object;
}

static void set_short(napi_env env, napi_value o, const struct proc_bsdshortinfo *record) {
  set_number(env, o, "pid", record->pbsi_pid);
  set_number(env, o, "ppid", record->pbsi_ppid);
  set_number(env, o, "pgid", record->pbsi_pgid);
  set_number(env, o, "status", record->pbsi_status);
  set_text(env, o, "comm", record->pbsi_comm);
  set_number(env, o, "flags", record->pbsi_flags);
  set_number(env, o, "uid", record->pbsi_uid);
  set_number(env, o, "gid", record->pbsi_gid);
  set_number(env, o, "ruid", record->pbsi_ruid);
  set_number(env, o, "rgid", record->pbsi_rgid);
  set_number(env, o, "svuid", record->pbsi_svuid);
  set_number(env, o, "svgid", record->pbsi_svgid);
}

static void set_tbsd(napi_env env, napi_value o, const struct proc_bsdinfo *record) {
  set_number(env, o, "pid", record->pbi_pid);
  set_number(env, o, "ppid", record->pbi_ppid);
  set_number(env, o, "pgid", record->pbi_pgid);
  set_number(env, o, "status", record->pbi_status);
  set_number(env, o, "xstatus", record->pbi_xstatus);
  set_number(env, o, "flags", record->pbi_flags);
  set_number(env, o, "uid", record->pbi_uid);
  set_number(env, o, "ruid", record->pbi_ruid);
  set_number(env, o, "nfiles", record->pbi_nfiles);
  set_number(env, o, "nice", record->pbi_nice);
  set_number(env, o, "tdev", (int)record->e_tdev);
  set_number(env, o, "sec", record->pbi_start_tvsec);
  set_number(env, o, "usec", record->pbi_start_tvusec);
  set_text(env, o, "comm", record->pbi_comm);
  set_text(env, o, "name", record->pbi_name);
}

static void set_unique(napi_env env, napi_value o, const struct proc_uniqidentifierinfo *record) {
  set_bigint(env, o, "uniqueid", record->p_uniqueid);
  set_bigint(env, o, "puniqueid", record->p_puniqueid);
  set_number(env, o, "idversion", record->p_idversion);
}

/* pidinfo(pid, flavor, argument, size): { ret, errno } and the record's fields, if all of it was given */
static napi_value pidinfo(napi_env env, napi_callback_info info) {
  long long arguments[MOST_ARGUMENTS];
  read_numbers(env, info, arguments);
  union {
    struct proc_bsdshortinfo brief;
    struct proc_bsdinfo tbsd;
    struct proc_uniqidentifierinfo unique;
    struct {
      struct proc_bsdinfo tbsd;
      struct proc_uniqidentifierinfo unique;
    } both;
    char bytes[512];
  } record;
  memset(&record, 0xee, sizeof record); /* what is not written shows */
  errno = 0;
  int flavor = (int)arguments[1];
  int ret = proc_pidinfo((int)arguments[0], flavor, arguments[2], &record, (int)arguments[3]);
  napi_value object = make_object(env);
  set_number(env, object, "ret", ret);
  set_number(env, object, "errno", errno);
  if (flavor == PROC_PIDT_SHORTBSDINFO && ret == sizeof record.brief) set_short(env, object, &record.brief);
  if (flavor == PROC_PIDTBSDINFO && ret == sizeof record.tbsd) set_tbsd(env, object, &record.tbsd);
  if (flavor == PROC_PIDUNIQIDENTIFIERINFO && ret == sizeof record.unique) set_unique(env, object, &record.unique);
  if (flavor == PROC_PIDT_BSDINFOWITHUNIQID && ret == sizeof record.both) {
    set_tbsd(env, object, &record.both.tbsd);
    set_unique(env, object, &record.both.unique);
  }
  return object;
}

static void set_record(napi_env env, napi_value o, const struct kinfo_proc *record) {
  set_number(env, o, "pid", record->kp_proc.p_pid);
  set_number(env, o, "oppid", record->kp_proc.p_oppid);
  set_number(env, o, "status", record->kp_proc.p_stat);
  set_number(env, o, "flag", record->kp_proc.p_flag);
  set_number(env, o, "xstat", record->kp_proc.p_xstat);
  set_number(env, o, "nice", record->kp_proc.p_nice);
  set_number(env, o, "sec", record->kp_proc.p_un.__p_starttime.tv_sec);
  set_number(env, o, "usec", record->kp_proc.p_un.__p_starttime.tv_usec);
  set_text(env, o, "comm", record->kp_proc.p_comm);
  set_number(env, o, "ppid", record->kp_eproc.e_ppid);
  set_number(env, o, "pgid", record->kp_eproc.e_pgid);
  set_number(env, o, "tdev", record->kp_eproc.e_tdev);
  set_number(env, o, "uid", record->kp_eproc.e_ucred.cr_uid);
  set_number(env, o, "gid", record->kp_eproc.e_ucred.cr_groups[0]);
  set_number(env, o, "ruid", record->kp_eproc.e_pcred.p_ruid);
  set_number(env, o, "svuid", record->kp_eproc.e_pcred.p_svuid);
}

/* record(pid, size): { ret, errno, length } and the fields, if there is a record. A size of -1 asks for the size. */
static napi_value read_record(napi_env env, napi_callback_info info) {
  long long arguments[MOST_ARGUMENTS];
  read_numbers(env, info, arguments);
  int mib[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, (int)arguments[0]};
  struct kinfo_proc record;
  size_t size = arguments[1] < 0 ? 0 : arguments[1];
  errno = 0;
  int ret = sysctl(mib, 4, arguments[1] < 0 ? NULL : &record, &size, NULL, 0);
  napi_value object = make_object(env);
  set_number(env, object, "ret", ret);
  set_number(env, object, "errno", errno);
  set_number(env, object, "length", size);
  if (ret == 0 && arguments[1] >= 0 && size == sizeof record) set_record(env, object, &record);
  return object;
}

/* arguments(pid, size): { errno, bytes } */
static napi_value read_arguments(napi_env env, napi_callback_info info) {
  long long arguments[MOST_ARGUMENTS];
  read_numbers(env, info, arguments);
  int mib[] = {CTL_KERN, KERN_PROCARGS2, (int)arguments[0]};
  char bytes[4096];
  size_t size = arguments[1];
  errno = 0;
  int ret = sysctl(mib, 3, bytes, &size, NULL, 0);
  napi_value object = make_object(env), buffer;
  set_number(env, object, "errno", errno);
  napi_create_buffer_copy(env, ret == 0 ? size : 0, bytes, NULL, &buffer);
  napi_set_named_property(env, object, "bytes", buffer);
  return object;
}

/* paths(pid, size): { ret, errno, root, text } of proc_pidinfo, and { length, pathErrno, path } of proc_pidpath, which
   is offered so much room; { same } if stat finds the working directory at its path. */
static napi_value read_paths(napi_env env, napi_callback_info info) {
  long long arguments[MOST_ARGUMENTS];
  read_numbers(env, info, arguments);
  int pid = (int)arguments[0];
  struct proc_vnodepathinfo directories;
  char path[2 * PROC_PIDPATHINFO_MAXSIZE] = "";
  struct stat status;
  memset(&directories, 0xee, sizeof directories);
  napi_value object = make_object(env);
  errno = 0;
  int ret = proc_pidinfo(pid, PROC_PIDVNODEPATHINFO, 1, &directories, sizeof directories);
  set_number(env, object, "ret", ret);
  set_number(env, object, "errno", errno);
  const struct vnode_info_path *cdir = &directories.pvi_cdir;
  if (ret == sizeof directories) {
    set_text(env, object, "cwd", cdir->vip_path);
    set_text(env, object, "root", directories.pvi_rdir.vip_path);
    const struct vinfo_stat *v = &cdir->vip_vi.vi_stat;
    int same = stat(cdir->vip_path, &status) == 0 && S_ISDIR(v->vst_mode) && S_ISDIR(status.st_mode) &&
               status.st_ino == v->vst_ino && status.st_birthtimespec.tv_sec == v->vst_birthtime &&
               status.st_birthtimespec.tv_nsec == v->vst_birthtimensec;
    set_number(env, object, "same", same);
  }
  errno = 0;
  set_number(env, object, "length", proc_pidpath(pid, path, (uint32_t)arguments[1]));
  set_number(env, object, "pathErrno", errno);
  set_text(env, object, "path", path);
  return object;
}

/* boot(): { errno, sec, usec, session } */
static napi_value read_boot(napi_env env, napi_callback_info info) {
  (void)info;
  int mib[] = {CTL_KERN, KERN_BOOTTIME};
  struct timeval time = {0};
  char session[64] = "";
  size_t time_size = sizeof time, session_size = sizeof session;
  errno = 0;
  int ret = sysctl(mib, 2, &time, &time_size, NULL, 0);
  if (ret == 0) ret = sysctlbyname("kern.bootsessionuuid", session, &session_size, NULL, 0);
  napi_value object = make_object(env);
  set_number(env, object, "errno", ret == 0 ? 0 : errno);
  set_number(env, object, "sec", time.tv_sec);
  set_number(env, object, "usec", time.tv_usec);
  set_text(env, object, "session", session);
  return object;
}

/* kill(pid, signal): errno */
static napi_value send_signal(napi_env env, napi_callback_info info) {
  long long arguments[MOST_ARGUMENTS];
  read_numbers(env, info, arguments);
  errno = 0;
  return make_number(env, kill((int)arguments[0], (int)arguments[1]) == 0 ? 0 : errno);
}

/* groupOf(pid), sessionOf(pid): the id, or the errno below 0 */
static napi_value group_of(napi_env env, napi_callback_info info) {
  long long arguments[MOST_ARGUMENTS];
  read_numbers(env, info, arguments);
  int id = getpgid((int)arguments[0]);
  return make_number(env, id < 0 ? -errno : id);
}
static napi_value session_of(napi_env env, napi_callback_info info) {
  long long arguments[MOST_ARGUMENTS];
  read_numbers(env, info, arguments);
  int id = getsid((int)arguments[0]);
  return make_number(env, id < 0 ? -errno : id);
}

/* ids(): { uid, euid, gid, egid, pid, ppid } */
static napi_value read_ids(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value object = make_object(env);
  set_number(env, object, "uid", getuid());
  set_number(env, object, "euid", geteuid());
  set_number(env, object, "gid", getgid());
  set_number(env, object, "egid", getegid());
  set_number(env, object, "pid", getpid());
  set_number(env, object, "ppid", getppid());
  return object;
}

void export_kernel(napi_env env, napi_value exports) {
  add_function(env, exports, "listPids", list_pids);
  add_function(env, exports, "listBytes", list_bytes);
  add_function(env, exports, "estimate", estimate);
  add_function(env, exports, "pidinfo", pidinfo);
  add_function(env, exports, "record", read_record);
  add_function(env, exports, "arguments", read_arguments);
  add_function(env, exports, "paths", read_paths);
  add_function(env, exports, "boot", read_boot);
  add_function(env, exports, "kill", send_signal);
  add_function(env, exports, "groupOf", group_of);
  add_function(env, exports, "sessionOf", session_of);
  add_function(env, exports, "ids", read_ids);
}
