/* A Mach-O addon in plain C for the rig's tests, compiled against Apple's own headers. */
#include "module.h"
#include <stdlib.h>

void read_numbers(napi_env env, napi_callback_info info, long long *values) {
  napi_value arguments[MOST_ARGUMENTS];
  size_t count = MOST_ARGUMENTS;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  for (int i = 0; i < MOST_ARGUMENTS; i++) {
    values[i] = 0;
    napi_get_value_int64(env, arguments[i], &values[i]);
  }
}

napi_value make_number(napi_env env, double value) {
  napi_value number;
  napi_create_double(env, value, &number);
  return number;
}

napi_value make_object(napi_env env) {
  napi_value object;
  napi_create_object(env, &object);
  return object;
}

void set_number(napi_env env, napi_value object, const char *name, double value) {
  napi_set_named_property(env, object, name, make_number(env, value));
}

void set_bigint(napi_env env, napi_value object, const char *name, unsigned long long value) {
  napi_value number;
  napi_create_bigint_uint64(env, value, &number);
  napi_set_named_property(env, object, name, number);
}

void set_text(napi_env env, napi_value object, const char *name, const char *text) {
  napi_value string;
  napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &string);
  napi_set_named_property(env, object, name, string);
}

void add_function(napi_env env, napi_value exports, const char *name, napi_callback function) {
  napi_value value;
  napi_create_function(env, name, NAPI_AUTO_LENGTH, function, NULL, &value);
  napi_set_named_property(env, exports, name, value);
}

static void free_data(napi_env env, void *data, void *hint) {
  (void)env, (void)hint;
  free(data);
}

/* How often this environment was registered: more than once would mean that it is shared. */
static double count_registrations(napi_env env) {
  int *count = NULL;
  napi_get_instance_data(env, (void **)&count);
  if (count == NULL) {
    count = calloc(1, sizeof *count);
    napi_set_instance_data(env, count, free_data, NULL);
  }
  return ++*count;
}

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  set_number(env, exports, "registrationsInThisEnvironment", count_registrations(env));
  export_kernel(env, exports);
  export_runtime(env, exports);
  export_unwinding(env, exports);
  return exports;
}

__attribute__((visibility("default"))) int32_t node_api_module_get_api_version_v1(void) { return 8; }
