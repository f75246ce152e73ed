#include "trace/recording/files/host_encoder.h"

#include <string.h>

#include <algorithm>

namespace trainprof::recording {
namespace {

// A damaged frame costs at most this many of its stream: 100 s at ten a second.
constexpr uint32_t kFramesAKey = 1000;
constexpr size_t kMostText = 256;

uint64_t ZigZag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}

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

void HostEncoder::Varint(uint64_t value) {
  while (value >= 0x80) {
    frame_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  frame_.push_back(static_cast<char>(value));
}

void HostEncoder::Signed(int64_t value) { Varint(ZigZag(value)); }

void HostEncoder::Text(std::string_view text) {
  text = text.substr(0, kMostText);
  Varint(text.size());
  frame_.insert(frame_.end(), text.begin(), text.end());
}

void HostEncoder::EncodeDefinition(uint32_t id, Entity& entity) {
  frame_.push_back(static_cast<char>(HostItem::kDefine));
  Varint(id);
  frame_.push_back(static_cast<char>(entity.what.kind));
  Signed(entity.what.number);
  Signed(entity.what.parent);
  Varint(entity.what.start_ticks);
  Text(entity.what.text);
  entity.announced = true;
}

void HostEncoder::EncodeValues(uint32_t id, Entity& entity) {
  frame_.push_back(static_cast<char>(HostItem::kValues));
  Varint(id);
  Varint(entity.observed.size());
  for (const uint64_t word : entity.observed) Varint(word);
  for (size_t w = 0; w < entity.observed.size(); ++w) {
    uint64_t changed = 0;
    for (uint64_t left = entity.observed[w]; left != 0; left &= left - 1) {
      const int bit = __builtin_ctzll(left);
      const size_t metric = w * 64 + static_cast<size_t>(bit);
      if (entity.value[metric] != entity.last[metric]) changed |= uint64_t{1} << bit;
    }
    Varint(changed);
    for (; changed != 0; changed &= changed - 1) {
      const size_t metric = w * 64 + static_cast<size_t>(__builtin_ctzll(changed));
      Signed(static_cast<int64_t>(entity.value[metric] - entity.last[metric]));
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
  frame_.assign(sizeof(HostFrameHeader), 0);
  Varint(static_cast<uint64_t>(monotonic_ns - last_ns_));
  const size_t empty = frame_.size();
  for (const uint32_t id : ended_) {
    frame_.push_back(static_cast<char>(HostItem::kEnd));
    Varint(id);
  }
  ended_.clear();
  for (; facts_said_ < facts_.size(); ++facts_said_) {
    frame_.push_back(static_cast<char>(HostItem::kFact));
    Text(facts_[facts_said_].first);
    Text(facts_[facts_said_].second);
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
  frame_.resize((frame_.size() + 7) / 8 * 8, 0);
  HostFrameHeader header{};
  header.magic = HostFrameHeader::kMagic;
  header.kind = is_key ? HostFrameHeader::kKey : HostFrameHeader::kDelta;
  header.stream = stream_;
  header.bytes = static_cast<uint32_t>(frame_.size() - sizeof header);
  header.check = FrameCheck(header, frame_.data() + sizeof header);
  memcpy(frame_.data(), &header, sizeof header);
  return frame_;
}

}  // namespace trainprof::recording
