// What a Python function calls at an instruction, as its author spelled it: "time.sleep",
// "cv2.imread". Functions without Python code stand on no stack; the source, where it can be read,
// says which one it is.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/python/line_table.h"

namespace trainprof {

// The callee of an expression of Python that is a call, else "": "np.frombuffer" of
// "np.frombuffer(f.read(), np.uint8)"; of a chain what stands behind its last call: ".resize" of
// "Image.open(path).resize(size)". Any bytes. O(length).
std::string_view CalleeOf(std::string_view expression);

class CallNames {
 public:
  // Files are those that the process sees, below `proc_folder`/root and, where their path is not
  // absolute, below its working folder.
  explicit CallNames(std::filesystem::path proc_folder) : proc_(std::move(proc_folder)) {}

  // "" where the source is not there, or what stands at the span is no call.
  std::string At(std::string_view file, const SourceSpan& span);

 private:
  struct Source {
    std::string text;
    std::vector<size_t> lines;  // where each begins
  };
  const Source& SourceOf(std::string_view file);

  std::filesystem::path proc_;
  std::map<std::string, Source, std::less<>> sources_;
};

}  // namespace trainprof
