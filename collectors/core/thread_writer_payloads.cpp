// The part of a thread's records that holds structured payloads of NVTX's extension.
#include <string.h>

#include "collectors/core/thread_writer.h"

namespace trainprof::collectors {

using recording::PackHead;
using recording::RecordType;

void ThreadWriter::WriteStructure(const Attributes& attributes) {
  const uint32_t words = attributes.StructureWords();
  uint64_t* out = Words();
  out[words - 1] = 0;  // the padding
  out[0] = PackHead(RecordType::kPayload, words, 0, 0);
  out[1] = attributes.schema;
  out[2] = attributes.structure_bytes;
  memcpy(out + 3, attributes.structure, attributes.structure_bytes);
  Commit(words);
}

bool ThreadWriter::IdOf(const Text& text, uint32_t* id) {
  CachedString* entry = strings_.Find(text);
  if (entry == nullptr || (entry->id == 0 && !Define(entry, nullptr))) return false;
  *id = entry->id;
  return true;
}

void ThreadWriter::Schema(const SchemaInfo& schema, const SchemaField* fields, uint32_t count) {
  if (count > kMostFields) count = kMostFields;
  uint64_t words[2 + 3 * kMostFields];
  words[0] = schema.number;
  words[1] = schema.static_bytes | uint64_t{schema.packing} << 32 | uint64_t{schema.type} << 48;
  uint32_t id = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const SchemaField& field = fields[i];
    if (!IdOf(field.name, &id)) return;
    words[2 + 3 * i] = (field.type & ((uint64_t{1} << 48) - 1)) | uint64_t{field.flags} << 48;
    words[3 + 3 * i] = field.offset | uint64_t{field.detail} << 32;
    words[4 + 3 * i] = id;
  }
  const uint32_t word_count = 2 + 3 * count;
  if (!IdOf(schema.name, &id) || !Room(word_count + 1, nullptr)) return;
  WriteRecord(RecordType::kPayloadSchema, schema.domain, id, words, word_count);
}

void ThreadWriter::Enum(uint64_t number, uint32_t domain, uint32_t value_bytes, const Text& name,
                        const EnumEntry* entries, uint32_t count) {
  if (count > kMostFields) count = kMostFields;
  uint64_t words[2 + 2 * kMostFields];
  words[0] = number;
  words[1] = value_bytes;
  uint32_t id = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (!IdOf(entries[i].name, &id)) return;
    words[2 + 2 * i] = entries[i].value;
    words[3 + 2 * i] = id | uint64_t{entries[i].is_flag} << 32;
  }
  const uint32_t word_count = 2 + 2 * count;
  if (!IdOf(name, &id) || !Room(word_count + 1, nullptr)) return;
  WriteRecord(RecordType::kPayloadEnum, domain, id, words, word_count);
}

}  // namespace trainprof::collectors
