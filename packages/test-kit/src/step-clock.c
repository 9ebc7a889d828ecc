/*
 * Loaded before a process (LD_PRELOAD), adds the milliseconds in the file CLOCK_OFFSET_FILE to the wall clock. The file has
 * one 64-bit integer, and is shared memory: a change takes effect immediately. The monotonic clock stays as it is.
 *
 * libfaketime does the same, but workerd, whose allocator reads the clock, does not start with it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset_ms;

__attribute__((constructor)) static void map_offset(void) {
  const char *path = getenv("CLOCK_OFFSET_FILE");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *memory = mmap(0, sizeof *offset_ms, PROT_READ, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) offset_ms = memory;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = syscall(SYS_clock_gettime, clock, time);
  if (result != 0 || !offset_ms || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
  int64_t ms = *offset_ms;
  int64_t ns = time->tv_nsec + ms % 1000 * 1000000;
  time->tv_sec += ms / 1000 + (ns >= 1000000000) - (ns < 0);
  time->tv_nsec = (ns + 1000000000) % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *value, void *zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  value->tv_sec = now.tv_sec;
  value->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
