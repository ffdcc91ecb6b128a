// Where a rank's data lies: its send and receive memory for all sizes of a run.
#pragma once

#include <cstddef>
#include <memory>

#include "perf/harness.h"
#include "perf/launch.h"

namespace perf {

/// Memory of tuttiMemAlloc or malloc, touched once.
class Memory {
 public:
  /// Ends the program when there is not so much.
  Memory(std::size_t bytes, bool from_tutti, int rank);

  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    bool from_tutti;
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
};

/// The two buffers of a call. In place, both lie in one, which is as large as the larger of the two.
class CallBuffers {
 public:
  /// Room for `bytes` of the larger buffer, in every type.
  CallBuffers(const Description& description, const Rank& rank, std::size_t bytes, Buffers kind);

  /// Sets send and recv of a call whose other fields are set.
  void place(Call& call, bool in_place) const;

  /// Fills what the rank sends and poisons what it is to receive.
  void prepare(const Call& call, bool in_place, const Pattern& pattern) const;
  /// Zeros everywhere: what in-place reductions are timed with, since their results are the next call's inputs.
  void clear() const;

  /// Elements that are not as they must be, also in what the call had no business to touch.
  std::size_t count_wrong(const Call& call, bool in_place, const Pattern& pattern) const;

 private:
  std::size_t blocks(Blocks of) const { return of == Blocks::one ? 1 : ranks_; }
  std::size_t count_stray(const Call& call, const std::vector<Piece>& pieces) const;

  const Description& description_;
  std::size_t ranks_;
  std::size_t block_bytes_;  ///< at most, of one block
  std::size_t send_bytes_, recv_bytes_;
  Memory send_, recv_;
};

/// Bytes of one block when the larger buffer has at least `bytes`: whole elements, so never less than was asked for.
std::size_t count_for(const Description& description, std::size_t bytes, std::size_t element, int ranks);
/// Bytes of the larger buffer, which nccl-tests calls the size.
std::size_t bytes_for(const Description& description, std::size_t count, std::size_t element, int ranks);

}  // namespace perf
