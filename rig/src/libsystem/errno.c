/* Error numbers: the first 34 are the same on both systems, the rest are not. */
#include "../darwin.h"
#include "../darwin_abi.h"
#include "libsystem.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

__thread int darwin_errno __attribute__((tls_model("initial-exec")));

#define PAIR(name, darwin) {#name, name, darwin},
const errno_pair errno_pairs[] = {ERRNO_PAIRS(PAIR)};
const int errno_pair_count = sizeof errno_pairs / sizeof errno_pairs[0];

int darwin_errno_of(int host) {
  for (int i = 0; i < errno_pair_count; i++) {
    if (errno_pairs[i].host == host) return errno_pairs[i].darwin;
  }
  return host;
}

int host_errno_of(int darwin) {
  for (int i = 0; i < errno_pair_count; i++) {
    if (errno_pairs[i].darwin == darwin) return errno_pairs[i].host;
  }
  return 0;
}

long darwin_result(long host_result) {
  if (host_result == -1) darwin_errno = darwin_errno_of(errno);
  return host_result;
}

int darwin_error(int host_error) { return host_error == 0 ? 0 : darwin_errno_of(host_error); }

int *darwin_errno_address(void) { return &darwin_errno; }

int darwin_strerror_r(int error, char *text, size_t size) {
  int host = host_errno_of(error);
  if (host == 0) {
    snprintf(text, size, "Unknown error: %d", error);
    return darwin_errno_of(EINVAL);
  }
  const char *name = strerrordesc_np(host);
  snprintf(text, size, "%s", name);
  return strlen(name) < size ? 0 : darwin_errno_of(ERANGE);
}
