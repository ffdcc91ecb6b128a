// Machines from a short description: "nodes:4x8,450GB/s,1us,net=50GB/s".
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "analysis/simulator/topology.h"
#include "base/error.h"

namespace tutti::simulator {

struct Machine {
  std::shared_ptr<const Tree> tree;  ///< one of tree and torus is set
  std::shared_ptr<const Torus> torus;
  double in_switch = 0;  ///< bytes on a link per byte of a switch's sums; 0: switches do not sum
  std::string text;      ///< the complete description, including defaults

  const Topology& topology() const { return tree ? static_cast<const Topology&>(*tree) : *torus; }
};

/// KIND:[SIZES,]WORD,WORD… where a word is a rate, a time or name=value:
///
///   switch:N          rate, time; in_switch=rate (of sums that the switch makes)
///   nodes:NxG         rate, time inside a node of G; net=rate and rails=R of its links to the others,
///                     net_latency=time; pod=K nodes below a switch, taper=T, pod_latency=time
///   fattree:AxBx…xR   rate, time; taper=T (of each level's links against those below), level_latency=time
///   torus:AxBx…       rate, time of a link
///
/// for all: efficiency=fraction of a link's rate that messages get. `ranks`: the required number of ranks, 0 for any; a
/// switch takes its size from it. Errors: invalid_argument (names the wrong word).
Result<Machine> parse_machine(std::string_view spec, int ranks);

}  // namespace tutti::simulator
