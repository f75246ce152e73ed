// Decodes the frames of a host file; hostile bytes cost what they say, never more.
#include <iterator>
#include <map>

#include "trace/recording/files/frame_payload.h"
#include "trace/recording/files/host_file.h"

namespace trainprof::recording {
namespace {

// Linux knows at most 8192 cores; a mask that claims more is damage.
constexpr uint64_t kMostMaskWords = 128;
// What one file may make us remember: far beyond real runs, and some 100 MB.
constexpr uint32_t kMostEntities = 1 << 20;
constexpr size_t kMostCells = 8 << 20;  // values of entities that have not ended

// The frames of one stream.
class Stream {
 public:
  Stream(HostSink& sink, uint32_t& next_id) : sink_(sink), next_id_(next_id) {}

  // Until the next key frame nothing can be understood.
  void Lose() { in_step_ = false; }
  bool in_step() const { return in_step_; }

  // False when the payload is none of ours.
  bool Decode(bool is_key, std::span<const char> payload) {
    if (is_key) BeginKey();
    PayloadReader in(payload);
    now_ += in.Varint();
    while (!in.AtEnd()) {
      if (!DecodeItem(in)) return false;
    }
    if (is_key) EndUnstated();
    return in.ok();
  }

 private:
  struct Entity {
    uint32_t id = 0;
    HostEntity what;
    bool stated = false;
    std::vector<uint64_t> last;
  };

  void BeginKey() {
    in_step_ = true;
    now_ = 0;
    for (auto& [number, entity] : entities_) {
      entity.stated = false;
      Forget(entity);
    }
  }

  void Forget(Entity& entity) {
    cells_ -= entity.last.size();
    entity.last.clear();
  }

  // What a key frame does not restate ended in a frame that was lost.
  void EndUnstated() {
    for (auto it = entities_.begin(); it != entities_.end();) {
      if (it->second.stated) {
        ++it;
        continue;
      }
      it = Erase(it);
    }
  }

  std::map<uint64_t, Entity>::iterator Erase(std::map<uint64_t, Entity>::iterator it) {
    sink_.OnEnd(it->second.id);
    cells_ -= it->second.last.size();
    return entities_.erase(it);
  }

  bool DecodeItem(PayloadReader& in) {
    switch (static_cast<HostItem>(in.Byte())) {
      case HostItem::kPadding:
        return true;
      case HostItem::kDefine:
        return Define(in);
      case HostItem::kEnd: {
        const auto it = entities_.find(in.Varint());
        if (!in.ok() || it == entities_.end()) return false;
        Erase(it);
        return true;
      }
      case HostItem::kValues:
        return Values(in);
      case HostItem::kFact: {
        const std::string_view key = in.Text();
        const std::string_view text = in.Text();
        if (in.ok()) sink_.OnFact(key, text);
        return in.ok();
      }
    }
    return false;
  }

  bool Define(PayloadReader& in) {
    const uint64_t number = in.Varint();
    HostEntity what;
    what.kind = static_cast<HostEntityKind>(in.Byte());
    what.number = in.Signed();
    what.parent = in.Signed();
    what.start_ticks = in.Varint();
    what.text = in.Text();
    if (!in.ok() || next_id_ >= kMostEntities) return false;
    auto [it, is_new] = entities_.try_emplace(number);
    Entity& entity = it->second;
    entity.stated = true;
    // One number for two entities is a writer's mistake, or damage: the first one ends.
    const bool same = !is_new && entity.what.kind == what.kind &&
                      entity.what.number == what.number &&
                      entity.what.start_ticks == what.start_ticks;
    if (!is_new && !same) sink_.OnEnd(entity.id);
    if (!same) {
      entity.id = next_id_++;
      Forget(entity);
    }
    if (!same || entity.what != what) sink_.OnDefine(entity.id, what);
    entity.what = std::move(what);
    return true;
  }

  bool Values(PayloadReader& in) {
    const auto it = entities_.find(in.Varint());
    const uint64_t words = in.Varint();
    if (!in.ok() || it == entities_.end() || words > kMostMaskWords) return false;
    observed_.clear();
    for (uint64_t w = 0; w < words; ++w) observed_.push_back(in.Varint());
    Entity& entity = it->second;
    if (entity.last.size() < words * 64) {
      cells_ += words * 64 - entity.last.size();
      if (cells_ > kMostCells) return false;
      entity.last.resize(words * 64);
    }
    values_.clear();
    for (uint64_t w = 0; w < words && in.ok(); ++w) {
      const uint64_t changed = in.Varint();
      for (uint64_t left = observed_[w]; left != 0; left &= left - 1) {
        const auto bit = static_cast<uint32_t>(__builtin_ctzll(left));
        uint64_t& last = entity.last[w * 64 + bit];
        if ((changed >> bit & 1) != 0) last += static_cast<uint64_t>(in.Signed());
        values_.push_back({static_cast<uint32_t>(w * 64 + bit), last});
      }
    }
    if (!in.ok()) return false;
    sink_.OnValues(entity.id, static_cast<int64_t>(now_), values_);
    return true;
  }

  HostSink& sink_;
  uint32_t& next_id_;
  bool in_step_ = false;
  uint64_t now_ = 0;
  size_t cells_ = 0;
  std::map<uint64_t, Entity> entities_;
  std::vector<uint64_t> observed_;
  std::vector<HostSink::Value> values_;
};

}  // namespace

int64_t DecodeHostFrames(std::span<const char> frames, HostSink& sink) {
  uint32_t next_id = 0;
  Stream streams[] = {Stream(sink, next_id), Stream(sink, next_id)};
  int64_t damaged = 0;
  FrameWalker walker(frames);
  while (const std::optional<HostFrame> frame = walker.Next()) {
    if (frame->after_loss) {
      // Whose frames they were is not known.
      for (Stream& stream : streams) stream.Lose();
      ++damaged;
    }
    if (frame->stream >= std::size(streams)) continue;
    Stream& stream = streams[frame->stream];
    if ((frame->is_key || stream.in_step()) && !stream.Decode(frame->is_key, frame->payload)) {
      stream.Lose();
      ++damaged;
    }
  }
  return damaged;
}

}  // namespace trainprof::recording
