// What the real libcupti answers without a driver, the virtual one answers too.
#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/sanitized.h"

namespace vgpu::testing {
namespace {

class VirtualGpuRealLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    if (trainprof::testing::kIsSanitized) {
      GTEST_SKIP() << "the real library's threads end LeakSanitizer";
    }
    library_ = dlopen(TEST_REAL_CUPTI, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    uint32_t version = 0;
    Find<decltype(cuptiGetVersion)>("cuptiGetVersion")(&version);
    ASSERT_EQ(version, static_cast<uint32_t>(CUPTI_API_VERSION))
        << "another version than the headers";
  }

  template <class Function>
  Function* Find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  void* library_ = nullptr;
};

TEST_F(VirtualGpuRealLibrary, NamesEveryCallbackTheSame) {
  auto* real = Find<decltype(cuptiGetCallbackName)>("cuptiGetCallbackName");
  for (const CUpti_CallbackDomain domain :
       {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API}) {
    for (uint32_t id = 0; id < 2000; ++id) {
      const char* expected = "";
      const char* name = "";
      const CUptiResult result = real(domain, id, &expected);
      ASSERT_EQ(cuptiGetCallbackName(domain, id, &name), result) << domain << " " << id;
      if (result == CUPTI_SUCCESS) {
        ASSERT_STREQ(name, expected) << domain << " " << id;
      }
    }
  }
}

TEST_F(VirtualGpuRealLibrary, NamesEveryResultTheSame) {
  auto* real = Find<decltype(cuptiGetResultString)>("cuptiGetResultString");
  for (int code = 0; code < 50; ++code) {
    const char* expected = "";
    const char* name = "";
    const CUptiResult result = real(static_cast<CUptiResult>(code), &expected);
    if (result != CUPTI_SUCCESS)
      continue;  // the headers still name two that the library has forgotten
    ASSERT_EQ(cuptiGetResultString(static_cast<CUptiResult>(code), &name), CUPTI_SUCCESS) << code;
    ASSERT_STREQ(name, expected);
  }
}

// Bytes to the next record, and how the walk ends where there is too little room for one.
TEST_F(VirtualGpuRealLibrary, WalksRecordsTheSame) {
  auto* real = Find<decltype(cuptiActivityGetNextRecord)>("cuptiActivityGetNextRecord");
  for (uint32_t kind = 0; kind < 100; ++kind) {
    alignas(8) uint8_t bytes[1024] = {};
    for (size_t i = 0; i < sizeof bytes; i += 4)
      memcpy(bytes + i, "\5\0\0\0", 4);  // runtime records
    memcpy(bytes, &kind, sizeof kind);
    for (size_t valid = 0; valid <= 300; valid += 4) {
      CUpti_Activity* expected = nullptr;
      CUpti_Activity* record = nullptr;
      for (int step = 0; step < 2; ++step) {
        const CUptiResult result = real(bytes, valid, &expected);
        ASSERT_EQ(cuptiActivityGetNextRecord(bytes, valid, &record), result)
            << kind << " " << valid;
        if (result != CUPTI_SUCCESS) break;
        ASSERT_EQ(record, expected) << kind;
      }
    }
  }
}

}  // namespace
}  // namespace vgpu::testing
