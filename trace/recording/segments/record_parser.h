// Walks a chunk's records. Every length is checked before it is used.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "trace/recording/wire/format.h"

namespace trainprof::recording {

struct Record {
  RecordType type = RecordType::kNone;  // short records appear as the full type
  uint32_t domain = 0;
  uint32_t id = 0;
  uint64_t value = 0;               // word 1: ticks, mostly
  std::span<const uint64_t> extra;  // words 2 and on
};

// The fewest words of a type; 0: unknown to this reader, skipped by its length.
constexpr uint32_t LeastWords(RecordType type) {
  switch (type) {
    case RecordType::kString:
    case RecordType::kPush:
    case RecordType::kPop:
    case RecordType::kMark:
    case RecordType::kDomain:
    case RecordType::kCategory:
    case RecordType::kThreadName:
    case RecordType::kGapBegin:
    case RecordType::kGapEnd:
    case RecordType::kFact:
    case RecordType::kContext:
    case RecordType::kStack:
    case RecordType::kNameStack:
      return 2;
    case RecordType::kStream:
    case RecordType::kCallStack:
    case RecordType::kPayload:
    case RecordType::kPayloadSchema:
    case RecordType::kPayloadEnum:
      return 3;
    case RecordType::kThreadTime:
      return 4;
    case RecordType::kModule:
      return 1 + sizeof(ModuleFacts) / 8;
    case RecordType::kDevice:
      return 1 + sizeof(DeviceFacts) / 8;
    case RecordType::kStart:
    case RecordType::kEnd:
      return 3;
    case RecordType::kThread:
    case RecordType::kClock:
    case RecordType::kRange:
      return 5;
    default:
      return 0;
  }
}

constexpr bool IsTimed(RecordType type) {
  return type >= RecordType::kPush && type <= RecordType::kMark;
}

class RecordParser {
 public:
  explicit RecordParser(std::span<const uint64_t> words) : words_(words) {}

  // False at the end, and at damage: nothing behind it can be trusted.
  bool Next(Record& record) {
    while (at_ < words_.size()) {
      const uint64_t head = words_[at_];
      if (IsShort(head)) {
        if (!NextShort(head, record)) return false;
        if (record.type != RecordType::kNone) return true;
        continue;
      }
      const RecordHead fields = UnpackHead(head);
      if (fields.words < 2 || fields.words > words_.size() - at_) return Damaged();
      const uint32_t least = LeastWords(fields.type);
      record = {fields.type, fields.domain, fields.id, words_[at_ + 1],
                words_.subspan(at_ + 2, fields.words - 2)};
      at_ += fields.words;
      if (fields.type == RecordType::kNone) return Damaged();
      if (least == 0) {
        ++unknown_;
        continue;
      }
      if (fields.words < least) return Damaged();
      if (IsTimed(record.type)) last_ticks_ = record.value;
      return true;
    }
    return false;
  }

  bool damaged() const { return damaged_; }
  uint64_t unknown() const { return unknown_; }

 private:
  bool Damaged() {
    damaged_ = true;
    at_ = words_.size();
    return false;
  }

  bool NextShort(uint64_t head, Record& record) {
    ++at_;
    const auto type = static_cast<RecordType>(head & 0xFF);
    if (last_ticks_ == 0) return Damaged();  // the first of a chunk is never short
    last_ticks_ += ShortTicks(head);
    record = {RecordType::kNone, 0, 0, last_ticks_, {}};
    if (type == RecordType::kShortPush) {
      record.type = RecordType::kPush;
      record.id = ShortValue(head);
    } else if (type == RecordType::kShortPop) {
      record.type = RecordType::kPop;
      record.domain = ShortValue(head);
    } else {
      ++unknown_;
    }
    return true;
  }

  std::span<const uint64_t> words_;
  size_t at_ = 0;
  uint64_t last_ticks_ = 0;
  uint64_t unknown_ = 0;
  bool damaged_ = false;
};

// The text of a kString record, as far as it is there. Valid while the record's words are.
inline std::string_view StringOf(const Record& record) {
  const uint64_t length = record.value & ~kStringTruncated;
  const uint64_t most = record.extra.size() * 8;
  return {reinterpret_cast<const char*>(record.extra.data()),
          static_cast<size_t>(length < most ? length : most)};
}

// The structure that a record carries from its word 1 on; it has that many words (LeastWords).
template <class Facts>
Facts FactsOf(const Record& record) {
  Facts facts;
  memcpy(&facts, &record.value, 8);
  memcpy(reinterpret_cast<char*>(&facts) + 8, record.extra.data(), sizeof facts - 8);
  return facts;
}

// The thread's own name in a kThread record.
inline std::string_view ThreadNameOf(const Record& record) {
  const char* name = reinterpret_cast<const char*>(record.extra.data() + 1);
  return {name, strnlen(name, 16)};
}

}  // namespace trainprof::recording
