/* The Mach-O format as far as the loader reads it: numbers from Apple's <mach-o/loader.h>, <mach-o/fixup-chains.h>
   and <mach-o/compact_unwind_encoding.h>, which no Linux machine has. All values are little-endian. */
#ifndef MACHO_H
#define MACHO_H
#include <stdint.h>

enum {
  MACHO_MAGIC_64 = 0xfeedfacf,
  MACHO_CPU_X86_64 = 0x01000007,
  MACHO_DYLIB = 6,
  MACHO_BUNDLE = 8,
};

typedef struct {
  uint32_t magic, cpu_type, cpu_subtype, file_type, command_count, commands_size, flags, reserved;
} macho_header;

/* The bit that says "dyld must know this command" is masked off. */
enum {
  LC_REQUIRED_BY_DYLD = 0x80000000,
  LC_SEGMENT_64 = 0x19,
  LC_DYLD_INFO = 0x22,
  LC_DYLD_EXPORTS_TRIE = 0x33,
  LC_DYLD_CHAINED_FIXUPS = 0x34,
};

typedef struct {
  uint32_t command, size;
} macho_command;

typedef struct {
  uint32_t command, size;
  char name[16];
  uint64_t address, memory_size, file_offset, file_size;
  uint32_t max_protection, protection, section_count, flags;
} macho_segment;

enum { VM_READ = 1, VM_WRITE = 2, VM_EXECUTE = 4 };
/* Of a segment's flags: to be made read-only after its fixups (__DATA_CONST). */
enum { SEGMENT_READ_ONLY = 0x10 };

typedef struct {
  char name[16], segment[16];
  uint64_t address, size;
  uint32_t file_offset, align_log2, relocations, relocation_count, flags, reserved[3];
} macho_section;

/* The low byte of a section's flags. */
enum {
  SECTION_INITIALISER_POINTERS = 9,
  SECTION_THREAD_LOCAL_DATA = 0x11,
  SECTION_THREAD_LOCAL_ZEROES = 0x12,
  SECTION_THREAD_LOCAL_DESCRIPTORS = 0x13,
  SECTION_THREAD_LOCAL_INITIALISERS = 0x15,
  SECTION_INITIALISER_OFFSETS = 0x16,
};

/* A range of the file, in __LINKEDIT. */
typedef struct {
  uint32_t offset, size;
} macho_blob;

typedef struct {
  uint32_t command, size;
  macho_blob rebase, bind, weak_bind, lazy_bind, exports;
} macho_dyld_info;

typedef struct {
  uint32_t command, size;
  macho_blob data;
} macho_linkedit_data;

/* A thread-local variable; see tlv.c. */
typedef struct {
  uint64_t thunk, key, offset;
} macho_thread_local;

#endif
