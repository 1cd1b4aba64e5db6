/* Scripts arrive here from script.mjs, which has checked them: numbers as 64-bit words in the order of the tables
   in kernel.h, texts and bytes beside them. Everything is read first and changed then, under one hold of the lock. */
#include "face.h"
#include "kernel.h"
#include "../darwin.h"
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* All numbers of a process, as they lie in the structure. */
enum {
  WORDS_AT = offsetof(process, given),
  PROCESS_WORDS = (offsetof(process, comm) - WORDS_AT) / sizeof(int64_t),
};
_Static_assert(PROCESS_WORDS == 1 + NUMBER_COUNT + OVERRIDE_COUNT * (4 + 3 * MAX_PATCHES), "no gaps");
_Static_assert(GIVEN_arguments < 64, "one bit for each");

static bool read_words(napi_env env, napi_value value, void *words, size_t count) {
  napi_typedarray_type type;
  size_t length;
  void *data;
  if (napi_get_typedarray_info(env, value, &type, &length, &data, NULL, NULL) == napi_ok && type == napi_bigint64_array &&
      length == count) {
    memcpy(words, data, count * sizeof(int64_t));
    return true;
  }
  napi_throw_type_error(env, NULL, "rig: a script's words do not fit: index.mjs and rig.node are of different versions");
  return false;
}

static napi_value property(napi_env env, napi_value object, const char *name) {
  napi_value value = NULL;
  napi_get_named_property(env, object, name, &value);
  return value;
}

static void read_text(napi_env env, napi_value value, char *text, size_t size) {
  size_t length;
  napi_get_value_string_utf8(env, value, text, size, &length);
}

static void read_bytes(napi_env env, napi_value value, uint8_t **bytes, size_t *size) {
  void *data;
  *bytes = NULL;
  if (napi_get_buffer_info(env, value, &data, size) != napi_ok) return;
  *bytes = malloc(*size + 1);
  memcpy(*bytes, data, *size);
}

/* A path: as long as it is. */
static char *read_long_text(napi_env env, napi_value value) {
  size_t length = 0;
  napi_get_value_string_utf8(env, value, NULL, 0, &length);
  char *text = malloc(length + 1);
  read_text(env, value, text, length + 1);
  return text;
}

static process *read_process(napi_env env, napi_value from) {
  process *p = calloc(1, sizeof *p);
  if (!read_words(env, property(env, from, "words"), (char *)p + WORDS_AT, PROCESS_WORDS)) {
    free(p);
    return NULL;
  }
  if (is_given(p, GIVEN_comm)) read_text(env, property(env, from, "comm"), p->comm, sizeof p->comm);
  if (is_given(p, GIVEN_name)) read_text(env, property(env, from, "name"), p->name, sizeof p->name);
  if (is_given(p, GIVEN_exe)) p->exe = read_long_text(env, property(env, from, "exe"));
  if (is_given(p, GIVEN_cwd)) p->cwd = read_long_text(env, property(env, from, "cwd"));
  if (is_given(p, GIVEN_arguments)) read_bytes(env, property(env, from, "arguments"), &p->arguments, &p->arguments_size);
  return p;
}

/* In the array's order; false leaves an exception pending. */
static bool read_processes(napi_env env, napi_value array, process **list) {
  uint32_t count = 0;
  napi_get_array_length(env, array, &count);
  *list = NULL;
  for (uint32_t i = 0; i < count; i++) {
    napi_value from;
    napi_get_element(env, array, i, &from);
    if ((*list = read_process(env, from)) == NULL) return false;
    list = &(*list)->next;
  }
  return true;
}

static bool read_hook(napi_env env, napi_value from, hook *h) {
  return read_words(env, property(env, from, "words"), h->numbers, HOOK_COUNT) &&
         read_processes(env, property(env, from, "set"), &h->set) &&
         read_processes(env, property(env, from, "replace"), &h->replace) &&
         read_processes(env, property(env, from, "add"), &h->add);
}

static void free_hooks(hook *list) {
  while (list != NULL) {
    hook *next = list->next;
    free_hook(list);
    list = next;
  }
}

