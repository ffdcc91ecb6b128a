// The machine as a picture: its tree as boxes, its links and rings as a graph, its matrix in colours.
#pragma once

#include <string>

#include "analysis/pictures/canvas.h"
#include "topology/graph/topology.h"
#include "topology/search/search.h"

namespace tutti::topology {

/// A self-contained SVG. The width of a line is proportional to the rate of its link.
std::string picture(const Topology& topology, const Search& search);

/// Draws packages, NUMA nodes with a square per CPU, PCI switches, GPUs and NICs, within `width`. Returns the area
/// used.
Box draw_tree(Canvas& canvas, const Topology& topology, Point corner, double width);

/// Draws GPUs on a circle, a band for each pair's NVLinks, the rings inside it, and a legend of the colours. If no ring
/// of NVLinks passes all GPUs, draws the trees of one root instead of rings. Returns the area used.
Box draw_links(Canvas& canvas, const Topology& topology, const Search& search, Point corner);

}  // namespace tutti::topology
