/* Makes one writing call fail, or kills the process inside it; loaded with LD_PRELOAD.
 *
 * Calls that change files are numbered from 1: writes to regular files, flushes, truncations,
 * and creating and renaming files and folders. The one that fault_arm() names is not executed,
 * or only half of it. Used by scripts/torture.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAIL, KILL, HALF };

static _Atomic long calls, armed;
static int action, argument;

void fault_arm(long at, int what, int number) {
    atomic_store(&calls, 0);
    action = what;
    argument = number; /* errno, or the signal */
    atomic_store(&armed, at);
}

long fault_calls(void) { return atomic_load(&calls); }

/* Return whether this is the call; does not return if it kills. */
static int hit(void) {
    if (atomic_fetch_add(&calls, 1) + 1 != atomic_load(&armed))
        return 0;
    if (action == KILL) {
        kill(getpid(), argument);
        return 0;
    }
    errno = argument;
    return 1;
}

static int is_file(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

#define NEXT(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) {
    if (is_file(fd) && hit()) {
        if (action != HALF)
            return -1;
        size = (size + 1) / 2;
    }
    return NEXT(write)(fd, data, size);
}

int fsync(int fd) { return hit() && action == FAIL ? -1 : NEXT(fsync)(fd); }

int ftruncate64(int fd, off64_t size) {
    return hit() && action == FAIL ? -1 : NEXT(ftruncate64)(fd, size);
}

int rename(const char *from, const char *to) {
    return hit() && action == FAIL ? -1 : NEXT(rename)(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return hit() && action == FAIL ? -1 : NEXT(renameat)(from_folder, from, to_folder, to);
}

int mkdir(const char *path, mode_t mode) {
    return hit() && action == FAIL ? -1 : NEXT(mkdir)(path, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    int writes = (flags & O_ACCMODE) != O_RDONLY && path[0] != '\0';
    return writes && hit() && action == FAIL ? -1 : NEXT(open64)(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open64(path, flags, mode);
}
