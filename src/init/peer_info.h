// What ranks tell each other at the start: fixed layouts, checked before use.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/machine.h"
#include "base/error.h"
#include "base/fixed_text.h"
#include "bootstrap/bootstrap.h"
#include "cuda/peer_memory.h"
#include "net/digest.h"
#include "net/peer_address.h"
#include "process/process.h"

namespace tutti {

/// What a rank has of its GPU for others of its host to try.
struct GpuInfo {
  std::uint32_t gpu = 0;     ///< as its process counts them, from 1; 0: none
  cuda::MemoryLine probe{};  ///< see GpuProof; all zero: not to be tried
};

/// First exchange: who and where a rank is.
struct PeerInfo {
  static constexpr std::uint32_t version_value = 5;
  std::uint32_t version = version_value;
  std::int32_t pid = 0;
  std::uint64_t token = 0;
  std::uint64_t area_bytes = 0;
  std::uint64_t area_address = 0;
  SegmentName area;
  ProcessKey key{};
  Digest host_identity{};  ///< hash of what ranks that share memory have in common
  Digest user{};           ///< and of what their kernel calls the user; where it differs sharing has to be tried
  std::array<char, 64> host{};
  std::array<char, 64> boot_id{};
  std::array<char, 108> fd_server{};
  cpu_set_t cpus{};
  GpuInfo gpu;
};

/// An exchange of its own where ranks of one host run as several users: whether a rank can share memory with all others
/// of its host.
struct Sharing {
  std::uint32_t shares = 1;
};

/// Second exchange, where ranks do not share one host: where others can connect to a rank.
struct PeerAddresses {
  static constexpr std::size_t addresses_max = 8;  ///< the best ones
  struct Address {
    std::array<char, 64> host{};
    std::uint16_t port = 0;
    std::uint16_t nic = 0;  ///< number of its interface
    std::int32_t mbps = 0;  ///< of its interface; 0: not known
  };
  std::array<Address, addresses_max> addresses{};  ///< unused ones have an empty host
};

/// Last exchange: whether a rank reached all others, and what rank 0 knows of the machine.
struct InitResult {
  std::uint32_t code = 0;                        ///< Code of its failure, 0 when all is well
  std::uint32_t pulls = 0;                       ///< it may copy from every process's memory
  std::uint32_t reaches_gpus = 0;                ///< its GPU reaches every other rank's memory
  std::array<double, Machine::count> machine{};  ///< rank 0: what all choose by
  std::array<char, 240> what{};
};

/// Errors: remote (a blob of another size or version).
Result<PeerInfo> read_peer_info(const Blob& blob);
Result<Sharing> read_sharing(const Blob& blob);
Result<std::vector<PeerAddress>> read_peer_addresses(const Blob& blob);
Result<InitResult> read_init_result(const Blob& blob);

template <class T>
Blob to_blob(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  return {bytes, bytes + sizeof value};
}

}  // namespace tutti
