// By which path a call goes: a function of what all its ranks share, the kind of its memory, and facts.
#pragma once

#include <cstddef>

#include "call/request.h"
#include "comm/communicator.h"
#include "gpu/device_facts.h"

namespace tutti {

/// What all ranks of a call share of it, as far as it decides the path.
struct RoutedCall {
  bool message = false;  ///< a send or receive
  Collective collective = Collective::barrier;
  Form form = Form::plain;
  ReduceOp op = ReduceOp::sum;
  std::size_t bytes = 0;  ///< of a message, or of a group of a plain collective

  static RoutedCall of(const Request& request) {
    return {.collective = request.collective, .form = request.form, .op = request.op, .bytes = request.group_bytes()};
  }
  static RoutedCall of(const PeerRequest& request) { return {.message = true, .bytes = request.bytes}; }
};

/// What a communicator's ranks agree on. Made at its start, and the same in all its calls: what changes them must do so
/// for a call of which all ranks know the number.
struct RouteFacts {
  bool spans_hosts = false;
  bool some_gpu = false;  ///< some rank has a GPU
  DeviceFacts device = {};
};

RouteFacts route_facts(const Communicator& communicator);

/// The path of a call. Where ranks differ in the kind of their memory, which each knows alone, their paths differ: the
/// ranks then find out by their call descriptors, or by PathHistory.
Route route(const RoutedCall& call, bool on_device, const RouteFacts& facts);

}  // namespace tutti
