#include "comm/communicator.h"

namespace tutti {

Communicator::Communicator(Process& process, Membership members)
    : process_(process),
      members_(std::move(members)),
      failure_(members_.ranks),
      marks_(process.system, members_, failure_.happened()),
      links_(process, members_, marks_.mark(), marks_.history(), failure_.happened()),
      plans_(process, members_, links_.channels(), links_.descriptors().payload_bytes()),
      waits_(members_.area->area.header().waits, members_.call_limit),
      order_(members_.area->area.header().completed),
      memory_(process.memory.segments, process.machine.places.memory_node(), links_.channels().wants_segments(),
              members_.peers.size()) {
  members_.area->area.header().state.store(RankState::open, std::memory_order_release);
}

Communicator::~Communicator() {
  if (const auto* const check = plans_.prediction_check(); check != nullptr && !failed())
    if (const auto seen = check->contradiction())
      process_.choices.tune->contradict(members_.machine, *seen, process_.log);
  auto& state = members_.area->area.header().state;
  if (auto open = RankState::open; state.compare_exchange_strong(open, RankState::closed)) links_.ring_all();
  if (members_.control) {
    if (const auto last = marks_.history()->last()) members_.control->send_summary(*last, /*ask=*/false);
    members_.control->announce({.state = RankState::closed, .completed = order_.last_completed()});
    ChannelRemains data;
    // What this rank has sent is on its way.
    if (state.load() == RankState::closed || failure_.left_after_loss()) {
      data = links_.channels().take_remains();
      process_.pending_closes.add(members_.control);
    }
    members_.control->leave(std::move(data));
    process_.service.wake();  // all peers may have left already
  }
}

void Communicator::check_device() {
  if (!device_ || failed()) return;
  if (auto trouble = device_->trouble()) fail(*std::move(trouble));
}

}  // namespace tutti
