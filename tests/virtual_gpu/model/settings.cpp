#include "tests/virtual_gpu/model/settings.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>

namespace vgpu {
namespace {

struct Entry {
  const char* name;
  Range range;
  const char* meaning;
};

Entry table[] = {
#define VGPU_ONE(name, least, greatest, meaning) {#name, {least, greatest}, meaning},
    VGPU_SETTINGS_TABLE(VGPU_ONE)
#undef VGPU_ONE
};

[[noreturn]] void Refuse(const std::string& item) {
  fprintf(stderr, "virtual GPU: VGPU_SETTINGS: cannot use \"%s\"; VGPU_SETTINGS=help lists all\n",
          item.c_str());
  exit(2);
}

bool SetFromText(const std::string& item) {
  const size_t equals = item.find('=');
  if (equals == std::string::npos) return false;
  const char* text = item.c_str() + equals + 1;
  char* end = nullptr;
  Range range;
  range.least = range.greatest = strtod(text, &end);
  if (end == text) return false;
  if (*end == ':') {
    text = end + 1;
    range.greatest = strtod(text, &end);
    if (end == text) return false;
  }
  return *end == '\0' && Set(item.substr(0, equals), range);
}

void SetAll(const char* text) {
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    if (!item.empty() && !SetFromText(item)) Refuse(item);
  }
}

bool ReadEnvironment() {
  if (Hard()) SetAll(kHardSettings);
  const char* text = getenv("VGPU_SETTINGS");
  if (text == nullptr) return true;
  if (std::string(text) == "help") {
    fputs(DescribeSettings().c_str(), stdout);
    exit(0);
  }
  SetAll(text);
  return true;
}

}  // namespace

bool Hard() {
  const char* text = getenv("VGPU_HARD");
  return text != nullptr && *text != '\0' && std::string(text) != "0";
}

const Range& Get(Setting setting) {
  static const bool read = ReadEnvironment();
  (void)read;
  return table[static_cast<int>(setting)].range;
}

bool Set(const std::string& name, Range range) {
  if (range.least > range.greatest) return false;
  for (Entry& entry : table) {
    if (name != entry.name) continue;
    entry.range = range;
    return true;
  }
  return false;
}

std::string DescribeSettings() {
  std::ostringstream out;
  for (const Entry& entry : table) {
    out << entry.name << '=' << entry.range.least;
    if (entry.range.greatest != entry.range.least) out << ':' << entry.range.greatest;
    out << "  " << entry.meaning << '\n';
  }
  return out.str();
}

}  // namespace vgpu
