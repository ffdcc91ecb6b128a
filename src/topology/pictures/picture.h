// The machine as a picture: its tree as boxes, its links and rings as a graph, its matrix in colours.
#pragma once

#include <string>

#include "topology/graph/topology.h"
#include "topology/pictures/canvas.h"
#include "topology/search/search.h"

namespace tutti::topology {

/// SVG that stands alone. Lines are as wide as what they stand for is fast.
std::string picture(const Topology& topology, const Search& search);

/// Packages, NUMA nodes with a square a CPU, PCI switches, GPUs and NICs, within `width`. The room it took.
Box draw_tree(Canvas& canvas, const Topology& topology, Point corner, double width);

/// GPUs on a circle, a band for each pair's NVLinks, and the rings in it; beside them what the colours mean. Of a
/// machine of which no ring of NVLinks goes round, the trees of one root instead. The room it took.
Box draw_links(Canvas& canvas, const Topology& topology, const Search& search, Point corner);

/// The matrix of paths. The room it took.
Box draw_matrix(Canvas& canvas, const Topology& topology, Point corner);

}  // namespace tutti::topology
