/* Unwinding. Darwin's linker condenses most unwind information into __unwind_info ("compact unwind"); the host's
   unwinder wants DWARF's .eh_frame. So each compact entry becomes one frame description (FDE), right at call sites,
   which is all that panics need, and the table is handed to libgcc. Functions that compact unwind cannot describe
   point to an FDE in the image's own __eh_frame, which is copied with absolute addresses. */
#include "image.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing .eh_frame ---- */

enum {
  CFA_DEF = 0x0c,        /* the frame's address is a register plus an offset */
  CFA_DEF_OFFSET = 0x0e, /* another offset, same register */
  CFA_SAVED = 0x80,      /* plus a register: it lies at the frame's address minus eight times the operand */
};
enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13 = 13, R14 = 14, R15 = 15, RETURN_ADDRESS = 16 };

/* Held by the image, so that a failure frees it. */
typedef struct {
  loading *loading;
  size_t room;
} table;

static void put(table *t, const void *bytes, size_t size) {
  image *im = t->loading->image;
  if (im->unwind_size + size > t->room) {
    t->room = (im->unwind_size + size) * 2;
    im->unwind_table = realloc(im->unwind_table, t->room);
  }
  if (size > 0) memcpy(im->unwind_table + im->unwind_size, bytes, size);
  im->unwind_size += size;
}

static void put_u8(table *t, uint8_t value) { put(t, &value, sizeof value); }
static void put_u32(table *t, uint32_t value) { put(t, &value, sizeof value); }
static void put_u64(table *t, uint64_t value) { put(t, &value, sizeof value); }

static void put_uleb(table *t, uint64_t value) {
  do {
    uint8_t byte = value & 0x7f;
    value >>= 7;
    put_u8(t, value > 0 ? byte | 0x80 : byte);
  } while (value > 0);
}

static void put_saved(table *t, uint8_t reg, uint64_t words_below_frame) {
  put_u8(t, CFA_SAVED | reg);
  put_uleb(t, words_below_frame);
}

static size_t begin_record(table *t) {
  size_t at = t->loading->image->unwind_size;
  put_u32(t, 0); /* its length, once that is known */
  return at;
}

static void end_record(table *t, size_t at) {
  image *im = t->loading->image;
  while ((im->unwind_size - at - 4) % 8 != 0) put_u8(t, 0);
  uint32_t length = im->unwind_size - at - 4;
  memcpy(im->unwind_table + at, &length, sizeof length);
}

/* What a function's entries have in common (CIE). */
typedef struct {
  uint64_t code_alignment;
  int64_t data_alignment;
  uint64_t return_register;
  uint64_t personality; /* 0 if none; all pointers are absolute */
  const uint8_t *instructions;
  size_t instructions_size;
} common;

static size_t put_common(table *t, const common *c) {
  size_t at = begin_record(t);
  put_u32(t, 0); /* it is a CIE */
  put_u8(t, 1);  /* version */
  const char *augmentation = c->personality != 0 ? "zPLR" : "zR";
  put(t, augmentation, strlen(augmentation) + 1);
  put_uleb(t, c->code_alignment);
  put_u8(t, c->data_alignment & 0x7f); /* a small SLEB */
  put_u8(t, c->return_register);
  if (c->personality != 0) {
    put_uleb(t, 11);
    put_u8(t, 0); /* the personality's encoding: absolute */
    put_u64(t, c->personality);
    put_u8(t, 0); /* the language data's */
    put_u8(t, 0); /* the function's address's */
  } else {
    put_uleb(t, 1);
    put_u8(t, 0);
  }
  put(t, c->instructions, c->instructions_size);
  end_record(t, at);
  return at;
}

typedef struct {
  uint64_t start, size, language_data;
} function;

static size_t begin_function(table *t, size_t common_at, bool has_personality, const function *f) {
  size_t at = begin_record(t);
  put_u32(t, t->loading->image->unwind_size - common_at);
  put_u64(t, f->start);
  put_u64(t, f->size);
  put_uleb(t, has_personality ? 8 : 0);
  if (has_personality) put_u64(t, f->language_data);
  t->loading->image->unwind_entries++;
  return at;
}

/* ---- copying an FDE of the image ---- */

enum { POINTER_OMITTED = 0xff, POINTER_INDIRECT = 0x80, POINTER_RELATIVE = 0x10, POINTER_SIGNED_32 = 0x0b, POINTER_32 = 0x03 };

