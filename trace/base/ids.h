// Ids and row numbers. Each is a type of its own, so that a stream is never taken for a track.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainprof {

enum class StringId : uint32_t {};   // index into StringTable; 0 is the empty string
enum class ProcessId : uint32_t {};  // index into Trace::processes
enum class TrackId : uint32_t {};    // index into Trace::tracks
enum class DeviceId : uint32_t {};   // index into Trace::devices
enum class ArgsId : uint32_t {};     // handle into ArgsTable
enum class Row : uint32_t {};        // index into one table

inline constexpr StringId kEmptyString{0};
inline constexpr ArgsId kNoArgs{0};
inline constexpr Row kNoRow{UINT32_MAX};
inline constexpr TrackId kNoTrack{UINT32_MAX};
inline constexpr DeviceId kNoDevice{UINT32_MAX};
inline constexpr ProcessId kNoProcess{UINT32_MAX};

// A file that has no correlation id for an event. Real ids are >= 0, apart from kineto's -1.
inline constexpr int64_t kNoCorrelation = INT64_MIN;

template <class Id>
constexpr size_t Index(Id id) {
  return static_cast<size_t>(id);
}

}  // namespace trainprof
