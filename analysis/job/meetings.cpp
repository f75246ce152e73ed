#include "analysis/job/meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "analysis/words.h"
#include "trace/base/cancel.h"
#include "trace/base/names.h"

namespace trainprof {
namespace {

enum class Form : uint8_t { kAll, kPair, kRooted };

// What ranks do in it. A kernel's name says it as an operation's does.
Form FormOf(std::string_view operation) {
  using names_internal::ContainsNoCase;
  const auto has = [&](std::string_view word) { return ContainsNoCase(operation, word); };
  if (has("sendrecv")) return Form::kAll;  // how NCCL does an all-to-all
  if (has("send") || has("recv")) return Form::kPair;
  if (has("allreduce") || has("all_reduce") || has("reducescatter") || has("reduce_scatter") ||
      has("allgather") || has("all_gather") || has("cross_device_reduce")) {
    return Form::kAll;
  }
  const bool rooted = has("broadcast") || has("reduce") || has("gather") || has("scatter");
  return rooted ? Form::kRooted : Form::kAll;
}

// The numbers of "[0, 1, 3]"; nothing of a list that is cut short, or of anything else.
std::optional<std::set<int64_t>> NumbersIn(std::string_view members) {
  std::set<int64_t> numbers;
  if (members.size() < 2 || members.front() != '[' || members.back() != ']') return std::nullopt;
  const char* p = members.data() + 1;
  const char* const end = members.data() + members.size() - 1;
  while (p < end) {
    while (p < end && (*p == ' ' || *p == '"')) ++p;
    int64_t number = 0;
    const auto [after, error] = std::from_chars(p, end, number);
    if (error != std::errc()) return std::nullopt;
    numbers.insert(number);
    p = after;
    while (p < end && (*p == ' ' || *p == '"')) ++p;
    if (p < end && *p++ != ',') return std::nullopt;
  }
  return numbers;
}

struct Call {
  int64_t sequence = 0;
  uint32_t operation = 0;
  uint32_t occurrence = 0;  // among those of this rank that are equal so far
  Interval when;
  Duration exposed;

  auto Key() const { return std::tie(sequence, operation, occurrence); }
};

// The calls of one rank on one communicator.
struct Member {
  uint32_t rank = 0;
  bool numbered = true;
  std::vector<Call> calls;
};

using CommunicatorName =
    std::tuple<std::string_view, std::string_view, bool, bool>;  // .., on devices, pairs

class Matcher {
 public:
  explicit Matcher(std::span<const RankDigest> digests) : digests_(digests) {
    result_.alone.resize(digests.size());
  }

  Meetings Match() && {
    for (uint32_t rank = 0; rank < digests_.size(); ++rank) Collect(rank);
    for (auto& [name, members] : communicators_) {
      CancelPoint();
      for (Member& member : members) Order(member);
      MatchOne(name, members);
    }
    if (many_to_many_ > 0) {
      result_.doubts.push_back(fmt::format(
          "{} between ranks of a larger group: the traces do not say which belong together",
          Counted(many_to_many_, "send or receive", "sends and receives")));
    }
    return std::move(result_);
  }

 private:
  void Collect(uint32_t rank) {
    for (const Collectives& list : digests_[rank].collectives) {
      const Form form = FormOf(list.operation);
      if (form == Form::kRooted) continue;
      const bool is_pair = form == Form::kPair;
      if (is_pair) {
        const auto numbers = NumbersIn(list.members);
        if (!numbers || numbers->size() != 2) {
          many_to_many_ += static_cast<int64_t>(list.calls.size());
          continue;
        }
      }
      const CommunicatorName name{list.communicator, list.members, list.device != kHostCollectives,
                                  is_pair};
      std::vector<Member>& members = communicators_[name];
      if (members.empty() || members.back().rank != rank) members.push_back({rank, true, {}});
      Member& member = members.back();
      member.numbered = member.numbered && list.numbered;
      const std::string_view operation =
          is_pair ? "send or receive" : std::string_view(list.operation);
      const auto id = static_cast<uint32_t>(
          operations_.try_emplace(operation, operations_.size()).first->second);
      for (const CollectiveCall& call : list.calls) {
        member.calls.push_back({call.sequence, id, 0, call.when, call.exposed});
      }
    }
  }

