#include "support/call.h"

#include <algorithm>

#include <fmt/format.h>

#include "support/launch_ranks.h"
#include "support/reference_reduce.h"

namespace tutti::testing {
namespace {

struct Groups {
  std::size_t in;
  std::size_t out;
};

/// `first`: on rank 0.
Groups groups(Kind kind, std::size_t ranks, bool at_root, bool first = false) {
  switch (kind) {
    case Kind::all_reduce: return {1, 1};
    case Kind::reduce: return {1, at_root ? 1u : 0u};
    case Kind::broadcast: return {at_root ? 1u : 0u, 1};
    case Kind::all_gather: return {1, ranks};
    case Kind::reduce_scatter: return {ranks, 1};
    case Kind::all_to_all: return {ranks, ranks};
    case Kind::gather: return {1, at_root ? ranks : 0};
    case Kind::scatter: return {at_root ? ranks : 0, 1};
    case Kind::scan: return {1, 1};
    case Kind::ex_scan: return {1, first ? 0u : 1u};
    case Kind::barrier: break;
  }
  return {0, 0};
}

}  // namespace

const char* name(Kind kind) {
  constexpr std::array names = {"all_reduce", "reduce",  "broadcast", "all_gather", "reduce_scatter", "all_to_all",
                                "gather",     "scatter", "barrier",   "scan",       "ex_scan"};
  return names[static_cast<std::size_t>(kind)];
}

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter || prefixes(kind);
}

bool prefixes(Kind kind) {
  return kind == Kind::scan || kind == Kind::ex_scan;
}

std::string Call::text() const {
  constexpr std::array in_place_names = {"out of place", "in place", "some in place"};
  constexpr std::array mix_names = {"mapped", "heap", "memory by rank", "send mapped", "recv mapped", "device"};
  constexpr std::array values_names = {"bits", "exact", "random", "special"};
  const std::string operation = reduces(kind) ? fmt::format("{} ", name(op)) : "";
  return fmt::format("{} {} x {} {}{}, root {}, {}, {}, misaligned {}, seed {}", name(kind), count, name(type),
                     operation, values_names[static_cast<std::size_t>(values)], root,
                     in_place_names[static_cast<std::size_t>(in_place)], mix_names[static_cast<std::size_t>(memory)],
                     misaligned, seed);
}

std::size_t count_for(Kind kind, tuttiDataType_t type, int ranks, std::size_t bytes) {
  const auto [in, out] = groups(kind, static_cast<std::size_t>(ranks), true);
  return bytes / size_of(type) / std::max<std::size_t>({in, out, 1});
}

CallOnRank::CallOnRank(const Call& call, int rank, int ranks) : call_(call), rank_(rank), ranks_(ranks) {
  if (prefixes(call.kind) && call.op == Op::avg) call_.op = Op::sum;
  const auto [in, out] = groups(call.kind, static_cast<std::size_t>(ranks), rank == call.root, rank == 0);
  groups_in_ = in;
  groups_out_ = out;
  const bool chosen =
      call.in_place == InPlace::all || (call.in_place == InPlace::some && mix(call.seed, rank) % 2 == 0);
  in_place_ = chosen && in > 0 && out > 0;
  at_start_ =
      in_place_ && call.kind == Kind::reduce_scatter && call.memory != Mix::device && mix(call.seed, 8) % 2 == 0;
  place();
  fill(call.seed);
}

CallOnRank::~CallOnRank() {
  destroy_op();
}

void CallOnRank::destroy_op() {
  if (op_comm_ == nullptr) return;
  EXPECT_TRUE(ok(tuttiRedOpDestroy(op_, op_comm_)));
  op_comm_ = nullptr;
}

Memory CallOnRank::memory(bool send) const {
  switch (call_.memory) {
    case Mix::mapped: return Memory::mapped;
    case Mix::heap: return Memory::heap;
    case Mix::by_rank: return mix(call_.seed, rank_, 5) % 2 == 0 ? Memory::mapped : Memory::heap;
    case Mix::send_mapped: return send ? Memory::mapped : Memory::heap;
    case Mix::device: return Memory::device;
    case Mix::recv_mapped: break;
  }
  return send ? Memory::heap : Memory::mapped;
}

