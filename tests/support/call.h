// One collective call: its arguments, one rank's buffers for it, and whether it did what it should.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "support/buffer.h"
#include "support/inputs.h"
#include "tutti/tutti.h"

namespace tutti::testing {

/// By number, as Collective.
enum class Kind {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  barrier,
  scan,
  ex_scan
};
inline constexpr int kind_count = 11;
/// The first so many also serve device memory.
inline constexpr int device_kind_count = 9;
const char* name(Kind kind);
bool reduces(Kind kind);
bool prefixes(Kind kind);

enum class InPlace { none, all, some };  ///< some: a random half of the ranks
/// Which memory: mapped or heap for both buffers; by rank; or different for send and receive buffer.
enum class Mix { mapped, heap, by_rank, send_mapped, recv_mapped, device };
inline constexpr int mix_count = 5;  ///< of the host

/// A prefix has no average: such a call is a sum.
struct Call {
  Kind kind = Kind::all_reduce;
  tuttiDataType_t type = tuttiFloat32;
  Op op = Op::sum;
  Values values = Values::exact;
  std::size_t count = 0;
  int root = 0;
  InPlace in_place = InPlace::none;
  Mix memory = Mix::mapped;
  std::size_t misaligned = 0;
  std::uint64_t seed = 0;

  std::string text() const;
};

/// The count at which the largest buffer of one rank has about `bytes`.
std::size_t count_for(Kind kind, tuttiDataType_t type, int ranks, std::size_t bytes);

/// What one rank needs for a call.
class CallOnRank {
 public:
  CallOnRank(const Call& call, int rank, int ranks);
  ~CallOnRank();
  CallOnRank(const CallOnRank&) = delete;
  CallOnRank& operator=(const CallOnRank&) = delete;

  /// Fresh inputs, poisoned outputs: before each submit.
  void fill(std::uint64_t seed);
  tuttiResult_t submit(tuttiComm_t comm, tuttiStream_t stream = nullptr);
  /// After completion: "" or what is wrong.
  std::string check();
  /// Whether the receive buffer still is as fill() left it, where that is not the input.
  bool untouched() const;
  /// Of the receive buffer's content.
  std::uint64_t output_hash() const;

 private:
  std::size_t block() const { return call_.count * size_of(call_.type); }
  bool has_input() const { return groups_in_ > 0; }
  bool at_root() const { return rank_ == call_.root; }
  Memory memory(bool send) const;
  std::size_t misaligned() const;
  void place();
  void destroy_op();
  Inputs inputs() const;
  std::string check_output(std::size_t group) const;
  std::string check_inputs_kept() const;

  Call call_;
  int rank_;
  int ranks_;
  std::size_t groups_in_;
  std::size_t groups_out_;
  bool in_place_;
  bool at_start_ = false;  ///< in place, with the result of a reduce-scatter where its input begins
  std::unique_ptr<Buffer> send_;
  std::unique_ptr<Buffer> recv_;
  std::byte* send_at_ = nullptr;
  std::byte* recv_at_ = nullptr;
  tuttiComm_t op_comm_ = nullptr;
  tuttiRedOp_t op_ = tuttiSum;
};

/// Runs `call` `times` times, each time with other inputs, with one rank per communicator of `comms`, all in this
/// thread.
/// "" or what was wrong; the hash of the last output goes to `hash`.
std::string run_call(const Call& call, const std::vector<int>& here, int ranks, const std::vector<tuttiComm_t>& comms,
                     int times = 1, std::uint64_t* hash = nullptr);

}  // namespace tutti::testing
