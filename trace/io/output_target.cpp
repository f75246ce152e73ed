#include "trace/io/output_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "trace/io/write_all.h"

namespace trainprof {
namespace {

constexpr int kMostLinks = 40;  // as the kernel follows

// "" with errno set when there is none.
std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real ? std::string(real.get()) : std::string();
}

Error Failure(const std::string& path, std::string_view what) {
  return Error{fmt::format("{}: cannot be written: {}", path, what)};
}

// Whether links there are the system's own: /dev/stdout, /proc/self/fd.
bool IsSystemFolder(const std::string& folder) {
  return folder == "/dev" || folder.starts_with("/proc/");
}

// /proc/<this process>/fd/7 -> 7, else -1.
int OwnDescriptor(const std::string& folder, const std::string& name) {
  const std::string own = fmt::format("/proc/{}/", getpid());
  if (!folder.starts_with(own) || !folder.ends_with("/fd")) return -1;
  int number = -1;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() ? number : -1;
}

Result<std::string> FolderOf(const std::string& path, const std::string& folder) {
  std::string real = RealPath(folder);
  struct stat info {};
  if (!real.empty() && stat(real.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return real;
    errno = ENOTDIR;
  }
  switch (errno) {
    case ENOENT:
      return Failure(path, fmt::format("the folder {} does not exist; create it first", folder));
    case ENOTDIR:
      return Failure(path, fmt::format("{} is no folder", folder));
    default:
      return Failure(path, fmt::format("{}: {}", folder, std::strerror(errno)));
  }
}

// A link in a folder that others may write to can be a trap: it is followed when it is our own, or
// root's.
bool MayFollow(const struct stat& link, const std::string& folder) {
  return link.st_uid == geteuid() || link.st_uid == 0 || IsSystemFolder(folder);
}

Result<std::string> ReadLink(const std::string& path, const std::string& file) {
  char text[PATH_MAX];
  const ssize_t size = readlink(file.c_str(), text, sizeof text);
  if (size <= 0 || size == sizeof text) {
    return Failure(path, fmt::format("the link {} cannot be read", file));
  }
  return std::string(text, static_cast<size_t>(size));
}

Result<OutputTarget> ByKind(const std::string& path, OutputTarget target, const struct stat& info) {
  target.mode = info.st_mode & 07777;
  switch (info.st_mode & S_IFMT) {
    case S_IFREG:
      target.kind = OutputTarget::Kind::kRegular;
      // As a shell's ">" would refuse it; a rename would not.
      if (faccessat(AT_FDCWD, target.file.c_str(), W_OK, AT_EACCESS) != 0) {
        return Failure(path, fmt::format("{}; it is there and protected", std::strerror(errno)));
      }
      return target;
    case S_IFIFO:
    case S_IFCHR:
      target.kind = OutputTarget::Kind::kSpecial;
      return target;
    case S_IFDIR:
      return Failure(path, "it is a folder; name a file in it");
    case S_IFBLK:
      return Failure(path, "it is a disk (a block device), which would be overwritten");
    case S_IFSOCK:
      return Failure(path, "it is a socket");
    default:
      return Failure(path, "it is not a file");
  }
}

Result<OutputTarget> CheckFolder(const std::string& path, OutputTarget target) {
  if (faccessat(AT_FDCWD, target.folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return Failure(path, fmt::format("no file can be made in {}: {}{}", target.folder,
                                     std::strerror(errno), WhatToDoAboutWriting(errno)));
  }
  return target;
}

}  // namespace

Result<OutputTarget> FindOutputTarget(const std::string& path) {
  if (path.empty()) return Error{"the output has no file name"};
  std::string at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    const size_t slash = at.rfind('/');
    const std::string name = slash == std::string::npos ? at : at.substr(slash + 1);
    const std::string above = slash == std::string::npos ? "."
                              : slash == 0               ? "/"
                                                         : at.substr(0, slash);
    Result<std::string> folder = FolderOf(path, above);
    if (!folder.ok()) return Error{folder.error()};
    if (name.empty() || name == "." || name == "..") {
      return Failure(path, "it is a folder; name a file in it");
    }
    OutputTarget target;
    target.folder = std::move(folder).value();
    target.file = (target.folder == "/" ? "" : target.folder) + "/" + name;
    target.descriptor = OwnDescriptor(target.folder, name);
    if (target.descriptor >= 0) {
      target.kind = OutputTarget::Kind::kDescriptor;
      return target;
    }
    struct stat info {};
    if (lstat(target.file.c_str(), &info) != 0) {
      if (errno != ENOENT) return Failure(path, std::strerror(errno));
      return CheckFolder(path, std::move(target));
    }
    if (!S_ISLNK(info.st_mode)) {
      Result<OutputTarget> found = ByKind(path, std::move(target), info);
      const bool replaced = found.ok() && found.value().kind == OutputTarget::Kind::kRegular;
      return replaced ? CheckFolder(path, std::move(found).value()) : found;
    }
    if (!MayFollow(info, target.folder)) {
      return Failure(path, fmt::format("{} is a link that belongs to another user (id {}); "
                                       "it is not followed",
                                       target.file, info.st_uid));
    }
    Result<std::string> next = ReadLink(path, target.file);
    if (!next.ok()) return Error{next.error()};
    at = next.value().front() == '/' ? next.value() : target.folder + "/" + next.value();
  }
  return Failure(path, "too many links, one after the other");
}

int OwnDescriptorNamed(const std::string& path) {
  const Result<OutputTarget> target = FindOutputTarget(path);
  const bool own = target.ok() && target.value().kind == OutputTarget::Kind::kDescriptor;
  return own ? target.value().descriptor : -1;
}

}  // namespace trainprof
