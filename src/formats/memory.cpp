#include "formats/memory.h"

#include <fmt/format.h>

#include "formats/source.h"

namespace tutti::formats {

Result<Memory> Memory::of(const Buffers& buffers) {
  const Shape& shape = buffers.shape;
  long blocks = 0;
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    blocks += static_cast<long>(input_groups(shape.collective, shape.ranks, rank, shape.root)) * buffers.parts;
    blocks += static_cast<long>(output_groups(shape.collective, shape.ranks, rank, shape.root)) * buffers.parts;
    blocks += buffers.scratch_chunks[static_cast<std::size_t>(rank)];
  }
  if (blocks > blocks_max)
    return Error{.code = Code::invalid_argument,
                 .what = fmt::format("{} chunks in all buffers of all ranks, more than {}", blocks, blocks_max)};
  Memory memory;
  memory.cells_.resize(static_cast<std::size_t>(shape.ranks) * 3);
  for (Rank rank = 0; rank < shape.ranks; ++rank) memory.lay_out(buffers, rank);
  return memory;
}

Cell Memory::add(Rank rank, int count) {
  const Cell first = size();
  about_.insert(about_.end(), static_cast<std::size_t>(count), About{.rank = rank});
  return first;
}

void Memory::lay_out(const Buffers& buffers, Rank rank) {
  const Shape& shape = buffers.shape;
  std::vector<Cell>* const own = &cells_[static_cast<std::size_t>(rank) * 3];
  std::vector<Cell>& input = own[static_cast<int>(Buffer::input)];
  std::vector<Cell>& output = own[static_cast<int>(Buffer::output)];
  std::vector<Cell>& scratch = own[static_cast<int>(Buffer::scratch)];

  const int outputs = output_groups(shape.collective, shape.ranks, rank, shape.root) * buffers.parts;
  for (int block = 0; block < outputs; ++block) {
    output.push_back(add(rank, 1));
    about_.back().output_block = block;
  }
  const int inputs = input_groups(shape.collective, shape.ranks, rank, shape.root) * buffers.parts;
  for (int block = 0; block < inputs; ++block) {
    int same = none;
    if (buffers.in_place) same = in_place_block(shape.collective, shape.ranks, buffers.parts, rank, shape.root, block);
    input.push_back(same == none ? add(rank, 1) : output[static_cast<std::size_t>(same)]);
    about_[static_cast<std::size_t>(input.back())].input_block = block;
  }
  // In place, a rank has one buffer with two names.
  if (buffers.in_place && inputs == 0) input = output;
  if (buffers.in_place && outputs == 0) output = input;
  for (int chunk = buffers.scratch_chunks[static_cast<std::size_t>(rank)]; chunk > 0; --chunk)
    scratch.push_back(add(rank, 1));
}

}  // namespace tutti::formats
