/* The dynamic linker, as an image sees it: images that are loaded can be found and pinned; none can be loaded. */
#include "../darwin.h"
#include "../darwin_abi.h"
#include "../loader/image.h"
#include "libsystem.h"
#include <stdio.h>

/* Rust's standard library asks this way for functions that only newer systems have. */
void *darwin_dlsym(void *handle, const char *name) {
  (void)handle;
  char mangled[256];
  snprintf(mangled, sizeof mangled, "_%s", name);
  return darwin_symbol(mangled);
}

void *darwin_dlopen(const char *path, int flags) {
  image *im = path == NULL ? NULL : image_of_path(path);
  if (im == NULL || !(flags & DARWIN_RTLD_NOLOAD)) return NULL;
  im->pinned |= (flags & DARWIN_RTLD_NODELETE) != 0;
  return im;
}

/* The structure is the same on both systems. No symbol is ever named. */
int darwin_dladdr(const void *address, Dl_info *info) {
  image *im = image_at(address);
  if (im == NULL) return 0;
  *info = (Dl_info){.dli_fname = im->path, .dli_fbase = im->base};
  return 1;
}

/* dyld's list of images is empty here, so a Rust backtrace has addresses without names. */
uint32_t darwin_zero(void) { return 0; }
void *darwin_null(void) { return NULL; }
