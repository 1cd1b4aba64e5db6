/* Thread-local variables. A variable has a descriptor {thunk, key, offset} in the image; compiled code loads the
   descriptor's address into %rdi and calls the thunk, which gives the variable's address in %rax and keeps every
   other register, the vector ones too. dyld fills in thunk and key; here the key is the image's number, and each
   thread has a table of its copies of the images' templates. */
#include "image.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IMAGES = 1024, LEAST_ALIGNMENT = 16, LARGEST_ALIGN_LOG2 = 14 };

static const thread_local_template *templates[MAX_IMAGES];
static uint64_t template_count;
static _Atomic long living_blocks;

/* A thread's table: how many blocks it has room for, then the blocks. NULL before the thread's first access. */
typedef struct {
  uint64_t room;
  void *blocks[];
} block_table;

__thread block_table *rig_block_table __attribute__((tls_model("initial-exec"), visibility("hidden")));

static pthread_key_t cleanup_key;
static pthread_once_t cleanup_once = PTHREAD_ONCE_INIT;

long thread_local_blocks(void) { return living_blocks; }

static void free_table(void *value) {
  block_table *table = value;
  for (uint64_t i = 0; i < table->room; i++) {
    if (table->blocks[i] == NULL) continue;
    free(table->blocks[i]);
    living_blocks--;
  }
  free(table);
  rig_block_table = NULL;
}

static void make_cleanup_key(void) { pthread_key_create(&cleanup_key, free_table); }

static block_table *table_with_room(uint64_t key) {
  block_table *old = rig_block_table;
  if (old != NULL && key < old->room) return old;
  uint64_t had = old == NULL ? 0 : old->room, room = key + 4;
  block_table *table = realloc(old, sizeof *table + room * sizeof(void *));
  if (table == NULL) abort();
  memset(table->blocks + had, 0, (room - had) * sizeof(void *));
  table->room = room;
  pthread_once(&cleanup_once, make_cleanup_key);
  pthread_setspecific(cleanup_key, table);
  rig_block_table = table;
  return table;
}

/* The thunk's slow path: the thread's first access to a variable of the image. */
__attribute__((used, visibility("hidden"))) void *rig_thread_local_slow(const macho_thread_local *variable) {
  uint64_t key = variable->key;
  if (key >= template_count) missing_symbol("a thread-local variable of no image");
  block_table *table = table_with_room(key);
  if (table->blocks[key] == NULL) {
    const thread_local_template *from = templates[key];
    void *block;
    if (posix_memalign(&block, from->alignment, from->size) != 0) abort();
    memcpy(block, from->bytes, from->size);
    table->blocks[key] = block;
    living_blocks++;
  }
  return (char *)table->blocks[key] + variable->offset;
}

void rig_thread_local_thunk(void);
__asm__(
    ".text\n"
    ".hidden rig_thread_local_thunk\n"
    ".globl rig_thread_local_thunk\n"
    ".type rig_thread_local_thunk, @function\n"
    "rig_thread_local_thunk:\n"
    /* Fast path: the thread's table has the image's block. */
    "  movq rig_block_table@gottpoff(%rip), %rax\n"
    "  movq %fs:(%rax), %rax\n"
    "  testq %rax, %rax\n"
    "  je 2f\n"
    "  pushq %rcx\n"
    "  movq 8(%rdi), %rcx\n" /* key */
    "  cmpq (%rax), %rcx\n"  /* room */
    "  jae 1f\n"
    "  movq 8(%rax,%rcx,8), %rax\n"
    "  testq %rax, %rax\n"
    "  je 1f\n"
    "  popq %rcx\n"
    "  addq 16(%rdi), %rax\n" /* offset */
    "  ret\n"
    "1:\n"
    "  popq %rcx\n"
    /* Slow path: save what C may change, including the SSE registers. */
    "2:\n"
    "  pushq %rbp\n"
    "  movq %rsp, %rbp\n"
    "  pushq %rcx\n"
    "  pushq %rdx\n"
    "  pushq %rsi\n"
    "  pushq %rdi\n"
    "  pushq %r8\n"
    "  pushq %r9\n"
    "  pushq %r10\n"
    "  pushq %r11\n"
    "  subq $512, %rsp\n"
    "  andq $-64, %rsp\n"
    "  fxsave64 (%rsp)\n"
    "  cld\n"
    "  call rig_thread_local_slow\n"
    "  fxrstor64 (%rsp)\n"
    "  leaq -64(%rbp), %rsp\n"
    "  popq %r11\n"
    "  popq %r10\n"
    "  popq %r9\n"
    "  popq %r8\n"
    "  popq %rdi\n"
    "  popq %rsi\n"
    "  popq %rdx\n"
    "  popq %rcx\n"
    "  popq %rbp\n"
    "  ret\n"
    ".size rig_thread_local_thunk, .-rig_thread_local_thunk\n");

