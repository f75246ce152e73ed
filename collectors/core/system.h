// The few system services that the in-process library uses, as bare system calls: they are no
// cancellation points (a thread of the profiled program may be cancelled at any time), take no lock
// and allocate nothing.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

// Of a variable of a thread. initial-exec: one load instead of a call that may allocate; all of
// them together take some 100 bytes of the static surplus that glibc keeps for libraries loaded
// late.
#define TRAINPROF_TLS __thread __attribute__((tls_model("initial-exec")))

namespace trainprof::collectors {

// All return a negative errno on failure.
int OpenFile(const char* path, int flags, int mode = 0);
// A file in a folder of a recording: neither it nor its folder is followed where it is a link,
// since the folder may be one that others write in, too. -EXDEV: it is no regular file.
int OpenRecorded(const char* path, int flags, int mode = 0);
int OpenRecordedIn(int folder, const char* name, int flags, int mode = 0);
int DuplicateFile(int fd);
void CloseFile(int fd);
// Reads up to size - 1 bytes and ends them with a zero; the number of bytes read.
int ReadSmallFile(const char* path, char* buffer, size_t size);
int ReadLink(const char* path, char* buffer, size_t size);  // not ended with a zero
int MakeFolder(const char* path, int mode);
// The mode bits of a folder, or 0.
int FolderMode(const char* path);
// Makes a file that does not exist yet, with exactly this mode whatever the umask, for reading and
// writing.
int CreateFile(const char* path, int mode);
bool FolderExists(const char* path);

// Writes all of it at the file's beginning. 0, or a negative errno.
int WriteFile(int fd, const void* data, size_t size);

// What statfs says of the file system that the folder lies in. False: it does not answer.
struct FileSystem {
  uint64_t type;  // f_type, as linux/magic.h names it
  uint64_t free_bytes;
};
bool FileSystemOf(const char* folder, FileSystem* found);

// Gives the file real blocks for [offset, offset + length), so that writing through a mapping of it
// cannot meet a full disk (SIGBUS). Never raises SIGXFSZ in the program.
int AllocateBlocks(int fd, uint64_t offset, uint64_t length);
// The same of a new part of the file that will be mapped at once: where that takes less time, by writing zeros there. On
// ext4 a page that is written costs 1 us, and one that is made when it is mapped 4 us.
int AllocatePagesOfFile(int fd, uint64_t offset, uint64_t length);

// Page-aligned, zeroed, private memory, or nullptr. Stays until ReleasePages.
void* AllocatePages(size_t size);
void ReleasePages(void* pages, size_t size);
// The same, but a forked child finds zeros there (kernels before 4.14: through pthread_atfork).
void* AllocatePagesWipedInChild(size_t size);
// Addresses without memory, for MapSharedAt; or nullptr.
void* ReserveAddresses(size_t size);
// A shared mapping whose pages are there to be written, or nullptr with the negative errno in *error.
void* MapShared(int fd, uint64_t offset, size_t size, int* error);
// The same over [where, where + size) of reserved addresses; 0 or a negative errno.
int MapSharedAt(void* where, int fd, uint64_t offset, size_t size);
// Private, zeroed memory there.
int MapPrivateAt(void* where, size_t size);
void RemoveFile(const char* path);

// Sleeps while *word is `expected`, at most `timeout_ns`; Wake ends the sleep of all who do.
void SleepWhile(std::atomic<uint32_t>* word, uint32_t expected, int64_t timeout_ns);
void Wake(std::atomic<uint32_t>* word);

int ThreadId();

// What the calling thread has used: getrusage(RUSAGE_THREAD), 0.1 to 0.3 us.
struct ThreadUsage {
  int64_t cpu_ns;          // in us
  uint32_t waits;          // gave the CPU up
  uint32_t interruptions;  // the CPU was taken
};
ThreadUsage UsageOfThread();
int ProcessId();
int ParentProcessId();
size_t PageSize();

// /proc/<pid>/stat: the parent, and the start time in clock ticks since boot. False when it cannot
// be read.
bool ReadProcessStat(int pid, int* parent, uint64_t* start);

// "ENOSPC (no space left on the device)": a negative errno in words.
const char* DescribeError(int negative_errno);

}  // namespace trainprof::collectors
