#include "trace/recording/files/host_encoder.h"

#include <algorithm>

namespace trainprof::recording {
namespace {

// A damaged frame costs at most this many of its stream: 100 s at ten a second.
constexpr uint32_t kFramesAKey = 1000;
constexpr size_t kMostText = 256;

}  // namespace

uint32_t HostEncoder::Add(HostEntity entity) {
  entities_[next_id_].what = std::move(entity);
  return next_id_++;
}

void HostEncoder::Rename(uint32_t id, std::string_view text) {
  Entity& entity = entities_.at(id);
  entity.what.text = text;
  entity.announced = false;
}

void HostEncoder::End(uint32_t id) {
  const auto it = entities_.find(id);
  if (it == entities_.end()) return;
  if (it->second.announced) ended_.push_back(id);
  entities_.erase(it);
}

void HostEncoder::Observe(uint32_t id, uint32_t metric, uint64_t value) {
  Entity& entity = entities_.at(id);
  if (metric >= entity.value.size()) {
    entity.value.resize(metric + 1);
    entity.last.resize(metric + 1);
    entity.observed.resize(metric / 64 + 1);
  }
  entity.value[metric] = value;
  entity.observed[metric / 64] |= uint64_t{1} << metric % 64;
}

void HostEncoder::Fact(std::string_view key, std::string_view text) {
  facts_.emplace_back(key, text);
}

void HostEncoder::EncodeDefinition(uint32_t id, Entity& entity) {
  frame_.Byte(static_cast<uint8_t>(HostItem::kDefine));
  frame_.Varint(id);
  frame_.Byte(static_cast<uint8_t>(entity.what.kind));
  frame_.Signed(entity.what.number);
  frame_.Signed(entity.what.parent);
  frame_.Varint(entity.what.start_ticks);
  frame_.Text(entity.what.text, kMostText);
  entity.announced = true;
}

void HostEncoder::EncodeValues(uint32_t id, Entity& entity) {
  frame_.Byte(static_cast<uint8_t>(HostItem::kValues));
  frame_.Varint(id);
  frame_.Varint(entity.observed.size());
  for (const uint64_t word : entity.observed) frame_.Varint(word);
  for (size_t w = 0; w < entity.observed.size(); ++w) {
    uint64_t changed = 0;
    for (uint64_t left = entity.observed[w]; left != 0; left &= left - 1) {
      const int bit = __builtin_ctzll(left);
      const size_t metric = w * 64 + static_cast<size_t>(bit);
      if (entity.value[metric] != entity.last[metric]) changed |= uint64_t{1} << bit;
    }
    frame_.Varint(changed);
    for (; changed != 0; changed &= changed - 1) {
      const size_t metric = w * 64 + static_cast<size_t>(__builtin_ctzll(changed));
      frame_.Signed(static_cast<int64_t>(entity.value[metric] - entity.last[metric]));
      entity.last[metric] = entity.value[metric];
    }
  }
  std::fill(entity.observed.begin(), entity.observed.end(), 0);
}

// Everything is said again, so that a reader may begin with this frame.
void HostEncoder::Restate() {
  ended_.clear();
  facts_said_ = 0;
  last_ns_ = 0;
  for (auto& [id, entity] : entities_) {
    entity.announced = false;
    std::fill(entity.last.begin(), entity.last.end(), 0);
  }
}

std::span<const char> HostEncoder::TakeFrame(int64_t monotonic_ns) {
  const bool is_key = frames_ % kFramesAKey == 0;
  if (is_key) Restate();
  frame_.Begin();
  frame_.Varint(static_cast<uint64_t>(monotonic_ns - last_ns_));
  const size_t empty = frame_.size();
  for (const uint32_t id : ended_) {
    frame_.Byte(static_cast<uint8_t>(HostItem::kEnd));
    frame_.Varint(id);
  }
  ended_.clear();
  for (; facts_said_ < facts_.size(); ++facts_said_) {
    frame_.Byte(static_cast<uint8_t>(HostItem::kFact));
    frame_.Text(facts_[facts_said_].first, kMostText);
    frame_.Text(facts_[facts_said_].second, kMostText);
  }
  for (auto& [id, entity] : entities_) {
    if (!entity.announced) EncodeDefinition(id, entity);
    const auto is_set = [](uint64_t word) { return word != 0; };
    if (std::any_of(entity.observed.begin(), entity.observed.end(), is_set)) {
      EncodeValues(id, entity);
    }
  }
  if (frame_.size() == empty) return {};
  last_ns_ = monotonic_ns;
  ++frames_;
  return frame_.Finish(is_key);
}

}  // namespace trainprof::recording
