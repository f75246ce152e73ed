#include "tests/virtual_gpu/model/faults.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/virtual_gpu/model/settings.h"

namespace vgpu {
namespace {

struct Entry {
  const char* name;
  const char* default_argument;
  const char* meaning;
  std::string argument;
  std::atomic<int64_t> left = 0;
  std::atomic<bool> on = false;
};

Entry table[] = {
#define VGPU_ONE(name, argument, meaning) {#name, argument, meaning, {}},
    VGPU_FAULTS_TABLE(VGPU_ONE)
#undef VGPU_ONE
};

void SetAll(const char* text) {
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const size_t equals = item.find('=');
    const std::string argument = equals == std::string::npos ? "" : item.substr(equals + 1);
    if (item.empty() || SetFault(item.substr(0, equals), argument)) continue;
    fprintf(stderr, "virtual GPU: VGPU_FAULTS: no fault \"%s\"; VGPU_FAULTS=help lists all\n",
            item.c_str());
    exit(2);
  }
}

bool ReadEnvironment() {
  if (Hard()) SetAll(kHardFaults);
  const char* text = getenv("VGPU_FAULTS");
  if (text == nullptr) return true;
  if (std::string(text) == "help") {
    fputs(DescribeFaults().c_str(), stdout);
    exit(0);
  }
  SetAll(text);
  return true;
}

Entry& Find(Fault fault) {
  static const bool read = ReadEnvironment();
  (void)read;
  return table[static_cast<int>(fault)];
}

}  // namespace

const std::string* FaultText(Fault fault) {
  const Entry& entry = Find(fault);
  return entry.on.load(std::memory_order_acquire) ? &entry.argument : nullptr;
}

int64_t FaultNumber(Fault fault, int64_t otherwise) {
  const std::string* text = FaultText(fault);
  return text == nullptr ? otherwise : atoll(text->c_str());
}

bool TakeOne(Fault fault) {
  Entry& entry = Find(fault);
  return entry.on.load(std::memory_order_acquire) && entry.left.fetch_sub(1) > 0;
}

bool SetFault(const std::string& name, const std::string& argument) {
  for (Entry& entry : table) {
    if (name != entry.name) continue;
    entry.argument = argument.empty() ? entry.default_argument : argument;
    entry.left = atoll(entry.argument.c_str());
    entry.on.store(true, std::memory_order_release);
    return true;
  }
  return false;
}

void ClearFaults() {
  for (Entry& entry : table) entry.on = false;
}

std::string DescribeFaults() {
  std::ostringstream out;
  for (const Entry& entry : table) {
    out << entry.name;
    if (*entry.default_argument != '\0') out << '=' << entry.default_argument;
    out << "  " << entry.meaning << '\n';
  }
  return out.str();
}

}  // namespace vgpu
