// The rows, facts and stacks of a recording, read chunk by chunk without the trace reader, so that
// the collector's tests depend on the byte layout alone.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trace/recording/wire/format.h"
#include "trace/recording/wire/rows.h"

namespace trainprof::testing {

struct RecordedStack {
  uint32_t correlation = 0;
  recording::CallDomain domain{};
  std::vector<uint64_t> frames;
};

struct RecordedModule {
  std::string path;
  recording::ModuleFacts facts{};
};

struct RecordedField {
  std::string name;
  uint32_t type = 0;
  uint32_t offset = 0;
};

struct RecordedPayload {
  uint64_t schema = 0;
  std::vector<char> bytes;
  recording::RecordType event{};  // of the record that follows
};

struct RecordedRows {
  std::vector<recording::DeviceRow> device;  // `name` is an index of `names`
  std::vector<recording::CallRow> calls;
  std::vector<std::string> names;
  std::map<std::string, std::string> facts;
  std::vector<RecordedStack> stacks;
  std::vector<RecordedModule> modules;
  std::vector<recording::DeviceFacts> devices;
  std::map<uint64_t, std::vector<RecordedField>> schemas;
  std::vector<RecordedPayload> payloads;
  int contexts = 0;
  int gaps_begun = 0;  // of GapReason::kDevice
  int gaps_ended = 0;
  std::vector<uint64_t> lent_ticks;  // begin, end, begin, ... of the gaps of GapReason::kLent
  uint64_t dropped = 0;              // as the segment counts it, thinned ones included
  int damaged = 0;                   // chunks or records that could not be read

  std::vector<recording::DeviceRow> Of(recording::DeviceRowType type) const;
  int64_t CountCalls(const std::string& name) const;
  std::string Fact(const std::string& key) const;  // "" when there is none
};

// Of each segment in the run directory.
std::vector<RecordedRows> ReadRows(const std::filesystem::path& run_directory);
// The only one; fails the test when there is another.
RecordedRows ReadOnlyRows(const std::filesystem::path& run_directory);

}  // namespace trainprof::testing
