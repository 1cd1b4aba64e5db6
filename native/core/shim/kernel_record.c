/* Reads one kinfo_proc against the platform's own headers. No allocation, no statics, no policy:
   what a state means is decided in Rust. */

#include "kernel_record.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/param.h>
#include <sys/proc.h>
#include <sys/sysctl.h>

/* The layout of 64-bit macOS 11 to 26, the same on both architectures. The kernel chooses it by the
   caller's ABI; a header that disagrees must not compile. */
#define AT(field, offset) \
    _Static_assert(offsetof(struct kinfo_proc, field) == (offset), #field " has moved")
_Static_assert(sizeof(struct kinfo_proc) == 648, "struct kinfo_proc has another size");
AT(kp_proc.p_starttime.tv_sec, 0);
AT(kp_proc.p_starttime.tv_usec, 8);
AT(kp_proc.p_flag, 32);
AT(kp_proc.p_stat, 36);
AT(kp_proc.p_pid, 40);
AT(kp_proc.p_oppid, 44);
AT(kp_proc.p_comm, 243);
AT(kp_eproc.e_ucred.cr_uid, 420);
AT(kp_eproc.e_ppid, 560);
AT(kp_eproc.e_pgid, 564);
_Static_assert(sizeof(((struct kinfo_proc *)0)->kp_proc.p_comm) == 17, "p_comm has another size");
_Static_assert(P_WEXIT == 0x2000, "P_WEXIT is another bit");
_Static_assert(sizeof(struct proc_safe_record) == 56, "the contract with Rust has padding");

int32_t proc_safe_read_kernel_record(int32_t pid, struct proc_safe_record *record) {
    struct kinfo_proc info;
    int name[4] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, pid};
    size_t length = sizeof info;

    memset(record, 0, sizeof *record);
    memset(&info, 0, sizeof info);
    if (sysctl(name, 4, &info, &length, NULL, 0) != 0) {
        record->errno_value = errno;
        return PROC_SAFE_FAILED;
    }
    if (length == 0) {
        return PROC_SAFE_ABSENT; /* success without a record */
    }
    if (length != sizeof info || info.kp_proc.p_pid != pid) {
        return PROC_SAFE_MALFORMED;
    }
    record->start_seconds = info.kp_proc.p_starttime.tv_sec;
    record->start_micros = info.kp_proc.p_starttime.tv_usec;
    record->pid = info.kp_proc.p_pid;
    record->parent_pid = info.kp_eproc.e_ppid;
    record->original_parent_pid = info.kp_proc.p_oppid;
    record->process_group = info.kp_eproc.e_pgid;
    record->uid = info.kp_eproc.e_ucred.cr_uid;
    record->status = (uint8_t)info.kp_proc.p_stat;
    record->exiting = (info.kp_proc.p_flag & P_WEXIT) != 0;
    memcpy(record->name, info.kp_proc.p_comm, sizeof record->name - 1);
    return PROC_SAFE_PRESENT;
}
