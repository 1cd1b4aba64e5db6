/* The trie of exported symbols: each node holds a symbol's value if its path is a whole name, and its children by
   the next piece of the name. */
#include "image.h"
#include <string.h>

/* Longer than any chain of pieces that a linker writes; a damaged trie may lead in circles. */
enum { DEEPEST = 256 };
enum { EXPORT_REEXPORTED = 8 };

/* The child that goes on with `name`, if there is one; `rest` is what of the name is then left. */
static bool find_child(reader *r, const char *name, uint64_t *offset, const char **rest) {
  for (uint8_t left = take_u8(r); left > 0; left--) {
    const char *piece = take_string(r);
    *offset = take_uleb(r);
    size_t length = strlen(piece);
    if (strncmp(name, piece, length) != 0) continue;
    *rest = name + length;
    return true;
  }
  return false;
}

static void *value_of(reader r) {
  loading *l = r.loading;
  uint64_t flags = take_uleb(&r);
  if (flags & EXPORT_REEXPORTED) return NULL; /* a name in another image */
  return memory_at(l, l->image->lowest + take_uleb(&r), 0);
}

void *find_export(loading *l, const char *name) {
  if (l->exports.size == 0) return NULL;
  reader trie = file_reader(l, l->exports, "the export trie"), r = trie;
  for (int depth = 0; depth < DEEPEST; depth++) {
    uint64_t value_size = take_uleb(&r), child;
    if (*name == '\0') return value_size > 0 ? value_of(r) : NULL;
    take(&r, value_size);
    if (!find_child(&r, name, &child, &name)) return NULL;
    r = reader_at(&trie, child);
  }
  fail(l, "the export trie leads in circles");
}
