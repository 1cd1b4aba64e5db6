/* Functions without a frame pointer, which build.mjs compiles so: compact unwind describes them by their stack's size,
   and a large one by where in the code that size stands. */
#include "frames.h"
#include <string.h>

int through_small(int (*next)(int), int left) {
  volatile int kept = left; /* so that this call is not the last thing done */
  return next(left - 1) + kept - left;
}

int through_large(int (*next)(int), int left) {
  char large[100000];
  memset(large, left, sizeof large);
  __asm__ volatile("" : : "r"(large) : "memory");
  return next(left - 1) + large[left] - left;
}

/* Saves registers, whose order the entry also tells. */
int through_saving(int (*next)(int), int left) {
  int a = left * 3, b = left * 5, c = left * 7;
  __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c));
  int result = next(left - 1);
  __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c));
  return result + (a + b + c) - left * 15;
}

/* A frame that compact unwind cannot tell, as Rust has them: its entry points into __eh_frame. */
__asm__(
    ".text\n"
    ".globl _through_described\n"
    "_through_described:\n"
    "  .cfi_startproc\n"
    "  pushq %rbx\n"
    "  .cfi_def_cfa_offset 16\n"
    "  .cfi_offset %rbx, -16\n"
    "  .cfi_same_value %r12\n" /* this is what compact unwind has no word for */
    "  movq %rdi, %rax\n"
    "  leal -1(%rsi), %edi\n"
    "  callq *%rax\n"
    "  popq %rbx\n"
    "  .cfi_def_cfa_offset 8\n"
    "  retq\n"
    "  .cfi_endproc\n");
