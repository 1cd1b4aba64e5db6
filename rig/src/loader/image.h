/* One mapped image, and what the parts of the loader offer each other. `prepare` steps read a file that may be
   damaged: each of them ends the loading by fail(), never by a crash. */
#ifndef IMAGE_H
#define IMAGE_H
#include "macho.h"
#include <node_api.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { MAX_SEGMENTS = 16, MAX_SECTIONS = 96 };

typedef struct {
  char name[17];
  uint64_t address, size; /* as linked, before the slide */
  uint64_t file_offset, file_size;
  uint32_t protection, flags;
} segment;

typedef struct {
  char name[17];
  uint64_t address, size;
  uint32_t type, align_log2;
} section;

typedef struct {
  char *name;
  void *address;
  bool weak, missing;
} import;

/* What a thread's copy of the image's thread-local variables begins as. */
typedef struct {
  uint8_t *bytes;
  uint64_t size, alignment;
  uint64_t key; /* the image's place in each thread's table */
} thread_local_template;

typedef void (*initialiser)(int, const char **, char **, const char **, void *);

typedef struct image {
  struct image *next;
  char *path;
  struct stat file; /* which file it is: a rebuilt one is another image */

  uint8_t *base; /* where `lowest` was mapped */
  uint64_t lowest, size;
  segment segments[MAX_SEGMENTS];
  int segment_count;
  section sections[MAX_SECTIONS];
  int section_count;

  import *imports;
  int import_count;
  void *targets; /* of chained fixups */
  uint8_t *stubs; /* one for each unknown symbol: says its name and aborts */
  int stub_count;

  thread_local_template tlv;
  uint8_t *unwind_table;
  size_t unwind_size;

  napi_addon_register_func register_module;
  int32_t (*api_version)(void);
  initialiser *initialisers;
  uint32_t initialiser_count;
  bool initialised;
  bool pinned; /* asked to stay for ever, which here it does anyway */

  uint32_t rebases, binds, unwind_entries;
  bool chained;
} image;

/* An image while its file is read. */
typedef struct {
  image *image;
  uint8_t *file;
  size_t file_size;
  macho_blob rebase, bind, weak_bind, lazy_bind, exports, chained;
  bool has_dyld_info;
  jmp_buf on_failure;
  char *message;
  size_t message_size;
} loading;

__attribute__((noreturn, format(printf, 2, 3))) void fail(loading *l, const char *format, ...);

/* Bytes that are read one after the other; reading past the end fails the loading. */
typedef struct {
  loading *loading;
  const uint8_t *start, *at, *end;
  const char *what;
} reader;

reader memory_reader(loading *l, uint64_t address, uint64_t size, const char *what);
reader file_reader(loading *l, macho_blob blob, const char *what); /* of a range of the file that is mapped */
reader reader_at(const reader *whole, uint64_t offset);            /* from there to the same end */
const void *take(reader *r, uint64_t size);
uint8_t take_u8(reader *r);
uint16_t take_u16(reader *r);
uint32_t take_u32(reader *r);
uint64_t take_u64(reader *r);
uint64_t take_uleb(reader *r);
int64_t take_sleb(reader *r);
const char *take_string(reader *r);

/* The mapped bytes of [address, address + size). */
uint8_t *memory_at(loading *l, uint64_t address, uint64_t size);
bool is_code(const image *im, uint64_t address);
const section *next_section(const image *im, const section *after, uint32_t type);
const section *section_named(const image *im, const char *name);

/* segments.c */
void read_file(loading *l);
void read_commands(loading *l);
void map_segments(loading *l);
void protect_segments(loading *l);

/* fixups.c, chained.c */
void apply_dyld_info(loading *l);
void apply_chained_fixups(loading *l);

/* symbols.c */
enum { STUB_SIZE = 32, MAX_STUBS = 256 };
void *resolve_symbol(loading *l, const char *name, bool weak, bool own_first);
__attribute__((noreturn)) void missing_symbol(const char *name);

/* exports.c: an exported symbol's address, NULL if there is none */
void *find_export(loading *l, const char *name);

/* tlv.c */
void install_thread_locals(loading *l);
void publish_thread_locals(image *im);
long thread_local_blocks(void);
void darwin_tlv_atexit(void (*destructor)(void *), void *argument);

/* unwind.c */
void translate_unwind_info(loading *l);
void register_unwind_info(const image *im);

/* initialise.c */
void find_initialisers(loading *l);
void run_initialisers(image *im);

/* image.c: maps a file once; NULL and a message if that cannot be done. Runs none of its code. */
image *open_image(const char *path, char *message, size_t message_size);
void initialise_image(image *im); /* once, before anything else of it runs */
image *image_at(const void *address);
image *image_of_path(const char *path); /* if it is loaded */
int count_images(void);

#endif
