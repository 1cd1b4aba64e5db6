/* The rig's own Node addon. Node gives every addon that it loads an environment, with the Node-API version that the
   addon asks for. So an image is registered by loading the rig once more: index.mjs does that inside register(),
   which has noted the image, and the rig's entry points then answer for the image. */
#include "crash.h"
#include "kernel/face.h"
#include "loader/image.h"
#include <pthread.h>
#include <stdatomic.h>

enum { OWN_API_VERSION = 8, MESSAGE_SIZE = 512, PATH_SIZE = 4096 };

static __thread image *being_registered __attribute__((tls_model("initial-exec")));
static _Atomic long registrations;

napi_value make_function(napi_env env, const char *name, napi_callback function) {
  napi_value value = NULL;
  napi_create_function(env, name, NAPI_AUTO_LENGTH, function, NULL, &value);
  return value;
}

napi_value make_string(napi_env env, const char *text) {
  napi_value value = NULL;
  napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
  return value;
}

void set_number(napi_env env, napi_value object, const char *name, double value) {
  napi_value number;
  napi_create_double(env, value, &number);
  napi_set_named_property(env, object, name, number);
}

/* NULL with an exception pending. */
static image *open_argument(napi_env env, napi_value argument) {
  char path[PATH_SIZE], message[MESSAGE_SIZE];
  size_t length;
  if (napi_get_value_string_utf8(env, argument, path, sizeof path, &length) != napi_ok) {
    napi_throw_type_error(env, NULL, "a path must be a string");
    return NULL;
  }
  image *im = open_image(path, message, sizeof message);
  if (im == NULL) napi_throw_error(env, "ERR_RIG", message);
  return im;
}

/* register(path, callback): the rig is loaded by the callback, whose value it returns. */
static napi_value register_image(napi_env env, napi_callback_info info) {
  napi_value arguments[2], undefined, result = NULL;
  size_t count = 2;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  image *im = open_argument(env, arguments[0]);
  if (im == NULL) return NULL;
  initialise_image(im);
  napi_get_undefined(env, &undefined);
  being_registered = im;
  napi_call_function(env, undefined, arguments[1], 0, NULL, &result);
  being_registered = NULL;
  return result;
}

static void add_name(napi_env env, napi_value array, const char *name) {
  uint32_t length;
  napi_get_array_length(env, array, &length);
  napi_set_element(env, array, length, make_string(env, name));
}

static napi_value add_list(napi_env env, napi_value object, const char *name) {
  napi_value array;
  napi_create_array(env, &array);
  napi_set_named_property(env, object, name, array);
  return array;
}

/* info(path): maps the file, but runs none of its code. */
static napi_value info_of(napi_env env, napi_callback_info info) {
  napi_value argument, object, chained, pinned;
  size_t count = 1;
  napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
  const image *im = open_argument(env, argument);
  if (im == NULL) return NULL;
  napi_create_object(env, &object);
  napi_value imports = add_list(env, object, "imports"), unresolved = add_list(env, object, "unresolved"),
             weak_missing = add_list(env, object, "weakMissing");
  for (int i = 0; i < im->import_count; i++) {
    const import *imported = &im->imports[i];
    add_name(env, imports, imported->name);
    if (imported->missing) add_name(env, imported->weak ? weak_missing : unresolved, imported->name);
  }
  napi_get_boolean(env, im->chained, &chained);
  napi_set_named_property(env, object, "chainedFixups", chained);
  napi_get_boolean(env, im->pinned, &pinned);
  napi_set_named_property(env, object, "pinned", pinned);
  set_number(env, object, "rebases", im->rebases);
  set_number(env, object, "binds", im->binds);
  set_number(env, object, "initialisers", im->initialiser_count);
  set_number(env, object, "unwindEntries", im->unwind_entries);
  set_number(env, object, "threadLocalBytes", im->tlv.size);
  return object;
}

/* stats(): what a leak would show in. */
static napi_value stats(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value object;
  napi_create_object(env, &object);
  set_number(env, object, "images", count_images());
  set_number(env, object, "registrations", registrations);
  set_number(env, object, "threadLocalBlocks", thread_local_blocks());
  return object;
}

static napi_value export_rig(napi_env env, napi_value exports) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, report_crashes);
  napi_set_named_property(env, exports, "register", make_function(env, "register", register_image));
  napi_set_named_property(env, exports, "info", make_function(env, "info", info_of));
  napi_set_named_property(env, exports, "stats", make_function(env, "stats", stats));
  export_kernel(env, exports);
  return exports;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int32_t node_api_module_get_api_version_v1(void) {
  if (being_registered == NULL || being_registered->api_version == NULL) return OWN_API_VERSION;
  return being_registered->api_version();
}

EXPORT napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  image *im = being_registered;
  if (im == NULL) return export_rig(env, exports);
  being_registered = NULL;
  registrations++;
  napi_value own = im->register_module(env, exports);
  return own == NULL ? exports : own;
}
