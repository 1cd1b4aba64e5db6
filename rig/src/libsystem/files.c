/* Files and directories: flags, struct stat and struct dirent in Darwin's form. */
#include "../darwin.h"
#include "../darwin_abi.h"
#include "libsystem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int host_open_flags(int flags) {
  static const int pairs[][2] = {
      {DARWIN_O_NONBLOCK, O_NONBLOCK},   {DARWIN_O_APPEND, O_APPEND},   {DARWIN_O_CREAT, O_CREAT},
      {DARWIN_O_TRUNC, O_TRUNC},         {DARWIN_O_EXCL, O_EXCL},       {DARWIN_O_NOFOLLOW, O_NOFOLLOW},
      {DARWIN_O_DIRECTORY, O_DIRECTORY}, {DARWIN_O_CLOEXEC, O_CLOEXEC},
  };
  int host = flags & O_ACCMODE; /* the same on both */
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    if (flags & pairs[i][0]) host |= pairs[i][1];
  }
  return host;
}

/* Variadic on both systems; the mode arrives in the same register either way. */
int darwin_open(const char *path, int flags, int mode) { return darwin_result(open(path, host_open_flags(flags), mode)); }
int darwin_close(int file) { return darwin_result(close(file)); }
ssize_t darwin_read(int file, void *bytes, size_t size) { return darwin_result(read(file, bytes, size)); }
ssize_t darwin_write(int file, const void *bytes, size_t size) { return darwin_result(write(file, bytes, size)); }
ssize_t darwin_writev(int file, const struct iovec *parts, int count) { return darwin_result(writev(file, parts, count)); }

char *darwin_getcwd(char *path, size_t size) {
  char *result = getcwd(path, size);
  if (result == NULL) darwin_errno = darwin_errno_of(errno);
  return result;
}

static void put16(uint8_t *out, int at, uint16_t value) { memcpy(out + at, &value, sizeof value); }
static void put32(uint8_t *out, int at, uint32_t value) { memcpy(out + at, &value, sizeof value); }
static void put64(uint8_t *out, int at, uint64_t value) { memcpy(out + at, &value, sizeof value); }

int darwin_fstat(int file, uint8_t *out) {
  struct stat host;
  if (darwin_result(fstat(file, &host)) != 0) return -1;
  memset(out, 0, SIZE_stat);
  put32(out, AT_st_dev, host.st_dev);
  put16(out, AT_st_mode, host.st_mode);
  put16(out, AT_st_nlink, host.st_nlink);
  put64(out, AT_st_ino, host.st_ino);
  put32(out, AT_st_uid, host.st_uid);
  put32(out, AT_st_gid, host.st_gid);
  put32(out, AT_st_rdev, host.st_rdev);
  memcpy(out + AT_st_atimespec, &host.st_atim, sizeof host.st_atim);
  memcpy(out + AT_st_mtimespec, &host.st_mtim, sizeof host.st_mtim);
  memcpy(out + AT_st_ctimespec, &host.st_ctim, sizeof host.st_ctim);
  memcpy(out + AT_st_birthtimespec, &host.st_ctim, sizeof host.st_ctim);
  put64(out, AT_st_size, host.st_size);
  put64(out, AT_st_blocks, host.st_blocks);
  put32(out, AT_st_blksize, host.st_blksize);
  return 0;
}

DIR *darwin_opendir(const char *path) {
  DIR *directory = opendir(path);
  if (directory == NULL) darwin_errno = darwin_errno_of(errno);
  return directory;
}

/* 0 with *result NULL at the end; an error otherwise. */
int darwin_readdir_r(DIR *directory, uint8_t *out, uint8_t **result) {
  *result = NULL;
  errno = 0;
  struct dirent *host = readdir(directory);
  if (host == NULL) return darwin_error(errno);
  size_t length = strlen(host->d_name);
  memset(out, 0, SIZE_dirent);
  put64(out, AT_d_ino, host->d_ino);
  put16(out, AT_d_reclen, (AT_d_name + length + 1 + 3) / 4 * 4);
  put16(out, AT_d_namlen, length);
  out[AT_d_type] = host->d_type; /* the same numbers */
  memcpy(out + AT_d_name, host->d_name, length + 1);
  *result = out;
  return 0;
}

int darwin_closedir(DIR *directory) { return darwin_result(closedir(directory)); }
