/* Ways to go one call deeper, each with another kind of frame. */
#ifndef FRAMES_H
#define FRAMES_H

int through_small(int (*next)(int), int left);
int through_large(int (*next)(int), int left);
int through_saving(int (*next)(int), int left);
int through_described(int (*next)(int), int left);

#endif
