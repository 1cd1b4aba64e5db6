/* Reading bytes that cannot be trusted: every step is checked against the end of its range. */
#include "image.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fail(loading *l, const char *format, ...) {
  va_list words;
  va_start(words, format);
  vsnprintf(l->message, l->message_size, format, words);
  va_end(words);
  longjmp(l->on_failure, 1);
}

uint8_t *memory_at(loading *l, uint64_t address, uint64_t size) {
  const image *im = l->image;
  uint64_t offset = address - im->lowest;
  if (address < im->lowest || offset > im->size || size > im->size - offset) {
    fail(l, "address 0x%llx+0x%llx lies outside the image", (long long)address, (long long)size);
  }
  /* Between segments nothing is mapped. */
  for (int i = 0; i < im->segment_count; i++) {
    const segment *s = &im->segments[i];
    if (address >= s->address && address - s->address <= s->size && size <= s->size - (address - s->address)) {
      return im->base + offset;
    }
  }
  fail(l, "address 0x%llx+0x%llx lies in no segment", (long long)address, (long long)size);
}

bool is_code(const image *im, uint64_t address) {
  for (int i = 0; i < im->segment_count; i++) {
    const segment *s = &im->segments[i];
    if (address >= s->address && address - s->address < s->size) return s->protection & VM_EXECUTE;
  }
  return false;
}

const section *next_section(const image *im, const section *after, uint32_t type) {
  const section *end = im->sections + im->section_count;
  for (const section *s = after ? after + 1 : im->sections; s < end; s++) {
    if (s->type == type) return s;
  }
  return NULL;
}

const section *section_named(const image *im, const char *name) {
  for (int i = 0; i < im->section_count; i++) {
    if (strcmp(im->sections[i].name, name) == 0) return &im->sections[i];
  }
  return NULL;
}

reader memory_reader(loading *l, uint64_t address, uint64_t size, const char *what) {
  const uint8_t *start = memory_at(l, address, size);
  return (reader){l, start, start, start + size, what};
}

reader file_reader(loading *l, macho_blob blob, const char *what) {
  for (int i = 0; i < l->image->segment_count; i++) {
    const segment *s = &l->image->segments[i];
    if (blob.offset < s->file_offset) continue;
    uint64_t within = blob.offset - s->file_offset;
    if (within > s->file_size || blob.size > s->file_size - within) continue;
    return memory_reader(l, s->address + within, blob.size, what);
  }
  fail(l, "%s: file range 0x%x+0x%x lies in no segment", what, blob.offset, blob.size);
}

reader reader_at(const reader *whole, uint64_t offset) {
  reader r = *whole;
  if (offset > (uint64_t)(whole->end - whole->start)) fail(whole->loading, "%s: offset 0x%llx", whole->what, (long long)offset);
  r.at = whole->start + offset;
  return r;
}

const void *take(reader *r, uint64_t size) {
  if (size > (uint64_t)(r->end - r->at)) fail(r->loading, "%s ends early", r->what);
  const void *at = r->at;
  r->at += size;
  return at;
}

#define TAKE(type, name)                      \
  type name(reader *r) {                      \
    type value;                               \
    memcpy(&value, take(r, sizeof value), sizeof value); \
    return value;                             \
  }
TAKE(uint8_t, take_u8)
TAKE(uint16_t, take_u16)
TAKE(uint32_t, take_u32)
TAKE(uint64_t, take_u64)

/* Seven bits a byte, lowest first; the top bit says that more follow. Returns how many bits there were. */
static unsigned take_leb(reader *r, uint64_t *value, uint8_t *last) {
  unsigned shift = 0;
  *value = 0;
  do {
    if (shift > 63) fail(r->loading, "%s: a LEB128 number is too long", r->what);
    *last = take_u8(r);
    *value |= (uint64_t)(*last & 0x7f) << shift;
    shift += 7;
  } while (*last & 0x80);
  return shift;
}

uint64_t take_uleb(reader *r) {
  uint64_t value;
  uint8_t last;
  take_leb(r, &value, &last);
  return value;
}

int64_t take_sleb(reader *r) {
  uint64_t value;
  uint8_t last;
  unsigned bits = take_leb(r, &value, &last);
  bool negative = last & 0x40;
  if (negative && bits < 64) value |= ~0ull << bits;
  return (int64_t)value;
}

const char *take_string(reader *r) {
  size_t length = strnlen((const char *)r->at, r->end - r->at);
  return take(r, length + 1);
}
