#include "collectors/nvtx/payloads.h"

#include <atomic>

#include "collectors/host/thread_writer.h"

namespace trainprof::collectors {
namespace {

// nvtxExtModuleSegment_t, nvtxExtModuleInfo_t
struct ModuleSegment {
  size_t number;
  size_t slot_count;
  intptr_t* slots;
};
struct ModuleInfo {
  uint16_t nvtx_version;
  uint16_t struct_bytes;
  uint16_t module;
  uint16_t compatibility;
  size_t segment_count;
  ModuleSegment* segments;
};
constexpr uint16_t kPayloadModule = 2;  // NVTX_EXT_PAYLOAD_MODULEID
constexpr size_t kSchemaRegister = 0;   // NVTX3EXT_CBID_nvtxPayloadSchemaRegister

// nvtxPayloadSchemaEntry_t, nvtxPayloadSchemaAttr_t
struct SchemaEntry {
  uint64_t flags;
  uint64_t type;
  const char* name;
  const char* description;
  uint64_t detail;
  uint64_t offset;
  const void* semantics;
  const void* reserved;
};
struct SchemaAttributes {
  uint64_t fields;
  const char* name;
  uint64_t type;
  uint64_t flags;
  const SchemaEntry* entries;
  size_t entry_count;
  size_t static_bytes;
  size_t alignment;
  uint64_t number;
  void* extension;
};
// NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_*: which of them are set.
constexpr uint64_t kHasName = 1 << 1;
constexpr uint64_t kHasEntries = 1 << 4;
constexpr uint64_t kHasCount = 1 << 5;
constexpr uint64_t kHasNumber = 1 << 8;
constexpr uint64_t kFirstOwnNumber = uint64_t{1} << 32;  // NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START

constinit std::atomic<uint64_t> g_next_number{kFirstOwnNumber};

uint64_t RegisterSchema(const void* /*domain*/, const SchemaAttributes* schema) {
  if (schema == nullptr || (schema->fields & kHasEntries) == 0 || schema->entries == nullptr)
    return 0;
  const uint64_t number =
      (schema->fields & kHasNumber) != 0 ? schema->number : g_next_number.fetch_add(1);
  size_t count = (schema->fields & kHasCount) != 0 ? schema->entry_count : 0;
  if (count > ThreadWriter::kMostFields) count = ThreadWriter::kMostFields;
  SchemaField fields[ThreadWriter::kMostFields];
  for (size_t i = 0; i < count; ++i) {
    const SchemaEntry& entry = schema->entries[i];
    fields[i] = {static_cast<uint32_t>(entry.type), static_cast<uint32_t>(entry.flags),
                 static_cast<uint32_t>(entry.offset), static_cast<uint32_t>(entry.detail),
                 MakeText(entry.name)};
  }
  if (ThreadWriter* writer = ThreadWriter::Enter()) {
    const char* name = (schema->fields & kHasName) != 0 ? schema->name : "";
    writer->Schema(number, MakeText(name), fields, static_cast<uint32_t>(count));
    writer->Leave();
  }
  return number;
}

bool FillPayloadModule(void* module_info) {
  auto* info = static_cast<ModuleInfo*>(module_info);
  if (info->module != kPayloadModule || info->segment_count == 0) return false;
  ModuleSegment& segment = info->segments[0];
  if (segment.slot_count <= kSchemaRegister) return false;
  segment.slots[kSchemaRegister] = reinterpret_cast<intptr_t>(RegisterSchema);
  return true;
}

}  // namespace
}  // namespace trainprof::collectors

// Called at the first use of each extension. 1: its slots are set, 0: the extension stays silent.
extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtxExtension(void* module_info) {
  using namespace trainprof::collectors;
  if (module_info == nullptr || !InstallRuntime()) return 0;
  return FillPayloadModule(module_info) ? 1 : 0;
}
