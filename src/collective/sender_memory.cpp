#include "collective/sender_memory.h"

#include <cstring>

#include "comm/given_up_rights.h"
#include "exec/pull.h"

namespace tutti {

Carried best_carry(Communicator& communicator, Rank receiver, const std::byte* data, std::size_t bytes) {
  Carried carried{.buffer = {.address = reinterpret_cast<std::uint64_t>(data)}};
  Process& process = communicator.process();
  const Membership& members = communicator.members();
  const Peer& peer = members.peers[static_cast<std::size_t>(receiver)];
  if (peer.same_process) {
    carried.carry = Carry::window;
  } else if (has_given_up_mapping(peer) || !still_maps(process, members)) {
    return carried;
  } else if (const auto location = process.memory.segments.find(data, bytes)) {
    carried.carry = Carry::window;
    carried.buffer.segment = location->name.id;
    carried.buffer.generation = location->name.generation;
    carried.buffer.offset = location->offset;
  } else if (members.pulls && !has_given_up_pulling(peer) && still_pulls(process, members)) {
    carried.carry = Carry::pull;
  }
  return carried;
}

Result<SenderMemory> SenderMemory::open(Communicator& communicator, PeerWindows& windows, Rank sender,
                                        const Carried& carried, std::size_t bytes) {
  SenderMemory memory;
  if (carried.carry == Carry::window) {
    memory.source_ = TUTTI_TRY(windows.share(sender, carried.buffer, bytes));
  } else {
    memory.process_ = communicator.members().peers[static_cast<std::size_t>(sender)].foreign_process();
    if (memory.process_)
      memory.source_ = {std::shared_ptr<void>(), reinterpret_cast<const std::byte*>(carried.buffer.address)};
  }
  if (memory.source_ == nullptr)
    return Error{.code = Code::remote, .what = "a message refers to sender memory that cannot be mapped"};
  return memory;
}

bool note_refusal(Communicator& communicator, const Error& why) {
  if (!is_refusal(why)) return false;
  give_up_mapping(communicator.process(), communicator.members());
  return true;
}

Result<void> SenderMemory::copy(std::size_t at, std::span<std::byte> into) const {
  if (process_) return pull(process_, source_.get() + at, into);
  std::memcpy(into.data(), source_.get() + at, into.size());
  return {};
}

}  // namespace tutti
