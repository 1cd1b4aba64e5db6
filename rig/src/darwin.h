/* What an image may import, and Darwin's errno. */
#ifndef DARWIN_H
#define DARWIN_H

typedef struct {
  const char *name; /* as in the object file: with an underscore before C's name */
  void *function;
} darwin_export;

/* Each ends with a NULL name. */
extern const darwin_export libsystem_exports[], kernel_exports[];

/* The function or variable of that name, NULL if there is none. */
void *darwin_symbol(const char *name);

/* errno as the image sees it: the host's own has other numbers, and Node uses it. */
extern __thread int darwin_errno __attribute__((tls_model("initial-exec")));
int darwin_errno_of(int host_errno);
int host_errno_of(int darwin); /* 0 if the host has none */
/* The host's convention, -1 and errno, in Darwin's numbers. */
long darwin_result(long host_result);
/* The other convention: the error itself, or 0. */
int darwin_error(int host_error);

/* All names that both systems know; count is their number. */
typedef struct {
  const char *name;
  int host, darwin;
} errno_pair;
extern const errno_pair errno_pairs[];
extern const int errno_pair_count;

#endif
