// GOAL, Chakra and pictures: what simulators would play is what the schedule says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/formats/chakra.h"
#include "analysis/formats/goal.h"
#include "analysis/formats/svg.h"
#include "analysis/formats/table.h"
#include "support/shapes.h"

namespace tutti::formats {
namespace {

using tutti::testing::for_every_algorithm;
using tutti::testing::text;

struct Node {
  char kind = 'w';  // s, r, w
  int peer = -1;
  int tag = -1;
  std::size_t bytes = 0;
  std::vector<int> after = {};
};
using Graphs = std::vector<std::vector<Node>>;  // by rank

Graphs read_goal(const std::string& file) {
  Graphs graphs;
  std::istringstream lines(file);
  std::string line, word, skipped;
  for (int rank = -1; std::getline(lines, line);) {
    std::istringstream in(line);
    in >> word;
    if (word == "rank") {
      in >> rank;
      EXPECT_EQ(rank, static_cast<int>(graphs.size()));
      graphs.emplace_back();
      continue;
    }
    if (line.empty() || word == "}" || word == "num_ranks") continue;
    const auto label = static_cast<std::size_t>(std::stoi(word.substr(1)));
    std::string verb;
    in >> verb;
    if (verb == "requires") {
      in >> word;
      graphs.back().at(label - 1).after.push_back(std::stoi(word.substr(1)) - 1);
      continue;
    }
    EXPECT_EQ(label, graphs.back().size() + 1);
    Node node;
    if (verb == "calc") {
      in >> node.bytes;
    } else {
      node.kind = verb == "send" ? 's' : 'r';
      char unit = 0;
      in >> node.bytes >> unit >> skipped >> node.peer >> skipped >> node.tag;
      EXPECT_EQ(unit, 'b');
      EXPECT_EQ(skipped, "tag");
    }
    EXPECT_TRUE(in) << line;
    graphs.back().push_back(node);
  }
  return graphs;
}

/// Field numbers and values of a protobuf message.
struct Field {
  int number = 0;
  std::uint64_t value = 0;
  std::string bytes;
};
std::uint64_t varint(std::string_view& text) {
  std::uint64_t value = 0;
  for (int shift = 0; !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text[0]);
    text.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}
std::vector<Field> fields(std::string_view text) {
  std::vector<Field> all;
  while (!text.empty()) {
    const std::uint64_t key = varint(text);
    Field field{.number = static_cast<int>(key >> 3)};
    field.value = varint(text);
    EXPECT_TRUE((key & 7) == 0 || (key & 7) == 2);
    if ((key & 7) == 2) {
      EXPECT_LE(field.value, text.size());
      field.bytes = std::string(text.substr(0, field.value));
      text.remove_prefix(std::min<std::size_t>(field.value, text.size()));
    }
    all.push_back(std::move(field));
  }
  return all;
}

Graphs read_chakra(const std::vector<std::string>& files) {
  Graphs graphs;
  for (const std::string& file : files) {
    graphs.emplace_back();
    std::string_view left = file;
    bool first = true;
    while (!left.empty()) {
      const std::uint64_t size = varint(left);
      const std::vector<Field> message = fields(left.substr(0, size));
      left.remove_prefix(std::min<std::size_t>(size, left.size()));
      if (std::exchange(first, false)) {
        EXPECT_EQ(message.at(0).bytes, "0.0.4");
        continue;
      }
      Node node;
      std::uint64_t id = 0;
      for (const Field& field : message) {
        if (field.number == 1) id = field.value;
        if (field.number == 3) node.kind = field.value == 4 ? 'w' : field.value == 5 ? 's' : 'r';
        std::string_view ids = field.bytes;
        while (field.number == 5 && !ids.empty()) node.after.push_back(static_cast<int>(varint(ids)));
        if (field.number != 10) continue;
        const std::vector<Field> attribute = fields(field.bytes);
        const std::string& name = attribute.at(0).bytes;
        if (name == "comm_size") node.bytes = attribute.at(1).value;
        if (name == "comm_tag") node.tag = static_cast<int>(attribute.at(1).value);
        if (name == "comm_dst" || name == "comm_src") node.peer = static_cast<int>(attribute.at(1).value);
      }
      EXPECT_EQ(id, graphs.back().size());
      graphs.back().push_back(node);
    }
  }
  return graphs;
}

/// Plays the graphs with messages that need both ends at once, the strictest there is. Returns bytes sent, or -1 if
/// something never ran.
long play(const Graphs& graphs) {
  std::map<std::tuple<int, int, int>, std::pair<int, std::size_t>> waiting;  // from, to, tag → ready ends, bytes
  std::vector<std::vector<char>> done(graphs.size()), ready(graphs.size());
  for (std::size_t rank = 0; rank < graphs.size(); ++rank)
    done[rank].resize(graphs[rank].size()), ready[rank] = done[rank];
  long bytes = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < graphs.size(); ++rank)
      for (std::size_t i = 0; i < graphs[rank].size(); ++i) {
        const Node& node = graphs[rank][i];
        const auto is_done = [&](int before) { return done[rank].at(static_cast<std::size_t>(before)) != 0; };
        if (done[rank][i] || !std::ranges::all_of(node.after, is_done)) continue;
        const int self = static_cast<int>(rank);
        const auto key =
            node.kind == 's' ? std::tuple(self, node.peer, node.tag) : std::tuple(node.peer, self, node.tag);
        auto& [ends, size] = waiting[key];
        if (node.kind != 'w' && !std::exchange(ready[rank][i], 1)) {
          if (ends++ == 0) size = node.bytes;
          EXPECT_EQ(size, node.bytes) << "two ends of a message differ";
          EXPECT_LE(ends, 2) << "two messages with one tag";
          moved = true;
        }
        if (node.kind != 'w' && ends < 2) continue;
        done[rank][i] = 1;
        moved = true;
        if (node.kind == 's') bytes += static_cast<long>(node.bytes);
      }
  }
  for (const auto& rank : done)
    if (std::ranges::count(rank, 0) > 0) return -1;
  return bytes;
}