/* A pointer in one of DWARF's encodings; 0 stays 0. */
static uint64_t take_pointer(reader *r, uint8_t encoding) {
  if (encoding == POINTER_OMITTED) return 0;
  const uint8_t *at = r->at;
  uint64_t value;
  switch (encoding & 0x0f) {
    case 0x00: /* of a pointer's size */
    case 0x04:
    case 0x0c: value = take_u64(r); break;
    case POINTER_32: value = take_u32(r); break;
    case POINTER_SIGNED_32: value = (int64_t)(int32_t)take_u32(r); break;
    default: fail(r->loading, "__eh_frame: pointer encoding 0x%x", encoding);
  }
  if (value == 0) return 0;
  if ((encoding & 0x70) == POINTER_RELATIVE) value += (uint64_t)at;
  if (!(encoding & POINTER_INDIRECT)) return value;
  const image *im = r->loading->image;
  reader slot = memory_reader(r->loading, value - (uint64_t)im->base + im->lowest, 8, "__eh_frame");
  return take_u64(&slot);
}

static reader take_record(reader *r) {
  uint32_t size = take_u32(r);
  reader body = *r;
  body.end = (const uint8_t *)take(r, size) + size;
  return body;
}

typedef struct {
  common common;
  bool has_augmentation;
  uint8_t language_encoding, address_encoding;
} own_common;

static own_common read_own_common(reader r) {
  loading *l = r.loading;
  own_common own = {.language_encoding = POINTER_OMITTED};
  if (take_u32(&r) != 0) fail(l, "__eh_frame: an FDE refers to no CIE");
  take_u8(&r); /* version */
  const char *augmentation = take_string(&r);
  own.common.code_alignment = take_uleb(&r);
  own.common.data_alignment = take_sleb(&r);
  own.common.return_register = take_uleb(&r);
  own.has_augmentation = augmentation[0] == 'z';
  if (own.has_augmentation) {
    uint64_t size = take_uleb(&r);
    reader data = r;
    take(&r, size);
    for (const char *letter = augmentation + 1; *letter != '\0'; letter++) {
      if (*letter == 'P') {
        uint8_t encoding = take_u8(&data);
        own.common.personality = take_pointer(&data, encoding);
      } else if (*letter == 'L') own.language_encoding = take_u8(&data);
      else if (*letter == 'R') own.address_encoding = take_u8(&data);
      else fail(l, "__eh_frame: augmentation %s", augmentation);
    }
  }
  own.common.instructions = r.at;
  own.common.instructions_size = r.end - r.at;
  return own;
}

static void copy_own_function(table *t, uint32_t offset) {
  loading *l = t->loading;
  const section *s = section_named(l->image, "__eh_frame");
  if (s == NULL) fail(l, "__unwind_info refers to an __eh_frame that is not there");
  reader all = memory_reader(l, s->address, s->size, "__eh_frame"), at = reader_at(&all, offset), r = take_record(&at);
  uint64_t common_offset = r.at - all.start;
  uint32_t distance = take_u32(&r);
  if (distance > common_offset) fail(l, "__eh_frame: a CIE before the section");
  reader common_reader = reader_at(&all, common_offset - distance);
  own_common own = read_own_common(take_record(&common_reader));

  function f = {0};
  f.start = take_pointer(&r, own.address_encoding);
  f.size = take_pointer(&r, own.address_encoding & 0x0f);
  if (own.has_augmentation) {
    uint64_t size = take_uleb(&r);
    reader data = r;
    take(&r, size);
    if (size > 0) f.language_data = take_pointer(&data, own.language_encoding);
  }
  size_t common_at = put_common(t, &own.common);
  size_t record = begin_function(t, common_at, own.common.personality != 0, &f);
  put(t, r.at, r.end - r.at);
  end_record(t, record);
}

/* ---- compact entries ---- */

/* compact_unwind_encoding.h, UNWIND_X86_64_* */
enum { MODE_RBP = 1, MODE_STACK = 2, MODE_BIG_STACK = 3, MODE_DWARF = 4 };
enum { HAS_LANGUAGE_DATA = 0x40000000 };

/* Registers 1 to 6 of compact unwind. */
static const uint8_t REGISTERS[7] = {0, RBX, R12, R13, R14, R15, RBP};
enum { MOST_SAVED = 6 };

/* %rbp holds the frame: up to five registers, three bits each, from an offset below it. */
static void put_rbp_frame(table *t, uint32_t encoding) {
  uint32_t registers = encoding & 0x7fff, below = encoding >> 16 & 0xff;
  put(t, (uint8_t[]){CFA_DEF, RBP, 16}, 3);
  put_saved(t, RBP, 2);
  for (int i = 0; i < 5; i++, registers >>= 3) {
    uint32_t number = registers & 7;
    if (number > 0 && number < 6) put_saved(t, REGISTERS[number], 2 + below - i);
  }
}