static bool read_hooks(napi_env env, napi_value array, hook **list) {
  uint32_t count = 0;
  napi_get_array_length(env, array, &count);
  *list = NULL;
  for (uint32_t i = 0; i < count; i++) {
    napi_value from;
    napi_get_element(env, array, i, &from);
    *list = calloc(1, sizeof **list);
    if (!read_hook(env, from, *list)) return false;
    list = &(*list)->next;
  }
  return true;
}

/* A mask of what is given, then all numbers; the rest keeps its default. */
typedef struct {
  int64_t given, numbers[CONFIG_COUNT];
} config_words;

static void change_config(const config_words *words, const char *boot_session) {
  reset_config();
  for (int i = 0; i < CONFIG_COUNT; i++) {
    if (words->given >> i & 1) config.numbers[i] = words->numbers[i];
  }
  bool only_uid = words->given >> CONFIG_uid & 1 && !(words->given >> CONFIG_euid & 1);
  if (only_uid) config.euid = config.uid;
  if (*boot_session != '\0') memcpy(config.bootSession, boot_session, sizeof config.bootSession);
}

/* ---- changing; each takes what it is given ---- */

static void insert_all(process *list) {
  while (list != NULL) {
    process *next = list->next;
    insert_process(list);
    list = next;
  }
}

static void add_all(hook *list) {
  while (list != NULL) {
    hook *next = list->next;
    list->next = NULL;
    add_hook(list);
    list = next;
  }
}

/* ---- functions ---- */

enum { MOST_ARGUMENTS = 4 };

static void read_arguments(napi_env env, napi_callback_info info, napi_value *values) {
  size_t count = MOST_ARGUMENTS;
  napi_get_cb_info(env, info, &count, values, NULL, NULL); /* undefined where there are fewer */
}

/* reset(config words, boot session, processes, hooks) */
static napi_value reset(napi_env env, napi_callback_info info) {
  napi_value values[MOST_ARGUMENTS];
  read_arguments(env, info, values);
  config_words words;
  char boot_session[sizeof config.bootSession] = "";
  process *list = NULL;
  hook *hooks = NULL;
  bool read = read_words(env, values[0], &words, 1 + CONFIG_COUNT) && read_processes(env, values[2], &list) &&
              read_hooks(env, values[3], &hooks);
  if (!read) {
    free_processes(list);
    free_hooks(hooks);
    return NULL;
  }
  read_text(env, values[1], boot_session, sizeof boot_session);
  pthread_mutex_lock(&kernel_lock);
  reset_hooks();
  reset_processes();
  clear_log();
  change_config(&words, boot_session);
  insert_all(list);
  add_all(hooks);
  pthread_mutex_unlock(&kernel_lock);
  return NULL;
}

/* add(processes) */
static napi_value add(napi_env env, napi_callback_info info) {
  napi_value values[MOST_ARGUMENTS];
  read_arguments(env, info, values);
  process *list;
  if (!read_processes(env, values[0], &list)) {
    free_processes(list);
    return NULL;
  }
  pthread_mutex_lock(&kernel_lock);
  insert_all(list);
  pthread_mutex_unlock(&kernel_lock);
  return NULL;
}

/* patch(pid, process): whether there is such a process */
static napi_value patch(napi_env env, napi_callback_info info) {
  napi_value values[MOST_ARGUMENTS], result;
  read_arguments(env, info, values);
  int64_t pid = -1;
  napi_get_value_int64(env, values[0], &pid);
  process *partial = read_process(env, values[1]);
  if (partial == NULL) return NULL;
  pthread_mutex_lock(&kernel_lock);
  process *p = find_process(pid);
  if (p != NULL) merge_process(p, partial);
  pthread_mutex_unlock(&kernel_lock);
  free_processes(partial);
  napi_get_boolean(env, p != NULL, &result);
  return result;
}

/* remove(pid) */
static napi_value remove_one(napi_env env, napi_callback_info info) {
  napi_value values[MOST_ARGUMENTS];
  read_arguments(env, info, values);
  int64_t pid = -1;
  napi_get_value_int64(env, values[0], &pid);
  pthread_mutex_lock(&kernel_lock);
  remove_process(pid);
  pthread_mutex_unlock(&kernel_lock);
  return NULL;
}

