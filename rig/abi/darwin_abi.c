/* What the rig must know of Darwin's ABI: sizes, offsets and constants. abi.mjs compiles this for macOS with Apple's
   headers and reads the numbers from the assembly, where each stands in a line of its own; it is never run. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libproc.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/proc.h>
#include <sys/proc_info.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>

#define NUMBER(name, value) __asm__ volatile("\n#ABI " #name " %c0" : : "i"(value));
#define SIZE(type) NUMBER(SIZE_##type, sizeof(type))
#define SIZE_OF_STRUCT(name) NUMBER(SIZE_##name, sizeof(struct name))
#define CONSTANT(name) NUMBER(DARWIN_##name, name)
#define SHORT_FIELD(field) NUMBER(AT_##field, offsetof(struct proc_bsdshortinfo, field))
#define TBSD_FIELD(field) NUMBER(AT_##field, offsetof(struct proc_bsdinfo, field))
#define CDIR_FIELD(field) NUMBER(AT_##field, offsetof(struct proc_vnodepathinfo, pvi_cdir.vip_vi.vi_stat.field))
#define PROC_FIELD(field) NUMBER(AT_##field, offsetof(struct kinfo_proc, kp_proc.field))
#define EPROC_FIELD(field) NUMBER(AT_##field, offsetof(struct kinfo_proc, kp_eproc.field))
#define PCRED_FIELD(field) NUMBER(AT_##field, offsetof(struct kinfo_proc, kp_eproc.e_pcred.field))
#define UCRED_FIELD(field) NUMBER(AT_##field, offsetof(struct kinfo_proc, kp_eproc.e_ucred.field))
#define STAT_FIELD(field) NUMBER(AT_##field, offsetof(struct stat, field))
#define DIRENT_FIELD(field) NUMBER(AT_##field, offsetof(struct dirent, field))

static void processes(void) {
  SIZE_OF_STRUCT(proc_bsdshortinfo)
  SHORT_FIELD(pbsi_pid)
  SHORT_FIELD(pbsi_ppid)
  SHORT_FIELD(pbsi_pgid)
  SHORT_FIELD(pbsi_status)
  SHORT_FIELD(pbsi_comm)
  SHORT_FIELD(pbsi_flags)
  SHORT_FIELD(pbsi_uid)
  SHORT_FIELD(pbsi_gid)
  SHORT_FIELD(pbsi_ruid)
  SHORT_FIELD(pbsi_rgid)
  SHORT_FIELD(pbsi_svuid)
  SHORT_FIELD(pbsi_svgid)

  SIZE_OF_STRUCT(proc_bsdinfo)
  TBSD_FIELD(pbi_flags)
  TBSD_FIELD(pbi_status)
  TBSD_FIELD(pbi_xstatus)
  TBSD_FIELD(pbi_pid)
  TBSD_FIELD(pbi_ppid)
  TBSD_FIELD(pbi_uid)
  TBSD_FIELD(pbi_gid)
  TBSD_FIELD(pbi_ruid)
  TBSD_FIELD(pbi_rgid)
  TBSD_FIELD(pbi_svuid)
  TBSD_FIELD(pbi_svgid)
  TBSD_FIELD(pbi_comm)
  TBSD_FIELD(pbi_name)
  TBSD_FIELD(pbi_nfiles)
  TBSD_FIELD(pbi_pgid)
  NUMBER(AT_pbi_e_tdev, offsetof(struct proc_bsdinfo, e_tdev)) /* struct eproc has fields of these names, too */
  NUMBER(AT_pbi_e_tpgid, offsetof(struct proc_bsdinfo, e_tpgid))
  TBSD_FIELD(pbi_nice)
  TBSD_FIELD(pbi_start_tvsec)
  TBSD_FIELD(pbi_start_tvusec)

  SIZE_OF_STRUCT(proc_vnodepathinfo)
  CDIR_FIELD(vst_mode)
  CDIR_FIELD(vst_ino)
  CDIR_FIELD(vst_birthtime)
  CDIR_FIELD(vst_birthtimensec)
  NUMBER(AT_pvi_cdir_path, offsetof(struct proc_vnodepathinfo, pvi_cdir.vip_path))
  NUMBER(AT_pvi_rdir_path, offsetof(struct proc_vnodepathinfo, pvi_rdir.vip_path))
  CONSTANT(MAXPATHLEN)
  CONSTANT(PROC_PIDPATHINFO_MAXSIZE)

  SIZE_OF_STRUCT(kinfo_proc)
  NUMBER(AT_p_starttime_sec, offsetof(struct kinfo_proc, kp_proc.p_un.__p_starttime.tv_sec))
  NUMBER(AT_p_starttime_usec, offsetof(struct kinfo_proc, kp_proc.p_un.__p_starttime.tv_usec))
  PROC_FIELD(p_flag)
  PROC_FIELD(p_stat)
  PROC_FIELD(p_pid)
  PROC_FIELD(p_oppid)
  PROC_FIELD(p_priority)
  PROC_FIELD(p_nice)
  PROC_FIELD(p_comm)
  PROC_FIELD(p_xstat)
  PCRED_FIELD(p_ruid)
  PCRED_FIELD(p_svuid)
  PCRED_FIELD(p_rgid)
  PCRED_FIELD(p_svgid)
  UCRED_FIELD(cr_uid)
  UCRED_FIELD(cr_ngroups)
  UCRED_FIELD(cr_groups)
  EPROC_FIELD(e_ppid)
  EPROC_FIELD(e_pgid)
  EPROC_FIELD(e_tdev)
  EPROC_FIELD(e_tpgid)
  EPROC_FIELD(e_flag)

  CONSTANT(SIDL)
  CONSTANT(SRUN)
  CONSTANT(SZOMB)
  CONSTANT(P_CONTROLT)
  CONSTANT(P_LP64)
  CONSTANT(P_PPWAIT)
  CONSTANT(P_SUGID)
  CONSTANT(P_SYSTEM)
  CONSTANT(P_TRACED)
  CONSTANT(P_WEXIT)
  CONSTANT(P_EXEC)
  CONSTANT(P_TRANSLATED)
  CONSTANT(PROC_FLAG_SYSTEM)
  CONSTANT(PROC_FLAG_TRACED)
  CONSTANT(PROC_FLAG_INEXIT)
  CONSTANT(PROC_FLAG_PPWAIT)
  CONSTANT(PROC_FLAG_LP64)
  CONSTANT(PROC_FLAG_CONTROLT)
  CONSTANT(PROC_FLAG_PSUGID)
  CONSTANT(PROC_FLAG_EXEC)
  CONSTANT(PROC_ALL_PIDS)
  CONSTANT(PROC_PIDTBSDINFO)
  CONSTANT(PROC_PIDT_SHORTBSDINFO)
  CONSTANT(PROC_PIDVNODEPATHINFO)
  CONSTANT(PROC_PIDPATHINFO)
  CONSTANT(CTL_KERN)
  CONSTANT(KERN_PROC)
  CONSTANT(KERN_PROC_PID)
  CONSTANT(KERN_PROCARGS2)
  CONSTANT(KERN_BOOTTIME)
  CONSTANT(EPERM)
  CONSTANT(ENOENT)
  CONSTANT(ESRCH)
  CONSTANT(ENOMEM)
  CONSTANT(EINVAL)
  CONSTANT(ENOSPC)
  CONSTANT(EOVERFLOW)
  CONSTANT(S_IFDIR)
}

