#include "call/arguments.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "plan/schedule.h"

namespace tutti {
namespace {

/// Empty if the bytes exceed the size of an object.
std::optional<std::size_t> bytes_of(std::size_t groups, std::size_t count, std::size_t element) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, element, &bytes) || __builtin_mul_overflow(bytes, groups, &bytes))
    return std::nullopt;
  if (bytes > PTRDIFF_MAX) return std::nullopt;
  return bytes;
}

/// The usual input address that may overlap the output: in-place calls follow NCCL's rules.
const std::byte* in_place_input(const Request& request, Rank rank) {
  const std::byte* output = request.output;
  const std::size_t block = rank * request.group_bytes();
  switch (facts_of(request.collective).in_place) {
    case InPlace::input_in_output: return output + block;
    case InPlace::output_in_input: return output - block;
    case InPlace::same:
    case InPlace::by_copy:
    case InPlace::never: break;
  }
  return output;
}

Result<void> check_overlap(const Request& request, Rank rank, std::size_t in, std::size_t out) {
  if (in == 0 || out == 0 || request.input == in_place_input(request, rank) || request.output_aside(rank)) return {};
  const auto input = reinterpret_cast<std::uintptr_t>(request.input);
  const auto output = reinterpret_cast<std::uintptr_t>(request.output);
  if (input + in <= output || output + out <= input) return {};
  return invalid_argument(
      fmt::format("sendbuff [{:#x}, +{}) and recvbuff [{:#x}, +{}) overlap, but not as an in-place {} requires", input,
                  in, output, out, name(request.collective)));
}

}  // namespace

Result<DataType> other_data_type(int value) {
  constexpr int last_type_number = [] {
    int last = 0;
    for (const TypeFacts& facts : type_facts) last = std::max(last, facts.number);
    return last;
  }();
  if (const auto type = type_of_number(value)) return *type;
  return invalid_argument(fmt::format("type {} is not a tuttiDataType_t (0 to {}, {} to {})", value,
                                      device_type_count - 1, type_facts[device_type_count].number, last_type_number));
}

Result<void> check_every_argument(const Request& request, Rank rank, int ranks) {
  if (rooted(request.collective) && (request.root < 0 || request.root >= ranks))
    return invalid_argument(fmt::format("root {} is not a rank (0 to {})", request.root, ranks - 1));
  if (request.collective == Collective::barrier || request.count == 0) return {};
  const auto in =
      bytes_of(input_groups(request.collective, ranks, rank, request.root), request.count, size_of(request.type));
  const auto out =
      bytes_of(output_groups(request.collective, ranks, rank, request.root), request.count, size_of(request.type));
  if (!in || !out)
    return invalid_argument(fmt::format("count {} of {} exceeds the address space", request.count, name(request.type)));
  if (*in > 0 && request.input == nullptr) return invalid_argument("sendbuff is NULL");
  if (*out > 0 && request.output == nullptr) return invalid_argument("recvbuff is NULL");
  return check_overlap(request, rank, *in, *out);
}

Result<void> check_arguments(const PeerRequest& request, std::size_t count, int ranks) {
  if (request.peer < 0 || request.peer >= ranks)
    return invalid_argument(fmt::format("peer {} is not a rank (0 to {})", request.peer, ranks - 1));
  if (!bytes_of(1, count, size_of(request.type)))
    return invalid_argument(fmt::format("count {} exceeds the address space", count));
  if (request.bytes > 0 && request.data == nullptr)
    return invalid_argument(request.send ? "sendbuff is NULL" : "recvbuff is NULL");
  return {};
}

}  // namespace tutti