  static void Order(Member& member) {
    std::stable_sort(member.calls.begin(), member.calls.end(), [](const Call& a, const Call& b) {
      return std::tie(a.when.begin, a.when.end) < std::tie(b.when.begin, b.when.end);
    });
    if (!member.numbered) return;
    std::map<std::pair<int64_t, uint32_t>, uint32_t> seen;
    for (Call& call : member.calls) call.occurrence = seen[{call.sequence, call.operation}]++;
    std::sort(member.calls.begin(), member.calls.end(),
              [](const Call& a, const Call& b) { return a.Key() < b.Key(); });
  }

  // Ranks that are in it and have a trace, whether or not it shows a call.
  bool IsWhole(const CommunicatorName& name, const std::vector<Member>& members) const {
    if (const auto numbers = NumbersIn(std::get<1>(name))) return numbers->size() == members.size();
    int64_t world = static_cast<int64_t>(digests_.size());
    for (const RankDigest& digest : digests_) world = std::max(world, digest.analysis.world_size);
    return static_cast<int64_t>(members.size()) == world;
  }

  void MatchOne(const CommunicatorName& name, std::vector<Member>& members) {
    const auto index = static_cast<uint32_t>(result_.communicators.size());
    Communicator communicator{std::string(std::get<0>(name)),
                              std::string(std::get<1>(name)),
                              {},
                              IsWhole(name, members),
                              !std::get<3>(name)};
    const bool numbered = std::all_of(members.begin(), members.end(),
                                      [](const Member& member) { return member.numbered; });
    if (!numbered && !Number(members)) {
      // One call that a trace lacks spoils the order of all operations, and none of another's.
      std::vector<std::vector<Member>> by_operation = ByOperation(members);
      if (by_operation.size() == 1) return GiveUp(communicator, members);
      for (std::vector<Member>& each : by_operation) MatchOne(name, each);
      return;
    }
    for (const Member& member : members) communicator.ranks.push_back(member.rank);
    const size_t before = result_.meetings.size();
    MergeByKey(index, members);
    if (result_.meetings.size() > before) result_.communicators.push_back(std::move(communicator));
  }

  // Numbers the calls of all by those of the first. Whether all could be laid beside it: else none is changed.
  static bool Number(std::vector<Member>& members) {
    std::vector<std::vector<OrderedCall>> orders;
    for (Member& member : members) {
      std::stable_sort(member.calls.begin(), member.calls.end(), [](const Call& a, const Call& b) {
        return std::tie(a.when.begin, a.when.end) < std::tie(b.when.begin, b.when.end);
      });
      orders.emplace_back();
      for (const Call& call : member.calls) orders.back().push_back({call.operation, call.when});
    }
    std::vector<int64_t> shifts = {0};
    for (size_t i = 1; i < members.size(); ++i) {
      CancelPoint();
      const std::optional<int64_t> shift = SureShift(orders[i], orders[0]);
      if (!shift) return false;
      shifts.push_back(*shift);
    }
    for (size_t i = 0; i < members.size(); ++i) {
      for (size_t c = 0; c < members[i].calls.size(); ++c) {
        members[i].calls[c].sequence = static_cast<int64_t>(c) + shifts[i];
        members[i].calls[c].occurrence = 0;
      }
    }
    return true;
  }

  static std::vector<std::vector<Member>> ByOperation(const std::vector<Member>& members) {
    std::map<uint32_t, std::vector<Member>> by_operation;
    for (const Member& member : members) {
      for (const Call& call : member.calls) {
        std::vector<Member>& of = by_operation[call.operation];
        if (of.empty() || of.back().rank != member.rank) of.push_back({member.rank, false, {}});
        of.back().calls.push_back(call);
      }
    }
    std::vector<std::vector<Member>> lists;
    for (auto& [operation, of] : by_operation) lists.push_back(std::move(of));
    return lists;
  }

