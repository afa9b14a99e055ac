/* See term.h. The only file of the sample that is not plain C99. */
#ifndef _WIN32
#define _POSIX_C_SOURCE 200112L
#endif

#include "term.h"

#include <signal.h>
#include <stdlib.h>

static volatile sig_atomic_t interrupted;

int term_interrupted(void) { return interrupted != 0; }

#ifdef _WIN32

#include <conio.h>
#include <process.h>
#include <windows.h>

uint64_t term_now_us(void)
{
    LARGE_INTEGER count, rate;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&rate);
    return (uint64_t)(count.QuadPart / rate.QuadPart) * 1000000u +
           (uint64_t)(count.QuadPart % rate.QuadPart) * 1000000u / (uint64_t)rate.QuadPart;
}

void term_sleep_us(uint32_t us) { Sleep((us + 999u) / 1000u); }

int term_open_keys(void) { return 1; }

int term_read_key(void) { return _kbhit() ? _getch() : -1; }

void term_die(int code) { _exit(code); }

static void restore_keys(void) {}

#else

#include <termios.h>
#include <time.h>
#include <unistd.h>

static struct termios before;
static volatile sig_atomic_t is_raw;

uint64_t term_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void term_sleep_us(uint32_t us)
{
    struct timespec span;
    span.tv_sec = (time_t)(us / 1000000u);
    span.tv_nsec = (long)(us % 1000000u) * 1000;
    nanosleep(&span, NULL);
}

static void restore_keys(void)
{
    if (is_raw)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    is_raw = 0;
}

int term_open_keys(void)
{
    struct termios raw;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0)
        return 0;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* ISIG stays: Ctrl-C must work */
    raw.c_cc[VMIN] = 0;                        /* read returns at once */
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0)
        return 0;
    is_raw = 1;
    atexit(restore_keys);
    return 1;
}

int term_read_key(void)
{
    unsigned char key;
    return is_raw && read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}

void term_die(int code) { _exit(code); }

#endif

static void on_interrupt(int number)
{
    if (interrupted) {
        restore_keys();
        term_die(130);
    }
    interrupted = 1;
    signal(number, on_interrupt);
}

void term_catch_interrupt(void)
{
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
}
