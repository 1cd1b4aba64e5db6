/* An image's initialisers (constructors in C), which run once, before anything else of it. */
#include "image.h"
#include <stdlib.h>
#include <string.h>

extern char **environ;

static void add_initialiser(loading *l, uint64_t address) {
  image *im = l->image;
  if (!is_code(im, address)) fail(l, "an initialiser at 0x%llx is no code", (long long)address);
  im->initialisers = realloc(im->initialisers, (im->initialiser_count + 1) * sizeof *im->initialisers);
  im->initialisers[im->initialiser_count++] = (initialiser)(im->base + (address - im->lowest));
}

/* Either pointers, which the fixups have slid, or offsets from the image's start. */
void find_initialisers(loading *l) {
  image *im = l->image;
  const section *s = NULL;
  while ((s = next_section(im, s, SECTION_INITIALISER_POINTERS)) != NULL) {
    reader r = memory_reader(l, s->address, s->size, "the initialisers");
    while (r.at < r.end) add_initialiser(l, take_u64(&r) - (uint64_t)im->base + im->lowest);
  }
  while ((s = next_section(im, s, SECTION_INITIALISER_OFFSETS)) != NULL) {
    reader r = memory_reader(l, s->address, s->size, "the initialisers");
    while (r.at < r.end) add_initialiser(l, im->lowest + take_u32(&r));
  }
}

void run_initialisers(image *im) {
  static const char *arguments[] = {"node", NULL}, *apple[] = {NULL};
  for (uint32_t i = 0; i < im->initialiser_count; i++) im->initialisers[i](1, arguments, environ, apple, NULL);
}
