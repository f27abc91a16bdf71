/* A disk that forgets what was not synced. Preloaded into a server (LD_PRELOAD), it lets every write below a folder
 * through and keeps a journal of it until its file is synced. After a kill, proofs/disk.py takes back what is still in
 * the journal, as a power cut would. The disk can also be full, or fail to sync.
 *
 *   DISK_FOLDER    files below this folder are on the disk
 *   DISK_JOURNAL   the folder of the journal: one file per inode, shared by all processes
 *   DISK_SYNC_US   how long a sync takes, in microseconds
 *
 * The byte 0 of the file `control` in the journal makes syncs fail with EIO, byte 1 makes files unable to grow (ENOSPC).
 * The number at byte 8 is added to the machine's clock, in seconds.
 *
 * The model: contents and sizes of files are lost unless they are synced. Creating, renaming and removing files takes
 * effect immediately. Memory maps are not followed (SQLite's -shm, which it rebuilds).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* One change of a file. The bytes that were there follow, then the new ones. */
struct entry {
  uint64_t offset;
  uint64_t old_length;
  uint64_t new_length;
  uint64_t old_size;
  uint64_t truncates;
};

enum { MAX_FD = 65536 };

static const char *folder, *journal;
static size_t folder_length;
static useconds_t sync_time;
static volatile unsigned char *control;
/* What a descriptor was when it was last looked at. Its number may be another file by now: the C library closes and
 * copies descriptors without us. */
static struct {
  dev_t device;
  ino_t inode;
  int is_on_disk;
} known[MAX_FD];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int lock_fd = -1;
static pid_t lock_owner;

/* Raw calls, so that the journal does not enter itself. */
static ssize_t raw_pwrite(int fd, const void *bytes, size_t length, off_t at) {
  return syscall(SYS_pwrite64, fd, bytes, length, at);
}
static int raw_open(const char *path, int flags, int mode) { return syscall(SYS_openat, AT_FDCWD, path, flags, mode); }
static void raw_close(int fd) { syscall(SYS_close, fd); }

__attribute__((constructor)) static void start(void) {
  folder = getenv("DISK_FOLDER");
  journal = getenv("DISK_JOURNAL");
  if (!folder || !journal) {
    folder = NULL;
    return;
  }
  /* Copies: PostgreSQL writes the names of its processes over its environment. */
  folder = strdup(folder);
  journal = strdup(journal);
  folder_length = strlen(folder);
  const char *slow = getenv("DISK_SYNC_US");
  sync_time = slow ? atoi(slow) : 0;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/control", journal);
  int fd = raw_open(path, O_RDONLY | O_CLOEXEC, 0);
  if (fd >= 0) {
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    control = page == MAP_FAILED ? NULL : page;
    raw_close(fd);
  }
}

static int below(const char *path) {
  return strncmp(path, folder, folder_length) == 0 && (path[folder_length] == '/' || path[folder_length] == 0);
}

static int on_disk(int fd) {
  struct stat file;
  if (!folder || fd < 0 || fd >= MAX_FD || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return 0;
  if (known[fd].inode == file.st_ino && known[fd].device == file.st_dev) return known[fd].is_on_disk;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  known[fd].is_on_disk = below(path);
  known[fd].device = file.st_dev;
  known[fd].inode = file.st_ino;
  return known[fd].is_on_disk;
}

static void lock(void) {
  pthread_mutex_lock(&mutex);
  /* A description inherited from a parent would not exclude the parent. */
  if (lock_fd < 0 || lock_owner != getpid()) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lock", journal);
    lock_fd = raw_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    lock_owner = getpid();
  }
  while (flock(lock_fd, LOCK_EX) < 0 && errno == EINTR) {
  }
}

static void unlock(void) {
  flock(lock_fd, LOCK_UN);
  pthread_mutex_unlock(&mutex);
}

static void journal_path(char *path, const struct stat *file) {
  snprintf(path, PATH_MAX, "%s/%llu", journal, (unsigned long long)file->st_ino);
}

static void forget(const struct stat *file) {
  char path[PATH_MAX];
  journal_path(path, file);
  syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* Notes a change before it happens. The caller holds the lock. */
static void note(int fd, const struct stat *file, off_t at, const struct iovec *parts, int count, size_t length,
                 int truncates) {
  size_t end = truncates ? (size_t)file->st_size : at + length;
  size_t last = end < (size_t)file->st_size ? end : (size_t)file->st_size;
  size_t old = (size_t)at < last ? last - at : 0;
  struct entry entry = {at, old, truncates ? 0 : length, file->st_size, truncates};
  char *bytes = malloc(sizeof entry + old + entry.new_length + 1);
  memcpy(bytes, &entry, sizeof entry);
  size_t got = 0;
  /* The descriptor may be for writing only. */
  int source = fd;
  char link[64];
  if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    source = raw_open(link, O_RDONLY | O_CLOEXEC, 0);
  }
  while (got < old) {
    ssize_t some = syscall(SYS_pread64, source, bytes + sizeof entry + got, old - got, at + got);
    if (some <= 0) break;
    got += some;
  }
  if (source != fd) raw_close(source);
  if (got < old) abort();
  char *to = bytes + sizeof entry + old;
  for (int part = 0; !truncates && part < count; part++) {
    memcpy(to, parts[part].iov_base, parts[part].iov_len);
    to += parts[part].iov_len;
  }
  char path[PATH_MAX];
  journal_path(path, file);
  int out = raw_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  size_t all = to - bytes;
  if (out < 0 || syscall(SYS_write, out, bytes, all) != (ssize_t)all) abort();
  raw_close(out);
  free(bytes);
}

