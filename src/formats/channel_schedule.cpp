// Converts channels to steps: follows every value through the program, then decides its step and its block in the
// schedule.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "formats/imported.h"
#include "formats/levels.h"
#include "formats/source.h"

namespace tutti::formats {
namespace {

constexpr int none = -1;

/// The content of a cell from one write to the next.
struct Value {
  Cell cell = 0;
  int part = 0;
  Rank lowest = 0;           // lowest rank that contributed to it
  int maker = none;          // the pass that writes it; none: it exists from the start
  bool handed_over = false;  // a message that goes directly from the sender's memory to the receiver's
};

/// One move, in terms of values instead of cells.
struct Pass {
  int instruction = 0;
  std::vector<int> sources;
  int result = 0;
};

class Conversion {
 public:
  explicit Conversion(ChannelProgram program)
      : program_(std::move(program)),
        memory_(program_.memory),
        current_(index(memory_.size()), none),
        apart_(index(memory_.size())) {}

  Result<void> trace(const std::vector<int>& order);
  void assign_steps();
  Imported result() const;

 private:
  Result<void> trace(int instruction, const Move& move);
  void hand_over();
  void finish();
  void find_readers();
  std::vector<Before> constraints() const;
  void output_constraints(Cell cell, const std::vector<int>& written, std::vector<Before>& edges) const;
  int overwritten_by(const std::vector<int>& written, int input) const;
  bool loosen(const std::vector<int>& knot);
  void find_scratch();

  const Shape& shape() const { return program_.buffers.shape; }
  int parts() const { return program_.buffers.parts; }
  /// The source, in the sender's memory, of a value that is handed over.
  int origin(int value) const {
    while (values_[index(value)].handed_over) value = passes_[index(values_[index(value)].maker)].sources[0];
    return value;
  }
  bool is_made(int pass) const { return !values_[index(passes_[index(pass)].result)].handed_over; }
  bool in_output(const Value& value) const {
    return value.maker != none && memory_.output_block(value.cell) != Memory::none &&
           (!apart_[index(value.cell)] || value.maker >= traced_);
  }
  Ref home(int value) const;

