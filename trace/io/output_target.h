// What the name of an output stands for, once links are followed; and which names stand for what is
// open already.
#pragma once

#include <string>

#include "trace/base/result.h"

namespace trainprof {

struct OutputTarget {
  enum class Kind {
    kAbsent,      // to be made in a folder that exists
    kRegular,     // to be replaced
    kSpecial,     // a FIFO or a character device: written into
    kDescriptor,  // /dev/stdout and the like: an open descriptor of this process
  };

  Kind kind = Kind::kAbsent;
  std::string file;    // behind links, absolute
  std::string folder;  // of it
  int descriptor = -1;
  unsigned mode = 0;  // of kRegular, its permissions
};

// Errors name `path` and say what is wrong and what to do: the folder does not exist, this is a
// folder, you may not write here.
Result<OutputTarget> FindOutputTarget(const std::string& path);

// The descriptor of this process that /dev/stdin, /dev/fd/7, or a link to it names, else -1.
int OwnDescriptorNamed(const std::string& path);

}  // namespace trainprof
