#include "trace/recording/seal/row_order.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "trace/recording/wire/rows.h"

namespace trainprof::recording {
namespace {

constexpr size_t kMostTracks = 64;

template <class Value>
Value FieldAt(const uint64_t* row, size_t offset) {
  Value value;
  std::memcpy(&value, reinterpret_cast<const char*>(row) + offset, sizeof value);
  return value;
}

// Rows of the same number stand on one track. What is no work of a stream's, memory, waits and events, keeps its own
// order: each is a track of its own.
uint64_t TrackOfDeviceRow(const uint64_t* row) {
  const auto type = FieldAt<DeviceRowType>(row, offsetof(DeviceRow, type));
  switch (type) {
    case DeviceRowType::kKernel:
    case DeviceRowType::kCopy:
    case DeviceRowType::kPeerCopy:
    case DeviceRowType::kMemset:
    case DeviceRowType::kGraph:
      return uint64_t{FieldAt<uint32_t>(row, offsetof(DeviceRow, device))} << 32 |
             FieldAt<uint32_t>(row, offsetof(DeviceRow, stream));
    default:
      return UINT64_MAX;
  }
}
uint64_t TrackOfCallRow(const uint64_t* row) {
  return FieldAt<uint32_t>(row, offsetof(CallRow, tid));
}

// The tracks in the order of their first rows, as small numbers. False: too many.
template <class TrackOf>
bool NumberTracks(std::span<const uint64_t> words, size_t row_words, TrackOf track_of,
                  std::vector<uint8_t>& track_of_row, std::vector<uint32_t>& rows_of_track) {
  std::vector<uint64_t> tracks;
  size_t at = 0;
  for (const uint64_t* row = words.data(); row != words.data() + words.size(); row += row_words) {
    const uint64_t track = track_of(row);
    if (tracks.empty() || tracks[at] != track) {
      at = static_cast<size_t>(std::find(tracks.begin(), tracks.end(), track) - tracks.begin());
      if (at == kMostTracks) return false;
      if (at == tracks.size()) {
        tracks.push_back(track);
        rows_of_track.push_back(0);
      }
    }
    track_of_row.push_back(static_cast<uint8_t>(at));
    ++rows_of_track[at];
  }
  return true;
}

}  // namespace

void GroupByTrack(const Chunk& chunk, std::vector<uint64_t>& words) {
  const bool of_calls = chunk.kind == ChunkKind::kCallRows;
  const size_t least_bytes = of_calls ? sizeof(CallRow) : sizeof(DeviceRow);
  if (!of_calls && chunk.kind != ChunkKind::kDeviceRows) return;
  if (chunk.row_bytes < least_bytes || chunk.row_bytes % 8 != 0) return;
  const size_t row_words = chunk.row_bytes / 8;
  const size_t count = words.size() / row_words;
  if (count < 3) return;
  const std::span<const uint64_t> moved(words.data(), (count - 1) * row_words);
  std::vector<uint8_t> track_of_row;
  std::vector<uint32_t> next;  // of each track: its rows, then the place of its next one
  track_of_row.reserve(count);
  const bool are_few = of_calls
                           ? NumberTracks(moved, row_words, TrackOfCallRow, track_of_row, next)
                           : NumberTracks(moved, row_words, TrackOfDeviceRow, track_of_row, next);
  if (!are_few || next.size() < 2) return;
  uint32_t place = 0;
  for (uint32_t& rows : next) {
    const uint32_t first = place;
    place += rows;
    rows = first;
  }
  std::vector<uint64_t> grouped(words.size());
  for (size_t row = 0; row < count - 1; ++row) {
    std::copy_n(words.data() + row * row_words, row_words,
                grouped.data() + next[track_of_row[row]]++ * row_words);
  }
  std::copy(words.data() + moved.size(), words.data() + words.size(),
            grouped.data() + moved.size());
  words = std::move(grouped);
}

}  // namespace trainprof::recording