/* Which registers were pushed, in which order, as the number of a permutation. */
static void unpack_permutation(loading *l, uint32_t packed, uint32_t count, uint8_t *order) {
  uint32_t picks[MOST_SAVED];
  for (uint32_t i = 0; i < count; i++) {
    uint32_t weight = 1;
    for (uint32_t k = i + 1; k < count; k++) weight *= MOST_SAVED - k;
    picks[i] = packed / weight;
    packed %= weight;
  }
  bool used[MOST_SAVED + 1] = {false};
  for (uint32_t i = 0; i < count; i++) {
    uint32_t number = 1, left = picks[i];
    while (number <= MOST_SAVED && (used[number] || left-- > 0)) number++;
    if (number > MOST_SAVED) fail(l, "__unwind_info: permutation %u of %u", packed, count);
    used[number] = true;
    order[i] = REGISTERS[number];
  }
}

/* %rsp alone: its distance to the frame is fixed. */
static void put_stack_frame(table *t, uint32_t encoding, const function *f) {
  loading *l = t->loading;
  uint32_t count = encoding >> 10 & 7, size = (encoding >> 16 & 0xff) * 8;
  uint8_t order[MOST_SAVED];
  if (count > MOST_SAVED) fail(l, "__unwind_info: %u saved registers", count);
  if ((encoding >> 24 & 0x0f) == MODE_BIG_STACK) {
    /* The size stands in the code, as the operand of `sub $size, %rsp`. */
    uint64_t at = f->start - (uint64_t)l->image->base + l->image->lowest + (encoding >> 16 & 0xff);
    reader operand = memory_reader(l, at, 4, "a function's first instructions");
    size = take_u32(&operand) + (encoding >> 13 & 7) * 8;
  }
  unpack_permutation(l, encoding & 0x3ff, count, order);
  put_u8(t, CFA_DEF_OFFSET);
  put_uleb(t, size);
  for (uint32_t i = 0; i < count; i++) put_saved(t, order[i], 1 + count - i);
}

/* The CIEs of compact entries: without a personality, then one for each of the image's. */
enum { MOST_PERSONALITIES = 3 };
typedef struct {
  size_t at[1 + MOST_PERSONALITIES];
  uint32_t count;
} commons;

static void put_compact_function(table *t, const commons *c, uint32_t encoding, const function *f) {
  uint32_t mode = encoding >> 24 & 0x0f, personality = encoding >> 28 & 3;
  if (mode == MODE_DWARF) {
    copy_own_function(t, encoding & 0xffffff);
    return;
  }
  if (mode < MODE_RBP || mode > MODE_BIG_STACK) return; /* nothing is known: a walk of the stack ends here */
  if (personality >= c->count) fail(t->loading, "__unwind_info: personality %u", personality);
  size_t record = begin_function(t, c->at[personality], personality != 0, f);
  if (mode == MODE_RBP) put_rbp_frame(t, encoding);
  else put_stack_frame(t, encoding, f);
  end_record(t, record);
}

/* ---- reading __unwind_info ---- */

typedef struct {
  uint32_t version, encodings_offset, encodings_count, personalities_offset, personalities_count, index_offset, index_count;
} unwind_header;

/* A first-level entry: which functions a page holds. All offsets of functions count from the image's start. */
typedef struct {
  uint32_t function, page_offset, language_data_offset;
} unwind_index;

enum { PAGE_REGULAR = 2, PAGE_COMPRESSED = 3 };

typedef struct {
  table table;
  commons commons;
  reader info;
  unwind_header header;
} unwinding;

/* A page is read with the range of functions that it and its language data cover. */
typedef struct {
  uint32_t first, end;
  uint32_t data_from, data_to;
} coverage;

/* Pairs of function and language data, in order of functions. */
static uint64_t find_language_data(unwinding *u, const coverage *c, uint32_t function_offset) {
  reader r = reader_at(&u->info, c->data_from);
  for (uint32_t at = c->data_from; at + 8 <= c->data_to; at += 8) {
    uint32_t of = take_u32(&r), data = take_u32(&r);
    if (of == function_offset) return (uint64_t)u->table.loading->image->base + data;
  }
  return 0;
}

static void put_entry(unwinding *u, const coverage *c, uint32_t start, uint32_t end, uint32_t encoding) {
  if (end <= start) return;
  image *im = u->table.loading->image;
  function f = {.start = (uint64_t)im->base + start, .size = end - start};
  if (encoding & HAS_LANGUAGE_DATA) f.language_data = find_language_data(u, c, start);
  put_compact_function(&u->table, &u->commons, encoding, &f);
}

