// The kinds and their words. Kinds are stable: programs match on them.
#include "trace/formats/notes.h"

#include <fmt/format.h>

namespace trainprof {
namespace {

struct NoteText {
  const char* kind;
  QualitySeverity severity;
  const char* what;
};

constexpr QualitySeverity kInfo = QualitySeverity::kInfo;
constexpr QualitySeverity kWarning = QualitySeverity::kWarning;
constexpr QualitySeverity kDataLoss = QualitySeverity::kDataLoss;

// In the order of Note.
constexpr std::array<NoteText, static_cast<size_t>(Note::kCount)> kTexts = {{
    {"bad_escape", kWarning, "a backslash that starts no JSON escape; kept as text"},
    {"invalid_utf8", kWarning, "bytes that are not UTF-8; replaced by U+FFFD"},
    {"control_character", kInfo, "an unescaped control character in a string; kept"},
    {"nul_byte", kDataLoss, "a byte 0 in a string, where no program writes one"},
    {"bare_literal", kWarning,
     "a bare word (NaN, N/A, ...) where JSON wants a value; kept as text"},
    {"odd_number", kInfo, "a number that strict JSON does not allow; read as meant"},
    {"duplicate_key", kWarning, "a key that occurs twice in one object; the last counts"},
    {"wrong_type", kWarning, "a field with a value of an unexpected type"},
    {"number_as_text", kInfo, "a time or duration given as text; read as a number"},
    {"missing_time", kWarning, "an event without ts; kept raw, without a place in time"},
    {"bad_time", kWarning, "a time that is not a number, or beyond 126 years; kept raw"},
    {"time_below_ns", kInfo, "a time with digits below a nanosecond; rounded"},
    {"missing_duration", kWarning, "a complete event without dur; kept with duration 0"},
    {"missing_thread", kInfo, "an event without pid or tid; 0 is taken"},
    {"unknown_phase", kInfo, "an event whose ph is unknown; kept raw"},
    {"unmatched_begin", kWarning, "a B event without its E; closed at the end of the trace"},
    {"unmatched_end", kWarning, "an E event without its B; kept raw"},
    {"not_an_event", kWarning, "an element of traceEvents that is not an object; dropped"},
    {"unparsable_event", kDataLoss, "an event that is no JSON; dropped"},
    {"oversized_event", kDataLoss, "an event larger than 64 MiB; dropped"},
    {"oversized_member", kDataLoss, "top-level members larger than 64 MiB; dropped"},
    {"missing_comma", kInfo, "no comma between two events"},
    {"extra_comma", kInfo, "a comma without an event beside it"},
    {kTruncatedInput.data(), kDataLoss, "the file ends early; what came before is kept"},
    {"damaged_input", kDataLoss, "the compressed data is damaged"},
    {"trailing_data", kWarning, "data after the end of the JSON document; ignored"},
    {"too_many_tracks", kWarning,
     "an event of a thread beyond the first million; put on one track"},
    {"time_outlier", kWarning, "an event more than a day from nearly all others; set aside"},
    {"zero_time", kWarning, "an event at time 0 far from all others; set aside"},
    {"device_without_id", kInfo, "a device property record without an id; kept raw only"},
}};

}  // namespace

void ImportNotes::Add(Note note, int64_t count) {
  Entry& entry = entries_[static_cast<size_t>(note)];
  if (entry.count == 0) {
    entry.detail = fmt::format("event {} at byte {}: {}", event_, offset_,
                               kTexts[static_cast<size_t>(note)].what);
  }
  entry.count += count;
}

void ImportNotes::AddWithDetail(Note note, std::string detail, int64_t count) {
  Entry& entry = entries_[static_cast<size_t>(note)];
  if (entry.count == 0) entry.detail = std::move(detail);
  entry.count += count;
}

void ImportNotes::WriteTo(Quality& quality) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    quality.Count(kTexts[i].kind, kTexts[i].severity, entries_[i].count, entries_[i].detail);
  }
}

}  // namespace trainprof
