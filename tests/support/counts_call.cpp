#include "support/counts_call.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "support/launch_ranks.h"
#include "support/random.h"
#include "support/reference_reduce.h"

namespace tutti::testing {
namespace {

std::size_t size_from(const CountsCall& call, std::uint64_t random, bool chosen) {
  switch (call.sizes) {
    case Sizes::none: return 0;
    case Sizes::few: return random % 10;
    case Sizes::mixed: return random % 4 == 0 ? 0 : (random >> 8) % 3000;
    case Sizes::skewed: break;
  }
  return chosen ? call.large : random % 20;
}

bool has_root(Kind kind) {
  return kind == Kind::gather || kind == Kind::scatter;
}

}  // namespace

std::size_t CountsCall::count(int from, int to, int ranks) const {
  const auto n = static_cast<std::uint64_t>(ranks);
  const int chosen = static_cast<int>(mix(seed, 1) % n);
  const auto of_rank = [&](int rank) {
    return size_from(*this, mix(seed, 2, static_cast<std::uint64_t>(rank)), rank == chosen);
  };
  switch (kind) {
    case Kind::all_gather: return of_rank(from);
    case Kind::reduce_scatter: return of_rank(to);
    case Kind::gather: return to == root ? of_rank(from) : 0;
    case Kind::scatter: return from == root ? of_rank(to) : 0;
    default: break;
  }
  // In place both directions of a pair have one count.
  const auto pair = [this](int a, int b) {
    return in_place == InPlace::none ? std::pair(a, b) : std::pair(std::min(a, b), std::max(a, b));
  };
  const auto other = static_cast<int>(mix(seed, 3) % n);
  const auto [low, high] = pair(from, to);
  return size_from(
      *this,
      mix(seed, 4,
          static_cast<std::uint64_t>(low) * static_cast<std::uint64_t>(ranks) + static_cast<std::uint64_t>(high)),
      pair(from, to) == pair(chosen, other));
}

std::string CountsCall::text() const {
  constexpr std::array sizes_names = {"none", "few", "mixed", "skewed"};
  constexpr std::array placing_names = {"packed", "spaced", "shuffled"};
  return fmt::format("{} with counts {}, {} {}, {}, root {}, in place {}, memory {}, misaligned {}, seed {}",
                     name(kind), sizes_names[static_cast<std::size_t>(sizes)], name(type), name(op),
                     placing_names[static_cast<std::size_t>(placing)], root, static_cast<int>(in_place),
                     static_cast<int>(memory), misaligned, seed);
}

CountsCall random_counts_call(std::uint64_t seed, int ranks) {
  constexpr std::array kinds = {Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::gather, Kind::scatter};
  Random random(seed);
  CountsCall call{.kind = kinds[static_cast<std::size_t>(random.below(5))],
                  .type = type_at(static_cast<std::size_t>(random.below(real_type_count))),
                  .op = static_cast<Op>(random.below(op_count)),
                  .sizes = random.chance(5) ? Sizes::none : static_cast<Sizes>(random.between(1, sizes_count - 1)),
                  .placing = static_cast<Placing>(random.below(placing_count)),
                  .root = random.below(ranks),
                  .in_place = static_cast<InPlace>(random.below(3)),
                  .memory = static_cast<Mix>(random.below(mix_count)),
                  .misaligned = static_cast<std::size_t>(random.chance(30) ? random.below(16) : 0),
                  .seed = random.next()};
  call.large = call.kind == Kind::reduce_scatter ? 30'000 : 100'000;
  return call;
}

CountsOnRank::CountsOnRank(const CountsCall& call, int rank, int ranks) : call_(call), rank_(rank), ranks_(ranks) {
  const bool chosen =
      call.in_place == InPlace::all || (call.in_place == InPlace::some && mix(call.seed, rank) % 2 == 0);
  const bool at_root = rank == call.root;
  const bool sends_one = call.kind == Kind::all_gather || call.kind == Kind::gather;
  const bool receives_one = call.kind == Kind::reduce_scatter || call.kind == Kind::scatter;
  in_place_ = chosen && (!has_root(call.kind) || at_root);
  at_start_ =
      in_place_ && call.kind == Kind::reduce_scatter && call.memory != Mix::device && mix(call.seed, 8) % 2 == 0;
  if (sends_one) send_.counts = {call.count(rank, call.kind == Kind::gather ? call.root : rank, ranks)};
  if (receives_one) recv_.counts = {call.count(call.kind == Kind::scatter ? call.root : rank, rank, ranks)};
  for (int peer = 0; peer < ranks; ++peer) {
    if (!sends_one && (call.kind != Kind::scatter || at_root)) send_.counts.push_back(call.count(rank, peer, ranks));
    if (!receives_one && (call.kind != Kind::gather || at_root)) recv_.counts.push_back(call.count(peer, rank, ranks));
  }
  send_.first.resize(send_.counts.size());
  std::exclusive_scan(send_.counts.begin(), send_.counts.end(), send_.first.begin(), std::size_t{0});
  lay_out(send_, 10);
  lay_out(recv_, in_place_ && call.kind == Kind::all_to_all ? 10 : 11);
  allocate();
  for (std::size_t g = 0; g < send_.counts.size(); ++g)
    write_inputs(inputs(), rank, send_.data + bytes(send_.at[g]), send_.first[g], send_.counts[g]);
}

CountsOnRank::~CountsOnRank() {
  if (op_comm_ == nullptr) return;
  EXPECT_TRUE(ok(tuttiRedOpDestroy(op_, op_comm_)));
}

Inputs CountsOnRank::inputs() const {
  const bool sums = call_.kind == Kind::reduce_scatter;
  return {call_.type, call_.op, sums ? Values::exact : Values::bits, ranks_, call_.seed};
}

/// Single groups have no displacements.
void CountsOnRank::lay_out(Side& side, std::uint64_t salt) const {
  const std::size_t groups = side.counts.size();
  const bool spaced = call_.placing != Placing::packed && groups > 1;
  Random random(mix(call_.seed, salt, static_cast<std::uint64_t>(rank_)));
  std::vector<std::size_t> order(groups);
  std::iota(order.begin(), order.end(), 0);
  if (call_.placing == Placing::shuffled)
    for (std::size_t i = groups; i > 1; --i)
      std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
  side.at.resize(groups);
  for (const std::size_t g : order) {
    side.elements += spaced ? static_cast<std::size_t>(random.below(8)) : 0;
    side.at[g] = side.elements;
    side.elements += side.counts[g];
  }
  side.elements += spaced ? 3 : 0;
}

/// In place the larger buffer holds both sides.
void CountsOnRank::allocate() {
  const auto memory = [this](bool send) {
    switch (call_.memory) {
      case Mix::mapped: return Memory::mapped;
      case Mix::heap: return Memory::heap;
      case Mix::by_rank: return mix(call_.seed, rank_, 5) % 2 == 0 ? Memory::mapped : Memory::heap;
      case Mix::send_mapped: return send ? Memory::mapped : Memory::heap;
      case Mix::device: return Memory::device;
      case Mix::recv_mapped: break;
    }
    return send ? Memory::heap : Memory::mapped;
  };
  const auto own = static_cast<std::size_t>(rank_);
  const bool in_send = in_place_ && send_.counts.size() > recv_.counts.size();
  if (!in_place_ || in_send)
    send_.buffer = std::make_unique<Buffer>(memory(true), bytes(send_.elements), call_.misaligned);
  if (!in_send) recv_.buffer = std::make_unique<Buffer>(memory(false), bytes(recv_.elements), call_.misaligned);
  if (send_.buffer) send_.data = send_.buffer->data();
  if (recv_.buffer) recv_.data = recv_.buffer->data();
  if (in_send) recv_.data = send_.data + (at_start_ ? 0 : bytes(send_.at[own]));
  if (in_place_ && !in_send)
    send_.data = recv_.data + (send_.counts.size() < recv_.counts.size() ? bytes(recv_.at[own]) : 0);
}

tuttiResult_t CountsOnRank::submit(tuttiComm_t comm, tuttiStream_t stream) {
  const CountsCall& c = call_;
  tuttiRedOp_t op = static_cast<tuttiRedOp_t>(c.op);
  if (c.op == Op::pre_mul_sum && c.kind == Kind::reduce_scatter) {
    const auto made = with_type(c.type, [&]<class T>(T*) {
      T factor = scalar<T>(inputs(), rank_);
      return tuttiRedOpCreatePreMulSum(&op_, &factor, c.type, tuttiScalarHostImmediate, comm);
    });
    if (made != tuttiSuccess) return made;
    op_comm_ = comm;
    op = op_;
  }
  if (mix(c.seed, rank_, 6) % 3 == 0) return submit32(comm, stream, op);
  const auto counts = [](const Side& side) { return side.counts.empty() ? nullptr : side.counts.data(); };
  const auto at = [this](const Side& side) {
    return call_.placing == Placing::packed || side.at.empty() ? nullptr : side.at.data();
  };
  switch (c.kind) {
    case Kind::all_gather:
      return tuttiAllGatherV(send_.data, send_.counts[0], recv_.data, counts(recv_), at(recv_), c.type, comm, stream);
    case Kind::reduce_scatter:
      return tuttiReduceScatterV(send_.data, counts(send_), at(send_), recv_.data, recv_.counts[0], c.type, op, comm,
                                 stream);
    case Kind::gather:
      return tuttiGatherV(send_.data, send_.counts[0], recv_.data, counts(recv_), at(recv_), c.type, c.root, comm,
                          stream);
    case Kind::scatter:
      return tuttiScatterV(send_.data, counts(send_), at(send_), recv_.data, recv_.counts[0], c.type, c.root, comm,
                           stream);
    default: break;
  }
  return tuttiAllToAllV(send_.data, counts(send_), at(send_), recv_.data, counts(recv_), at(recv_), c.type, comm,
                        stream);
}

tuttiResult_t CountsOnRank::submit32(tuttiComm_t comm, tuttiStream_t stream, tuttiRedOp_t op) const {
  const CountsCall& c = call_;
  const auto ints = [](const std::vector<std::size_t>& numbers) {
    return std::vector<int>(numbers.begin(), numbers.end());
  };
  const auto scounts = ints(send_.counts), rcounts = ints(recv_.counts), sat = ints(send_.at), rat = ints(recv_.at);
  const auto given = [](const std::vector<int>& numbers) { return numbers.empty() ? nullptr : numbers.data(); };
  const bool packed = c.placing == Placing::packed;
  const int* const sdispls = packed ? nullptr : given(sat);
  const int* const rdispls = packed ? nullptr : given(rat);
  switch (c.kind) {
    case Kind::all_gather:
      return tuttiAllGatherV32(send_.data, scounts[0], recv_.data, given(rcounts), rdispls, c.type, comm, stream);
    case Kind::reduce_scatter:
      return tuttiReduceScatterV32(send_.data, given(scounts), sdispls, recv_.data, rcounts[0], c.type, op, comm,
                                   stream);
    case Kind::gather:
      return tuttiGatherV32(send_.data, scounts[0], recv_.data, given(rcounts), rdispls, c.type, c.root, comm, stream);
    case Kind::scatter:
      return tuttiScatterV32(send_.data, given(scounts), sdispls, recv_.data, rcounts[0], c.type, c.root, comm, stream);
    default: break;
  }
  return tuttiAllToAllV32(send_.data, given(scounts), sdispls, recv_.data, given(rcounts), rdispls, c.type, comm,
                          stream);
}

/// Whether the result at the start of the send buffer lies over some of these elements.
bool CountsOnRank::replaced(std::size_t from, std::size_t elements) const {
  return at_start_ && elements > 0 && from < recv_.counts[0];
}

/// Everything in the side's own buffer that is in no block is poison still; `with_blocks`: and so are its blocks.
std::string CountsOnRank::check_gaps(const Side& side, bool with_blocks) const {
  if (!side.buffer) return {};
  if (!side.buffer->guards_intact()) return "wrote outside of a buffer";
  std::vector<char> in_block(side.elements);
  for (std::size_t g = 0; g < side.counts.size() && !with_blocks; ++g)
    std::fill_n(in_block.begin() + static_cast<std::ptrdiff_t>(side.at[g]), side.counts[g], 1);
  for (std::size_t i = 0; i < in_block.size();) {
    std::size_t end = i;
    while (end < in_block.size() && in_block[end] == in_block[i]) ++end;
    if (&side == &send_ && replaced(i, end - i)) {
      i = std::min(end, recv_.counts[0]);
      continue;
    }
    if (in_block[i] == 0 && !side.buffer->poisoned(bytes(i), bytes(end - i)))
      return fmt::format("elements {} to {} of a buffer are in no block, and written", i, end);
    i = end;
  }
  return {};
}

/// What rank `group` sent, or the one block of a reduction or a scatter.
std::string CountsOnRank::check_block(std::size_t group) const {
  const std::byte* const at = recv_.data + bytes(recv_.at[group]);
  const auto before_me = [&](int from) {
    std::size_t first = 0;
    for (int to = 0; to < rank_; ++to) first += call_.count(from, to, ranks_);
    return first;
  };
  const int from = static_cast<int>(group);
  switch (call_.kind) {
    case Kind::reduce_scatter: return check_reduced(inputs(), at, before_me(0), recv_.counts[group]);
    case Kind::scatter: return check_copied(inputs(), call_.root, at, before_me(call_.root), recv_.counts[group]);
    case Kind::all_to_all: return check_copied(inputs(), from, at, before_me(from), recv_.counts[group]);
    default: break;
  }
  return check_copied(inputs(), from, at, 0, recv_.counts[group]);
}

/// Blocks that are sent are the caller's; in place, all but those that are received too.
std::string CountsOnRank::check_sent() const {
  for (std::size_t g = 0; g < send_.counts.size(); ++g) {
    if (at_start_ ? replaced(send_.at[g], send_.counts[g])
                  : in_place_ && (send_.counts.size() <= recv_.counts.size() || g == static_cast<std::size_t>(rank_)))
      continue;
    auto wrong = check_copied(inputs(), rank_, send_.data + bytes(send_.at[g]), send_.first[g], send_.counts[g]);
    if (!wrong.empty()) return fmt::format("send buffer changed, group {}: {}", g, wrong);
  }
  return {};
}

std::string CountsOnRank::check() const {
  for (std::size_t g = 0; g < recv_.counts.size(); ++g)
    if (auto wrong = check_block(g); !wrong.empty()) return fmt::format("rank {} group {}: {}", rank_, g, wrong);
  for (const Side* side : {&send_, &recv_})
    if (auto wrong = check_gaps(*side, false); !wrong.empty()) return fmt::format("rank {}: {}", rank_, wrong);
  if (auto wrong = check_sent(); !wrong.empty()) return fmt::format("rank {}: {}", rank_, wrong);
  return {};
}

bool CountsOnRank::untouched() const {
  return check_sent().empty() && check_gaps(send_, false).empty() && check_gaps(recv_, !in_place_).empty();
}

std::string run_counts_call(const CountsCall& call, const std::vector<int>& here, int ranks,
                            const std::vector<tuttiComm_t>& comms) {
  std::vector<std::unique_ptr<CountsOnRank>> parts;
  for (const int rank : here) parts.push_back(std::make_unique<CountsOnRank>(call, rank, ranks));
  const bool grouped = parts.size() > 1;
  if (grouped && tuttiGroupStart() != tuttiSuccess) return "tuttiGroupStart failed";
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (const auto begun = ok(parts[i]->submit(comms[i])); !begun)
      return fmt::format("rank {}: {}", here[i], begun.message());
  if (grouped)
    if (const auto ended = ok(tuttiGroupEnd()); !ended) return fmt::format("group: {}", ended.message());
  for (const auto& part : parts)
    if (auto wrong = part->check(); !wrong.empty()) return wrong;
  return {};
}

}  // namespace tutti::testing
