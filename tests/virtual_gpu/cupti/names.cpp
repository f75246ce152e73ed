#include "tests/virtual_gpu/cupti/names.h"

#include <cctype>
#include <string>
#include <vector>

namespace vgpu {
namespace {

struct Entry {
  uint32_t id;
  const char* name;
};

constexpr Entry kRuntime[] = {
    {0, "INVALID"},
#include "vgpu_runtime_names.inc"
};
constexpr Entry kDriver[] = {
    {0, "INVALID"},
#include "vgpu_driver_names.inc"
};

struct Names {
  std::string callback;
  std::string function;
};

// cudaLaunchKernel_v7000 -> cudaLaunchKernel; the driver's _v2 is part of the function's name.
std::string WithoutVersion(const std::string& name) {
  const size_t at = name.rfind("_v");
  if (at == std::string::npos || name.size() - at < 6) return name;
  for (size_t i = at + 2; i < name.size(); ++i) {
    if (!isdigit(static_cast<unsigned char>(name[i]))) return name;
  }
  return name.substr(0, at);
}

template <size_t count>
std::vector<Names> ById(const Entry (&entries)[count]) {
  std::vector<Names> names;
  for (const Entry& entry : entries) {
    if (names.size() <= entry.id) names.resize(entry.id + 1);
    names[entry.id] = {entry.name, WithoutVersion(entry.name)};
  }
  return names;
}

const Names* Find(CUpti_CallbackDomain domain, uint32_t cbid) {
  static const auto* const runtime = new std::vector<Names>(ById(kRuntime));
  static const auto* const driver = new std::vector<Names>(ById(kDriver));
  const std::vector<Names>* names = domain == CUPTI_CB_DOMAIN_RUNTIME_API  ? runtime
                                    : domain == CUPTI_CB_DOMAIN_DRIVER_API ? driver
                                                                           : nullptr;
  if (names == nullptr || cbid >= names->size() || (*names)[cbid].callback.empty()) return nullptr;
  return &(*names)[cbid];
}

}  // namespace

const char* CallbackName(CUpti_CallbackDomain domain, uint32_t cbid) {
  const Names* names = Find(domain, cbid);
  return names == nullptr ? nullptr : names->callback.c_str();
}

const char* FunctionName(CUpti_CallbackDomain domain, uint32_t cbid) {
  const Names* names = Find(domain, cbid);
  return names == nullptr ? nullptr : names->function.c_str();
}

}  // namespace vgpu
