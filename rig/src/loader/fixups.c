/* Fixups in the older form, LC_DYLD_INFO: two little programs. One names the pointers into the image, which the
   slide moves; the other names the pointers to other images' symbols. An opcode is the upper half of a byte, a
   small operand its lower half. */
#include "image.h"
#include <string.h>

enum { POINTER = 8, TYPE_POINTER = 1 };

/* Where the program stands: the next pointer's segment and offset in it. */
typedef struct {
  loading *loading;
  uint32_t segment;
  uint64_t offset;
} cursor;

static uint8_t *pointer_at(const cursor *c) {
  const image *im = c->loading->image;
  if (c->segment >= (uint32_t)im->segment_count) fail(c->loading, "a fixup names segment %u", c->segment);
  const segment *s = &im->segments[c->segment];
  if (c->offset > s->size || s->size - c->offset < POINTER) {
    fail(c->loading, "a fixup lies outside %s, at 0x%llx", s->name, (long long)c->offset);
  }
  return memory_at(c->loading, s->address + c->offset, POINTER);
}

static void rebase_one(cursor *c) {
  image *im = c->loading->image;
  uint8_t *at = pointer_at(c);
  uint64_t value;
  memcpy(&value, at, POINTER);
  value = value - im->lowest + (uint64_t)im->base;
  memcpy(at, &value, POINTER);
  im->rebases++;
  c->offset += POINTER;
}

/* A skip may wrap around: without this, a damaged count would never end. */
static void check_count(const cursor *c, uint64_t count) {
  if (count > c->loading->image->size / POINTER) fail(c->loading, "%llu fixups in a row", (unsigned long long)count);
}

static void rebase_many(cursor *c, uint64_t count, uint64_t skip) {
  check_count(c, count);
  for (uint64_t i = 0; i < count; i++) {
    rebase_one(c);
    c->offset += skip;
  }
}

enum {
  REBASE_DONE = 0x00,
  REBASE_SET_TYPE = 0x10,
  REBASE_SET_PLACE = 0x20,
  REBASE_ADD = 0x30,
  REBASE_ADD_SCALED = 0x40,
  REBASE_TIMES = 0x50,
  REBASE_ULEB_TIMES = 0x60,
  REBASE_THEN_ADD = 0x70,
  REBASE_TIMES_SKIPPING = 0x80,
};

static void run_rebases(loading *l) {
  reader r = file_reader(l, l->rebase, "the rebase program");
  cursor c = {.loading = l};
  while (r.at < r.end) {
    uint8_t byte = take_u8(&r), operand = byte & 0x0f;
    switch (byte & 0xf0) {
      case REBASE_DONE: return;
      case REBASE_SET_TYPE:
        if (operand != TYPE_POINTER) fail(l, "rebase type %u", operand);
        break;
      case REBASE_SET_PLACE:
        c.segment = operand;
        c.offset = take_uleb(&r);
        break;
      case REBASE_ADD: c.offset += take_uleb(&r); break;
      case REBASE_ADD_SCALED: c.offset += operand * POINTER; break;
      case REBASE_TIMES: rebase_many(&c, operand, 0); break;
      case REBASE_ULEB_TIMES: rebase_many(&c, take_uleb(&r), 0); break;
      case REBASE_THEN_ADD: rebase_many(&c, 1, take_uleb(&r)); break;
      case REBASE_TIMES_SKIPPING: {
        uint64_t count = take_uleb(&r);
        rebase_many(&c, count, take_uleb(&r));
        break;
      }
      default: fail(l, "rebase opcode 0x%x", byte);
    }
  }
}

/* What the next pointers are bound to. */
typedef struct {
  cursor place;
  const char *name;
  bool weak_import;
  bool weak_definition; /* all images that define the symbol share one definition, the first: our own */
  int64_t addend;
  bool resolved;
  void *address;
} binding;

static void bind_one(binding *b) {
  loading *l = b->place.loading;
  if (b->name == NULL) fail(l, "a bind names no symbol");
  if (!b->resolved) b->address = resolve_symbol(l, b->name, b->weak_import, b->weak_definition);
  b->resolved = true;
  uint64_t value = b->address == NULL ? 0 : (uint64_t)b->address + b->addend;
  memcpy(pointer_at(&b->place), &value, POINTER);
  l->image->binds++;
  b->place.offset += POINTER;
}

enum {
  BIND_DONE = 0x00,
  BIND_SET_LIBRARY = 0x10,
  BIND_SET_LIBRARY_ULEB = 0x20,
  BIND_SET_SPECIAL_LIBRARY = 0x30,
  BIND_SET_SYMBOL = 0x40,
  BIND_SET_TYPE = 0x50,
  BIND_SET_ADDEND = 0x60,
  BIND_SET_PLACE = 0x70,
  BIND_ADD = 0x80,
  BIND_ONE = 0x90,
  BIND_THEN_ADD = 0xa0,
  BIND_THEN_ADD_SCALED = 0xb0,
  BIND_TIMES_SKIPPING = 0xc0,
};
enum { SYMBOL_WEAK_IMPORT = 1 };

typedef enum { EAGER, WEAK, LAZY } bind_kind;

static void run_binds(loading *l, macho_blob program, bind_kind kind) {
  reader r = file_reader(l, program, "a bind program");
  binding b = {.place.loading = l, .weak_definition = kind == WEAK};
  while (r.at < r.end) {
    uint8_t byte = take_u8(&r), operand = byte & 0x0f;
    switch (byte & 0xf0) {
      case BIND_DONE:
        if (kind != LAZY) return;
        break; /* each lazy bind is a program of its own */
      case BIND_SET_LIBRARY:
      case BIND_SET_SPECIAL_LIBRARY: break; /* one namespace for all libraries here */
      case BIND_SET_LIBRARY_ULEB: take_uleb(&r); break;
      case BIND_SET_SYMBOL:
        b.name = take_string(&r);
        b.weak_import = operand & SYMBOL_WEAK_IMPORT;
        b.resolved = false;
        break;
      case BIND_SET_TYPE:
        if (operand != TYPE_POINTER) fail(l, "bind type %u", operand);
        break;
      case BIND_SET_ADDEND: b.addend = take_sleb(&r); break;
      case BIND_SET_PLACE:
        b.place.segment = operand;
        b.place.offset = take_uleb(&r);
        break;
      case BIND_ADD: b.place.offset += take_uleb(&r); break;
      case BIND_ONE: bind_one(&b); break;
      case BIND_THEN_ADD:
        bind_one(&b);
        b.place.offset += take_uleb(&r);
        break;
      case BIND_THEN_ADD_SCALED:
        bind_one(&b);
        b.place.offset += operand * POINTER;
        break;
      case BIND_TIMES_SKIPPING: {
        uint64_t count = take_uleb(&r), skip = take_uleb(&r);
        check_count(&b.place, count);
        for (uint64_t i = 0; i < count; i++) {
          bind_one(&b);
          b.place.offset += skip;
        }
        break;
      }
      default: fail(l, "bind opcode 0x%x", byte);
    }
  }
}

void apply_dyld_info(loading *l) {
  if (!l->has_dyld_info) fail(l, "neither LC_DYLD_INFO nor chained fixups");
  run_rebases(l);
  run_binds(l, l->bind, EAGER);
  if (l->weak_bind.size > 0) run_binds(l, l->weak_bind, WEAK);
  if (l->lazy_bind.size > 0) run_binds(l, l->lazy_bind, LAZY); /* at once: no stub helper is ever entered */
}
