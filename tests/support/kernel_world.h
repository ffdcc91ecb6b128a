// Ranks whose calls run as kernels on the host: their areas, links and buffers; and what the CPU executor makes of the
// same plans, bit for bit what kernels must.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/area.h"
#include "kernels/entries.h"
#include "plan/plan.h"
#include "support/host_kernels.h"
#include "support/share.h"

namespace tutti::testing {

/// How much of a matrix of cases is run, in percent: AddressSanitizer makes a change of fibers twenty times as long.
inline int cases_percent() {
  return share_percent(10);
}

/// 16-byte aligned bytes, for buffers with a chosen misalignment.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t bytes, std::size_t misaligned = 0)
      : bytes_(bytes), memory_(std::make_unique<std::byte[]>(bytes + 64 + misaligned)) {
    auto at = reinterpret_cast<std::uintptr_t>(memory_.get());
    data_ = memory_.get() + (64 - at % 64) % 64 + misaligned;
  }
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* data_;
};

/// How the plans of all ranks are called.
struct KernelCase {
  DataType type = DataType::int32;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 1;  ///< elements of a group
  int channels = 1;
  int slots = 2;
  std::size_t slot_bytes = 256;
  std::size_t misaligned = 0;  ///< elements, of all buffers; of odd ranks one more
  int in_place = 0;            ///< 0: no rank, 1: all, 2: odd ones, where the collective has it
  int calls = 3;               ///< in a row
  std::uint64_t seed = 1;
  bool together = false;  ///< all ranks are in the launch, so windows need no meeting at its begin; one call
  bool once = false;      ///< one call, whose inputs are there before the launch begins
  bool apart = false;     ///< ranks do as if they were in launches of their own, whose calls nobody has compared
  bool walk = false;      ///< by the kernel that walks plans, also where there is a special one
  std::string text() const;
};

class KernelWorld {
 public:
  /// Plans of all ranks, of which there is a kernel.
  KernelWorld(const std::vector<Plan>& plans, const KernelCase& how);
  /// The CPU executor is given others, of the same bits: for plans of Access::in_line.
  KernelWorld(std::vector<Plan> plans, std::vector<Plan> reference, const KernelCase& how);

  /// Ranks have other plans, through windows, for calls in which all offer their buffers: all ranks, or all but the
  /// last. Requires `apart`, and one channel or `once`.
  void offer_windows(const std::vector<Plan>& plans, bool all);

  const device::Call& call() const { return call_; }
  device::Call& call() { return call_; }
  Launch launch();
  void abort() { abort_ = 1; }
  device::Link& link(int channel, int rank, int peer) {
    const auto index = area_.index(static_cast<std::uint32_t>(channel), static_cast<std::uint32_t>(peer));
    return links_[static_cast<std::size_t>(rank)][index];
  }

  /// As if so many calls had gone through the inboxes, and every 8 bytes of them held that.
  void set_inbox_uses(std::uint64_t uses);
  void fill_inboxes(std::uint64_t word);

  /// After the launch: "" or which output of which rank and call differs from the CPU executor's.
  std::string compare();
  /// "" or the first error record of any block, as a sentence.
  std::string error() const;
  const device::ErrorRecord& record(int rank, int channel) const {
    return errors_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(channel)];
  }

 private:
  struct User {
    std::unique_ptr<AlignedBytes> memory[2];  // of input and output, or of both
    std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::size_t input_bytes = 0;
    std::size_t output_bytes = 0;
    std::unique_ptr<AlignedBytes> scratch;
    std::vector<std::byte> inputs;   // of all calls
    std::vector<std::byte> outputs;  // of all calls, as they were left
    std::vector<std::byte> poison;
    std::uint64_t scalar = 0;
  };
  bool single() const { return how_.together || how_.once; }
  User make_user(const Plan& plan, int rank) const;
  void prepare(int call);
  void make_links();
  void make_call();
  std::vector<std::vector<std::byte>> expected(int call);

  std::vector<Plan> plans_;
  std::vector<Plan> reference_;
  KernelCase how_;
  int ranks_;
  Split split_;
  device::Area area_;
  std::vector<std::vector<Action>> actions_;
  std::vector<Plan> window_plans_;
  std::vector<std::vector<Action>> window_actions_;
  std::vector<std::byte*> mapped_;  // by rank and place
  std::vector<User> users_;
  std::vector<std::unique_ptr<AlignedBytes>> areas_;
  std::vector<std::vector<device::Link>> links_;
  std::vector<std::vector<device::ErrorRecord>> errors_;
  std::uint32_t abort_ = 0;
  device::Call call_{};
  Rehearsal rehearsal_;
};

}  // namespace tutti::testing
