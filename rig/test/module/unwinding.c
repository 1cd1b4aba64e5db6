/* A walk of the stack through the image's frames. */
#include "frames.h"
#include "module.h"
#include <dlfcn.h>
#include <unwind.h>

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *count) {
  Dl_info image;
  if (dladdr((void *)_Unwind_GetIP(context), &image) == 0) return _URC_END_OF_STACK; /* left the image */
  ++*(int *)count;
  return _URC_NO_REASON;
}

/* Two frames for each step that is left: this one and the one that it goes through. */
__attribute__((noinline)) static int descend(int left) {
  static int (*const ways[])(int (*)(int), int) = {through_small, through_large, through_saving, through_described};
  int count = 0;
  if (left > 0) count = ways[left % 4](descend, left);
  else _Unwind_Backtrace(count_frame, &count);
  __asm__ volatile("" : "+r"(count)); /* so that no call is the last thing done, and loses its frame */
  return count;
}

/* frames(steps): how many frames of the image a walk finds */
static napi_value frames(napi_env env, napi_callback_info info) {
  long long arguments[MOST_ARGUMENTS];
  read_numbers(env, info, arguments);
  return make_number(env, descend((int)arguments[0]));
}

void export_unwinding(napi_env env, napi_value exports) { add_function(env, exports, "frames", frames); }
