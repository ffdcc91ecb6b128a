// The block of threads of a GPU: each operation of kernels/block.h as PTX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/block.h"

namespace tutti::device {

class CudaBlock {
 public:
  static constexpr Fault fault = Fault::none;

  /// `alone`: flags are read only within this launch, so GPU scope suffices for their order.
  TUTTI_DEVICE explicit CudaBlock(bool alone) : alone_(alone) {}

  TUTTI_DEVICE int thread() const { return static_cast<int>(threadIdx.x); }
  TUTTI_DEVICE int threads() const { return static_cast<int>(blockDim.x); }
  TUTTI_DEVICE int block() const { return static_cast<int>(blockIdx.x); }

  TUTTI_DEVICE void sync(Barrier) { __syncthreads(); }
  TUTTI_DEVICE bool sync_any(bool vote) { return __syncthreads_or(vote ? 1 : 0) != 0; }

  template <int Bytes>
  TUTTI_DEVICE Pack<Bytes> load(const void* from) {
    const std::size_t at = __cvta_generic_to_global(from);
    Pack<Bytes> pack;
    if constexpr (Bytes == 16) {
      asm volatile("ld.global.L1::no_allocate.v2.b64 {%0, %1}, [%2];"
                   : "=l"(pack.words[0]), "=l"(pack.words[1])
                   : "l"(at)
                   : "memory");
    } else if constexpr (Bytes == 8) {
      asm volatile("ld.global.L1::no_allocate.b64 %0, [%1];" : "=l"(pack.words[0]) : "l"(at) : "memory");
    } else if constexpr (Bytes == 4) {
      asm volatile("ld.global.L1::no_allocate.b32 %0, [%1];" : "=r"(pack.words[0]) : "l"(at) : "memory");
    } else if constexpr (Bytes == 2) {
      asm volatile("ld.global.L1::no_allocate.b16 %0, [%1];" : "=h"(pack.words[0]) : "l"(at) : "memory");
    } else {
      std::uint32_t wide;
      asm volatile("ld.global.L1::no_allocate.u8 %0, [%1];" : "=r"(wide) : "l"(at) : "memory");
      pack.words[0] = static_cast<std::uint8_t>(wide);
    }
    return pack;
  }

  template <int Bytes>
  TUTTI_DEVICE void store(void* to, Pack<Bytes> pack) {
    const std::size_t at = __cvta_generic_to_global(to);
    if constexpr (Bytes == 16) {
      asm volatile("st.global.v2.b64 [%0], {%1, %2};" ::"l"(at), "l"(pack.words[0]), "l"(pack.words[1]) : "memory");
    } else if constexpr (Bytes == 8) {
      asm volatile("st.global.b64 [%0], %1;" ::"l"(at), "l"(pack.words[0]) : "memory");
    } else if constexpr (Bytes == 4) {
      asm volatile("st.global.b32 [%0], %1;" ::"l"(at), "r"(pack.words[0]) : "memory");
    } else if constexpr (Bytes == 2) {
      asm volatile("st.global.b16 [%0], %1;" ::"l"(at), "h"(pack.words[0]) : "memory");
    } else {
      asm volatile("st.global.u8 [%0], %1;" ::"l"(at), "r"(std::uint32_t{pack.words[0]}) : "memory");
    }
  }

  TUTTI_DEVICE std::uint64_t load_acquire(const std::uint64_t* from) {
    std::uint64_t value;
    const std::size_t at = __cvta_generic_to_global(from);
    if (alone_)
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    else
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
  }
  TUTTI_DEVICE std::uint32_t load_relaxed(const std::uint32_t* from) {
    std::uint32_t value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(from)) : "memory");
    return value;
  }
  TUTTI_DEVICE void store_release(std::uint64_t* to, std::uint64_t value) {
    const std::size_t at = __cvta_generic_to_global(to);
    if (alone_)
      asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    else
      asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
  }
  TUTTI_DEVICE void store_release(std::uint32_t* to, std::uint32_t value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(value) : "memory");
  }
  TUTTI_DEVICE void store_relaxed(std::uint32_t* to, std::uint32_t value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(value) : "memory");
  }

  // PTX treats the elements of a vector access as separate, unordered accesses. So there are two, each with its flag.
  TUTTI_DEVICE FlaggedWord load_flagged(const void* from) {
    std::uint64_t low, high;
    asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                 : "=l"(low), "=l"(high)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
            static_cast<std::uint32_t>(high >> 32)};
  }
  TUTTI_DEVICE void store_flagged(void* to, FlaggedWord word) {
    const std::uint64_t low = word.data0 | std::uint64_t{word.flag0} << 32;
    const std::uint64_t high = word.data1 | std::uint64_t{word.flag1} << 32;
    asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "l"(low), "l"(high)
                 : "memory");
  }

  TUTTI_DEVICE std::uint64_t now_ns() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }
  TUTTI_DEVICE void pause() {}

 private:
  bool alone_;
};

}  // namespace tutti::device
