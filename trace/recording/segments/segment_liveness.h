// Whether the process that writes a raw segment may still be there.
#pragma once

#include <filesystem>

#include "trace/recording/segments/segment_reader.h"

namespace trainprof::recording {

// Asked before the segment is read: what was read while its process lived may lack what it wrote
// last. True when in doubt: a segment of another machine, of another boot of this one, or of
// another container, unless the file system is sure that nobody writes it; and while anyone (a
// forked child) still maps the file for writing, as far as the file system can tell; and of a file
// that is no segment, or none yet.
bool MayBeAlive(const std::filesystem::path& segment);

// Whether it was recorded on this machine since its last boot. False when that is not known.
bool IsOfThisBoot(const SegmentInfo& info);

// Whether a process of this machine surely still writes into the run directory, rank folder or
// segment at `path`.
bool IsStillRecorded(const std::filesystem::path& path);

// Whether a process of this boot and pid namespace has given the segment its name.
bool IsNamedHere(const std::filesystem::path& segment);

// Whether surely no process has the file open, or mapped, for writing. It must be the caller's.
bool NobodyWrites(const std::filesystem::path& file);

}  // namespace trainprof::recording
