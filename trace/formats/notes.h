// What an import repaired, dropped or wondered about: a fixed list of kinds, each counted, with the
// place of the first.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "trace/tables/quality.h"

namespace trainprof {

enum class Note : uint8_t {
  kBadEscape,
  kInvalidUtf8,
  kControlCharacter,
  kNulByte,
  kBareLiteral,
  kOddNumber,
  kDuplicateKey,
  kWrongType,
  kNumberAsText,
  kMissingTime,
  kBadTime,
  kTimeBelowNs,
  kMissingDuration,
  kMissingThread,
  kUnknownPhase,
  kUnmatchedBegin,
  kUnmatchedEnd,
  kNotAnEvent,
  kUnparsableEvent,
  kOversizedEvent,
  kOversizedMember,
  kMissingComma,
  kExtraComma,
  kTruncatedInput,
  kDamagedInput,
  kTrailingData,
  kTooManyTracks,
  kTimeOutlier,
  kZeroTime,
  kDeviceWithoutId,
  kCount,
};

class ImportNotes {
 public:
  // The place that later notes of the current event get: its number and byte offset.
  void At(uint64_t event, uint64_t offset) {
    event_ = event;
    offset_ = offset;
  }
  void Add(Note note, int64_t count = 1);
  // Adds with a detail of its own in place of the event's number.
  void AddWithDetail(Note note, std::string detail, int64_t count = 1);
  int64_t count(Note note) const { return entries_[static_cast<size_t>(note)].count; }

  // Adds all that were counted to `quality`, in the order of Note.
  void WriteTo(Quality& quality) const;

 private:
  struct Entry {
    int64_t count = 0;
    std::string detail;
  };
  std::array<Entry, static_cast<size_t>(Note::kCount)> entries_;
  uint64_t event_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace trainprof
