// Reading /proc and /sys over and over, cheaply: files stay open, numbers are read in place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace trainprof {

// A file that the kernel writes anew at each reading. An open file of a process that has ended
// fails to read, even when another process has its pid by then.
class ProcFile {
 public:
  explicit ProcFile(std::filesystem::path path) : path_(std::move(path)) {}
  ProcFile(ProcFile&& other) noexcept;
  ProcFile& operator=(ProcFile&&) = delete;
  ~ProcFile() { Close(); }

  // The whole text, in `buffer`; nothing when it cannot be read (absent, not ours, gone).
  std::optional<std::string_view> Read(std::string& buffer);
  void Close();

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

// Walks through words that blanks or line ends part.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  std::string_view Next();  // empty at the end
  // 0 for what is no number: a field that a kernel lacks.
  uint64_t Number();
  void Skip(int words);

 private:
  std::string_view rest_;
};

// Calls use(line) for each line of the text.
template <class Use>
void ForEachLine(std::string_view text, Use use) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    use(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

// The number behind "key" and a blank, a colon or tabs at the start of a line ("pswpin 12",
// "VmRSS:  12 kB"); nothing when there is no such line.
std::optional<uint64_t> NumberAfter(std::string_view text, std::string_view key);

// The first number of the text ("max" and the like: nothing).
std::optional<uint64_t> FirstNumber(std::string_view text);

}  // namespace trainprof
