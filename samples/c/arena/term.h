/* The few things that C99 does not have: a monotonic clock, sleeping, single keys, dying on the spot. */
#ifndef ARENA_TERM_H
#define ARENA_TERM_H

#include <stdint.h>

uint64_t term_now_us(void);
void term_sleep_us(uint32_t us);

/* Keys without Enter, until exit. 0 when the standard input is no terminal. */
int term_open_keys(void);
/* The next key that waits, or -1. */
int term_read_key(void);

/* From here on Ctrl-C only sets what term_interrupted returns; a second one ends the process. */
void term_catch_interrupt(void);
int term_interrupted(void);

/* Ends the process as a crash would: no goodbye, no buffers flushed. */
void term_die(int code);

#endif