  ChannelProgram program_;
  const Memory& memory_;
  std::vector<int> current_;  // value by cell
  std::vector<char> apart_;   // by output cell: its values are in scratch until the end
  std::vector<Value> values_;
  std::vector<Pass> passes_;
  int traced_ = 0;  // number of passes of the program; those after it copy results to their blocks
  int traced_values_ = 0;
  std::vector<std::vector<int>> readers_;  // passes by value
  std::vector<int> steps_;                 // by pass
  std::map<int, int> scratch_;             // value → block
  std::vector<int> inputs_;                // by output cell: the value at the start of the input block it is in place
};

Result<void> Conversion::trace(const std::vector<int>& order) {
  for (Cell cell = 0; cell < memory_.size(); ++cell)
    if (const int block = memory_.input_block(cell); block != Memory::none) {
      current_[index(cell)] = static_cast<int>(values_.size());
      values_.push_back({.cell = cell, .part = block % parts(), .lowest = memory_.rank(cell)});
    }
  inputs_.assign(index(memory_.size()), none);
  for (Rank rank = 0; rank < shape().ranks; ++rank)
    for (int block = 0; block < memory_.chunks(rank, Buffer::input); ++block) {
      const Cell input = memory_.cell(rank, Buffer::input, block);
      const int own = memory_.input_block(input);
      if (own == Memory::none) continue;
      const int same = in_place_block(shape().collective, shape().ranks, parts(), rank, shape().root, own);
      if (same != none) inputs_[index(memory_.cell(rank, Buffer::output, same))] = current_[index(input)];
    }
  for (const int instruction : order)
    for (const Move& move : program_.instructions[index(instruction)].moves) TUTTI_TRY(trace(instruction, move));
  traced_ = static_cast<int>(passes_.size());
  traced_values_ = static_cast<int>(values_.size());
  return {};
}

Result<void> Conversion::trace(int instruction, const Move& move) {
  if (move.sources.size() == 1 && move.sources[0] == move.destination) return {};
  const auto wrong = [&](std::string what) { return refused(program_.where_of(instruction), what); };
  if (move.sources.size() > 1 && !reduces(shape().collective))
    return wrong(fmt::format("reduces, and {} does not", name(shape().collective)));
  Pass pass{.instruction = instruction, .sources = {}, .result = static_cast<int>(values_.size())};
  for (const Cell source : move.sources) {
    const int value = current_[index(source)];
    if (value == none)
      return wrong(fmt::format("reads a chunk of rank {} before anything is written to it", memory_.rank(source)));
    if (!pass.sources.empty() && values_[index(value)].part != values_[index(pass.sources[0])].part)
      return wrong(fmt::format("combines input chunks of two parts, {} and {}", values_[index(pass.sources[0])].part,
                               values_[index(value)].part));
    pass.sources.push_back(value);
  }
  // A sum of two has the same bits in either order; with one order for all ranks, partners of an exchange are
  // recognised as agreeing.
  const auto lowest = [this](int value) { return values_[index(value)].lowest; };
  if (pass.sources.size() == 2) std::ranges::stable_sort(pass.sources, {}, lowest);
  const int part = values_[index(pass.sources[0])].part;
  values_.push_back({.cell = move.destination,
                     .part = part,
                     .lowest = lowest(*std::ranges::min_element(pass.sources, {}, lowest)),
                     .maker = static_cast<int>(passes_.size())});
  current_[index(move.destination)] = pass.result;
  const int block = memory_.output_block(move.destination);
  if (block != Memory::none && block % parts() != part) apart_[index(move.destination)] = 1;
  passes_.push_back(std::move(pass));
  return {};
}

/// A message that one pass reads needs no place of its own, unless the sender's memory is overwritten too early.
void Conversion::hand_over() {
  std::vector<int> reads(values_.size());
  for (const Pass& pass : passes_)
    for (const int source : pass.sources) ++reads[index(source)];
  for (std::size_t i = 0; i < values_.size(); ++i)
    values_[i].handed_over = program_.in_flight[index(values_[i].cell)] && values_[i].maker != none && reads[i] == 1;
}

/// Adds copies of values that are not in their final blocks.
void Conversion::finish() {
  passes_.resize(index(traced_));
  values_.resize(index(traced_values_));
  for (Cell cell = 0; cell < memory_.size(); ++cell) {
    const int last = current_[index(cell)];
    if (memory_.output_block(cell) == Memory::none || last == none || in_output(values_[index(last)])) continue;
    if (values_[index(last)].part != memory_.output_block(cell) % parts()) continue;  // verify will report the error
    const int made = static_cast<int>(values_.size());
    const int maker = values_[index(last)].maker;
    const int instruction = maker == none ? none : passes_[index(maker)].instruction;
    values_.push_back({.cell = cell, .part = values_[index(last)].part, .maker = static_cast<int>(passes_.size())});
    passes_.push_back({.instruction = instruction, .sources = {last}, .result = made});
  }
}

void Conversion::find_readers() {
  readers_.assign(values_.size(), {});
  for (int pass = 0; pass < static_cast<int>(passes_.size()); ++pass)
    if (is_made(pass))
      for (const int source : passes_[index(pass)].sources) readers_[index(origin(source))].push_back(pass);
}

std::vector<Before> Conversion::constraints() const {
  std::vector<Before> edges;
  std::map<Cell, std::vector<int>> written;  // values of output cells, in the order of their writes
  for (int pass = 0; pass < static_cast<int>(passes_.size()); ++pass) {
    if (!is_made(pass)) continue;
    for (const int source : passes_[index(pass)].sources)
      if (const int maker = values_[index(origin(source))].maker; maker != none)
        edges.push_back({.from = maker, .to = pass});
    const Value& value = values_[index(passes_[index(pass)].result)];
    if (in_output(value)) written[value.cell].push_back(passes_[index(pass)].result);
  }
  for (const auto& [cell, values] : written) output_constraints(cell, values, edges);
  return edges;
}

/// Scratch is assigned afterwards, so only outputs are written more than once.
void Conversion::output_constraints(Cell cell, const std::vector<int>& written, std::vector<Before>& edges) const {
  for (std::size_t i = 1; i < written.size(); ++i) {
    const int writer = values_[index(written[i])].maker;
    edges.push_back({.from = values_[index(written[i - 1])].maker, .to = writer});
    for (const int reader : readers_[index(written[i - 1])])
      if (reader != writer) edges.push_back({.from = reader, .to = writer, .later = false});
  }
  const int input = inputs_[index(cell)];
  const int writer = input == none ? none : overwritten_by(written, input);
  if (writer == none) return;
  for (const int reader : readers_[index(input)])
    if (reader != writer) edges.push_back({.from = reader, .to = writer, .later = false});
}

/// The first pass that overwrites `input` for a rank that works in place; see verify about copies of a block onto
/// itself.
int Conversion::overwritten_by(const std::vector<int>& written, int input) const {
  for (const int value : written) {
    const Pass& pass = passes_[index(values_[index(value)].maker)];
    const bool same = pass.sources.size() == 1 && origin(pass.sources[0]) == input;
    if (!same || reduces(shape().collective)) return values_[index(value)].maker;
  }
  return none;
}

/// Gives values in the knot a block of their own, which removes an edge from it. False: no value could be moved.
bool Conversion::loosen(const std::vector<int>& knot) {
  bool changed = false;
  for (int pass = 0; pass < static_cast<int>(passes_.size()); ++pass) {
    if (knot[index(pass)] == 0) continue;
    for (const int source : passes_[index(pass)].sources) {
      changed = changed || values_[index(source)].handed_over;
      values_[index(source)].handed_over = false;
    }
    const Value& value = values_[index(passes_[index(pass)].result)];
    if (memory_.output_block(value.cell) == Memory::none || inputs_[index(value.cell)] == none) continue;
    changed = changed || !apart_[index(value.cell)];
    apart_[index(value.cell)] = 1;
  }
  return changed;
}

void Conversion::assign_steps() {
  hand_over();
  constexpr int tries_max = 4;
  for (int tries = 0;; ++tries) {
    finish();
    find_readers();
    const Levels found = levels(static_cast<int>(passes_.size()), constraints());
    steps_ = found.step;
    if (found.knot.empty()) break;
    const std::vector<int> all(passes_.size(), 1);
    const bool changed = loosen(tries < tries_max ? found.knot : all);
    assert(changed && "with a block for every value nothing is in the way");
    if (!changed) break;
  }
  find_scratch();
}

/// Each value occupies its block from the step that makes it to the last step that reads it.
void Conversion::find_scratch() {
  std::map<std::pair<Rank, int>, std::vector<int>> wanted;  // by rank and part: values
  for (int pass = 0; pass < static_cast<int>(passes_.size()); ++pass) {
    const int result = passes_[index(pass)].result;
    const Value& value = values_[index(result)];
    if (is_made(pass) && !in_output(value)) wanted[{memory_.rank(value.cell), value.part}].push_back(result);
  }
  const auto made = [&](int value) { return steps_[index(values_[index(value)].maker)]; };
  for (auto& [where, values] : wanted) {
    std::ranges::stable_sort(values, {}, made);
    using Row = std::pair<int, int>;  // the step from which on it is free, its number
    std::priority_queue<Row, std::vector<Row>, std::greater<>> rows;
    for (const int value : values) {
      int row = static_cast<int>(rows.size());
      if (!rows.empty() && rows.top().first <= made(value)) {
        row = rows.top().second;
        rows.pop();
      }
      int last = made(value);
      for (const int reader : readers_[index(value)]) last = std::max(last, steps_[index(reader)]);
      rows.push({last + 1, row});
      scratch_[value] = row * parts() + where.second;
    }
  }
}

Ref Conversion::home(int value) const {
  const Value& v = values_[index(value)];
  if (v.maker == none) return {Buffer::input, memory_.input_block(v.cell)};
  if (in_output(v)) return {Buffer::output, memory_.output_block(v.cell)};
  return {Buffer::scratch, scratch_.at(value)};
}

Imported Conversion::result() const {
  Imported imported{.name = program_.name,
                    .schedule = Schedule(shape(), parts()),
                    .bytes_min = static_cast<std::uint64_t>(program_.bytes_min),
                    .bytes_max = static_cast<std::uint64_t>(program_.bytes_max),
                    .where = program_.where};
  std::vector<int> in_order;
  for (int pass = 0; pass < static_cast<int>(passes_.size()); ++pass)
    if (is_made(pass)) in_order.push_back(pass);
  std::ranges::stable_sort(in_order, {}, [&](int pass) { return steps_[index(pass)]; });
  int step = 0;
  for (const int i : in_order) {
    for (; step < steps_[index(i)]; ++step) imported.schedule.next_step();
    const Pass& pass = passes_[index(i)];
    const Rank to = memory_.rank(values_[index(pass.result)].cell);
    const Ref dst = home(pass.result);
    for (std::size_t operand = 0; operand < pass.sources.size(); ++operand) {
      const int source = origin(pass.sources[operand]);
      const Rank from = memory_.rank(values_[index(source)].cell);
      if (pass.sources.size() == 1)
        imported.schedule.copy(from, home(source), to, dst);
      else
        imported.schedule.reduce(from, home(source), to, dst, static_cast<int>(operand));
    }
    if (pass.instruction != none)
      imported.origins.push_back({step, to, dst, program_.instructions[index(pass.instruction)].position});
  }
  return imported;
}

}  // namespace

Result<Imported> to_schedule(ChannelProgram program) {
  program.in_flight.resize(index(program.memory.size()));
  const auto order = TUTTI_TRY(execution_order(program));
  if (auto good = check_races(program, order); !good) return Error(good.error());
  Conversion conversion(std::move(program));
  if (auto good = conversion.trace(order); !good) return Error(good.error());
  conversion.assign_steps();
  return conversion.result();
}

Result<Meaning> verify(const Imported& imported) {
  auto meaning = tutti::verify(imported.schedule, [&](int step, Rank to, Ref dst) {
    for (const Imported::Origin& origin : imported.origins)
      if (origin.step == step && origin.to == to && origin.dst == dst)
        return fmt::format("at {}", imported.where(origin.position));
    return std::string();  // a copy that only the schedule has
  });
  if (meaning) return meaning;
  Error error = std::move(meaning).error();
  error.code = Code::invalid_argument;
  constexpr int shown_max = 3;
  int shown = 0;
  for (const Imported::Origin& origin : imported.origins) {
    if (error.step < 0 || origin.step != error.step || origin.to != error.peer) continue;
    if (++shown > shown_max) break;
    error.what += fmt::format("{}{}", shown == 1 ? "; at " : "; or at ", imported.where(origin.position));
  }
  return error;
}

}  // namespace tutti::formats
