// Ranks of one thread, joined by fifos, flags and doorbells in plain memory, for tests of Run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "exec/run.h"

namespace tutti::testing {

/// Both ends of a fifo of a few slots. Faults are set by the test.
struct FakeFifo {
  struct Message {
    std::unique_ptr<std::byte[]> bytes;  // an empty message has an address too
    std::size_t size = 0;
  };
  std::size_t slots = 2;
  std::vector<std::byte> filling;
  std::deque<Message> messages;
  std::optional<Error> broken;  ///< what every verb fails with

  /// A message of zeros.
  Message& push(std::size_t bytes) {
    messages.push_back({std::make_unique<std::byte[]>(bytes + 1), bytes});
    return messages.back();
  }
};

class FakeSender final : public Sender {
 public:
  FakeSender(FakeFifo& fifo, std::size_t slot_bytes) : fifo_(fifo) { fifo_.filling.resize(slot_bytes); }
  Result<std::span<std::byte>> acquire() override {
    if (fifo_.broken) return *fifo_.broken;
    if (fifo_.messages.size() == fifo_.slots) return std::span<std::byte>{};
    return std::span<std::byte>(fifo_.filling);
  }
  Result<void> commit(std::size_t bytes) override {
    if (fifo_.broken) return *fifo_.broken;
    EXPECT_LT(fifo_.messages.size(), fifo_.slots) << "committed without a slot";
    auto& message = fifo_.push(bytes);
    std::copy_n(fifo_.filling.begin(), bytes, message.bytes.get());
    return {};
  }
  Result<Settled> settled() override {
    if (fifo_.broken) return *fifo_.broken;
    return fifo_.messages.empty() ? Settled::all : Settled::not_yet;
  }
  std::size_t slot_bytes() const override { return fifo_.filling.size(); }

 private:
  FakeFifo& fifo_;
};

class FakeReceiver final : public Receiver {
 public:
  explicit FakeReceiver(FakeFifo& fifo) : fifo_(fifo) {}
  Result<std::span<const std::byte>> peek(std::size_t) override {
    if (fifo_.broken) return *fifo_.broken;
    if (fifo_.messages.empty()) return std::span<const std::byte>{};
    return std::span<const std::byte>(fifo_.messages.front().bytes.get(), fifo_.messages.front().size);
  }
  Result<void> release() override {
    if (fifo_.broken) return *fifo_.broken;
    EXPECT_FALSE(fifo_.messages.empty()) << "released what was not there";
    fifo_.messages.pop_front();
    return {};
  }

 private:
  FakeFifo& fifo_;
};

struct WorldShape {
  int ranks = 2;
  int channels = 1;
  std::size_t slots = 2;
  std::size_t slot_bytes = 256;
};

class World {
 public:
  explicit World(const WorldShape& shape)
      : shape_(shape),
        channels_(shape.ranks),
        bells_(shape.ranks),
        flags_(shape.channels * pairs()),
        fifos_(flags_.size()) {
    for (auto& bell : bells_) bell_pointers_.push_back(&bell);
    for (int rank = 0; rank < shape.ranks; ++rank)
      for (int index = 0; index < shape.channels; ++index) channels_[rank].push_back(open(index, rank));
  }

  RunContext links(int rank) {
    return {.channels = channels_[rank], .doorbells = bell_pointers_, .system = &real_system()};
  }
  FakeFifo& fifo(int channel, int from, int to) { return fifos_[at(channel, from, to)]; }
  Doorbell& bell(int rank) { return bells_[rank]; }

 private:
  std::size_t pairs() const { return static_cast<std::size_t>(shape_.ranks) * shape_.ranks; }
  std::size_t at(int channel, int from, int to) const { return channel * pairs() + from * shape_.ranks + to; }

  Channel open(int index, int rank) {
    Channel channel;
    channel.reserve(shape_.ranks);
    for (int peer = 0; peer < shape_.ranks; ++peer) {
      if (peer == rank) continue;
      auto& out = fifo(index, rank, peer);
      out.slots = shape_.slots;
      channel.senders[peer] = std::make_unique<FakeSender>(out, shape_.slot_bytes);
      channel.receivers[peer] = std::make_unique<FakeReceiver>(fifo(index, peer, rank));
      channel.signals[peer] = Signal(flags_[at(index, rank, peer)], flags_[at(index, peer, rank)]);
    }
    return channel;
  }

  WorldShape shape_;
  std::vector<std::vector<Channel>> channels_;
  std::vector<Doorbell> bells_;
  std::vector<Doorbell*> bell_pointers_;
  std::vector<Flag> flags_;
  std::vector<FakeFifo> fifos_;
};

/// Advances all runs in turn until all are done. Fails the test on an error, or when nothing moves any more.
inline void run_to_end(std::vector<Run>& runs) {
  std::vector<bool> done(runs.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (done[i]) continue;
      auto progress = runs[i].advance();
      ASSERT_TRUE(progress) << "rank " << i << ": " << progress.error().text();
      done[i] = *progress == Progress::done;
      moved = moved || *progress != Progress::blocked;
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) ASSERT_TRUE(done[i]) << "rank " << i << " stalls";
}

}  // namespace tutti::testing