/// A GPU reduces whole elements.
std::size_t CallOnRank::misaligned() const {
  return call_.memory == Mix::device ? call_.misaligned * size_of(call_.type) : call_.misaligned;
}

void CallOnRank::place() {
  const std::size_t mine = static_cast<std::size_t>(rank_) * block();
  if (in_place_) {
    recv_ = std::make_unique<Buffer>(memory(false), std::max(groups_in_, groups_out_) * block(), misaligned());
    send_at_ = recv_at_ = recv_->data();
    if (groups_out_ > groups_in_) send_at_ += mine;
    if (groups_in_ > groups_out_ && !at_start_) recv_at_ += mine;
    return;
  }
  if (groups_in_ > 0) {
    send_ = std::make_unique<Buffer>(memory(true), groups_in_ * block(), misaligned());
    send_at_ = send_->data();
  }
  if (groups_out_ > 0) {
    recv_ = std::make_unique<Buffer>(memory(false), groups_out_ * block(), misaligned());
    recv_at_ = recv_->data();
  }
}

void CallOnRank::fill(std::uint64_t seed) {
  call_.seed = seed;
  if (recv_) recv_->poison();
  const Inputs in{call_.type, call_.op, call_.values, ranks_, seed};
  if (groups_in_ > 0) write_inputs(in, rank_, send_at_, 0, groups_in_ * call_.count);
}

tuttiResult_t CallOnRank::submit(tuttiComm_t comm, tuttiStream_t stream) {
  const Call& c = call_;
  tuttiRedOp_t op = static_cast<tuttiRedOp_t>(c.op);
  if (c.op == Op::pre_mul_sum && reduces(c.kind)) {
    destroy_op();
    const Inputs in{c.type, c.op, c.values, ranks_, c.seed};
    const auto made = with_type(c.type, [&]<class T>(T*) {
      T factor = scalar<T>(in, rank_);
      return tuttiRedOpCreatePreMulSum(&op_, &factor, c.type, tuttiScalarHostImmediate, comm);
    });
    if (made != tuttiSuccess) return made;
    op_comm_ = comm;
    op = op_;
  }
  switch (c.kind) {
    case Kind::all_reduce: return tuttiAllReduce(send_at_, recv_at_, c.count, c.type, op, comm, stream);
    case Kind::reduce: return tuttiReduce(send_at_, recv_at_, c.count, c.type, op, c.root, comm, stream);
    case Kind::broadcast: return tuttiBroadcast(send_at_, recv_at_, c.count, c.type, c.root, comm, stream);
    case Kind::all_gather: return tuttiAllGather(send_at_, recv_at_, c.count, c.type, comm, stream);
    case Kind::reduce_scatter: return tuttiReduceScatter(send_at_, recv_at_, c.count, c.type, op, comm, stream);
    case Kind::all_to_all: return tuttiAllToAll(send_at_, recv_at_, c.count, c.type, comm, stream);
    case Kind::gather: return tuttiGather(send_at_, recv_at_, c.count, c.type, c.root, comm, stream);
    case Kind::scatter: return tuttiScatter(send_at_, recv_at_, c.count, c.type, c.root, comm, stream);
    case Kind::scan: return tuttiScan(send_at_, recv_at_, c.count, c.type, op, comm, stream);
    case Kind::ex_scan: return tuttiExScan(send_at_, recv_at_, c.count, c.type, op, comm, stream);
    case Kind::barrier: break;
  }
  return tuttiBarrier(comm, stream);
}

Inputs CallOnRank::inputs() const {
  Inputs in{call_.type, call_.op, call_.values, ranks_, call_.seed};
  if (prefixes(call_.kind)) in.combined = call_.kind == Kind::scan ? rank_ + 1 : rank_;
  return in;
}

