// What MSCCL XML and MSCCL++ JSON have in common: instructions in channels (thread blocks) that wait for each other.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/memory.h"

namespace tutti::formats {

/// The first chunk is read, or all of them combined in that order; then `destination` is written.
struct Move {
  std::vector<Cell> sources;
  Cell destination = 0;
};

/// Where in the file an instruction is. `line` is 0 where the format is told by names instead.
struct Place {
  int line = 0;
  Rank rank = 0;
  int channel = 0;  ///< of that rank
  int step = 0;     ///< in that channel
};

/// Its moves are made one after the other.
struct Instruction {
  int channel = 0;  ///< counted over all ranks
  Place place;
  std::vector<Move> moves = {};
  std::vector<int> after = {};   ///< instructions whose effects it sees
  std::vector<int> behind = {};  ///< instructions it waits for, without a promise about memory
};

/// The instructions of one channel stand in their order.
struct ChannelProgram {
  Buffers buffers;
  Memory memory;
  int channels = 0;
  std::vector<Instruction> instructions = {};
  std::vector<char> in_flight = {};  ///< by cell: it stands for a message between its send and its receive
  std::string (*where)(const Place&) = nullptr;

  std::string where_of(int instruction) const {
    return where(instructions[static_cast<std::size_t>(instruction)].place);
  }
};

/// All instructions, each behind those it waits for. Errors: invalid_argument, naming a circle of waits.
Result<std::vector<int>> execution_order(const ChannelProgram& program);

/// Refuses two accesses of one cell, one of them a write, that nothing puts in order, and an access of another rank's
/// input or output that may come after that rank's end: then every order that execution_order could give means the
/// same. Errors: invalid_argument, naming both.
Result<void> check_races(const ChannelProgram& program, const std::vector<int>& order);

}  // namespace tutti::formats
