/* What one sysctl KERN_PROC_PID says about one process. The whole contract between C and Rust:
   native/core/src/sys/darwin.rs repeats this struct and asserts its size. */

#ifndef PROC_SAFE_KERNEL_RECORD_H
#define PROC_SAFE_KERNEL_RECORD_H

#include <stdint.h>

enum {
    PROC_SAFE_PRESENT = 0,
    PROC_SAFE_ABSENT = 1,    /* the kernel has no record for this pid */
    PROC_SAFE_MALFORMED = 2, /* not one record of the known size, or another pid's */
    PROC_SAFE_FAILED = 3     /* errno_value says why */
};

struct proc_safe_record {
    int64_t start_seconds; /* p_starttime, since the Unix epoch */
    int32_t start_micros;
    int32_t errno_value; /* with PROC_SAFE_FAILED only */
    int32_t pid;
    int32_t parent_pid;          /* e_ppid: the debugger's while the process is traced */
    int32_t original_parent_pid; /* p_oppid: the real parent's while the process is traced, else 0 */
    int32_t process_group;       /* e_pgid */
    uint32_t uid;                /* e_ucred.cr_uid: the effective user */
    uint8_t status;              /* p_stat: SIDL 1, SRUN 2, SSLEEP 3, SSTOP 4, SZOMB 5 */
    uint8_t exiting;             /* p_flag has P_WEXIT */
    char name[17];               /* p_comm, ends in NUL */
    uint8_t reserved;
};

/* Returns one of the four above; the fields are filled with PROC_SAFE_PRESENT only. Can wait in the
   kernel, and not be interrupted, while the process is inside fork(2) or execve(2). */
int32_t proc_safe_read_kernel_record(int32_t pid, struct proc_safe_record *record);

#endif