std::string CallOnRank::check_output(std::size_t group) const {
  const Inputs in = inputs();
  const std::byte* at = recv_at_ + group * block();
  const std::size_t mine = static_cast<std::size_t>(rank_) * call_.count;
  const int from = static_cast<int>(group);
  switch (call_.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
    case Kind::scan:
    case Kind::ex_scan: return check_reduced(in, at, 0, call_.count);
    case Kind::reduce_scatter: return check_reduced(in, at, mine, call_.count);
    case Kind::broadcast: return check_copied(in, call_.root, at, 0, call_.count);
    case Kind::scatter: return check_copied(in, call_.root, at, mine, call_.count);
    case Kind::all_gather:
    case Kind::gather: return check_copied(in, from, at, 0, call_.count);
    case Kind::all_to_all: return check_copied(in, from, at, mine, call_.count);
    case Kind::barrier: break;
  }
  return {};
}

/// The send buffer is the caller's; in place, all of it but the part that is the output.
std::string CallOnRank::check_inputs_kept() const {
  const Inputs in{call_.type, call_.op, call_.values, ranks_, call_.seed};
  for (std::size_t group = 0; group < groups_in_; ++group) {
    const std::size_t replaced = at_start_ ? 0 : static_cast<std::size_t>(rank_);
    const bool written = in_place_ && (groups_in_ == groups_out_ || group == replaced || groups_out_ > groups_in_);
    if (written) continue;
    auto wrong = check_copied(in, rank_, send_at_ + group * block(), group * call_.count, call_.count);
    if (!wrong.empty()) return fmt::format("send buffer changed, group {}: {}", group, wrong);
  }
  return {};
}

std::string CallOnRank::check() {
  for (std::size_t group = 0; group < groups_out_; ++group)
    if (auto wrong = check_output(group); !wrong.empty())
      return fmt::format("rank {} group {}: {}", rank_, group, wrong);
  if (auto wrong = check_inputs_kept(); !wrong.empty()) return fmt::format("rank {}: {}", rank_, wrong);
  if ((send_ && !send_->guards_intact()) || (recv_ && !recv_->guards_intact()))
    return fmt::format("rank {}: wrote outside of the buffers", rank_);
  return {};
}

bool CallOnRank::untouched() const {
  if (!check_inputs_kept().empty()) return false;
  if (in_place_) {  // the output is the input, or holds it
    const Inputs in{call_.type, call_.op, call_.values, ranks_, call_.seed};
    const auto before = static_cast<std::size_t>(send_at_ - recv_->data());
    const std::size_t after = before + groups_in_ * block();
    return check_copied(in, rank_, send_at_, 0, groups_in_ * call_.count).empty() && recv_->poisoned(0, before) &&
           recv_->poisoned(after, recv_->bytes() - after) && recv_->guards_intact();
  }
  return !recv_ || (recv_->poisoned(0, recv_->bytes()) && recv_->guards_intact());
}

std::uint64_t CallOnRank::output_hash() const {
  std::uint64_t hash = 1;
  for (std::size_t i = 0; i < groups_out_ * block(); ++i)
    hash = (hash ^ static_cast<std::uint64_t>(recv_at_[i])) * 0x100000001b3u;
  return hash;
}

std::string run_call(const Call& call, const std::vector<int>& here, int ranks, const std::vector<tuttiComm_t>& comms,
                     int times, std::uint64_t* hash) {
  std::vector<std::unique_ptr<CallOnRank>> parts;
  for (const int rank : here) parts.push_back(std::make_unique<CallOnRank>(call, rank, ranks));
  for (int time = 0; time < times; ++time) {
    if (time > 0)
      for (auto& part : parts) part->fill(call.seed + static_cast<std::uint64_t>(time) * 1000003);
    const bool grouped = parts.size() > 1;
    if (grouped && tuttiGroupStart() != tuttiSuccess) return "tuttiGroupStart failed";
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (const auto begun = ok(parts[i]->submit(comms[i])); !begun)
        return fmt::format("rank {}: {}", here[i], begun.message());
    if (grouped)
      if (const auto ended = ok(tuttiGroupEnd()); !ended) return fmt::format("group: {}", ended.message());
    for (auto& part : parts)
      if (auto wrong = part->check(); !wrong.empty()) return fmt::format("time {}: {}", time, wrong);
  }
  for (const auto& part : parts)
    if (call.kind == Kind::all_reduce && part->output_hash() != parts.front()->output_hash())
      return "ranks have different bits";
  if (hash != nullptr) *hash = parts.front()->output_hash();
  return {};
}

}  // namespace tutti::testing