long bytes_sent(const Schedule& schedule, std::size_t bytes) {
  long sum = 0;
  for (const Transfer& t : schedule.transfers())
    if (t.from != t.to) sum += static_cast<long>(block_bytes(schedule, t.src.block % schedule.parts(), bytes));
  return sum;
}

TEST(Export, CanBePlayedToTheEnd) {
  const TrafficSize size{.bytes = 7 * 64 * 1024, .reduce_ns_per_byte = 0.5};
  int done = 0;
  for (const int ranks : {1, 2, 4, 5})
    for_every_algorithm(ranks, [&](const Algorithm& algorithm, const Shape& shape) {
      if (shape.collective == Collective::barrier) return;  // no bytes: see below
      SCOPED_TRACE(text(algorithm, shape));
      const Schedule schedule = algorithm.build(shape);
      const auto goal = export_goal(schedule, size);
      const auto chakra = export_chakra(schedule, size, algorithm.name);
      ASSERT_TRUE(goal && chakra);
      const Graphs graphs = read_goal(*goal), traces = read_chakra(*chakra);
      ASSERT_EQ(static_cast<int>(graphs.size()), ranks);
      ASSERT_EQ(traces.size(), graphs.size());
      EXPECT_EQ(play(graphs), bytes_sent(schedule, size.bytes));
      EXPECT_EQ(play(traces), bytes_sent(schedule, size.bytes));
      for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
        ASSERT_EQ(graphs[rank].size(), traces[rank].size());
        for (std::size_t i = 0; i < graphs[rank].size(); ++i) {
          EXPECT_EQ(graphs[rank][i].after, traces[rank][i].after);
          EXPECT_EQ(graphs[rank][i].kind, traces[rank][i].kind);
        }
      }
      ++done;
    });
  EXPECT_GT(done, 50);
}

TEST(Export, OfABarrierHasMessagesAllTheSame) {
  const Shape shape{.collective = Collective::barrier, .ranks = 5};
  const Schedule schedule = find_algorithm("dissemination", shape)->build(shape);
  const Graphs graphs = read_goal(*export_goal(schedule, {}));
  EXPECT_EQ(play(graphs), 5 * 3);
}

TEST(Export, OfAReductionTakesTime) {
  const Shape shape{.collective = Collective::all_reduce, .ranks = 2};
  const Schedule schedule = find_algorithm("ring", shape)->build(shape);
  const Graphs graphs = read_goal(*export_goal(schedule, {.bytes = 2000, .reduce_ns_per_byte = 2}));
  const auto calc = std::ranges::find(graphs[0], 'w', &Node::kind);
  ASSERT_NE(calc, graphs[0].end());
  EXPECT_EQ(calc->bytes, 2 * 1000u);
}

TEST(Picture, HasAnArrowForEachMessage) {
  int done = 0;
  for_every_algorithm(5, [&](const Algorithm& algorithm, const Shape& shape) {
    SCOPED_TRACE(text(algorithm, shape));
    const Schedule schedule = algorithm.build(shape);
    std::set<std::tuple<int, Rank, Rank>> messages, own;
    for (const Transfer& t : schedule.transfers()) (t.from == t.to ? own : messages).insert({t.step, t.from, t.to});
    const auto picture = draw(schedule, "a <title> & \"more\"");
    ASSERT_TRUE(picture);
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(picture->c_str()));
    const pugi::xml_node svg = document.child("svg");
    std::size_t arrows = 0;
    for (const pugi::xml_node& path : svg.children("path"))
      arrows += std::string(path.child("title").text().get()).starts_with("rank ");
    EXPECT_EQ(arrows, messages.size());
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::distance(svg.children("circle"))), own.size());
    const double width = svg.attribute("width").as_double();
    for (const pugi::xml_node& circle : svg.children("circle")) EXPECT_LT(circle.attribute("cx").as_double(), width);
    EXPECT_EQ(std::string(svg.child("text").text().get()), "a <title> & \"more\"");
    ++done;
  });
  EXPECT_GT(done, 9);
}

TEST(Picture, OfTooMuchIsRefused) {
  const Shape shape{.collective = Collective::all_to_all, .ranks = 160};
  EXPECT_FALSE(draw(find_algorithm("pairwise", shape)->build(shape), ""));
}

TEST(Table, HasALineForEachMessageOfARank) {
  const Shape shape{.collective = Collective::all_gather, .ranks = 4};
  const Schedule schedule = find_algorithm("ring", shape)->build(shape);
  const std::string all = table(schedule), one = table(schedule, 2);
  EXPECT_EQ(std::ranges::count(all, '\n'), 1 + 4 + 4 * 3);
  EXPECT_EQ(std::ranges::count(one, '\n'), 1 + 1 + 2 * 3);
  EXPECT_NE(one.find("copy    in.0 -> out.2"), std::string::npos) << one;
  EXPECT_EQ(summary(schedule), "all_gather of 4 ranks: 3 steps, 12 messages, 1 part, 0 scratch groups");
  EXPECT_EQ(blocks_text(Buffer::output, {7, 0, 1, 2, 5, 6}), "out.0-2,5-7");
}

}  // namespace
}  // namespace tutti::formats
