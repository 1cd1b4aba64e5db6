/* Says where in an image a fatal signal struck. */
#ifndef CRASH_H
#define CRASH_H

void report_crashes(void);

#endif
