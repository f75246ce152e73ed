// Writes rows of a trace as events of a Chrome file, piece by piece. One thread's: what is shared is the layout.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/formats/chrome/chrome_layout.h"
#include "trace/formats/chrome/json_writer.h"
#include "trace/formats/chrome/stack_text.h"

namespace trainprof {

class ChromeRowWriter {
 public:
  // Stands before each event, the first of a file as well.
  static constexpr std::string_view kBetween = ",\n";

  // The layout outlives the writer. With a rank, whose odd ids are numbered as they come, the pieces are all written
  // by one writer, in their order.
  explicit ChromeRowWriter(const ChromeLayout& layout);

  // The text of its events, in place of what the string holds, whose room it takes.
  void Write(const ChromePiece& piece, std::string& text);

 private:
  // Fields that a recording has in columns only, and Kineto's readers want among the arguments.
  struct Extra {
    std::string_view key;
    int64_t value;
  };

  void WriteTable(const ChromePiece& piece);
  void WriteRange(uint32_t row);
  void WriteApi(uint32_t row);
  void WriteDeviceOp(uint32_t row);
  template <class T>
  void WriteDescribed(Table which, const T& table, uint32_t row);
  void WriteInstant(uint32_t row);
  void WriteCounter(uint32_t row);
  void WriteFlow(uint32_t row);
  void WriteLaunchArrows(const ChromePiece& piece);
  void WriteOther(const OtherEvent& other);

  void Common(std::string_view category, std::string_view name, TrackId track, int64_t tid,
              TraceTime time);
  void Complete(Table table, const EventColumns& columns, uint32_t row, std::string_view category,
                std::string_view name, std::span<const Extra> extras);
  void TakeArgs(Table table, uint32_t row);
  void Args(Table table, uint32_t row);
  void AddStack(StackId stack, std::string_view key = kCallStackKey);
  void AddWord(std::string_view key, NamedValue auto value);
  void RenameIds();
  int64_t RenameFlow(int64_t id);
  bool HasArg(std::string_view key) const;
  bool SaysStream(int64_t stream) const;
  std::string_view RangeCategory(uint32_t row) const;

  const ChromeLayout& layout_;
  const Trace& trace_;
  const ChromeLanes& lanes_;
  RankNamespace* const rank_;
  const bool is_recording_;
  std::vector<ChromeLanes::Place> places_;  // by track, as the file says them
  std::vector<std::string> heads_;          // by track: ,"pid":1,"tid":2,"ts":
  JsonWriter w_;
  std::vector<Arg> args_;  // of the event at work
  StringTable spelled_;    // of arguments that are spelled from columns
  ArgKeys keys_{trace_.strings};
  ArgKeys spelled_keys_{spelled_};
  ArgKeys* arg_keys_ = nullptr;  // of args_, one of both
  std::vector<Extra> extras_;    // of a described row
  std::vector<AddedArg> added_;
  std::unordered_map<StackId, std::string> stack_texts_;  // as spelled
};

}  // namespace trainprof
