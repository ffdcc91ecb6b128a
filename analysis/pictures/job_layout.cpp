// Where the hosts of a job's picture are: in a grid, in the order of the ring; of many alike hosts the first few.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "analysis/pictures/job_picture.h"

namespace tutti::topology {
namespace {

constexpr std::size_t hosts_drawn_max = 16;  // more are drawn only if they differ
constexpr std::size_t alike_drawn = 3, boxes_max = 48;
constexpr double gutter = 46, width_to_height = 2.2, row_max = 1500;

/// Equal for hosts whose boxes would look the same but for the numbers of their ranks.
class Alikeness {
 public:
  explicit Alikeness(const Job& job) : job_(job), looks_(job.hosts.size()), nth_(job.locations.size()) {
    std::vector<int> ranks(job.hosts.size(), 0);
    for (std::size_t rank = 0; rank < job.locations.size(); ++rank) {
      const RankLocation& location = job.locations[rank];
      nth_[rank] = ranks[static_cast<std::size_t>(location.host)]++;
      look(location.host) += fmt::format("{},{},{},{},{},{};", location.package, location.numa, location.cache,
                                         location.nvlink, location.pci_switch, job.devices[rank]);
    }
    for (std::size_t host = 0; host < looks_.size(); ++host)
      looks_[host] += fmt::format("machine {}", job.hosts[host].machine);
    add_ring();
  }
  bool alike(int one, int other) { return look(one) == look(other); }

 private:
  std::string& look(int host) { return looks_[static_cast<std::size_t>(host)]; }

  /// The ring inside a host; where it comes and goes, how often it does so is enough.
  void add_ring() {
    const std::vector<int> entries = entries_of(job_);
    for (std::size_t host = 0; host < looks_.size(); ++host) looks_[host] += fmt::format("|{}|", entries[host]);
    if (job_.hosts.size() < 2) return;
    // A host in which the ring begins is entered by its last step, so its order is read from there.
    std::size_t begin = 0;
    while (begin + 1 < job_.order.size() && job_.host_of(job_.order[begin]) == job_.host_of(job_.order.back())) ++begin;
    for (std::size_t i = 0; i < job_.order.size(); ++i) {
      const int rank = job_.order[(begin + i) % job_.order.size()], host = job_.host_of(rank);
      if (entries[static_cast<std::size_t>(host)] == 1)
        look(host) += fmt::format("{} ", nth_[static_cast<std::size_t>(rank)]);
    }
  }

  const Job& job_;
  std::vector<std::string> looks_;
  std::vector<int> nth_;  // by rank: which of its host's ranks it is
};

/// Which hosts get a box, along the ring, and which are counted.
void choose_boxes(const Job& job, JobLayout& layout) {
  const std::vector<int> hosts = hosts_along_ring(job);
  layout.box_of_host.assign(job.hosts.size(), -1);
  Alikeness looks(job);
  const auto box_for = [&](int host, JobHostBox box) {
    box.host = host;
    layout.box_of_host[static_cast<std::size_t>(host)] = static_cast<int>(layout.hosts.size());
    layout.hosts.push_back(std::move(box));
  };
  const auto count = [&](std::span<const int> counted, int like) {
    box_for(counted.front(), {.counted = static_cast<int>(counted.size()), .like = like});
    for (const int host : counted)
      layout.box_of_host[static_cast<std::size_t>(host)] = static_cast<int>(layout.hosts.size()) - 1;
  };
  const std::span<const int> all(hosts);
  for (std::size_t at = 0; at < hosts.size();) {
    if (layout.hosts.size() + 1 >= boxes_max && at + 1 < hosts.size()) return count(all.subspan(at), -1);
    std::size_t end = at + 1;
    while (end < hosts.size() && looks.alike(hosts[at], hosts[end])) ++end;
    const bool sums_up = hosts.size() > hosts_drawn_max && end - at > alike_drawn + 1;
    const std::size_t drawn = sums_up ? at + alike_drawn : at + 1;
    for (; at < drawn; ++at) box_for(hosts[at], {});
    if (sums_up) count(all.subspan(at, end - at), hosts[at - 1]);
    if (sums_up) at = end;
  }
}

void find_chips(const JobPart& part, Point at, JobLayout& layout) {
  for (const JobPart& inner : part.parts) find_chips(inner, {at.x + inner.box.x, at.y + inner.box.y}, layout);
  for (const JobCell& cell : part.cells)
    for (std::size_t i = 0; i < cell.ranks.size(); ++i) {
      const Box& chip = cell.chips[i];
      layout.chips[static_cast<std::size_t>(cell.ranks[i])] = {at.x + cell.box.x + chip.x, at.y + cell.box.y + chip.y,
                                                               chip.width, chip.height};
    }
}

/// A picture that is a little wider than high, as far as possible without gaps in its last row.
int columns_for(int boxes, double width, double height) {
  if (boxes <= 3 && boxes * width <= row_max) return boxes;
  const double wanted = std::sqrt(boxes * width_to_height * height / width);
  const auto badness = [&](int columns) {
    const int gaps = (boxes + columns - 1) / columns * columns - boxes;
    return std::abs(columns - wanted) + 0.75 * gaps;
  };
  int best = std::clamp(static_cast<int>(wanted), 1, boxes);
  for (int columns = std::max(best - 1, 1); columns <= std::min(best + 3, boxes); ++columns)
    if (badness(columns) < badness(best)) best = columns;
  return best;
}

}  // namespace

JobLayout job_layout(const Job& job, Point corner) {
  const auto digits = static_cast<double>(std::to_string(job.locations.size() - 1).size());
  JobLayout layout{.chips = std::vector<Box>(job.locations.size()),
                   .style = {.chip_width = std::max(26.0, digits * 7 + 10),
                             .caches = has_level_of(job, cache_part),
                             .switches = has_level_of(job, switch_part)},
                   .gutter = job.hosts.size() > 1 ? gutter : 0};
  choose_boxes(job, layout);
  double widest = 0, tallest = 0;
  for (JobHostBox& box : layout.hosts) {
    if (box.counted > 0) continue;
    box.whole = host_part(job, box.host, layout.style);
    widest = std::max(widest, box.whole.box.width);
    tallest = std::max(tallest, box.whole.box.height);
  }
  const int columns =
      columns_for(static_cast<int>(layout.hosts.size()), widest + layout.gutter, tallest + layout.gutter);
  for (std::size_t i = 0; i < layout.hosts.size(); ++i) {
    JobHostBox& box = layout.hosts[i];
    box.row = static_cast<int>(i) / columns;
    box.column = static_cast<int>(i) % columns;
    box.whole.box = {corner.x + layout.gutter + box.column * (widest + layout.gutter),
                     corner.y + layout.gutter / 2 + box.row * (tallest + layout.gutter), widest, tallest};
    if (box.counted == 0) find_chips(box.whole, {box.whole.box.x, box.whole.box.y}, layout);
  }
  const int rows = layout.hosts.back().row + 1;
  layout.area = {corner.x, corner.y, layout.gutter + columns * (widest + layout.gutter),
                 layout.gutter / 2 + rows * (tallest + layout.gutter)};
  return layout;
}

}  // namespace tutti::topology
