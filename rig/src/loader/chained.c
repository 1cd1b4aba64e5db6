/* Fixups in the newer form, LC_DYLD_CHAINED_FIXUPS: the pointers themselves form a chain through each page, and
   each holds where the next one is, and either an offset into the image or the number of an import. */
#include "image.h"
#include <stdlib.h>
#include <string.h>

/* dyld_chained_fixups_header */
typedef struct {
  uint32_t version, starts_offset, imports_offset, symbols_offset, imports_count, imports_format, symbols_format;
} fixups_header;

/* dyld_chained_starts_in_segment, up to its list of pages */
typedef struct __attribute__((packed)) {
  uint32_t size;
  uint16_t page_size, pointer_format;
  uint64_t segment_offset;
  uint32_t max_valid_pointer;
  uint16_t page_count;
} segment_starts;

enum { POINTER_64 = 2, POINTER_64_OFFSET = 6 };
enum { IMPORT = 1, IMPORT_ADDEND = 2, IMPORT_ADDEND64 = 3 };
enum { PAGE_WITHOUT_FIXUPS = 0xffff, STRIDE = 4 };
/* A library ordinal that says: one definition for all images (as a weak bind of LC_DYLD_INFO). */
enum { WEAK_LOOKUP = -3 };

typedef struct {
  void *address;
  int64_t addend;
} target;

typedef struct {
  loading *loading;
  target *targets;
  uint32_t target_count;
} chains;

static void *resolve_at(loading *l, const reader *symbols, uint32_t name_offset, bool weak, int8_t library) {
  reader name = reader_at(symbols, name_offset);
  return resolve_symbol(l, take_string(&name), weak, library == WEAK_LOOKUP);
}

static target read_import(loading *l, reader *r, uint32_t format, const reader *symbols) {
  target t = {0};
  if (format == IMPORT_ADDEND64) {
    /* 16 bits library, 1 weak, 15 unused, 32 name, 64 addend */
    uint32_t head = take_u32(r), name = take_u32(r);
    t.addend = (int64_t)take_u64(r);
    t.address = resolve_at(l, symbols, name, head >> 16 & 1, (int8_t)(int16_t)head);
    return t;
  }
  /* 8 bits library, 1 weak, 23 name, and in one format 32 addend */
  uint32_t packed = take_u32(r);
  if (format == IMPORT_ADDEND) t.addend = (int32_t)take_u32(r);
  t.address = resolve_at(l, symbols, packed >> 9, packed >> 8 & 1, (int8_t)packed);
  return t;
}

static void read_imports(chains *c, const reader *all, const fixups_header *header) {
  loading *l = c->loading;
  if (header->imports_format < IMPORT || header->imports_format > IMPORT_ADDEND64) {
    fail(l, "chained imports of format %u", header->imports_format);
  }
  if (header->imports_count > all->end - all->start) fail(l, "more chained imports than bytes");
  reader imports = reader_at(all, header->imports_offset), symbols = reader_at(all, header->symbols_offset);
  symbols.start = symbols.at;
  c->target_count = header->imports_count;
  /* Held by the image, so that a failure frees it. */
  l->image->targets = c->targets = calloc(c->target_count + 1, sizeof *c->targets);
  for (uint32_t i = 0; i < c->target_count; i++) c->targets[i] = read_import(l, &imports, header->imports_format, &symbols);
}

static uint64_t fixed_bind(chains *c, uint64_t pointer) {
  uint32_t ordinal = pointer & 0xffffff;
  uint64_t addend = pointer >> 24 & 0xff;
  if (ordinal >= c->target_count) fail(c->loading, "a chained fixup names import %u", ordinal);
  const target *t = &c->targets[ordinal];
  c->loading->image->binds++;
  return t->address == NULL ? 0 : (uint64_t)t->address + t->addend + addend;
}

static uint64_t fixed_rebase(chains *c, uint64_t pointer, uint16_t format) {
  image *im = c->loading->image;
  uint64_t to = pointer & 0xfffffffffull, top_byte = pointer >> 36 & 0xff;
  if (format == POINTER_64) to -= im->lowest; /* an address as linked; else already an offset */
  im->rebases++;
  return ((uint64_t)im->base + to) | top_byte << 56;
}

static void follow_chain(chains *c, uint64_t offset, uint16_t format) {
  for (;;) {
    uint8_t *at = memory_at(c->loading, c->loading->image->lowest + offset, 8);
    uint64_t pointer, fixed;
    memcpy(&pointer, at, sizeof pointer);
    fixed = pointer >> 63 ? fixed_bind(c, pointer) : fixed_rebase(c, pointer, format);
    memcpy(at, &fixed, sizeof fixed);
    uint64_t next = pointer >> 51 & 0xfff;
    if (next == 0) return;
    offset += next * STRIDE;
  }
}

static void fix_segment(chains *c, reader r) {
  segment_starts starts;
  memcpy(&starts, take(&r, sizeof starts), sizeof starts);
  if (starts.pointer_format != POINTER_64 && starts.pointer_format != POINTER_64_OFFSET) {
    fail(c->loading, "chained pointers of format %u", starts.pointer_format);
  }
  for (uint32_t page = 0; page < starts.page_count; page++) {
    uint16_t first = take_u16(&r);
    if (first == PAGE_WITHOUT_FIXUPS) continue;
    follow_chain(c, starts.segment_offset + (uint64_t)page * starts.page_size + first, starts.pointer_format);
  }
}

void apply_chained_fixups(loading *l) {
  reader all = file_reader(l, l->chained, "the chained fixups"), r = all;
  fixups_header header;
  memcpy(&header, take(&r, sizeof header), sizeof header);
  if (header.version != 0 || header.symbols_format != 0) fail(l, "chained fixups of version %u", header.version);
  chains c = {.loading = l};
  read_imports(&c, &all, &header);
  reader starts = reader_at(&all, header.starts_offset), segments = starts;
  segments.start = segments.at;
  uint32_t segment_count = take_u32(&starts);
  for (uint32_t i = 0; i < segment_count; i++) {
    uint32_t offset = take_u32(&starts);
    if (offset != 0) fix_segment(&c, reader_at(&segments, offset));
  }
  l->image->chained = true;
}
