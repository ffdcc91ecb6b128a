// The messages that ranks exchange during the start: fixed layouts, checked before use.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/fixed_text.h"
#include "bootstrap/bootstrap.h"
#include "choice/machine.h"
#include "cuda/peer_memory.h"
#include "net/digest.h"
#include "net/peer_address.h"
#include "place/job_map.h"
#include "place/locator.h"
#include "process/process.h"

namespace tutti {

/// A rank's GPU, with a probe that the other ranks of its host test.
struct GpuInfo {
  std::uint32_t gpu = 0;              ///< number of the GPU in its process, from 1; 0: none
  std::uint32_t blocks = 0;           ///< that the rank may use for synchronising kernels
  std::uint32_t processors = 0;       ///< of the GPU
  std::uint32_t shared_by_mps = 0;    ///< 1: processes share it by MPS, not in turns
  cuda::DeviceUuid uuid{};            ///< all zero: unknown
  cuda::MemoryDescriptor probe{};     ///< see GpuProof; all zero: not to be tested
  SegmentName descriptor;             ///< by which other processes map the probe; none: as the probe says
  std::uint64_t described_bytes = 0;  ///< that the descriptor stands for
};

/// First exchange: identity and location of a rank.
struct PeerInfo {
  std::int32_t pid = 0;
  std::uint64_t token = 0;
  std::uint64_t area_bytes = 0;
  std::uint64_t area_address = 0;
  SegmentName area;
  ProcessKey key{};
  Digest host_identity{};  ///< hash of what is equal on ranks that share memory
  Digest user{};           ///< hash of the user as the kernel sees it; where it differs, sharing must be tested
  std::array<char, 64> host{};
  std::array<char, 64> boot_id{};
  std::array<char, 108> fd_server{};
  cpu_set_t cpus{};
  std::uint32_t transports = 0;  ///< that its process can use: see usable_transports
  GpuInfo gpu;
  ReportedLocation location;
  Digest machine{};                 ///< of the text of its machine (see MachineExchange)
  std::uint32_t machine_bytes = 0;  ///< of that text; 0: its machine is unknown, or too large to be told
};

/// A separate exchange where ranks of one host run as several users: whether a rank can share memory with all other
/// ranks of its host.
struct SharingWord {
  std::uint32_t shares = 1;
};

/// Second exchange, where not all ranks are on one host: the addresses at which others can connect to a rank.
struct PeerAddresses {
  static constexpr std::size_t addresses_max = 8;  ///< the best ones
  struct Address {
    std::array<char, 64> host{};
    std::uint16_t port = 0;
    std::uint16_t nic = 0;  ///< number of its interface
    std::int32_t mbps = 0;  ///< of its interface; 0: unknown
    std::int32_t mtu = 0;   ///< likewise
    std::array<char, 20> interface {};
  };
  std::array<Address, addresses_max> addresses{};  ///< unused ones have an empty host
};

/// Last exchange: whether a rank reached all others, and rank 0's numbers for the machine.
struct InitResult {
  std::uint32_t code = 0;          ///< Code of its failure; 0: none
  std::uint32_t pulls = 0;         ///< it may read every process's memory by CMA
  std::uint32_t reaches_gpus = 0;  ///< its GPU can access every other rank's memory
  std::uint32_t kernels_sync = 0;  ///< and its kernels have met those of all other ranks
  std::array<char, 240> what{};
};
/// Rank 0's, unless it failed: with the machine's numbers, by which all ranks choose. The first part of the job's map
/// follows (MapExchange).
struct FirstInitResult {
  InitResult result{};
  std::uint32_t map_bytes = 0;  ///< of the whole map
  std::array<double, Machine::count> machine{};
};

/// A message, which errors call `what`. Errors: remote (a blob of another size), here and below.
template <class T>
Result<T> read_message(std::span<const std::byte> blob, const char* what) {
  if (blob.size() != sizeof(T))
    return remote_error(fmt::format("{} of {} bytes where {} were expected", what, blob.size(), sizeof(T)));
  T value;
  std::memcpy(&value, blob.data(), sizeof value);
  return value;
}
Result<std::vector<PeerAddress>> read_peer_addresses(const Blob& blob);
/// Of any rank.
Result<InitResult> read_init_result(const Blob& blob);
Result<FirstInitResult> read_first_init_result(const Blob& blob);
/// What follows rank 0's result.
std::span<const std::byte> behind_first_init_result(const Blob& blob);

template <class T>
Blob to_blob(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  return {bytes, bytes + sizeof value};
}

}  // namespace tutti
