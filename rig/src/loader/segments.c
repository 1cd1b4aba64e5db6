/* From a file to mapped segments: reads the header and the load commands, copies each segment to its place in one
   slid range of addresses, and at last gives each its protection. */
#include "image.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };
static const uint64_t LARGEST = 1ull << 30;

void read_file(loading *l) {
  int file = open(l->image->path, O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(l, "cannot open %s: %s", l->image->path, strerror(errno));
  l->file_size = l->image->file.st_size;
  l->file = malloc(l->file_size + 1);
  size_t got = 0;
  ssize_t more;
  while (got < l->file_size && (more = read(file, l->file + got, l->file_size - got)) > 0) got += more;
  close(file);
  if (got != l->file_size) fail(l, "%s changed while it was read", l->image->path);
}

static macho_header read_header(loading *l) {
  macho_header header;
  const char *path = l->image->path;
  if (l->file_size < sizeof header) fail(l, "%s is too short for a Mach-O file", path);
  memcpy(&header, l->file, sizeof header);
  if (header.magic != MACHO_MAGIC_64) fail(l, "%s is not a 64-bit Mach-O file", path);
  if (header.cpu_type != MACHO_CPU_X86_64) {
    fail(l, "%s is for CPU type 0x%x; only x86_64 code can run here", path, header.cpu_type);
  }
  if (header.file_type != MACHO_DYLIB && header.file_type != MACHO_BUNDLE) {
    fail(l, "%s has file type %u, neither a library nor a bundle", path, header.file_type);
  }
  return header;
}

static void add_section(loading *l, reader *r) {
  image *im = l->image;
  macho_section from;
  memcpy(&from, take(r, sizeof from), sizeof from);
  if (im->section_count == MAX_SECTIONS) fail(l, "too many sections");
  section *s = &im->sections[im->section_count++];
  memcpy(s->name, from.name, sizeof from.name);
  s->address = from.address;
  s->size = from.size;
  s->type = from.flags & 0xff;
  s->align_log2 = from.align_log2;
  if (s->type == SECTION_THREAD_LOCAL_INITIALISERS) fail(l, "thread-local initialisers are not supported");
}

static void add_segment(loading *l, reader *r) {
  image *im = l->image;
  macho_segment from;
  memcpy(&from, take(r, sizeof from), sizeof from);
  if (im->segment_count == MAX_SEGMENTS) fail(l, "too many segments");
  segment *s = &im->segments[im->segment_count++];
  memcpy(s->name, from.name, sizeof from.name);
  s->address = from.address;
  s->size = from.memory_size;
  s->file_offset = from.file_offset;
  s->file_size = from.file_size;
  s->protection = from.protection;
  s->flags = from.flags;
  bool in_memory = s->address % PAGE == 0 && s->size <= LARGEST && s->address <= UINT64_MAX - LARGEST;
  bool in_file = s->file_size <= s->size && s->file_offset <= l->file_size && s->file_size <= l->file_size - s->file_offset;
  if (!in_memory || !in_file) fail(l, "segment %s has an impossible extent", s->name);
  for (uint32_t i = 0; i < from.section_count; i++) add_section(l, r);
}

static void read_command(loading *l, uint32_t command, reader r) {
  switch (command) {
    case LC_SEGMENT_64: add_segment(l, &r); break;
    case LC_DYLD_INFO: {
      macho_dyld_info info;
      memcpy(&info, take(&r, sizeof info), sizeof info);
      l->rebase = info.rebase;
      l->bind = info.bind;
      l->weak_bind = info.weak_bind;
      l->lazy_bind = info.lazy_bind;
      l->exports = info.exports;
      l->has_dyld_info = true;
      break;
    }
    case LC_DYLD_CHAINED_FIXUPS:
    case LC_DYLD_EXPORTS_TRIE: {
      macho_linkedit_data linkedit;
      memcpy(&linkedit, take(&r, sizeof linkedit), sizeof linkedit);
      *(command == LC_DYLD_EXPORTS_TRIE ? &l->exports : &l->chained) = linkedit.data;
      break;
    }
    default: break; /* symbol tables, versions, signatures: dyld needs none of them to bind */
  }
}

static void measure(loading *l) {
  image *im = l->image;
  uint64_t lowest = UINT64_MAX, highest = 0;
  for (int i = 0; i < im->segment_count; i++) {
    const segment *s = &im->segments[i];
    if (s->address < lowest) lowest = s->address;
    if (s->address + s->size > highest) highest = s->address + s->size;
  }
  if (highest <= lowest || highest - lowest > LARGEST) fail(l, "the segments span no usable range");
  im->lowest = lowest;
  im->size = highest - lowest;
}

/* A store to one segment must not change another. */
static void refuse_overlaps(loading *l) {
  const image *im = l->image;
  for (int i = 0; i < im->segment_count; i++) {
    for (int k = 0; k < i; k++) {
      const segment *a = &im->segments[i], *b = &im->segments[k];
      if (a->address < b->address + b->size && b->address < a->address + a->size) fail(l, "segments overlap");
    }
  }
}

void read_commands(loading *l) {
  macho_header header = read_header(l);
  if (header.commands_size > l->file_size - sizeof header) fail(l, "the load commands overrun the file");
  const uint8_t *start = l->file + sizeof header;
  reader all = {l, start, start, start + header.commands_size, "the load commands"};
  for (uint32_t i = 0; i < header.command_count; i++) {
    reader peek = all;
    macho_command command;
    memcpy(&command, take(&peek, sizeof command), sizeof command);
    if (command.size < sizeof command) fail(l, "load command %u has no size", i);
    const uint8_t *at = take(&all, command.size);
    reader body = {l, at, at, at + command.size, "a load command"};
    read_command(l, command.command & ~LC_REQUIRED_BY_DYLD, body);
  }
  measure(l);
  refuse_overlaps(l);
}

void map_segments(loading *l) {
  image *im = l->image;
  void *base = mmap(NULL, im->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) fail(l, "cannot reserve memory: %s", strerror(errno));
  im->base = base;
  for (int i = 0; i < im->segment_count; i++) {
    const segment *s = &im->segments[i];
    uint8_t *at = im->base + (s->address - im->lowest);
    if (s->size == 0) continue;
    if (mprotect(at, s->size, PROT_READ | PROT_WRITE) != 0) fail(l, "cannot map %s: %s", s->name, strerror(errno));
    memcpy(at, l->file + s->file_offset, s->file_size);
  }
  void *stubs = mmap(NULL, MAX_STUBS * STUB_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stubs == MAP_FAILED) fail(l, "cannot map the stubs: %s", strerror(errno));
  im->stubs = stubs;
}

static int host_protection(const segment *s) {
  int protection = 0;
  if (s->protection & VM_READ) protection |= PROT_READ;
  if (s->protection & VM_WRITE && !(s->flags & SEGMENT_READ_ONLY)) protection |= PROT_WRITE;
  if (s->protection & VM_EXECUTE) protection |= PROT_EXEC;
  return protection;
}

void protect_segments(loading *l) {
  image *im = l->image;
  for (int i = 0; i < im->segment_count; i++) {
    const segment *s = &im->segments[i];
    if (s->size == 0) continue;
    if (mprotect(im->base + (s->address - im->lowest), s->size, host_protection(s)) != 0) {
      fail(l, "cannot protect %s: %s", s->name, strerror(errno));
    }
  }
  mprotect(im->stubs, MAX_STUBS * STUB_SIZE, PROT_READ | PROT_EXEC);
}
