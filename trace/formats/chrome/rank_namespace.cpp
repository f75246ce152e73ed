// Renaming ids, and editing the raw text of events that are kept whole.
#include "trace/formats/chrome/rank_namespace.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "trace/formats/io/json_text.h"
#include "trace/formats/io/json_window.h"

namespace trainprof {
namespace {

// Above any pid of Linux (4,194,304).
constexpr int64_t kPidStride = 10'000'000;
// Perfetto keeps pids in 32 bits: slots beyond these get their pids one by one from the rest.
constexpr uint32_t kReadableSlots = 200;
constexpr int64_t kFirstFreePid = kPidStride * kReadableSlots;

// A value that is one plain integer.
std::optional<int64_t> IntegerOf(std::string_view value) {
  int64_t number = 0;
  if (!json::WholeInteger(value, number) || std::to_string(number) != value) return std::nullopt;
  return number;
}

// `json` with the value of `key` replaced, where `change` gives one.
template <class Change>
std::string Replaced(std::string_view json, std::string_view key, Change change) {
  std::string out(json);
  for (const RawMember& member : RawMembers(json)) {
    if (member.key != key) continue;
    const std::optional<std::string> value = change(member.value);
    if (!value) continue;
    out.replace(static_cast<size_t>(member.value.data() - json.data()), member.value.size(),
                *value);
    break;
  }
  return out;
}

}  // namespace

PlainId WithoutSlot(int64_t id) {
  if (id < 0) return {id, true};
  const int64_t plain = id & ((int64_t{1} << kSlotShift) - 1);
  return {plain, plain < kFirstOddId};
}

void RankNamespace::AddPid(int64_t pid, std::set<int64_t>& used) {
  if (pids_.contains(pid)) return;
  const bool readable = slot_ < kReadableSlots && pid >= 0 && pid < kPidStride;
  const bool keep = slot_ == 0 && pid >= INT32_MIN && pid < kFirstFreePid;
  int64_t renamed = keep || !readable ? pid : slot_ * kPidStride + pid;
  if ((!readable && !keep) || used.contains(renamed)) {
    renamed = used.empty() ? kFirstFreePid : std::max(kFirstFreePid, *used.rbegin() + 1);
  }
  used.insert(renamed);
  pids_.emplace(pid, renamed);
}

bool RankNamespace::FindPid(int64_t pid, int64_t& renamed) const {
  const auto it = pids_.find(pid);
  if (it == pids_.end()) return false;
  renamed = it->second;
  return true;
}

int64_t RankNamespace::Id(RankIds ids, int64_t id, bool& fits) {
  if (id == kNoId && ids != RankIds::kFlow) return id;
  const int64_t first = int64_t{slot_} << kSlotShift;
  if (id >= 0 && id < kFirstOddId) return first + id;
  fits = false;
  auto& odd = odd_ids_[static_cast<size_t>(ids)];
  const auto next = kFirstOddId + static_cast<int64_t>(odd.size());
  return first + odd.try_emplace(id, next).first->second;
}

// "id": 5 becomes "2:5", and "0x1f" becomes "2:'0x1f".
std::string RankNamespace::RenameEvent(std::string_view json) const {
  const std::string with_pid = Replaced(json, "pid", [&](std::string_view value) {
    const std::optional<int64_t> pid = IntegerOf(value);
    int64_t renamed = 0;
    return pid && FindPid(*pid, renamed) ? std::optional(std::to_string(renamed)) : std::nullopt;
  });
  return Replaced(with_pid, "id", [&](std::string_view value) -> std::optional<std::string> {
    if (value.starts_with('"')) return fmt::format("\"{}:'{}", slot_, value.substr(1));
    if (IntegerOf(value)) return fmt::format("\"{}:{}\"", slot_, value);
    return std::nullopt;
  });
}

bool PidOfEvent(std::string_view json, int64_t& pid) {
  for (const RawMember& member : RawMembers(json)) {
    if (member.key != "pid") continue;
    const std::optional<int64_t> number = IntegerOf(member.value);
    if (number) pid = *number;
    return number.has_value();
  }
  return false;
}

bool SlotOfEvent(std::string_view json, uint32_t& slot) {
  for (const RawMember& member : RawMembers(json)) {
    if (member.key != kSlotKey) continue;
    const std::optional<int64_t> number = IntegerOf(member.value);
    if (number) slot = static_cast<uint32_t>(*number);
    return number.has_value();
  }
  return false;
}

std::string OriginalEvent(std::string_view json, const std::map<int64_t, int64_t>& pids) {
  std::string out = Replaced(json, "pid", [&](std::string_view value) {
    const std::optional<int64_t> renamed = IntegerOf(value);
    const auto it = renamed ? pids.find(*renamed) : pids.end();
    return it != pids.end() ? std::optional(std::to_string(it->second)) : std::nullopt;
  });
  out = Replaced(out, "id", [](std::string_view value) -> std::optional<std::string> {
    const size_t colon = value.find(':');
    if (!value.starts_with('"') || colon == std::string_view::npos) return std::nullopt;
    const std::string_view rest = value.substr(colon + 1);
    if (rest.starts_with('\'')) return fmt::format("\"{}", rest.substr(1));
    return std::string(rest.substr(0, rest.size() - 1));
  });
  for (const RawMember& member : RawMembers(out)) {
    if (member.key != kSlotKey) continue;
    const auto first = static_cast<size_t>(member.key.data() - out.data()) - 1;
    auto last = static_cast<size_t>(member.value.data() + member.value.size() - out.data());
    // With the comma behind it, or else the one before.
    if (out[last] == ',') return out.erase(first, last + 1 - first);
    const bool after_comma = out[first - 1] == ',';
    return out.erase(first - (after_comma ? 1 : 0), last - first + (after_comma ? 1 : 0));
  }
  return out;
}

std::vector<RawMember> RawMembers(std::string_view json) {
  // The scanners look some bytes ahead.
  std::string padded(json);
  padded.append(JsonWindow::kPadding, '\0');
  const char* const begin = padded.data();
  const char* const end = begin + json.size();
  const auto view = [&](const char* first, const char* last) {
    return json.substr(static_cast<size_t>(first - begin), static_cast<size_t>(last - first));
  };
  std::vector<RawMember> members;
  const char* p = json::SkipSpace(begin);
  const bool is_object = *p == '{';
  if (!is_object && *p != '[') return members;
  json::Repairs ignored;
  for (++p;; ++p) {
    RawMember member;
    p = json::SkipSpace(p);
    if (is_object && *p == '"') {
      const char* const first = p;
      if (json::SkipValue(p, end, ignored) != json::Scan::kOk) return members;
      member.key = view(first + 1, p - 1);
      p = json::SkipSpace(p);
      if (*p != ':') return members;
      p = json::SkipSpace(p + 1);
    }
    if (p >= end || *p == '}' || *p == ']') return members;
    const char* const first = p;
    if (json::SkipValue(p, end, ignored) != json::Scan::kOk) return members;
    member.value = view(first, p);
    members.push_back(member);
    p = json::SkipSpace(p);
    if (*p != ',') return members;
  }
}

}  // namespace trainprof
