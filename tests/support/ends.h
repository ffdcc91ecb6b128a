// What tests of processes that end make until then: calls of any kind, with their buffers, and ways to end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "support/buffer.h"
#include "support/launch_ranks.h"

namespace tutti::testing {

enum class End { returns, exits, quick, becomes_another };
/// How a process ends whose body has nothing more to do. Failed expectations are not lost.
void end(End how);
/// A zombie, or what is left of one.
bool has_ended(std::uint64_t pid);

/// Buffers of one rank for calls of any kind.
struct Buffers {
  static constexpr std::size_t count_max = 300'000;
  Buffers(Memory memory, int ranks)
      : in(memory, count_max * sizeof(float) * static_cast<std::size_t>(ranks)),
        out(memory, count_max * sizeof(float) * static_cast<std::size_t>(ranks)) {}
  float* input() const { return reinterpret_cast<float*>(in.data()); }
  float* output() const { return reinterpret_cast<float*>(out.data()); }
  Buffer in, out;
};

/// A call, by all ranks, of a kind.
struct NamedCall {
  const char* name;
  std::function<tuttiResult_t(const Buffers&, std::size_t, tuttiComm_t, int rank, int ranks)> make;
};
const std::vector<NamedCall>& named_calls();

}  // namespace tutti::testing
