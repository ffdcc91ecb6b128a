#include "support/weak_memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tutti::testing {
namespace {

constexpr std::size_t pending_max = 12;  // of one thread
constexpr int cached_percent = 30;       // of what is read

}  // namespace

WeakMemory::WeakMemory(int blocks, int threads_per_block, std::uint64_t seed)
    : threads_(threads_per_block),
      random_(seed),
      own_(static_cast<std::size_t>(blocks * threads_per_block)),
      shared_(static_cast<std::size_t>(blocks)),
      cached_(static_cast<std::size_t>(blocks) * lines),
      age_(static_cast<std::size_t>(blocks), 1) {}

void WeakMemory::overlay(const Buffer& buffer, std::uintptr_t at, std::byte* to, std::size_t bytes) {
  for (const Pending& p : buffer) {
    const std::uintptr_t begin = std::max(at, p.at);
    const std::uintptr_t end = std::min(at + bytes, p.at + p.bytes);
    if (begin < end) std::memcpy(to + (begin - at), p.data.data() + (begin - p.at), end - begin);
  }
}

void WeakMemory::load(int block, int thread, const void* from, void* to, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(from);
  auto* const out = static_cast<std::byte*>(to);
  std::memcpy(out, from, bytes);
  Line& known = line(block, at);
  const std::uint32_t age = age_[static_cast<std::size_t>(block)];
  if (known.at == at / 16 * 16 && known.age == age) {
    std::memcpy(out, known.data.data() + at % 16, bytes);
  } else if (at % 16 + bytes <= 16 && bytes == 16 && random_.chance(cached_percent)) {
    known.at = at;
    known.age = age;
    std::memcpy(known.data.data(), from, 16);
  }
  overlay(shared_[static_cast<std::size_t>(block)], at, out, bytes);
  overlay(of(block, thread), at, out, bytes);
}

void WeakMemory::load_word(int block, int thread, const void* from, void* to, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(from);
  auto* const out = static_cast<std::byte*>(to);
  std::memcpy(out, from, bytes);
  overlay(shared_[static_cast<std::size_t>(block)], at, out, bytes);
  overlay(of(block, thread), at, out, bytes);
}

void WeakMemory::add(int block, int thread, const Pending& store) {
  Buffer& own = of(block, thread);
  own.push_back(store);
  while (own.size() > pending_max) drain_one(block, own, &shared_[static_cast<std::size_t>(block)]);
}

void WeakMemory::store(int block, int thread, void* to, const void* from, std::size_t bytes) {
  Pending p{.at = reinterpret_cast<std::uintptr_t>(to), .bytes = static_cast<std::uint32_t>(bytes)};
  std::memcpy(p.data.data(), from, bytes);
  add(block, thread, p);
}

void WeakMemory::store_word(int block, int thread, void* to, const void* from, std::size_t bytes) {
  Pending p{.at = reinterpret_cast<std::uintptr_t>(to), .bytes = static_cast<std::uint32_t>(bytes), .word = true};
  std::memcpy(p.data.data(), from, bytes);
  add(block, thread, p);
}

/// The block itself never sees less than it has stored.
void WeakMemory::arrive(int block, const Pending& store) {
  line(block, store.at).at = 0;
  std::memcpy(reinterpret_cast<void*>(store.at), store.data.data(), store.bytes);
  if (store.word) ++version_;
}

/// Any of them, but of those to the same bytes the oldest.
void WeakMemory::drain_one(int block, Buffer& own, Buffer* older) {
  if (own.empty()) return;
  auto chosen = static_cast<std::size_t>(random_.below(static_cast<int>(own.size())));
  for (std::size_t p = 0; p < chosen;)
    if (overlap(own[p], own[chosen])) {
      chosen = p;
      p = 0;
    } else {
      ++p;
    }
  if (older != nullptr) {  // up to the last that overlaps: those before it may overlap that one
    auto keep = older->end();
    while (keep != older->begin() && !overlap(*std::prev(keep), own[chosen])) --keep;
    std::for_each(older->begin(), keep, [&](const Pending& p) { arrive(block, p); });
    older->erase(older->begin(), keep);
  }
  arrive(block, own[chosen]);
  own.erase(own.begin() + static_cast<std::ptrdiff_t>(chosen));
}

void WeakMemory::drain_all(int block, Buffer& buffer) {
  for (const Pending& p : buffer) arrive(block, p);
  buffer.clear();
}

void WeakMemory::acquire(int block) {
  ++age_[static_cast<std::size_t>(block)];
}

void WeakMemory::release(int block, int thread) {
  drain_all(block, shared_[static_cast<std::size_t>(block)]);
  drain_all(block, of(block, thread));
}

void WeakMemory::barrier(int block) {
  Buffer& shared = shared_[static_cast<std::size_t>(block)];
  for (int thread = 0; thread < threads_; ++thread) {
    Buffer& own = of(block, thread);
    shared.insert(shared.end(), own.begin(), own.end());
    own.clear();
  }
  while (shared.size() > 2 * pending_max) drain_one(block, shared, nullptr);
}

void WeakMemory::drain() {
  for (std::size_t block = 0; block < shared_.size(); ++block) drain_all(static_cast<int>(block), shared_[block]);
  for (std::size_t i = 0; i < own_.size(); ++i) drain_all(static_cast<int>(i) / threads_, own_[i]);
}

void WeakMemory::drain_some() {
  const int chosen = random_.below(static_cast<int>(own_.size()));
  const int block = chosen / threads_;
  if (random_.chance(50))
    drain_one(block, shared_[static_cast<std::size_t>(block)], nullptr);
  else
    drain_one(block, own_[static_cast<std::size_t>(chosen)], &shared_[static_cast<std::size_t>(block)]);
}

}  // namespace tutti::testing