static ssize_t change(int fd, const struct iovec *parts, int count, off_t at, int moves) {
  struct stat file;
  size_t length = 0;
  for (int part = 0; part < count; part++) length += parts[part].iov_len;
  lock();
  fstat(fd, &file);
  if (moves) at = (fcntl(fd, F_GETFL) & O_APPEND) ? file.st_size : lseek(fd, 0, SEEK_CUR);
  if (control && control[1] && at + (off_t)length > file.st_size) {
    unlock();
    errno = ENOSPC;
    return -1;
  }
  note(fd, &file, at, parts, count, length, 0);
  ssize_t done;
  if (moves)
    done = syscall(SYS_writev, fd, parts, count);
  else
    done = syscall(SYS_pwritev, fd, parts, count, (long)at, 0L);
  int error = errno;
  unlock();
  errno = error;
  return done;
}

ssize_t write(int fd, const void *bytes, size_t length) {
  if (!on_disk(fd)) return syscall(SYS_write, fd, bytes, length);
  struct iovec one = {(void *)bytes, length};
  return change(fd, &one, 1, 0, 1);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  if (!on_disk(fd)) return syscall(SYS_writev, fd, parts, count);
  return change(fd, parts, count, 0, 1);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
  if (!on_disk(fd)) return raw_pwrite(fd, bytes, length, at);
  struct iovec one = {(void *)bytes, length};
  return change(fd, &one, 1, at, 0);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) { return pwrite(fd, bytes, length, at); }

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
  if (!on_disk(fd)) return syscall(SYS_pwritev, fd, parts, count, (long)at, 0L);
  return change(fd, parts, count, at, 0);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { return pwritev(fd, parts, count, at); }

int ftruncate(int fd, off_t size) {
  struct stat file;
  if (on_disk(fd) && fstat(fd, &file) == 0 && file.st_size != size) {
    lock();
    fstat(fd, &file);
    note(fd, &file, size, NULL, 0, 0, 1);
    int done = syscall(SYS_ftruncate, fd, size);
    unlock();
    return done;
  }
  return syscall(SYS_ftruncate, fd, size);
}

int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

/* What these would allocate is written later. */
int posix_fallocate(int fd, off_t at, off_t length) {
  struct stat file;
  if (!on_disk(fd)) return syscall(SYS_fallocate, fd, 0, at, length) < 0 ? errno : 0;
  if (control && control[1]) return ENOSPC;
  if (fstat(fd, &file) == 0 && file.st_size < at + length && ftruncate(fd, at + length) < 0) return errno;
  return 0;
}

int posix_fallocate64(int fd, off64_t at, off64_t length) { return posix_fallocate(fd, at, length); }

/* Programs fall back to reading and writing. */
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t length, unsigned flags) {
  if (!on_disk(out)) return syscall(SYS_copy_file_range, in, from, out, to, length, flags);
  errno = ENOSYS;
  return -1;
}

static int synced(int fd) {
  struct stat file;
  if (sync_time) usleep(sync_time);
  if (control && control[0]) {
    errno = EIO;
    return -1;
  }
  lock();
  if (fstat(fd, &file) == 0) forget(&file);
  unlock();
  return 0;
}

int fsync(int fd) { return on_disk(fd) ? synced(fd) : (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return on_disk(fd) ? synced(fd) : (int)syscall(SYS_fdatasync, fd); }

static int opened(int fd, int flags) {
  if (fd >= 0 && (flags & O_TRUNC)) ftruncate(fd, 0);
  return fd;
}

static int mode_of(int flags, va_list rest) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;
}

/* Emptying a file is a change like any other, so it is done afterwards. */
#define OPEN(name, parameters, directory, path)                                          \
  int name parameters {                                                                  \
    va_list rest;                                                                        \
    va_start(rest, flags);                                                               \
    int mode = mode_of(flags, rest);                                                     \
    va_end(rest);                                                                        \
    int defers = folder && (flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY;         \
    int fd = syscall(SYS_openat, directory, path, defers ? flags & ~O_TRUNC : flags, mode); \
    return opened(fd, defers ? flags : flags & ~O_TRUNC);                                \
  }

OPEN(open, (const char *path, int flags, ...), AT_FDCWD, path)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, path)
OPEN(openat, (int directory, const char *path, int flags, ...), directory, path)
OPEN(openat64, (int directory, const char *path, int flags, ...), directory, path)

static int64_t jump(void) { return control ? *(volatile int64_t *)(control + 8) : 0; }

int clock_gettime(clockid_t clock, struct timespec *now) {
  int done = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += jump();
  return done;
}

int gettimeofday(struct timeval *now, void *zone) {
  int done = syscall(SYS_gettimeofday, now, zone);
  now->tv_sec += jump();
  return done;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

/* The number of an inode that is removed may be used again. */
static void removed(int directory, const char *path) {
  struct stat file;
  if (folder && fstatat(directory, path, &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file.st_mode) &&
      file.st_nlink == 1) {
    lock();
    forget(&file);
    unlock();
  }
}

int unlink(const char *path) {
  removed(AT_FDCWD, path);
  return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int directory, const char *path, int flags) {
  if (!(flags & AT_REMOVEDIR)) removed(directory, path);
  return syscall(SYS_unlinkat, directory, path, flags);
}

int rename(const char *from, const char *to) {
  struct stat old, new;
  if (stat(from, &new) == 0 && stat(to, &old) == 0 && old.st_ino != new.st_ino) removed(AT_FDCWD, to);
  return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
