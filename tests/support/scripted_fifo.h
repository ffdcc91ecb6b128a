// Both ends of fifos that do what a test says, and note what they are asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "transport/fifo.h"

namespace tutti::testing {

struct ScriptedSender final : Sender, Offering {
  bool flushed = true, keeps = true, copies = true;
  std::map<std::size_t, std::span<const std::byte>> offers;  ///< by place in the message
  std::vector<std::byte> slot = std::vector<std::byte>(1 << 16);

  Result<std::span<std::byte>> acquire() override { return std::span<std::byte>(slot); }
  Result<void> commit(std::size_t) override { return {}; }
  Result<bool> flush() override { return flushed; }
  Result<Settled> settled() override { return Settled::all; }
  std::size_t slot_bytes() const override { return slot.size(); }
  Offering* offering() override { return this; }
  bool offer(std::size_t at, std::span<const std::byte> memory) override { return offers[at] = memory, true; }
  bool keep(std::span<const std::byte>) override { return keeps; }
  bool copies_offers() const override { return copies; }
};

struct ScriptedReceiver final : Receiver, Landing, Offers {
  bool ends = false;                              ///< what drained and closed say
  std::vector<std::byte> message;                 ///< of which so many bytes
  std::size_t here = 0;                           ///< have arrived
  std::map<std::size_t, OfferedBlock> blocks;     ///< by place in the message
  std::vector<std::span<const std::byte>> asked;  ///< where invitations were for; all are answered alike
  Invited answer = Invited::yes;

  Result<std::span<const std::byte>> peek(std::size_t) override { return std::span<const std::byte>(message); }
  Result<void> release() override { return {}; }
  Result<bool> drained() override { return ends; }
  Landing* landing() override { return this; }
  Offers* offers() override { return this; }
  Result<std::span<const std::byte>> expect(std::size_t bytes) override { return peek(bytes); }
  Result<std::size_t> arrived(std::size_t at, std::size_t bytes) override {
    return std::min(bytes, here - std::min(at, here));
  }
  Result<std::size_t> land(std::size_t at, std::span<std::byte> into) override {
    const std::size_t bytes = std::min(into.size(), here - std::min(at, here));
    std::copy_n(message.data() + at, bytes, into.data());
    return bytes;
  }
  Invited invite(std::size_t, std::span<std::byte> memory) override { return asked.push_back(memory), answer; }
  bool closed() override { return ends; }
  Result<OfferedBlock> offered(std::size_t at) override { return blocks[at]; }
};

}  // namespace tutti::testing
