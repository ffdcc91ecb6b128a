#include "analysis/formats/traffic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "formats/source.h"
#include "plan/jobs.h"
#include "plan/lower.h"

namespace tutti::formats {

std::size_t block_bytes(const Schedule& schedule, int part, std::size_t bytes) {
  int groups = 1;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    groups = std::max({groups, input_groups(schedule.collective(), schedule.ranks(), rank, schedule.root()),
                       output_groups(schedule.collective(), schedule.ranks(), rank, schedule.root())});
  if (schedule.collective() == Collective::barrier) return 0;
  return Split(bytes / index(groups), 1, schedule.parts()).part(part).count;
}

namespace {

using Messages = std::map<std::pair<int, Rank>, std::vector<Ref>>;  // by step and peer

class Graph {
 public:
  Graph(const Schedule& schedule, const TrafficSize& size, Rank rank) : schedule_(schedule), size_(size), rank_(rank) {}

  void step(const Messages& sent, const Messages& received, int step, const std::vector<const Job*>& jobs);
  std::vector<TrafficNode> nodes() && { return std::move(nodes_); }

 private:
  struct Block {
    int maker = -1;
    std::vector<int> readers = {};
  };

  int add(TrafficNode node) {
    std::ranges::sort(node.after);
    node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  Block& block(Ref ref) { return blocks_[{ref.buffer, ref.block}]; }
  std::size_t bytes(const std::vector<Ref>& refs) const {
    std::size_t sum = 0;
    for (const Ref& ref : refs) sum += block_bytes(schedule_, ref.block % schedule_.parts(), size_.bytes);
    return sum;
  }
  void make(const Job& job, const std::map<Rank, int>& receives);

  const Schedule& schedule_;
  TrafficSize size_;
  Rank rank_;
  std::vector<TrafficNode> nodes_;
  std::map<std::pair<Buffer, int>, Block> blocks_;
};

void Graph::step(const Messages& sent, const Messages& received, int step, const std::vector<const Job*>& jobs) {
  const auto of_step = [step](const Messages& messages, auto use) {
    for (auto at = messages.lower_bound({step, -1}); at != messages.end() && at->first.first == step; ++at)
      use(at->first.second, at->second);
  };
  of_step(sent, [&](Rank to, const std::vector<Ref>& blocks) {
    TrafficNode node{.kind = TrafficNode::Kind::send, .peer = to, .step = step, .bytes = bytes(blocks)};
    for (const Ref& ref : blocks)
      if (block(ref).maker >= 0) node.after.push_back(block(ref).maker);
    const int number = add(std::move(node));
    for (const Ref& ref : blocks) block(ref).readers.push_back(number);
  });
  std::map<Rank, int> receives;
  of_step(received, [&](Rank from, const std::vector<Ref>& blocks) {
    receives[from] = add({.kind = TrafficNode::Kind::receive, .peer = from, .step = step, .bytes = bytes(blocks)});
  });
  for (const Job* job : jobs) make(*job, receives);
}

void Graph::make(const Job& job, const std::map<Rank, int>& receives) {
  const bool arrives = job.sources.size() == 1 && job.sources[0].rank != rank_;
  if (arrives) {  // the receive is the whole work
    block(job.dst) = {.maker = receives.at(job.sources[0].rank)};
    return;
  }
  const double per_byte = job.sources.size() > 1 ? size_.reduce_ns_per_byte : size_.copy_ns_per_byte;
  TrafficNode node{.step = job.step, .bytes = bytes({job.dst})};
  node.work_ns = static_cast<std::size_t>(std::llround(per_byte * static_cast<double>(node.bytes)));
  for (const Operand& operand : job.sources) {
    if (operand.rank != rank_)
      node.after.push_back(receives.at(operand.rank));
    else if (block(operand.ref).maker >= 0)
      node.after.push_back(block(operand.ref).maker);
  }
  const Block& before = block(job.dst);
  node.after.insert(node.after.end(), before.readers.begin(), before.readers.end());
  const int number = add(std::move(node));
  for (const Operand& operand : job.sources)
    if (operand.rank == rank_) block(operand.ref).readers.push_back(number);
  block(job.dst) = {.maker = number};
}

}  // namespace

Result<std::vector<std::vector<TrafficNode>>> traffic(const Schedule& schedule, const TrafficSize& size) {
  if (!lowers_to(schedule, Access::slots))
    return invalid_argument(
        "in some step no order of a rank's passes lets all of them read the values at its beginning");
  const int n = schedule.ranks();
  std::vector<Messages> sent(index(n)), received(index(n));
  for (const Transfer& t : schedule.transfers())
    if (t.from != t.to) {
      sent[index(t.from)][{t.step, t.to}].push_back(t.src);
      received[index(t.to)][{t.step, t.from}].push_back(t.dst);
    }
  const Jobs jobs(schedule, Access::slots);
  std::vector<std::vector<TrafficNode>> graphs;
  for (Rank rank = 0; rank < n; ++rank) {
    Graph graph(schedule, size, rank);
    const std::vector<int>& own = jobs.of(rank);
    std::size_t next = 0;
    for (int step = 0; step < schedule.steps(); ++step) {
      std::vector<const Job*> now;
      for (; next < own.size() && jobs.job(own[next]).step == step; ++next) now.push_back(&jobs.job(own[next]));
      graph.step(sent[index(rank)], received[index(rank)], step, now);
    }
    graphs.push_back(std::move(graph).nodes());
  }
  return graphs;
}

}  // namespace tutti::formats
