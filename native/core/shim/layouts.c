/* What src/darwin/info.rs takes to be true of libproc's answers, held against the platform's own headers:
   a header that disagrees must not compile. No code. */

#include <stddef.h>
#include <sys/param.h>
#include <sys/proc_info.h>

#define SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type " has another size")
#define AT(type, field, offset) \
    _Static_assert(offsetof(struct type, field) == (offset), #field " has moved")
#define NUMBER(name, value) _Static_assert((name) == (value), #name " is another number")

NUMBER(PROC_PIDTBSDINFO, 3);
SIZE(proc_bsdinfo, 136);
AT(proc_bsdinfo, pbi_flags, 0);
AT(proc_bsdinfo, pbi_status, 4);
AT(proc_bsdinfo, pbi_pid, 12);
AT(proc_bsdinfo, pbi_ppid, 16);
AT(proc_bsdinfo, pbi_start_tvsec, 120);
AT(proc_bsdinfo, pbi_start_tvusec, 128);

NUMBER(PROC_PIDT_SHORTBSDINFO, 13);
SIZE(proc_bsdshortinfo, 64);
AT(proc_bsdshortinfo, pbsi_pid, 0);
AT(proc_bsdshortinfo, pbsi_ppid, 4);
AT(proc_bsdshortinfo, pbsi_pgid, 8);
AT(proc_bsdshortinfo, pbsi_status, 12);
AT(proc_bsdshortinfo, pbsi_comm, 16);
AT(proc_bsdshortinfo, pbsi_flags, 32);
AT(proc_bsdshortinfo, pbsi_uid, 36);
NUMBER(PROC_FLAG_TRACED, 2);
NUMBER(PROC_FLAG_INEXIT, 4);

NUMBER(PROC_PIDVNODEPATHINFO, 9);
SIZE(proc_vnodepathinfo, 2352);
AT(proc_vnodepathinfo, pvi_cdir.vip_vi.vi_stat.vst_ino, 8);
AT(proc_vnodepathinfo, pvi_cdir.vip_vi.vi_stat.vst_birthtime, 72);
AT(proc_vnodepathinfo, pvi_cdir.vip_vi.vi_stat.vst_birthtimensec, 80);
AT(proc_vnodepathinfo, pvi_cdir.vip_path, 152);
AT(proc_vnodepathinfo, pvi_rdir, 1176);
NUMBER(MAXPATHLEN, 1024);

NUMBER(PROC_PIDPATHINFO_MAXSIZE, 4096);
