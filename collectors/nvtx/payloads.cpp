#include "collectors/nvtx/payloads.h"

#include <atomic>

#include "collectors/core/thread_writer.h"

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
constexpr size_t kEnumRegister = 1;     // NVTX3EXT_CBID_nvtxPayloadEnumRegister

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
constexpr uint64_t kHasType = 1 << 2;
constexpr uint64_t kHasEntries = 1 << 4;
constexpr uint64_t kHasCount = 1 << 5;
constexpr uint64_t kHasBytes = 1 << 6;
constexpr uint64_t kHasAlignment = 1 << 7;
constexpr uint64_t kHasNumber = 1 << 8;

// nvtxPayloadEnum_t, nvtxPayloadEnumAttr_t
struct EnumValue {
  const char* name;
  uint64_t value;
  int8_t is_flag;
};
struct EnumAttributes {
  uint64_t fields;
  const char* name;
  const EnumValue* entries;
  size_t entry_count;
  size_t value_bytes;
  uint64_t number;
  void* extension;
};
// NVTX_PAYLOAD_ENUM_ATTR_FIELD_*
constexpr uint64_t kEnumHasName = 1 << 1;
constexpr uint64_t kEnumHasEntries = 1 << 2;
constexpr uint64_t kEnumHasCount = 1 << 3;
constexpr uint64_t kEnumHasBytes = 1 << 4;
constexpr uint64_t kEnumHasNumber = 1 << 5;

constexpr uint64_t kFirstOwnNumber = uint64_t{1} << 32;  // NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START

constinit std::atomic<uint64_t> g_next_number{kFirstOwnNumber};

uint32_t NumberOf(const void* domain) {
  return domain == nullptr ? 0 : static_cast<const Domain*>(domain)->number;
}

size_t AtMostFields(size_t count) {
  return count > ThreadWriter::kMostFields ? size_t{ThreadWriter::kMostFields} : count;
}

// What a schema's head says; its number is the caller's.
SchemaInfo InfoOf(const SchemaAttributes& schema, uint64_t number, uint32_t domain) {
  const auto has = [&](uint64_t field) { return (schema.fields & field) != 0; };
  return {number,
          domain,
          has(kHasBytes) ? static_cast<uint32_t>(schema.static_bytes) : 0,
          has(kHasAlignment) ? static_cast<uint16_t>(schema.alignment) : uint16_t{0},
          has(kHasType) ? static_cast<uint16_t>(schema.type) : uint16_t{0},
          MakeText(has(kHasName) ? schema.name : "")};
}

uint64_t RegisterSchema(const void* domain, const SchemaAttributes* schema) {
  if (schema == nullptr || (schema->fields & kHasEntries) == 0 || schema->entries == nullptr)
    return 0;
  const uint64_t number =
      (schema->fields & kHasNumber) != 0 ? schema->number : g_next_number.fetch_add(1);
  const size_t count = AtMostFields((schema->fields & kHasCount) != 0 ? schema->entry_count : 0);
  SchemaField fields[ThreadWriter::kMostFields];
  for (size_t i = 0; i < count; ++i) {
    const SchemaEntry& entry = schema->entries[i];
    fields[i] = {entry.type, static_cast<uint16_t>(entry.flags),
                 static_cast<uint32_t>(entry.offset), static_cast<uint32_t>(entry.detail),
                 MakeText(entry.name)};
  }
  if (ThreadWriter* writer = ThreadWriter::Enter()) {
    writer->Schema(InfoOf(*schema, number, NumberOf(domain)), fields, static_cast<uint32_t>(count));
    writer->Leave();
  }
  return number;
}

uint64_t RegisterEnum(const void* domain, const EnumAttributes* type) {
  if (type == nullptr || (type->fields & kEnumHasEntries) == 0 || type->entries == nullptr)
    return 0;
  const auto has = [&](uint64_t field) { return (type->fields & field) != 0; };
  const uint64_t number = has(kEnumHasNumber) ? type->number : g_next_number.fetch_add(1);
  const size_t count = AtMostFields(has(kEnumHasCount) ? type->entry_count : 0);
  EnumEntry entries[ThreadWriter::kMostFields];
  for (size_t i = 0; i < count; ++i) {
    const EnumValue& value = type->entries[i];
    entries[i] = {value.value, value.is_flag != 0, MakeText(value.name)};
  }
  if (ThreadWriter* writer = ThreadWriter::Enter()) {
    const size_t bytes = has(kEnumHasBytes) ? type->value_bytes : sizeof(int);
    writer->Enum(number, NumberOf(domain), static_cast<uint32_t>(bytes),
                 MakeText(has(kEnumHasName) ? type->name : ""), entries,
                 static_cast<uint32_t>(count));
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
  if (segment.slot_count > kEnumRegister) {
    segment.slots[kEnumRegister] = reinterpret_cast<intptr_t>(RegisterEnum);
  }
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
