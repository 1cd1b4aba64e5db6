/* proc_pidinfo: what libproc tells about one process. */
#include "kernel.h"
#include "record.h"
#include "../darwin_abi.h"

/* The private flavors and their record: absent from the public headers, and so from darwin_abi.h. */
enum {
  FLAVOR_UNIQUE_ID = 17,      /* PROC_PIDUNIQIDENTIFIERINFO */
  FLAVOR_TBSD_AND_UNIQUE = 18, /* PROC_PIDT_BSDINFOWITHUNIQID */
  SIZE_unique_id = 56,
  AT_unique_uuid = 0,
  AT_unique_id = 16,
  AT_unique_parent = 24,
  AT_unique_idversion = 32,
};
enum { TBSD_SESSION_LEADER = 0x20, ROSETTA = 0x2000000 };

/* pbsi_flags and pbi_flags, from p_flag. */
static uint32_t flags_of(const process *p) {
  static const uint32_t pairs[][2] = {
      {DARWIN_P_SYSTEM, DARWIN_PROC_FLAG_SYSTEM},   {DARWIN_P_TRACED, DARWIN_PROC_FLAG_TRACED},
      {DARWIN_P_WEXIT, DARWIN_PROC_FLAG_INEXIT},    {DARWIN_P_PPWAIT, DARWIN_PROC_FLAG_PPWAIT},
      {DARWIN_P_LP64, DARWIN_PROC_FLAG_LP64},       {DARWIN_P_CONTROLT, DARWIN_PROC_FLAG_CONTROLT},
      {DARWIN_P_SUGID, DARWIN_PROC_FLAG_PSUGID},    {DARWIN_P_EXEC, DARWIN_PROC_FLAG_EXEC},
      {DARWIN_P_TRANSLATED, ROSETTA},
  };
  if (is_given(p, NUMBER_pbflags)) return p->pbflags;
  uint32_t flags = 0;
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    if (p->flag & pairs[i][0]) flags |= pairs[i][1];
  }
  return flags;
}

static void put_short(const process *p, uint8_t *record) {
  put32(record, AT_pbsi_pid, p->pid);
  put32(record, AT_pbsi_ppid, p->ppid);
  put32(record, AT_pbsi_pgid, p->pgid);
  put32(record, AT_pbsi_status, p->stat);
  memcpy(record + AT_pbsi_comm, p->comm, 15);
  put32(record, AT_pbsi_flags, flags_of(p));
  put32(record, AT_pbsi_uid, p->uid);
  put32(record, AT_pbsi_gid, p->gid);
  put32(record, AT_pbsi_ruid, p->ruid);
  put32(record, AT_pbsi_rgid, p->rgid);
  put32(record, AT_pbsi_svuid, p->svuid);
  put32(record, AT_pbsi_svgid, p->svgid);
}

static void put_tbsd(const process *p, uint8_t *record) {
  put32(record, AT_pbi_flags, flags_of(p) | (p->sid == p->pid ? TBSD_SESSION_LEADER : 0));
  put32(record, AT_pbi_status, p->stat);
  put32(record, AT_pbi_xstatus, p->xstat);
  put32(record, AT_pbi_pid, p->pid);
  put32(record, AT_pbi_ppid, p->ppid);
  put32(record, AT_pbi_uid, p->uid);
  put32(record, AT_pbi_gid, p->gid);
  put32(record, AT_pbi_ruid, p->ruid);
  put32(record, AT_pbi_rgid, p->rgid);
  put32(record, AT_pbi_svuid, p->svuid);
  put32(record, AT_pbi_svgid, p->svgid);
  memcpy(record + AT_pbi_comm, p->comm, 15);
  memcpy(record + AT_pbi_name, p->name, 31);
  put32(record, AT_pbi_nfiles, has_exited(p) ? 0 : 8);
  put32(record, AT_pbi_pgid, p->pgid);
  put32(record, AT_pbi_e_tdev, p->tdev);
  put32(record, AT_pbi_e_tpgid, p->tpgid);
  put32(record, AT_pbi_nice, p->nice);
  put64(record, AT_pbi_start_tvsec, p->startSec);
  put64(record, AT_pbi_start_tvusec, p->startUsec);
}

