// Where the buffers of a process lie (cupti/slot_file.h): in SEGMENT.slots, or in the file elsewhere
// that this names.
#pragma once

#include <optional>
#include <string>

#include "trace/base/result.h"
#include "trace/recording/files/recorded_files.h"

namespace trainprof::collectors {

class FoundSlots {
 public:
  // `name` of the folder. Fails where the file is not there, is none of the folder's owner, or is no
  // regular file.
  static Result<FoundSlots> Find(const recording::RecordedFolder& folder, const std::string& name);

  const recording::RecordedFile& file() const { return file_; }
  // What lies elsewhere; who found it removes SEGMENT.slots first, so that its absence means a loss.
  void RemoveElsewhere() const;

 private:
  recording::RecordedFile file_;
  std::optional<recording::RecordedFolder> elsewhere_;
  std::string name_there_;
};

// Removes the buffers in /dev/shm that nobody can want any more: ours, of processes of this container
// and boot that are dead, and whose recordings are gone.
void RemoveStrandedSlots();

}  // namespace trainprof::collectors
