// A job as a picture: its hosts side by side, the ranks in them, and the ring through the ranks.
#pragma once

#include <string>
#include <vector>

#include "analysis/pictures/canvas.h"
#include "topology/search/job.h"

namespace tutti::topology {

/// A self-contained SVG. Hosts are in the order of the ring; of many that are alike, the first are drawn and the others
/// counted.
std::string job_picture(const Job& job);

/// The same as text: hosts, levels, order, and how often the ring enters a host.
std::string job_text(const Job& job);

/// A GPU with its ranks, or the ranks of a place that have no GPU.
struct JobCell {
  Box box = {};
  std::string name = {};  ///< of the GPU; empty: none
  std::vector<int> ranks = {};
  std::vector<Box> chips = {};  ///< of each rank
};

/// A package, NUMA node, cache or switch, and what is in it.
struct JobPart {
  Box box = {};
  std::string title = {};
  std::string style = {};
  std::vector<JobPart> parts = {};
  std::vector<JobCell> cells = {};
  std::vector<std::string> nics = {};
  Point nic_corner = {};
};

/// A host, or several that are counted instead of drawn.
struct JobHostBox {
  int host = 0;             ///< index of Job::hosts; of the first, if they are counted
  int counted = 0;          ///< how many hosts this box stands for without drawing them
  int like = -1;            ///< counted: the host that all of them are like; -1: none
  int row = 0, column = 0;  ///< in the grid
  JobPart whole = {};
};

/// What all hosts of a picture have in common.
struct JobStyle {
  double chip_width = 0;                  ///< of a rank
  bool caches = false, switches = false;  ///< ranks that share one are framed
};

struct JobLayout {
  std::vector<JobHostBox> hosts;
  std::vector<int> box_of_host;  ///< host → index of `hosts`
  std::vector<Box> chips;        ///< rank → where it is drawn; no width: it is not
  JobStyle style = {};
  double gutter = 0;  ///< between two hosts of the grid, and around it
  Box area = {};      ///< all of it, gutters included
};

/// What is in one host, measured; places are relative to the corner of what they are in.
JobPart host_part(const Job& job, int host, const JobStyle& style);

/// Text of the height and width that a host's name takes above what is in it.
inline constexpr double job_header = 28;
inline constexpr double chip_height = 21;

JobLayout job_layout(const Job& job, Point corner);

void draw_ring(Canvas& canvas, const Job& job, const JobLayout& layout);

}  // namespace tutti::topology
