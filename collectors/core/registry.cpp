#include "collectors/core/registry.h"

#include <string.h>

#include "collectors/core/system.h"

namespace trainprof::collectors {
namespace {

struct Node {
  Text text;
  Node* next;
  Domain domain;  // of domains only
};

// Memory that is handed out in pieces and never given back.
class Arena {
 public:
  void* Take(size_t bytes) {
    bytes = (bytes + 7) / 8 * 8;
    if (bytes > kBlockBytes - sizeof(Block)) return AllocatePages(bytes);
    for (;;) {
      Block* block = block_.load(std::memory_order_acquire);
      if (block != nullptr) {
        const size_t at = block->used.fetch_add(bytes, std::memory_order_relaxed);
        if (at + bytes <= kBlockBytes) return reinterpret_cast<char*>(block) + at;
      }
      auto* fresh = static_cast<Block*>(AllocatePages(kBlockBytes));
      if (fresh == nullptr) return nullptr;
      fresh->used.store(sizeof(Block), std::memory_order_relaxed);
      if (!block_.compare_exchange_strong(block, fresh)) ReleasePages(fresh, kBlockBytes);
    }
  }

 private:
  static constexpr size_t kBlockBytes = 64 * 1024;
  struct Block {
    std::atomic<size_t> used;
  };
  std::atomic<Block*> block_{nullptr};
};

constexpr uint32_t kBuckets = 1024;

constinit Arena g_arena;
constinit std::atomic<Node*> g_strings[kBuckets]{};
constinit std::atomic<Node*> g_domains{nullptr};
constinit std::atomic<uint32_t> g_domain_count{0};
constinit const Domain g_default_domain{};

bool Same(const Text& a, const Text& b) {
  return a.hash == b.hash && a.length == b.length && a.truncated == b.truncated &&
         memcmp(a.data, b.data, a.length) == 0;
}

Node* FindIn(Node* first, const Text& text) {
  for (Node* node = first; node != nullptr; node = node->next) {
    if (Same(node->text, text)) return node;
  }
  return nullptr;
}

Node* MakeNode(const Text& text) {
  auto* node = static_cast<Node*>(g_arena.Take(sizeof(Node)));
  auto* copy = static_cast<char*>(g_arena.Take(text.length + 1));
  if (node == nullptr || copy == nullptr) return nullptr;
  memcpy(copy, text.data, text.length);
  copy[text.length] = 0;
  node->text = text;
  node->text.data = copy;
  return node;
}

// Finds the text in the list or adds it; `prepare` completes a new node before it is seen.
template <class Prepare>
Node* FindOrAdd(std::atomic<Node*>& list, const Text& text, Prepare prepare) {
  Node* fresh = nullptr;
  for (;;) {
    Node* first = list.load(std::memory_order_acquire);
    if (Node* node = FindIn(first, text)) return node;
    if (fresh == nullptr) {
      fresh = MakeNode(text);
      if (fresh == nullptr) return nullptr;
      prepare(fresh);
    }
    fresh->next = first;
    if (list.compare_exchange_strong(first, fresh, std::memory_order_acq_rel)) return fresh;
  }
}

uint32_t NextDomainNumber() {
  const uint32_t number = g_domain_count.fetch_add(1) + 1;
  if (number < recording::kMaxDomains) return number;
  g_domain_count.store(recording::kMaxDomains - 1);
  if (auto* segment = g_runtime.state->segment) {
    segment->overflowed_domains.fetch_add(1, std::memory_order_relaxed);
  }
  return recording::kMaxDomains;
}

}  // namespace

const Domain* DefaultDomain() { return &g_default_domain; }

const Domain* RegisterDomain(const Text& name) {
  Node* node = FindOrAdd(g_domains, name, [](Node* fresh) {
    fresh->domain = {NextDomainNumber(), fresh->text};
  });
  return node == nullptr ? &g_default_domain : &node->domain;
}

const Place* RegisterPlace(const Text& name, const Text& stack) {
  auto* place = static_cast<Place*>(g_arena.Take(sizeof(Place)));
  const Text* known_name = RegisterString(name);
  if (place == nullptr || known_name == nullptr) return nullptr;
  *place = {known_name, stack.length == 0 ? nullptr : RegisterString(stack)};
  return place;
}

const Text* RegisterString(const Text& text) {
  Node* node = FindOrAdd(g_strings[text.hash % kBuckets], text, [](Node*) {});
  return node == nullptr ? nullptr : &node->text;
}

}  // namespace trainprof::collectors
