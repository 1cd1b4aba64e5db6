/* The kernel's JavaScript functions. */
#ifndef FACE_H
#define FACE_H
#include <node_api.h>

/* Adds `kernel` to the exports; the first time also fills in the defaults. */
void export_kernel(napi_env env, napi_value exports);

/* Small helpers of both faces: a failing Node-API call leaves an exception pending and the result undefined. */
napi_value make_function(napi_env env, const char *name, napi_callback function);
napi_value make_string(napi_env env, const char *text);
void set_number(napi_env env, napi_value object, const char *name, double value);

#endif