static void put_unique(const process *p, uint8_t *record) {
  memset(record + AT_unique_uuid, p->uniqueid & 0xff, 16);
  put64(record, AT_unique_id, p->uniqueid);
  put64(record, AT_unique_parent, p->puniqueid);
  put32(record, AT_unique_idversion, p->idversion);
}

static void put_tbsd_and_unique(const process *p, uint8_t *record) {
  put_tbsd(p, record);
  put_unique(p, record + SIZE_proc_bsdinfo);
}

static const flavor FLAVORS[] = {
    {DARWIN_PROC_PIDT_SHORTBSDINFO, SIZE_proc_bsdshortinfo, OVERRIDE_short, true, put_short},
    {FLAVOR_UNIQUE_ID, SIZE_unique_id, OVERRIDE_uniq, true, put_unique},
    {DARWIN_PROC_PIDTBSDINFO, SIZE_proc_bsdinfo, OVERRIDE_tbsd, false, put_tbsd},
    {DARWIN_PROC_PIDVNODEPATHINFO, SIZE_proc_vnodepathinfo, OVERRIDE_directory, false, put_directories},
    {FLAVOR_TBSD_AND_UNIQUE, SIZE_proc_bsdinfo + SIZE_unique_id, OVERRIDE_tbsd, false, put_tbsd_and_unique},
};

static const flavor *find_flavor(int number) {
  for (size_t i = 0; i < sizeof FLAVORS / sizeof FLAVORS[0]; i++) {
    if (FLAVORS[i].number == number) return &FLAVORS[i];
  }
  return NULL;
}

const override *libproc_override(const process *p, const flavor *f) {
  const override *own = override_of(p, f->override);
  return own->mode != NATURAL || own->patch_count > 0 ? own : override_of(p, OVERRIDE_libproc);
}

/* proc_find(), and with an argument that is not 0 also proc_find_zombref(), which finds all exited ones; but no paths
   are told of those. */
static bool is_found(const process *p, const flavor *f, uint64_t argument) {
  bool of_paths = f->number == DARWIN_PROC_PIDVNODEPATHINFO || f->number == DARWIN_PROC_PIDPATHINFO;
  return p->phase != PHASE_reserved && (!has_exited(p) || (argument != 0 && !of_paths));
}

static int refusal(const process *p, const flavor *f) {
  if (config.denyPidinfo != 0 && !is_self(p)) return config.denyPidinfo;
  return f->for_everyone || config.euid == 0 || p->uid == config.euid ? 0 : DARWIN_EPERM;
}

int check_flavor(const process *p, const flavor *f, const override *o, uint64_t argument, int size) {
  if (size < f->size) return DARWIN_ENOMEM;
  if (o->mode == FAILING) return o->value;
  if (p == NULL || o->mode == ABSENT) return DARWIN_ESRCH;
  if (o->mode == FORCED) return 0;
  return is_found(p, f, argument) ? refusal(p, f) : DARWIN_ESRCH;
}

static int put_record(const process *p, const flavor *f, const override *o, uint8_t *record) {
  memset(record, 0, f->size);
  f->put(p, record);
  apply_patches(o, record, f->size);
  if (o->mode != SHORTENED) return f->size;
  return o->value < 0 ? f->size / 2 : o->value;
}

/* The record's size; 0 with errno if there is none. */
int sim_proc_pidinfo(int pid, int number, uint64_t argument, void *buffer, int size) {
  const call c = {CALL_proc_pidinfo, number, pid, argument, size};
  int error = begin_call(&c);
  const flavor *f = find_flavor(number);
  if (error == 0 && f == NULL) {
    say_unknown("proc_pidinfo flavor", number, "");
    error = DARWIN_EINVAL;
  }
  if (error != 0) return end_call(&c, 0, error);
  const process *p = find_process(pid);
  const override *o = libproc_override(p, f);
  error = check_flavor(p, f, o, argument, size);
  return end_call(&c, error != 0 ? 0 : put_record(p, f, o, buffer), error);
}
