// What a call must have written, element by element.
#pragma once

#include <string>

#include "support/inputs.h"

namespace tutti::testing {

/// `count` elements at `output` are the reduction of the elements from `first` on of all ranks' inputs, or of those of
/// the lowest ones where Inputs::combined says so: the same bits where the order does not matter, else within eps ·
/// ranks · Σ|x| of the sum in long double. "" or what is wrong.
std::string check_reduced(const Inputs& inputs, const std::byte* output, std::size_t first, std::size_t count);

/// They are the same bits as the elements from `first` on of `rank`'s input.
std::string check_copied(const Inputs& inputs, int rank, const std::byte* output, std::size_t first, std::size_t count);

/// Writes `rank`'s input elements from `first` on.
void write_inputs(const Inputs& inputs, int rank, std::byte* at, std::size_t first, std::size_t count);

/// The sum of the inputs at `index`, rounded after each addition, from rank 0 upwards or the other way: shows whether
/// the order matters.
template <class T>
T sum_in_order(const Inputs& in, std::size_t index, bool upwards) {
  T sum = input<T>(in, upwards ? 0 : in.ranks - 1, index);
  for (int i = 1; i < in.ranks; ++i)
    sum = narrow<T>(Sum{}(widen(sum), widen(input<T>(in, upwards ? i : in.ranks - 1 - i, index))));
  return sum;
}

}  // namespace tutti::testing
