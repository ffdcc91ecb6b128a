#include "call/layout.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "call/mismatch.h"
#include "plan/schedule.h"

namespace tutti {
namespace {

/// The end of a range, in elements; empty if its bytes exceed the size of an object.
std::optional<std::size_t> end_of(const Range& range, std::size_t element) {
  std::size_t end = 0, bytes = 0;
  if (__builtin_add_overflow(range.begin, range.count, &end) || __builtin_mul_overflow(end, element, &bytes) ||
      bytes > PTRDIFF_MAX)
    return std::nullopt;
  return end;
}

/// The groups of one buffer. Ranges without elements begin at 0.
Result<std::vector<Range>> ranges_of(const Counts& given, int groups, std::size_t element, std::string_view side) {
  if (groups == 0) return std::vector<Range>();
  if (given.counts == nullptr) return invalid_argument(fmt::format("{}counts is NULL", side));
  std::vector<Range> ranges(static_cast<std::size_t>(groups));
  std::size_t packed = 0;
  for (std::size_t g = 0; g < ranges.size(); ++g) {
    const std::size_t count = given.counts[g];
    if (count == 0) continue;
    ranges[g] = {.begin = given.displacements != nullptr ? given.displacements[g] : packed, .count = count};
    const auto end = end_of(ranges[g], element);
    if (!end)
      return invalid_argument(fmt::format("{}counts[{}] = {} from element {} on exceeds the address space", side, g,
                                          count, ranges[g].begin));
    packed = *end;
  }
  return ranges;
}

/// Shifts the ranges so that the lowest one begins at 0. Returns the shift in elements; sets `elements` to the end of
/// the last range.
std::size_t rebase(std::vector<Range>& ranges, std::size_t& elements) {
  std::size_t low = SIZE_MAX, high = 0;
  for (const Range& range : ranges) {
    if (range.count == 0) continue;
    low = std::min(low, range.begin);
    high = std::max(high, range.begin + range.count);
  }
  if (high == 0) return 0;
  for (Range& range : ranges)
    if (range.count > 0) range.begin -= low;
  elements = high - low;
  return low;
}

/// A group in memory.
struct Block {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::size_t group = 0;
};

Block block_of(const std::byte* base, const Range& range, std::size_t element, std::size_t group) {
  const auto begin = reinterpret_cast<std::uintptr_t>(base) + range.begin * element;
  return {.begin = begin, .end = begin + range.count * element, .group = group};
}

/// The non-empty groups, sorted by address.
std::vector<Block> in_order(const std::byte* base, const std::vector<Range>& ranges, std::size_t element) {
  std::vector<Block> blocks;
  blocks.reserve(ranges.size());
  for (std::size_t g = 0; g < ranges.size(); ++g)
    if (ranges[g].count > 0) blocks.push_back(block_of(base, ranges[g], element, g));
  if (!std::ranges::is_sorted(blocks, {}, &Block::begin)) std::ranges::sort(blocks, {}, &Block::begin);
  return blocks;
}

/// Input groups may overlap each other, because they are only read. Output groups may overlap neither each other nor
/// the input, with two exceptions: the group that an in-place call has in both buffers, and an all-to-all with one
/// buffer and one layout, whose input is copied first.
Result<void> check_overlap(const Request& request, const Layout& layout, Rank rank, int ranks) {
  const std::size_t element = size_of(request.type);
  const std::vector<Block> outputs = in_order(request.output, layout.output, element);
  for (std::size_t i = 1; i < outputs.size(); ++i)
    if (outputs[i].begin < outputs[i - 1].end)
      return invalid_argument(fmt::format("recvcounts and rdispls make groups {} and {} overlap",
                                          std::min(outputs[i - 1].group, outputs[i].group),
                                          std::max(outputs[i - 1].group, outputs[i].group)));
  if (outputs.empty() || (request.copies_input() && layout.input == layout.output)) return {};
  if (request.output_over_input) return {};
  for (std::size_t g = 0; g < layout.input.size(); ++g) {
    if (layout.input[g].count == 0) continue;
    const Block input = block_of(request.input, layout.input[g], element, g);
    const auto met = std::ranges::upper_bound(outputs, input.begin, {}, &Block::end);
    if (met == outputs.end() || met->begin >= input.end) continue;
    const int twin = in_place_block(request.collective, ranks, 1, rank, request.root, static_cast<int>(g));
    if (static_cast<int>(met->group) == twin && met->begin == input.begin && met->end == input.end) continue;
    return invalid_argument(
        fmt::format("group {} of sendbuff [{:#x}, +{}) and group {} of recvbuff [{:#x}, +{}) overlap, but not as an "
                    "in-place {}V requires",
                    g, input.begin, input.end - input.begin, met->group, met->begin, met->end - met->begin,
                    name(request.collective)));
  }
  return {};
}

/// Hashes three numbers to 64 bits, so that sums of such hashes are equal only if their terms are, or by chance.
std::uint64_t hash_of(Rank from, Rank to, std::size_t count) {
  const auto mix = [](std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  const auto pair = static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to);
  return mix(mix(pair + 0x9e3779b97f4a7c15u) + count * 0x9e3779b97f4a7c15u);
}

CountsDescriptor descriptor_of(const Request& request, const Layout& layout, Rank rank, int ranks) {
  CountsDescriptor descriptor;
  for (Rank peer = 0; peer < ranks; ++peer) {
    const Share share = share_with(request, layout, peer);
    if (share.sent.count > 0) descriptor.sent += hash_of(rank, peer, share.sent.count);
    if (share.received.count > 0) descriptor.received += hash_of(peer, rank, share.received.count);
    descriptor.largest = std::max({descriptor.largest, share.sent.count, share.received.count});
  }
  return descriptor;
}

}  // namespace

Result<void> lay_out(Request& request, Rank rank, int ranks, const Counts& send, const Counts& recv) {
  if (rooted(request.collective) && (request.root < 0 || request.root >= ranks))
    return invalid_argument(fmt::format("root {} is not a rank (0 to {})", request.root, ranks - 1));
  const std::size_t element = size_of(request.type);
  auto layout = std::make_shared<Layout>();
  layout->input =
      TUTTI_TRY(ranges_of(send, input_groups(request.collective, ranks, rank, request.root), element, "send"));
  layout->output =
      TUTTI_TRY(ranges_of(recv, output_groups(request.collective, ranks, rank, request.root), element, "recv"));
  request.output_over_input = request.collective == Collective::reduce_scatter && request.input == request.output &&
                              layout->input[static_cast<std::size_t>(rank)].begin > 0;
  const std::size_t input_at = rebase(layout->input, layout->input_elements);
  const std::size_t output_at = rebase(layout->output, layout->output_elements);
  if (layout->input_elements > 0 && request.input == nullptr) return invalid_argument("sendbuff is NULL");
  if (layout->output_elements > 0 && request.output == nullptr) return invalid_argument("recvbuff is NULL");
  if (request.input != nullptr) request.input += input_at * element;
  if (request.output != nullptr) request.output += output_at * element;

  const Share own = share_with(request, *layout, rank);
  if (own.sent.count != own.received.count)
    return invalid_argument(fmt::format("by its counts rank {} sends itself {} elements but receives {} from itself",
                                        rank, own.sent.count, own.received.count));
  TUTTI_TRY(check_overlap(request, *layout, rank, ranks));
  layout->line = descriptor_of(request, *layout, rank, ranks);
  request.layout = std::move(layout);
  request.form = Form::counts;
  return {};
}

Share share_with(const Request& request, const Layout& layout, Rank peer) {
  const CollectiveFacts& facts = facts_of(request.collective);
  const auto group = [peer](const std::vector<Range>& ranges, GroupCount groups) {
    if (ranges.empty()) return Range{};
    return ranges[groups == GroupCount::one ? 0 : static_cast<std::size_t>(peer)];
  };
  Share share;
  if (holds(facts.output, peer, request.root)) share.sent = group(layout.input, facts.input_groups);
  if (holds(facts.input, peer, request.root)) share.received = group(layout.output, facts.output_groups);
  return share;
}

void CountsTally::add(const std::byte* line) {
  CountsDescriptor descriptor;
  std::memcpy(&descriptor, line, sizeof descriptor);
  sent_ += descriptor.sent;
  received_ += descriptor.received;
  largest_ = std::max<std::size_t>(largest_, descriptor.largest);
}

Result<std::size_t> CountsTally::largest(std::size_t element) const {
  if (largest_ > PTRDIFF_MAX / element)
    return Error{.code = Code::remote, .what = "a call descriptor has a count that exceeds the address space"};
  return largest_;
}

Error counts_mismatch(std::span<const std::span<const Share>> shares_of, const Request& request) {
  constexpr int told_max = 8;
  Error error{.code = Code::invalid_usage, .what = fmt::format("{}: ranks disagree", call_text(request.signature()))};
  int found = 0;
  for (std::size_t from = 0; from < shares_of.size(); ++from)
    for (std::size_t to = 0; to < shares_of.size(); ++to) {
      const std::size_t sent = shares_of[from][to].sent.count, received = shares_of[to][from].received.count;
      if (sent == received || ++found > told_max) continue;
      error.what += fmt::format("\n  rank {} sends {} elements to rank {}, which wants {}", from, sent, to, received);
    }
  if (found > told_max) error.what += fmt::format("\n  and {} more", found - told_max);
  error.what += "\n  Nothing was written.";
  return error;
}

}  // namespace tutti
