/* Makes system calls fail, for python -m torture: preloaded into a process that then calls fault_arm.
 *
 * Only calls on files below one folder fail. The n-th such call of a kind fails, once or from then on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE, SYNC, RENAME, CUT, MAP, READ, OPEN, KINDS };

static char place[PATH_MAX];
static volatile int armed = -1, number, least, most, halves;
static volatile long left;
static volatile int fired;

/* Let call `nth` (from 0) of a kind fail, and `times` - 1 calls after it. With `half`, it writes half of its bytes. */
void fault_arm(const char *folder, int kind, long nth, int error, int times, int half) {
    strncpy(place, folder, sizeof place - 1);
    number = error, halves = half, most = times, fired = 0;
    left = nth;
    __sync_synchronize();
    armed = kind;
}

/* End all faults; return how many calls failed. */
int fault_disarm(void) {
    armed = -1;
    return fired;
}

static int is_due(int kind) {
    if (armed != kind) return 0;
    if (__sync_fetch_and_sub(&left, 1) > 0) return 0;
    if (__sync_fetch_and_add(&fired, 1) >= most) {
        __sync_fetch_and_sub(&fired, 1);
        return 0;
    }
    return 1;
}

static int below(const char *path) {
    return path && !strncmp(path, place, strlen(place));
}

static int fails(int kind, int file) {
    char link[64], path[PATH_MAX];
    ssize_t size;
    if (armed != kind) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return below(path) && is_due(kind);
}

#define NEXT(name) static __typeof__(&name) next; if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAIL return errno = number, -1

ssize_t write(int file, const void *data, size_t size) {
    NEXT(write);
    if (fails(WRITE, file)) { if (halves && size > 1) return next(file, data, size / 2); FAIL; }
    return next(file, data, size);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    NEXT(pwrite);
    if (fails(WRITE, file)) { if (halves && size > 1) return next(file, data, size / 2, at); FAIL; }
    return next(file, data, size, at);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) { return pwrite(file, data, size, at); }
int fsync(int file) { NEXT(fsync); if (fails(SYNC, file)) FAIL; return next(file); }
int fdatasync(int file) { NEXT(fdatasync); if (fails(SYNC, file)) FAIL; return next(file); }
int ftruncate(int file, off_t size) { NEXT(ftruncate); if (fails(CUT, file)) FAIL; return next(file, size); }
int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }
int rename(const char *from, const char *to) {
    NEXT(rename);
    if (armed == RENAME && (below(from) || below(to)) && is_due(RENAME)) FAIL;
    return next(from, to);
}
ssize_t read(int file, void *data, size_t size) {
    NEXT(read);
    if (fails(READ, file)) { if (halves && size > 1) return next(file, data, size / 2); FAIL; }
    return next(file, data, size);
}
ssize_t pread(int file, void *data, size_t size, off_t at) {
    NEXT(pread);
    if (fails(READ, file)) { if (halves && size > 1) return next(file, data, size / 2, at); FAIL; }
    return next(file, data, size, at);
}
ssize_t pread64(int file, void *data, size_t size, off64_t at) { return pread(file, data, size, at); }
ssize_t preadv(int file, const struct iovec *parts, int count, off_t at) {
    NEXT(preadv);
    if (fails(READ, file)) {
        if (halves && parts[0].iov_len > 1) return pread(file, parts[0].iov_base, parts[0].iov_len / 2, at);
        FAIL;
    }
    return next(file, parts, count, at);
}
ssize_t preadv64(int file, const struct iovec *parts, int count, off64_t at) { return preadv(file, parts, count, at); }
ssize_t preadv2(int file, const struct iovec *parts, int count, off_t at, int flags) {
    (void)flags;
    return preadv(file, parts, count, at);
}
ssize_t preadv64v2(int file, const struct iovec *parts, int count, off64_t at, int flags) {
    (void)flags;
    return preadv(file, parts, count, at);
}
void *mmap(void *address, size_t size, int protection, int flags, int file, off_t at) {
    NEXT(mmap);
    if (armed == MAP && file >= 0 && fails(MAP, file)) return errno = number, MAP_FAILED;
    return next(address, size, protection, flags, file, at);
}
void *mmap64(void *address, size_t size, int protection, int flags, int file, off64_t at) {
    return mmap(address, size, protection, flags, file, at);
}
int openat(int folder, const char *path, int flags, ...) {
    NEXT(openat);
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    if (armed == OPEN && below(path) && is_due(OPEN)) FAIL;
    return next(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    return openat(folder, path, flags, mode);
}
int open(const char *path, int flags, ...) {
    NEXT(open);
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    if (armed == OPEN && below(path) && is_due(OPEN)) FAIL;
    return next(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    return open(path, flags, mode);
}
