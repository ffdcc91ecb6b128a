// Messages that queue at every link.
#pragma once

#include <memory>

#include "analysis/simulator/network.h"

namespace tutti::simulator {

std::unique_ptr<NetworkWire> make_fifo_wire(const Topology& topology);

}  // namespace tutti::simulator