/* Destructors of Rust's thread-locals: they run before the thread's blocks are freed, newest first. */
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern void *__dso_handle;
void darwin_tlv_atexit(void (*destructor)(void *), void *argument) {
  __cxa_thread_atexit_impl(destructor, argument, &__dso_handle);
}

/* The range of the template's sections: initial data first, then zeroes. */
typedef struct {
  uint64_t from, to, data_to, alignment;
} extent;

static void widen(extent *e, const section *s) {
  uint64_t end = s->address + s->size;
  if (s->address < e->from) e->from = s->address;
  if (end > e->to) e->to = end;
  if (s->type == SECTION_THREAD_LOCAL_DATA && end > e->data_to) e->data_to = end;
  if (s->align_log2 <= LARGEST_ALIGN_LOG2 && 1ull << s->align_log2 > e->alignment) e->alignment = 1ull << s->align_log2;
}

static void read_template(loading *l) {
  image *im = l->image;
  extent e = {.from = UINT64_MAX, .alignment = LEAST_ALIGNMENT};
  for (int i = 0; i < im->section_count; i++) {
    const section *s = &im->sections[i];
    bool part = s->type == SECTION_THREAD_LOCAL_DATA || s->type == SECTION_THREAD_LOCAL_ZEROES;
    if (!part || s->size == 0) continue;
    memory_at(l, s->address, s->size);
    widen(&e, s);
  }
  if (e.to == 0) fail(l, "thread-local variables without a template");
  const uint8_t *from = memory_at(l, e.from, e.to - e.from);
  im->tlv.size = e.to - e.from;
  im->tlv.alignment = e.alignment;
  im->tlv.bytes = calloc(1, im->tlv.size);
  if (e.data_to > e.from) memcpy(im->tlv.bytes, from, e.data_to - e.from);
}

static void install_descriptors(loading *l, const section *s) {
  for (uint64_t at = 0; at + sizeof(macho_thread_local) <= s->size; at += sizeof(macho_thread_local)) {
    uint8_t *place = memory_at(l, s->address + at, sizeof(macho_thread_local));
    macho_thread_local variable;
    memcpy(&variable, place, sizeof variable); /* zig does not align this section */
    if (variable.offset >= l->image->tlv.size) fail(l, "a thread-local variable lies outside its template");
    variable.thunk = (uint64_t)rig_thread_local_thunk;
    variable.key = l->image->tlv.key;
    memcpy(place, &variable, sizeof variable);
  }
}

void install_thread_locals(loading *l) {
  image *im = l->image;
  const section *s = next_section(im, NULL, SECTION_THREAD_LOCAL_DESCRIPTORS);
  if (s == NULL) return;
  if (template_count == MAX_IMAGES) fail(l, "more than %d images have thread-local variables", MAX_IMAGES);
  read_template(l);
  im->tlv.key = template_count;
  for (; s != NULL; s = next_section(im, s, SECTION_THREAD_LOCAL_DESCRIPTORS)) install_descriptors(l, s);
}

/* Once nothing can fail any more: threads may now ask for a block. */
void publish_thread_locals(image *im) {
  if (im->tlv.bytes != NULL) templates[template_count++] = &im->tlv;
}
