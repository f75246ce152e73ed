// The parts of a file, and its events on all cores.
#include "trace/formats/chrome/chrome_writer.h"

#include <memory>

#include "trace/base/parallel.h"
#include "trace/base/texts_in_order.h"
#include "trace/formats/chrome/chrome_row_writer.h"

namespace trainprof {

void ChromeWriter::Write() {
  sink_.Write("{\n");
  sink_.Write(Members());
  sink_.Write("\"traceEvents\": [\n");
  const std::string metadata = Metadata();
  sink_.Write(metadata);
  WriteEvents(metadata.empty(), 0);
  sink_.Write("\n]}\n");
}

bool ChromeWriter::WriteEvents(bool is_first, int64_t shift_ns) {
  layout_.Shift(shift_ns);
  const std::vector<ChromePiece> pieces = layout_.Pieces();
  const auto writer = [&]() -> MakeText {
    return [&pieces, rows = std::make_shared<ChromeRowWriter>(layout_)](
               size_t piece, std::string& text) { rows->Write(pieces[piece], text); };
  };
  const auto take = [&](std::string& text) {
    if (is_first && !text.empty()) {
      text.erase(0, ChromeRowWriter::kBetween.size());
      is_first = false;
    }
    sink_.Take(text);
  };
  MakeTextsInOrder(pieces.size(), rank_ == nullptr ? UsableCores() : 1, writer, take);
  return is_first;
}

std::vector<int64_t> ChromeWriter::Pids() const {
  std::vector<int64_t> pids;
  for (const Process& process : trace_.processes) pids.push_back(process.pid);
  for (uint32_t i = 0; i < trace_.tracks.size(); ++i) {
    pids.push_back(layout_.lanes().PlaceOf(TrackId{i}).pid);
  }
  if (is_recording_) {
    for (const Device& device : trace_.devices) pids.push_back(device.id);
  }
  for (const OtherEvent& other : trace_.others) {
    int64_t pid = 0;
    if (PidOfEvent(trace_.Text(other.json), pid)) pids.push_back(pid);
  }
  return pids;
}

}  // namespace trainprof