static void files(void) {
  SIZE_OF_STRUCT(stat)
  STAT_FIELD(st_dev)
  STAT_FIELD(st_mode)
  STAT_FIELD(st_nlink)
  STAT_FIELD(st_ino)
  STAT_FIELD(st_uid)
  STAT_FIELD(st_gid)
  STAT_FIELD(st_rdev)
  STAT_FIELD(st_atimespec)
  STAT_FIELD(st_mtimespec)
  STAT_FIELD(st_ctimespec)
  STAT_FIELD(st_birthtimespec)
  STAT_FIELD(st_size)
  STAT_FIELD(st_blocks)
  STAT_FIELD(st_blksize)

  SIZE_OF_STRUCT(dirent)
  DIRENT_FIELD(d_ino)
  DIRENT_FIELD(d_reclen)
  DIRENT_FIELD(d_namlen)
  DIRENT_FIELD(d_type)
  DIRENT_FIELD(d_name)

  CONSTANT(O_NONBLOCK)
  CONSTANT(O_APPEND)
  CONSTANT(O_CREAT)
  CONSTANT(O_TRUNC)
  CONSTANT(O_EXCL)
  CONSTANT(O_NOFOLLOW)
  CONSTANT(O_DIRECTORY)
  CONSTANT(O_CLOEXEC)
  CONSTANT(MAP_ANON)
  CONSTANT(MAP_NORESERVE)
}

static void system_and_threads(void) {
  SIZE(pthread_mutex_t)
  SIZE(pthread_mutexattr_t)
  SIZE(pthread_cond_t)
  SIZE(pthread_attr_t)
  SIZE(pthread_key_t)
  CONSTANT(PTHREAD_MUTEX_NORMAL)
  CONSTANT(PTHREAD_MUTEX_ERRORCHECK)
  CONSTANT(PTHREAD_MUTEX_RECURSIVE)
  CONSTANT(CLOCK_REALTIME)
  CONSTANT(CLOCK_MONOTONIC)
  CONSTANT(CLOCK_MONOTONIC_RAW)
  CONSTANT(CLOCK_UPTIME_RAW)
  CONSTANT(CLOCK_PROCESS_CPUTIME_ID)
  CONSTANT(CLOCK_THREAD_CPUTIME_ID)
  CONSTANT(RTLD_NOLOAD)
  CONSTANT(RTLD_NODELETE)
  CONSTANT(_SC_PAGESIZE)
  CONSTANT(_SC_NPROCESSORS_ONLN)
  CONSTANT(_SC_THREAD_STACK_MIN)
}

void abi(void);
void abi(void) {
  processes();
  files();
  system_and_threads();
}
