// Delays calls of the C library at random, before and after them, in every process that preloads this library.
// `cargo xtask delays` compiles it. The variable PINTLE_DELAYS is RATE:MILLISECONDS: RATE of 1,000 calls wait for up to that
// many milliseconds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned rate;
static unsigned milliseconds;
static __thread uint64_t state;

static uint64_t draw(void) {
    if (state == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = ((uint64_t)(uintptr_t)&state ^ (uint64_t)getpid() << 32 ^ (uint64_t)now.tv_nsec) | 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void delay(void) {
    if (rate == 0 || draw() % 1000 >= rate)
        return;
    int saved = errno;
    uint64_t wait = draw() % ((uint64_t)milliseconds * 1000 + 1);
    struct timespec time = {.tv_sec = (time_t)(wait / 1000000), .tv_nsec = (long)(wait % 1000000 * 1000)};
    nanosleep(&time, NULL);
    errno = saved;
}

#define DELAYED(result, name, parameters, arguments)                                                                   \
    static result(*real_##name) parameters;                                                                            \
    result name parameters {                                                                                           \
        if (real_##name == NULL)                                                                                       \
            real_##name = (result(*) parameters)dlsym(RTLD_NEXT, #name);                                               \
        delay();                                                                                                       \
        result outcome = real_##name arguments;                                                                        \
        delay();                                                                                                       \
        return outcome;                                                                                                \
    }

DELAYED(ssize_t, read, (int fd, void *buffer, size_t size), (fd, buffer, size))
DELAYED(ssize_t, write, (int fd, const void *buffer, size_t size), (fd, buffer, size))
DELAYED(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
DELAYED(ssize_t, recv, (int fd, void *buffer, size_t size, int flags), (fd, buffer, size, flags))
DELAYED(ssize_t, send, (int fd, const void *buffer, size_t size, int flags), (fd, buffer, size, flags))
DELAYED(int, fsync, (int fd), (fd))
DELAYED(int, fdatasync, (int fd), (fd))
DELAYED(int, rename, (const char *from, const char *to), (from, to))
DELAYED(int, unlink, (const char *path), (path))
DELAYED(int, flock, (int fd, int operation), (fd, operation))
DELAYED(int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags), (fd, address, size, flags))
DELAYED(int, connect, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size))
DELAYED(int, poll, (struct pollfd *fds, nfds_t count, int timeout), (fds, count, timeout))
DELAYED(int, epoll_wait, (int fd, struct epoll_event *events, int count, int timeout), (fd, events, count, timeout))
DELAYED(int, kill, (pid_t process, int signal), (process, signal))
DELAYED(pid_t, waitpid, (pid_t process, int *status, int options), (process, status, options))
DELAYED(int, waitid, (idtype_t kind, id_t id, siginfo_t *info, int options), (kind, id, info, options))

// Calls between fork and exec must not resolve symbols, so that is done first.
__attribute__((constructor)) static void prepare(void) {
    const char *plan = getenv("PINTLE_DELAYS");
    unsigned of_thousand = 0;
    if (plan == NULL || sscanf(plan, "%u:%u", &of_thousand, &milliseconds) != 2)
        return;
#define RESOLVE(name) real_##name = (__typeof__(real_##name))dlsym(RTLD_NEXT, #name)
    RESOLVE(read);
    RESOLVE(write);
    RESOLVE(writev);
    RESOLVE(recv);
    RESOLVE(send);
    RESOLVE(fsync);
    RESOLVE(fdatasync);
    RESOLVE(rename);
    RESOLVE(unlink);
    RESOLVE(flock);
    RESOLVE(accept4);
    RESOLVE(connect);
    RESOLVE(poll);
    RESOLVE(epoll_wait);
    RESOLVE(kill);
    RESOLVE(waitpid);
    RESOLVE(waitid);
    rate = of_thousand;
}
