#include "analysis/formats/svg.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <vector>

#include "analysis/formats/table.h"
#include "base/markup.h"

namespace tutti::formats {
namespace {

constexpr std::size_t arrows_max = 20000;
constexpr int left = 70, top = 64, row = 36, column = 96, margin = 24, gap = 14;

struct Message {
  bool reduces = false;
  std::map<std::pair<Buffer, Buffer>, std::pair<std::vector<int>, std::vector<int>>> blocks;
};
using Messages = std::map<std::tuple<int, Rank, Rank>, Message>;  // by step, from, to

int y_of(Rank rank) {
  return top + rank * row + row / 2;
}

std::string tip(Rank from, Rank to, const Message& message) {
  std::string text = from == to ? fmt::format("rank {}", from) : fmt::format("rank {} to rank {}", from, to);
  for (const auto& [buffers, blocks] : message.blocks)
    text += fmt::format("\n{} {} -> {}", message.reduces ? "reduce" : "copy", blocks_text(buffers.first, blocks.first),
                        blocks_text(buffers.second, blocks.second));
  return escaped(text);
}

Messages messages_of(const Schedule& schedule) {
  Messages messages;
  for (const Transfer& t : schedule.transfers()) {
    Message& message = messages[{t.step, t.from, t.to}];
    message.reduces = message.reduces || t.kind == Kind::reduce;
    auto& [src, dst] = message.blocks[{t.src.buffer, t.dst.buffer}];
    src.push_back(t.src.block);
    dst.push_back(t.dst.block);
  }
  return messages;
}

void draw_frame(std::string& text, const Schedule& schedule, std::string_view title) {
  const int width = left + schedule.steps() * column + margin, height = top + schedule.ranks() * row + margin;
  text += fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<defs>\n",
      width, height);
  for (const auto& [id, colour] : {std::pair{"copy", "#1f5fbf"}, {"reduce", "#c0392b"}})
    text += fmt::format(
        "<marker id=\"{0}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
        "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"{1}\"/></marker>\n",
        id, colour);
  text += fmt::format(
      "</defs>\n<style>.copy{{stroke:#1f5fbf;fill:none;marker-end:url(#copy)}} "
      ".reduce{{stroke:#c0392b;fill:none;marker-end:url(#reduce)}} .own{{stroke:none;marker-end:none}} "
      "circle.copy{{fill:#1f5fbf}} circle.reduce{{fill:#c0392b}} path:hover{{stroke-width:4}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"{}\" y=\"22\" font-weight=\"bold\">{}</text>\n",
      margin / 2, escaped(title));
  for (int step = 0; step < schedule.steps(); ++step)
    text += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/><text x=\"{}\" y=\"{}\" "
        "text-anchor=\"middle\">step {}</text>\n",
        left + step * column, top, column, schedule.ranks() * row, step % 2 == 0 ? "#f2f4f7" : "#fafbfc",
        left + step * column + column / 2, top - 8, step);
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    text += fmt::format(
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#b8bec6\"/><text x=\"{}\" y=\"{}\" "
        "text-anchor=\"end\">rank {}</text>\n",
        left, y_of(rank), left + schedule.steps() * column, y_of(rank), left - 8, y_of(rank) + 4, rank);
}

}  // namespace

Result<std::string> draw(const Schedule& schedule, std::string_view title) {
  const Messages messages = messages_of(schedule);
  if (messages.size() > arrows_max)
    return invalid_argument(fmt::format("{} messages are too many to draw: at most {}", messages.size(), arrows_max));
  std::string text;
  draw_frame(text, schedule, title);
  for (const auto& [key, message] : messages) {
    const auto [step, from, to] = key;
    const char* const style = message.reduces ? "reduce" : "copy";
    const int x = left + step * column;
    if (from == to)
      text += fmt::format("<circle class=\"{} own\" cx=\"{}\" cy=\"{}\" r=\"4\"><title>{}</title></circle>\n", style,
                          x + column - gap, y_of(to), tip(from, to, message));
    else
      text += fmt::format("<path class=\"{}\" stroke-width=\"1.5\" d=\"M{} {}L{} {}\"><title>{}</title></path>\n",
                          style, x + gap, y_of(from), x + column - gap, y_of(to), tip(from, to, message));
  }
  return text + "</svg>\n";
}

}  // namespace tutti::formats