  void GiveUp(const Communicator& communicator, const std::vector<Member>& members) {
    for (const Member& member : members) {
      result_.alone[member.rank] += static_cast<int64_t>(member.calls.size());
    }
    if (members.size() < 2) return;
    result_.doubts.push_back(fmt::format(
        "{}{} have no numbers, and which of one rank is which of another is not sure: several "
        "groups of ranks, or recordings of other times",
        communicator.ends_together ? "collectives" : "sends and receives",
        communicator.name.empty() ? "" : fmt::format(" on \"{}\"", communicator.name)));
  }

  void MergeByKey(uint32_t index, std::vector<Member>& members) {
    std::vector<std::pair<const Call*, uint32_t>> all;
    for (const Member& member : members) {
      for (const Call& call : member.calls) all.emplace_back(&call, member.rank);
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::tuple_cat(a.first->Key(), std::tie(a.second)) <
             std::tuple_cat(b.first->Key(), std::tie(b.second));
    });
    for (size_t from = 0, to = 0; from < all.size(); from = to) {
      CancelPoint(from);
      while (to < all.size() && all[to].first->Key() == all[from].first->Key()) ++to;
      if (to - from == 1) {
        ++result_.alone[all[from].second];
        continue;
      }
      result_.meetings.push_back({index, static_cast<uint32_t>(result_.attendances.size()),
                                  static_cast<uint32_t>(to - from)});
      for (size_t i = from; i < to; ++i) {
        result_.attendances.push_back({all[i].second, all[i].first->when, all[i].first->exposed});
      }
    }
  }

