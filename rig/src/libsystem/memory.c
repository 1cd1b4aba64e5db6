/* Memory: mappings with Darwin's flags, and the functions that compilers call on their own on Darwin only. */
#include "../darwin.h"
#include "../darwin_abi.h"
#include "libsystem.h"
#include <string.h>
#include <sys/mman.h>

void *darwin_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
  int host = flags & (MAP_SHARED | MAP_PRIVATE | MAP_FIXED); /* the same on both, as is the protection */
  if (flags & DARWIN_MAP_NORESERVE) host |= MAP_NORESERVE;
  if (flags & DARWIN_MAP_ANON) {
    host |= MAP_ANONYMOUS;
    file = -1; /* Darwin lets it carry a tag */
  }
  return (void *)darwin_result((long)mmap(address, size, protection, host, file, offset));
}

int darwin_munmap(void *address, size_t size) { return darwin_result(munmap(address, size)); }

void darwin_memset_pattern16(void *bytes, const void *pattern, size_t size) {
  for (size_t i = 0; i < size; i++) ((char *)bytes)[i] = ((const char *)pattern)[i % 16];
}

size_t darwin_strlcpy(char *to, const char *from, size_t size) {
  size_t length = strlen(from);
  if (size == 0) return length;
  size_t copied = length < size ? length : size - 1;
  memcpy(to, from, copied);
  to[copied] = '\0';
  return length;
}

size_t darwin_strlcpy_chk(char *to, const char *from, size_t size, size_t room) {
  return darwin_strlcpy(to, from, size < room ? size : room);
}

uintptr_t darwin_stack_guard = 0x00a5c3e1f00d7700; /* its zero byte stops a string's overrun */
