#include "analysis/formats/goal.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::formats {

Result<std::string> export_goal(const Schedule& schedule, const TrafficSize& size) {
  const auto graphs = TUTTI_TRY(traffic(schedule, size));
  std::string text = fmt::format("num_ranks {}\n", schedule.ranks());
  for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
    const std::vector<TrafficNode>& nodes = graphs[rank];
    text += fmt::format("\nrank {} {{\n", rank);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const TrafficNode& node = nodes[i];
      const bool sends = node.kind == TrafficNode::Kind::send;
      if (node.kind == TrafficNode::Kind::work)
        text += fmt::format("l{}: calc {}\n", i + 1, node.work_ns);
      else
        text += fmt::format("l{}: {} {}b {} {} tag {}\n", i + 1, sends ? "send" : "recv",
                            std::max<std::size_t>(node.bytes, 1), sends ? "to" : "from", node.peer, node.step);
      for (const int before : node.after) text += fmt::format("l{} requires l{}\n", i + 1, before + 1);
    }
    text += "}\n";
  }
  return text;
}

}  // namespace tutti::formats
