/* What the parts of the test module share: small pieces of Node-API. */
#ifndef MODULE_H
#define MODULE_H
#include <node_api.h>

enum { MOST_ARGUMENTS = 4 };

/* The call's arguments as whole numbers; those that are missing are 0. */
void read_numbers(napi_env env, napi_callback_info info, long long *values);
napi_value make_number(napi_env env, double value);
napi_value make_object(napi_env env);
void set_number(napi_env env, napi_value object, const char *name, double value);
void set_bigint(napi_env env, napi_value object, const char *name, unsigned long long value);
void set_text(napi_env env, napi_value object, const char *name, const char *text);

void export_kernel(napi_env env, napi_value exports);
void export_unwinding(napi_env env, napi_value exports);
void export_runtime(napi_env env, napi_value exports);
void add_function(napi_env env, napi_value exports, const char *name, napi_callback function);

#endif
