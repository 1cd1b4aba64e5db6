/* Fills the process table: sleepers COUNT. Prints "ready"; ends with its children when standard input
   ends. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    int wanted = count > 1 ? atoi(words[1]) : 0;
    pid_t parent = getpid();
    for (int made = 0; made < wanted; made++) {
        pid_t child = fork();
        if (child < 0) {
            perror("sleepers: fork");
            return 1;
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) _exit(1);
            close(0);
            for (;;) pause();
        }
    }
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    return 0; /* the children die with their parent */
}