/* Entries of eight bytes: function, encoding. */
static void read_regular_page(unwinding *u, const coverage *c, reader page, const reader *whole) {
  uint16_t offset = take_u16(&page), count = take_u16(&page);
  reader entries = reader_at(whole, offset);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t start = take_u32(&entries), encoding = take_u32(&entries);
    reader next = entries;
    put_entry(u, c, start, i + 1 < count ? take_u32(&next) : c->end, encoding);
  }
}

/* Entries of four: 24 bits function, from the page's first, 8 bits number of an encoding, the common ones first. */
static void read_compressed_page(unwinding *u, const coverage *c, reader page, const reader *whole) {
  uint16_t offset = take_u16(&page), count = take_u16(&page), encodings = take_u16(&page);
  reader entries = reader_at(whole, offset);
  uint32_t common_count = u->header.encodings_count;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t packed = take_u32(&entries), start = c->first + (packed & 0xffffff), number = packed >> 24;
    reader next = entries;
    uint32_t end = i + 1 < count ? c->first + (take_u32(&next) & 0xffffff) : c->end;
    reader encoding = number < common_count ? reader_at(&u->info, u->header.encodings_offset + 4ull * number)
                                            : reader_at(whole, encodings + 4ull * (number - common_count));
    put_entry(u, c, start, end, take_u32(&encoding));
  }
}

static void read_page(unwinding *u, const coverage *c, uint32_t page_offset) {
  reader whole = reader_at(&u->info, page_offset);
  whole.start = whole.at;
  reader page = whole;
  uint32_t kind = take_u32(&page);
  if (kind == PAGE_REGULAR) read_regular_page(u, c, page, &whole);
  else if (kind == PAGE_COMPRESSED) read_compressed_page(u, c, page, &whole);
  else fail(u->table.loading, "__unwind_info: page of kind %u", kind);
}

static void put_commons(unwinding *u) {
  loading *l = u->table.loading;
  /* At a function's entry: the frame is above the return address. */
  static const uint8_t at_entry[] = {CFA_DEF, RSP, 8, CFA_SAVED | RETURN_ADDRESS, 1};
  common c = {1, -8, RETURN_ADDRESS, 0, at_entry, sizeof at_entry};
  u->commons.at[0] = put_common(&u->table, &c);
  if (u->header.personalities_count > MOST_PERSONALITIES) fail(l, "__unwind_info: too many personalities");
  reader personalities = reader_at(&u->info, u->header.personalities_offset);
  u->commons.count = 1 + u->header.personalities_count;
  for (uint32_t i = 1; i < u->commons.count; i++) {
    reader slot = memory_reader(l, l->image->lowest + take_u32(&personalities), 8, "a personality's pointer");
    c.personality = take_u64(&slot);
    u->commons.at[i] = put_common(&u->table, &c);
  }
}

static unwind_index take_index(reader *r) {
  unwind_index index;
  memcpy(&index, take(r, sizeof index), sizeof index);
  return index;
}

void translate_unwind_info(loading *l) {
  const section *s = section_named(l->image, "__unwind_info");
  if (s == NULL) return;
  unwinding u = {.table.loading = l, .info = memory_reader(l, s->address, s->size, "__unwind_info")};
  reader head = u.info;
  memcpy(&u.header, take(&head, sizeof u.header), sizeof u.header);
  if (u.header.version != 1) fail(l, "__unwind_info of version %u", u.header.version);
  put_commons(&u);
  reader indices = reader_at(&u.info, u.header.index_offset);
  for (uint32_t i = 0; i + 1 < u.header.index_count; i++) { /* the last one only ends the one before it */
    unwind_index index = take_index(&indices);
    reader ahead = indices;
    unwind_index next = take_index(&ahead);
    coverage c = {index.function, next.function, index.language_data_offset, next.language_data_offset};
    if (index.page_offset != 0) read_page(&u, &c, index.page_offset);
  }
  put_u32(&u.table, 0); /* the table's end */
}

void register_unwind_info(const image *im) {
  if (im->unwind_table == NULL) return;
  /* Node's own unwinder is linked into it; the image's calls go to libgcc's. */
  void *libgcc = dlopen("libgcc_s.so.1", RTLD_NOW);
  void (*register_frame)(void *) = libgcc == NULL ? NULL : (void (*)(void *))dlsym(libgcc, "__register_frame");
  if (register_frame != NULL) register_frame(im->unwind_table);
}
