// Device memory gives the bits that host memory does: all pairs of 8-bit floats, all values of 16-bit ones, and many of
// the others. On a GPU this is where its conversions and arithmetic meet ours.
#include <cmath>
#include <random>

#include "plan/types.h"
#include "support/elements.h"
#include "support/gpu_ranks.h"

namespace tutti::testing {
namespace {

struct Operands {
  std::vector<std::byte> first, second;
};

/// Elements of `bytes` each: of one byte all pairs, of two every value beside another one, else any bits.
Operands operands_of(std::size_t bytes) {
  constexpr std::size_t count = 1 << 16;
  Operands made{std::vector<std::byte>(count * bytes), std::vector<std::byte>(count * bytes)};
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t a = bytes > 2 ? random() : i;
    std::uint64_t b = bytes == 1 ? i >> 8 : bytes == 2 ? i * 40'503 : random();
    std::memcpy(made.first.data() + i * bytes, &a, bytes);
    std::memcpy(made.second.data() + i * bytes, &b, bytes);
  }
  return made;
}

/// Whether the element is no number: there are many, and which one comes out is not said.
bool is_nan(tuttiDataType_t type, const std::byte* at) {
  const auto bits = [at]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (type) {
    case tuttiFloat16: return (bits(std::uint16_t{}) & 0x7fff) > 0x7c00;
    case tuttiBfloat16: return (bits(std::uint16_t{}) & 0x7fff) > 0x7f80;
    case tuttiFloat32: return std::isnan(bits(0.0F));
    case tuttiFloat64: return std::isnan(bits(0.0));
    case tuttiFloat8e4m3: return (bits(std::uint8_t{}) & 0x7f) == 0x7f;
    case tuttiFloat8e5m2: return (bits(std::uint8_t{}) & 0x7f) > 0x7c;
    default: return false;
  }
}

class Pair {
 public:
  Pair(CudaUser& user, std::vector<tuttiComm_t> comms) : user_(user), comms_(std::move(comms)) {}

  void run(tuttiDataType_t type, tuttiRedOp_t op, const std::string& what) {
    const std::size_t bytes = size_of(internal(type));
    const Operands operands = operands_of(bytes);
    const std::size_t size = operands.first.size(), count = size / bytes;
    std::vector<std::byte> on_host(size), on_gpu(size);
    reduce(type, op, count, {operands.first.data(), operands.second.data()}, {on_host.data(), nullptr}, nullptr);
    auto* const first = user_.put(operands.first);
    auto* const second = user_.put(operands.second);
    auto* const out = user_.allocate(size);
    reduce(type, op, count, {first, second}, {out, nullptr}, tuttiCudaStream(stream_));
    user_.synchronize(stream_);
    on_gpu = user_.get(out, size);
    for (std::size_t at = 0; at < size; at += bytes) {
      if (std::memcmp(&on_host[at], &on_gpu[at], bytes) == 0) continue;
      if (is_nan(type, &on_host[at]) && is_nan(type, &on_gpu[at])) continue;
      ADD_FAILURE() << what << ": element " << at / bytes << " differs";
      return;
    }
  }

 private:
  /// The second rank's output is not looked at, and is the first one's input space no more than it is anybody's.
  void reduce(tuttiDataType_t type, tuttiRedOp_t op, std::size_t count,
              std::pair<const std::byte*, const std::byte*> in, std::pair<std::byte*, std::byte*> out,
              tuttiStream_t stream) {
    ASSERT_TRUE(ok(tuttiGroupStart()));
    ASSERT_TRUE(ok(tuttiReduce(in.first, out.first, count, type, op, 0, comms_[0], stream)));
    ASSERT_TRUE(ok(tuttiReduce(in.second, out.second, count, type, op, 0, comms_[1], stream)));
    ASSERT_TRUE(ok(tuttiGroupEnd()));
  }

  CudaUser& user_;
  std::vector<tuttiComm_t> comms_;
  cuda::Stream stream_ = user_.stream();
};

TEST(GpuBits, AreThoseOfTheHost) {
  launch_ranks(launch_group(2, Layout::one_thread), [](Seat& seat) {
    CudaUser user(library);
    const auto comms = seat.init();
    ASSERT_EQ(comms.size(), 2u);
    Pair pair(user, comms);
    for (int type = 0; type < device_type_count; ++type)
      for (const tuttiRedOp_t op : {tuttiSum, tuttiProd, tuttiMax, tuttiMin, tuttiAvg}) {
        const std::string what = "type " + std::to_string(type) + ", operator " + std::to_string(op);
        seat.doing(what);
        pair.run(static_cast<tuttiDataType_t>(type), op, what);
      }
    destroy(comms);
  });
}

}  // namespace
}  // namespace tutti::testing