  std::span<const RankDigest> digests_;
  std::map<CommunicatorName, std::vector<Member>> communicators_;
  std::map<std::string_view, size_t> operations_;
  int64_t many_to_many_ = 0;
  Meetings result_;
};

// --- Laying two sequences beside each other. ---

// How many operations from each place on are those from the begin on (the Z function). O(n).
std::vector<size_t> PrefixLengths(const std::vector<uint32_t>& word) {
  std::vector<size_t> lengths(word.size());
  for (size_t i = 1, from = 0, to = 0; i < word.size(); ++i) {
    if (i < to) lengths[i] = std::min(to - i, lengths[i - from]);
    while (i + lengths[i] < word.size() && word[lengths[i]] == word[i + lengths[i]]) ++lengths[i];
    if (i + lengths[i] > to) from = i, to = i + lengths[i];
  }
  return lengths;
}

// Places in `text` from which on it is as `word`, as far as both go.
std::vector<int64_t> PlacesOf(std::span<const OrderedCall> word,
                              std::span<const OrderedCall> text) {
  std::vector<uint32_t> both;
  for (const OrderedCall& call : word) both.push_back(call.operation);
  both.push_back(UINT32_MAX);
  for (const OrderedCall& call : text) both.push_back(call.operation);
  const std::vector<size_t> lengths = PrefixLengths(both);
  std::vector<int64_t> places;
  for (size_t i = 0; i < text.size(); ++i) {
    if (lengths[word.size() + 1 + i] >= std::min(word.size(), text.size() - i)) {
      places.push_back(static_cast<int64_t>(i));
    }
  }
  return places;
}

// How well two sequences' ends go together at a shift. Their distance is the clocks'; how far it moves from
// one collective to the next (the median) knows nothing of that, nor of a drift over the whole.
struct Fit {
  int64_t shift = 0;
  double moves_ns = 0;
  double between_ns =
      0;  // from one collective to the next, the median: what a wrong shift may hide in
};

// Nothing of fewer than three that overlap.
std::optional<Fit> FitOf(std::span<const OrderedCall> mine, std::span<const OrderedCall> other,
                         int64_t shift) {
  constexpr size_t kMostLookedAt = 64;
  const auto from = static_cast<size_t>(std::max<int64_t>(0, -shift));
  const size_t to =
      std::min(mine.size(), static_cast<size_t>(static_cast<int64_t>(other.size()) - shift));
  if (to < from + 3) return std::nullopt;
  const auto ns = [](const OrderedCall& call) { return static_cast<double>(call.when.end.ns); };
  const size_t stride = std::max<size_t>(1, (to - from) / kMostLookedAt);
  std::vector<double> moves;
  std::vector<double> between;
  for (size_t i = from; i + 1 < to; i += stride) {
    const size_t there = static_cast<size_t>(static_cast<int64_t>(i) + shift);
    between.push_back(ns(mine[i + 1]) - ns(mine[i]));
    moves.push_back(std::abs(between.back() - (ns(other[there + 1]) - ns(other[there]))));
  }
  const auto median = [](std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  return Fit{shift, median(moves), median(between)};
}

// How far one sequence reaches beyond the other at both ends together; 0: the shorter lies beside the longer.
int64_t Outside(int64_t shift, size_t mine, size_t other) {
  const int64_t longer = static_cast<int64_t>(other) - static_cast<int64_t>(mine);
  const auto [least, most] = std::minmax({int64_t{0}, longer});
  return shift < least ? least - shift : std::max<int64_t>(0, shift - most);
}

// The possible shifts, first those at which one recording lies wholly beside the other.
std::vector<int64_t> PossibleShifts(std::span<const OrderedCall> mine,
                                    std::span<const OrderedCall> other) {
  constexpr size_t kMostTried = 256;
  std::vector<int64_t> shifts = PlacesOf(mine, other);
  for (const int64_t place : PlacesOf(other, mine)) {
    if (place > 0) shifts.push_back(-place);
  }
  const auto outside = [&](int64_t shift) { return Outside(shift, mine.size(), other.size()); };
  std::sort(shifts.begin(), shifts.end(), [&](int64_t a, int64_t b) {
    return std::pair(outside(a), a) < std::pair(outside(b), b);
  });
  if (shifts.size() > kMostTried) shifts.resize(kMostTried);
  return shifts;
}

}  // namespace

std::optional<int64_t> SureShift(std::span<const OrderedCall> mine,
                                 std::span<const OrderedCall> other) {
  constexpr double kClearly = 4;  // times better than at any other shift
  constexpr double kAgree = 0.1;  // of the time between two collectives
  const std::vector<int64_t> shifts = PossibleShifts(mine, other);
  std::vector<Fit> fits;
  for (const int64_t shift : shifts) {
    if (const std::optional<Fit> fit = FitOf(mine, other, shift)) fits.push_back(*fit);
  }
  std::stable_sort(fits.begin(), fits.end(),
                   [](const Fit& a, const Fit& b) { return a.moves_ns < b.moves_ns; });
  const auto is_clearly_better = [](const Fit& fit, const Fit& other_fit) {
    return kClearly * std::max(fit.moves_ns, 1.0) < other_fit.moves_ns;
  };
  // Recorded over the same steps, as schedules do it, unless another shift says otherwise.
  if (mine.size() == other.size() && std::find(shifts.begin(), shifts.end(), 0) != shifts.end()) {
    const auto together =
        std::find_if(fits.begin(), fits.end(), [](const Fit& fit) { return fit.shift == 0; });
    if (together == fits.end() || !is_clearly_better(fits.front(), *together)) return 0;
  }
  if (fits.empty() || fits.front().moves_ns > kAgree * fits.front().between_ns) return std::nullopt;
  if (fits.size() == 1 || is_clearly_better(fits[0], fits[1])) return fits.front().shift;
  // Steps as regular as a clock: then only the order of operations tells, over the whole of one.
  std::optional<int64_t> within;
  for (const Fit& fit : fits) {
    if (Outside(fit.shift, mine.size(), other.size()) > 0) continue;
    if (is_clearly_better(fits.front(), fit)) continue;
    if (within) return std::nullopt;
    within = fit.shift;
  }
  return within;
}

Meetings MatchCollectives(std::span<const RankDigest> digests) { return Matcher(digests).Match(); }

}  // namespace trainprof
