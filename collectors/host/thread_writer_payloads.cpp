// The part of a thread's records that holds structured payloads of NVTX's extension.
#include <string.h>

#include "collectors/host/thread_writer.h"

namespace trainprof::collectors {

using recording::PackHead;
using recording::RecordType;

void ThreadWriter::WriteStructure(const Attributes& attributes) {
  const uint32_t words = 3 + (attributes.structure_bytes + 7) / 8;
  uint64_t* out = Words();
  out[words - 1] = 0;  // the padding
  out[0] = PackHead(RecordType::kPayload, words, 0, 0);
  out[1] = attributes.schema;
  out[2] = attributes.structure_bytes;
  memcpy(out + 3, attributes.structure, attributes.structure_bytes);
  Commit(words);
}

void ThreadWriter::Schema(uint64_t number, const Text& name, const SchemaField* fields,
                          uint32_t count) {
  if (count > kMostFields) count = kMostFields;
  uint64_t words[1 + 3 * kMostFields];
  words[0] = number;
  for (uint32_t i = 0; i < count; ++i) {
    const SchemaField& field = fields[i];
    CachedString* entry = strings_.Find(field.name);
    if (entry == nullptr || (entry->id == 0 && !Define(entry, nullptr))) return;
    words[1 + 3 * i] = field.type | uint64_t{field.flags} << 32;
    words[2 + 3 * i] = field.offset | uint64_t{field.detail} << 32;
    words[3 + 3 * i] = entry->id;
  }
  CachedString* entry = strings_.Find(name);
  if (entry == nullptr || (entry->id == 0 && !Define(entry, nullptr))) return;
  const uint32_t word_count = 1 + 3 * count;
  if (!Room(word_count + 1, nullptr)) return;
  WriteRecord(RecordType::kPayloadSchema, 0, entry->id, words, word_count);
}

}  // namespace trainprof::collectors
