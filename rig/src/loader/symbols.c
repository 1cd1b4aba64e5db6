/* What an imported name is bound to: a function of this process, or for an unknown name a stub that says the name
   and aborts once it is called. All libraries are one namespace here. */
#include "image.h"
#include "../darwin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noreturn, used)) void missing_symbol(const char *name) {
  char text[300];
  int length = snprintf(text, sizeof text, "rig: the image called %s, which the rig does not have\n", name);
  if (write(STDERR_FILENO, text, length) < 0) abort();
  abort();
}

/* Stubs arrive here with the name in %r10 and whatever stack the caller had. */
void missing_symbol_entry(void);
__asm__(
    ".text\n"
    ".hidden missing_symbol_entry\n"
    ".globl missing_symbol_entry\n"
    "missing_symbol_entry:\n"
    "  andq $-16, %rsp\n"
    "  movq %r10, %rdi\n"
    "  call missing_symbol\n"
    "  hlt\n");

static void *make_stub(loading *l, const char *name) {
  image *im = l->image;
  if (im->stub_count == MAX_STUBS) fail(l, "more than %d unknown symbols", MAX_STUBS);
  uint8_t *stub = im->stubs + STUB_SIZE * im->stub_count++;
  void *entry = (void *)missing_symbol_entry;
  static const uint8_t load_r10[] = {0x49, 0xba}, load_r11[] = {0x49, 0xbb}, jump_r11[] = {0x41, 0xff, 0xe3};
  memcpy(stub, load_r10, 2);
  memcpy(stub + 2, &name, 8);
  memcpy(stub + 10, load_r11, 2);
  memcpy(stub + 12, &entry, 8);
  memcpy(stub + 20, jump_r11, 3);
  return stub;
}

static import *find_import(image *im, const char *name) {
  for (int i = 0; i < im->import_count; i++) {
    if (strcmp(im->imports[i].name, name) == 0) return &im->imports[i];
  }
  return NULL;
}

static import *add_import(image *im, const char *name, bool weak) {
  im->imports = realloc(im->imports, (im->import_count + 1) * sizeof *im->imports);
  import *added = &im->imports[im->import_count++];
  *added = (import){.name = strdup(name), .weak = weak};
  return added;
}

void *resolve_symbol(loading *l, const char *name, bool weak, bool own_first) {
  import *known = find_import(l->image, name);
  if (known != NULL) return known->address;
  void *address = own_first ? find_export(l, name) : NULL;
  if (address == NULL) address = darwin_symbol(name);
  if (address == NULL) address = find_export(l, name);
  import *added = add_import(l->image, name, weak);
  added->missing = address == NULL;
  added->address = added->missing && !weak ? make_stub(l, added->name) : address;
  return added->address;
}