/* hooks(hooks) */
static napi_value more_hooks(napi_env env, napi_callback_info info) {
  napi_value values[MOST_ARGUMENTS];
  read_arguments(env, info, values);
  hook *list;
  if (!read_hooks(env, values[0], &list)) {
    free_hooks(list);
    return NULL;
  }
  pthread_mutex_lock(&kernel_lock);
  add_all(list);
  pthread_mutex_unlock(&kernel_lock);
  return NULL;
}

static napi_value clear(napi_env env, napi_callback_info info) {
  (void)env, (void)info;
  pthread_mutex_lock(&kernel_lock);
  clear_log();
  pthread_mutex_unlock(&kernel_lock);
  return NULL;
}

static napi_value make_entry(napi_env env, const log_entry *entry) {
  napi_value object;
  napi_create_object(env, &object);
  napi_set_named_property(env, object, "fn", make_string(env, call_names[entry->call.kind]));
  set_number(env, object, "seq", entry->sequence);
  set_number(env, object, "tid", entry->thread);
  set_number(env, object, "flavor", entry->call.flavor);
  set_number(env, object, "pid", entry->call.pid);
  set_number(env, object, "arg", entry->call.argument);
  set_number(env, object, "size", entry->call.size);
  set_number(env, object, "ret", entry->result);
  set_number(env, object, "errno", entry->error);
  return object;
}

/* log(): the calls, oldest first */
static napi_value read_log(napi_env env, napi_callback_info info) {
  (void)info;
  size_t count;
  pthread_mutex_lock(&kernel_lock);
  log_entry *copy = copy_log(&count);
  pthread_mutex_unlock(&kernel_lock);
  napi_value array;
  napi_create_array_with_length(env, count, &array);
  for (size_t i = 0; i < count; i++) napi_set_element(env, array, i, make_entry(env, &copy[i]));
  free(copy);
  return array;
}

/* ---- the tables, so that script.mjs has the same ---- */

static napi_value make_names(napi_env env, const char *const *names) {
  napi_value array;
  napi_create_array(env, &array);
  for (uint32_t i = 0; names[i] != NULL; i++) napi_set_element(env, array, i, make_string(env, names[i]));
  return array;
}

static napi_value make_errnos(napi_env env) {
  napi_value object;
  napi_create_object(env, &object);
  for (int i = 0; i < errno_pair_count; i++) set_number(env, object, errno_pairs[i].name, errno_pairs[i].darwin);
  return object;
}

static void export_tables(napi_env env, napi_value kernel) {
  static const char *const modes[] = {"natural", "ok", "absent", "errno", "length", NULL};
  napi_set_named_property(env, kernel, "numbers", make_names(env, number_names));
  napi_set_named_property(env, kernel, "phases", make_names(env, phase_names));
  napi_set_named_property(env, kernel, "overrides", make_names(env, override_names));
  napi_set_named_property(env, kernel, "modes", make_names(env, modes));
  napi_set_named_property(env, kernel, "config", make_names(env, config_names));
  napi_set_named_property(env, kernel, "calls", make_names(env, call_names));
  napi_set_named_property(env, kernel, "hookNumbers", make_names(env, hook_names));
  napi_set_named_property(env, kernel, "errnos", make_errnos(env));
  set_number(env, kernel, "maxPatches", MAX_PATCHES);
}

static void make_defaults(void) {
  pthread_mutex_lock(&kernel_lock);
  reset_config();
  reset_processes();
  pthread_mutex_unlock(&kernel_lock);
}

void export_kernel(napi_env env, napi_value exports) {
  static const struct {
    const char *name;
    napi_callback function;
  } functions[] = {{"reset", reset}, {"add", add},      {"patch", patch},   {"remove", remove_one},
                   {"hooks", more_hooks}, {"log", read_log}, {"clearLog", clear}};
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_defaults);
  napi_value kernel;
  napi_create_object(env, &kernel);
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    napi_set_named_property(env, kernel, functions[i].name, make_function(env, functions[i].name, functions[i].function));
  }
  export_tables(env, kernel);
  napi_set_named_property(env, exports, "kernel", kernel);
}
