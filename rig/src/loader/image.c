/* Loads each file once: maps it, fixes it up, and keeps it for the rest of the process, as dyld keeps an image
   that has thread-local variables. */
#include "image.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static image *images; /* newest first; only ever grows */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static image *find_loaded(const struct stat *file) {
  for (image *im = images; im != NULL; im = im->next) {
    bool same_file = im->file.st_dev == file->st_dev && im->file.st_ino == file->st_ino;
    bool same_bytes = im->file.st_size == file->st_size && im->file.st_mtim.tv_sec == file->st_mtim.tv_sec &&
                      im->file.st_mtim.tv_nsec == file->st_mtim.tv_nsec;
    if (same_file && same_bytes) return im;
  }
  return NULL;
}

static void free_image(image *im) {
  if (im->base != NULL) munmap(im->base, im->size);
  if (im->stubs != NULL) munmap(im->stubs, MAX_STUBS * STUB_SIZE);
  for (int i = 0; i < im->import_count; i++) free(im->imports[i].name);
  free(im->imports);
  free(im->targets);
  free(im->initialisers);
  free(im->tlv.bytes);
  free(im->unwind_table);
  free(im->path);
  free(im);
}

static void *code_export(loading *l, const char *name) {
  const image *im = l->image;
  uint8_t *address = find_export(l, name);
  if (address != NULL && !is_code(im, im->lowest + (address - im->base))) fail(l, "%s is no code", name);
  return address;
}

static void find_entry_points(loading *l) {
  image *im = l->image;
  im->register_module = (napi_addon_register_func)code_export(l, "_napi_register_module_v1");
  im->api_version = (int32_t(*)(void))code_export(l, "_node_api_module_get_api_version_v1");
  if (im->register_module == NULL) fail(l, "%s exports no napi_register_module_v1", im->path);
}

/* Any step may fail(), which comes back here. */
static bool prepare(loading *l) {
  if (setjmp(l->on_failure) != 0) return false;
  read_file(l);
  read_commands(l);
  map_segments(l);
  if (l->chained.size > 0) apply_chained_fixups(l);
  else apply_dyld_info(l);
  find_initialisers(l);
  translate_unwind_info(l);
  find_entry_points(l);
  install_thread_locals(l);
  protect_segments(l);
  return true;
}

static image *load_image(char *path, const struct stat *file, char *message, size_t message_size) {
  image *im = calloc(1, sizeof *im);
  loading *l = calloc(1, sizeof *l);
  im->path = path;
  im->file = *file;
  l->image = im;
  l->message = message;
  l->message_size = message_size;
  bool loaded = prepare(l);
  free(l->file);
  free(l);
  if (!loaded) {
    free_image(im);
    return NULL;
  }
  publish_thread_locals(im);
  im->next = images;
  images = im;
  return im;
}

image *open_image(const char *path, char *message, size_t message_size) {
  struct stat file;
  char *real = realpath(path, NULL);
  if (real == NULL || stat(real, &file) != 0) {
    snprintf(message, message_size, "cannot open %s: %s", path, strerror(errno));
    free(real);
    return NULL;
  }
  pthread_mutex_lock(&lock);
  image *im = find_loaded(&file);
  if (im != NULL) free(real);
  else im = load_image(real, &file, message, message_size);
  pthread_mutex_unlock(&lock);
  return im;
}

void initialise_image(image *im) {
  pthread_mutex_lock(&lock);
  if (!im->initialised) {
    register_unwind_info(im);
    run_initialisers(im);
    im->initialised = true;
  }
  pthread_mutex_unlock(&lock);
}

/* Also called by a signal handler: takes no lock, which a list that only grows at its head does not need. */
image *image_at(const void *address) {
  for (image *im = images; im != NULL; im = im->next) {
    if ((const uint8_t *)address >= im->base && (const uint8_t *)address < im->base + im->size) return im;
  }
  return NULL;
}

image *image_of_path(const char *path) {
  for (image *im = images; im != NULL; im = im->next) {
    if (strcmp(im->path, path) == 0) return im;
  }
  return NULL;
}

int count_images(void) {
  int count = 0;
  for (image *im = images; im != NULL; im = im->next) count++;
  return count;
}
