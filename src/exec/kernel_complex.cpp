// Kernels of products of complex numbers.
#include <cstring>

#include "exec/kernel.h"
#include "kernels/ops.h"

namespace tutti {
namespace {

template <class T>
void multiply(const KernelArgs& args) {
  for (std::size_t at = 0; at < args.count * sizeof(T); at += sizeof(T)) {
    T result, factor;
    std::memcpy(&result, args.sources[0].at + at, sizeof result);
    for (std::size_t s = 1; s < args.sources_count; ++s) {
      std::memcpy(&factor, args.sources[s].at + at, sizeof factor);
      result = product(result, factor);
    }
    for (std::size_t t = 0; t < args.destinations_count; ++t)
      std::memcpy(args.destinations[t] + at, &result, sizeof result);
  }
}

}  // namespace

Kernel complex_kernel(DataType type) {
  return type == DataType::complex64 ? &multiply<Complex<float>> : &multiply<Complex<double>>;
}

}  // namespace tutti
