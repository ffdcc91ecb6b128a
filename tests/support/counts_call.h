// One collective with a count per rank: its counts, one rank's buffers with gaps between the blocks, and whether it did
// what it should.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/call.h"

namespace tutti::testing {

enum class Sizes {
  none,   ///< nobody sends anything
  few,    ///< 0 to 9
  mixed,  ///< 0 to 3000, a quarter of them 0
  skewed  ///< one is large
};
inline constexpr int sizes_count = 4;

enum class Placing { packed, spaced, shuffled };  ///< NULL; gaps between the blocks; and not in the order of ranks
inline constexpr int placing_count = 3;

struct CountsCall {
  Kind kind = Kind::all_to_all;  ///< all_gather, reduce_scatter, all_to_all, gather or scatter
  tuttiDataType_t type = tuttiFloat32;
  Op op = Op::sum;
  Sizes sizes = Sizes::mixed;
  std::size_t large = 100'000;  ///< elements, where skewed
  Placing placing = Placing::packed;
  int root = 0;
  InPlace in_place = InPlace::none;
  Mix memory = Mix::mapped;
  std::size_t misaligned = 0;
  std::uint64_t seed = 0;

  /// Elements that `from` sends to `to`.
  std::size_t count(int from, int to, int ranks) const;
  std::string text() const;
};

/// A random one.
CountsCall random_counts_call(std::uint64_t seed, int ranks);

/// What one rank needs for a call.
class CountsOnRank {
 public:
  CountsOnRank(const CountsCall& call, int rank, int ranks);
  ~CountsOnRank();
  CountsOnRank(const CountsOnRank&) = delete;
  CountsOnRank& operator=(const CountsOnRank&) = delete;

  tuttiResult_t submit(tuttiComm_t comm, tuttiStream_t stream = nullptr);
  /// After completion: "" or what is wrong.
  std::string check() const;
  /// Whether the receive buffer, and what is sent, are as they were.
  bool untouched() const;

  /// To be changed before submit, by tests of what is refused.
  std::vector<std::size_t>& counts(bool send) { return send ? send_.counts : recv_.counts; }

 private:
  /// One buffer of the call.
  struct Side {
    std::vector<std::size_t> counts, at;  ///< by group; elements from the start of the buffer
    std::vector<std::size_t> first;       ///< send: the place of its elements among all inputs of this rank
    std::size_t elements = 0;
    std::unique_ptr<Buffer> buffer;
    std::byte* data = nullptr;
  };
  std::size_t bytes(std::size_t elements) const { return elements * size_of(call_.type); }
  Inputs inputs() const;
  void lay_out(Side& side, std::uint64_t salt) const;
  void allocate();
  tuttiResult_t submit32(tuttiComm_t comm, tuttiStream_t stream, tuttiRedOp_t op) const;
  bool replaced(std::size_t from, std::size_t elements) const;
  std::string check_gaps(const Side& side, bool with_blocks) const;
  std::string check_block(std::size_t group) const;
  std::string check_sent() const;

  CountsCall call_;
  int rank_;
  int ranks_;
  bool in_place_ = false;
  bool at_start_ = false;  ///< in place, with the result of a reduce-scatter where its input begins
  Side send_;
  Side recv_;
  tuttiComm_t op_comm_ = nullptr;
  tuttiRedOp_t op_ = tuttiSum;
};

/// As run_call.
std::string run_counts_call(const CountsCall& call, const std::vector<int>& here, int ranks,
                            const std::vector<tuttiComm_t>& comms);

}  // namespace tutti::testing
