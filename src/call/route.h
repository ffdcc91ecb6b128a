// By which path a call goes: route() in src/submit decides it, and whoever carries the call out obeys.
#pragma once

#include <cstdint>

namespace tutti {

enum class Path : std::uint8_t {
  nothing,        ///< of no elements where some rank has a GPU: no rank carries it out or counts it
  inside_host,    ///< host memory of ranks on one host: inline, windows, copies by the kernel, or slots
  across_hosts,   ///< host memory of ranks on several hosts: messages over their connections
  single_launch,  ///< device memory: one kernel for the ranks of a process that share a GPU
  synchronising,  ///< device memory: kernels that wait for each other on their GPUs
  released,       ///< device memory: kernels that access peers' memory, each once the host releases it
  staged,         ///< device memory: copied to host memory, carried out there, and copied back
  last = staged
};

struct Route {
  Path path = Path::inside_host;
  bool offers_windows = false;  ///< synchronising kernels may access the caller's buffers if all ranks offer them

  bool on_device() const { return path >= Path::single_launch; }
  /// The call's stream waits until the host has carried it out.
  bool queued() const { return path == Path::released || path == Path::staged; }
  /// The call is one kernel, in the order in which ranks queue.
  bool one_kernel() const { return path == Path::single_launch || path == Path::synchronising; }
  /// The call waits for its turn among the communicator's calls. Synchronising kernels share nothing with calls that
  /// the host carries out.
  bool takes_turn() const { return path != Path::synchronising && path != Path::nothing; }
};

}  // namespace tutti
